"""Nest → raw graph: axes become launch indices, loops or elements; nodes become micro-ops; leaves become accesses of memory."""
