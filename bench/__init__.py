"""What Lathe costs, measured: compile time by stage, and cache hits beside a bare server. `docs/bench.md` says how to read it.

Outside of the program: it may look into every room of `core` and `service`, and neither of them knows it.
"""
