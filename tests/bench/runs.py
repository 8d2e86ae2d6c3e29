"""Runs made up for tests: two stages, with times as they are given."""

from __future__ import annotations

from bench.run import KernelTimes, Refused, Run


def kernel(id: str, *passes: tuple[float, float], micro_ops: int = 10) -> KernelTimes:
    """passes: milliseconds of `read` and of `lower`."""
    return KernelTimes(id, micro_ops, 100, tuple({"read": read, "lower": lower} for read, lower in passes))


def run(*kernels: KernelTimes, yardstick_ms: float = 2.0, refused: tuple[Refused, ...] = (), target: str = "opencl") -> Run:
    return Run(
        corpus=["made.jsonl"],
        target=target,
        optimize="none",
        sample=None,
        seed=0,
        repeats=3,
        python="CPython 3.11.0",
        cores=2,
        compiler="0" * 64,
        yardstick_ms=[yardstick_ms] * 3,
        kernels=kernels,
        refused=refused,
    )
