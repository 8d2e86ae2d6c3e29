"""Graph → Graph: each pass a table of rules or one idea, run in an order that `core.compiler` gives its reasons for."""
