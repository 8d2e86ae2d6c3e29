"""Who compiles: one of those that ask for the same thing at the same moment."""
