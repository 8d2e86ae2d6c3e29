"""Processes that compile: `pool` keeps them within limits and replaces the lost, `task` is what runs inside one."""
