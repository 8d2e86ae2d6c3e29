"""The service around the compiler: HTTP, worker processes, stores, devices.

It carries a request to `core` and a program back. Parts are plugged together in `app` and `__main__` only; what may import
what stands in ARCHITECTURE.md.
"""
