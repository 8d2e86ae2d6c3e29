"""Graph → Listing: an order to run a kernel's values in, what it costs, and what can be proved of it."""
