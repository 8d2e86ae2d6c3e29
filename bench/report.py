"""What a run comes to: totals, quantiles, each stage's part, the cost per micro-op, and the slowest kernels."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TypedDict

from bench.run import KernelTimes, Run

SIZES = (16, 64, 256, 1024)  # micro-ops; a class ends at each, and the last has no end
SLOWEST = 10


class Spread(TypedDict):
    """Milliseconds: the sum over all kernels, and how they lie."""

    total: float
    median: float
    p90: float
    p99: float
    slowest: float


class StageRow(Spread):
    """share: of the whole. micro_op_us: microseconds per micro-op of the sample."""

    share: float
    micro_op_us: float


class SizeRow(TypedDict):
    """Kernels of like size. micro_op_us: of all stages, their time over their micro-ops."""

    micro_ops: str
    kernels: int
    micro_op_us: float


class SlowRow(TypedDict):
    """One of the slowest. stages: those that took most of it, with their part."""

    id: str
    ms: float
    micro_ops: int
    stages: dict[str, float]


class Summary(TypedDict):
    kernels: int
    refused: int
    micro_ops: int
    all_ms: Spread
    request_ms: Spread
    compile_ms: Spread
    stages: dict[str, StageRow]
    sizes: list[SizeRow]
    slowest: list[SlowRow]


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this part of them lies; one of them, never between two."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return {
        "total": round(sum(values), 3),
        "median": round(statistics.median(values), 4),
        "p90": round(quantile(values, 0.9), 4),
        "p99": round(quantile(values, 0.99), 4),
        "slowest": round(max(values), 4),
    }


def summary(run: Run) -> Summary:
    """Of a run with at least one kernel that compiled."""
    kernels = run.kernels
    micro_ops = sum(kernel.micro_ops for kernel in kernels)
    total = sum(kernel.ms for kernel in kernels)
    stages: dict[str, StageRow] = {}
    for stage in run.stages:
        values = [kernel.best.get(stage, 0.0) for kernel in kernels]
        of_all = round(sum(values) / total, 4)
        stages[stage] = {**spread(values), "share": of_all, "micro_op_us": round(sum(values) * 1000 / max(1, micro_ops), 3)}
    slowest = sorted(kernels, key=lambda kernel: -kernel.ms)[:SLOWEST]
    return {
        "kernels": len(kernels),
        "refused": len(run.refused),
        "micro_ops": micro_ops,
        "all_ms": spread([kernel.ms for kernel in kernels]),
        "request_ms": spread([kernel.request_ms for kernel in kernels]),
        "compile_ms": spread([kernel.compile_ms for kernel in kernels]),
        "stages": stages,
        "sizes": sizes(kernels),
        "slowest": [
            {
                "id": kernel.id,
                "ms": round(kernel.ms, 3),
                "micro_ops": kernel.micro_ops,
                "stages": {stage: round(part, 3) for stage, part in kernel.shares()[:3]},
            }
            for kernel in slowest
        ],
    }


def sizes(kernels: Sequence[KernelTimes]) -> list[SizeRow]:
    """Classes that hold a kernel, by the length of the program."""
    rows: list[SizeRow] = []
    for low, high in zip((0, *SIZES), (*SIZES, None), strict=True):
        within = [kernel for kernel in kernels if low < kernel.micro_ops and (high is None or kernel.micro_ops <= high)]
        if within:
            us = sum(kernel.ms for kernel in within) * 1000 / sum(kernel.micro_ops for kernel in within)
            name = f"{low + 1} and more" if high is None else f"{low + 1} to {high}"
            rows.append({"micro_ops": name, "kernels": len(within), "micro_op_us": round(us, 2)})
    return rows


def text(run: Run, found: Summary) -> str:
    """The summary for a terminal."""
    yardstick = statistics.median(run.yardstick_ms)
    lines = [
        f"{found['kernels']} kernels of {', '.join(run.corpus)} ({found['refused']} refused), {found['micro_ops']} micro-ops",
        f"{run.target}, optimize {run.optimize}; CPU milliseconds, the best of {run.repeats} passes",
        f"{run.python}, {run.cores} cores, yardstick {yardstick:.2f} ms",
        "",
        f"{'':12}{'total':>10}{'median':>10}{'p90':>10}{'p99':>10}{'slowest':>10}{'share':>9}{'µs/micro-op':>13}",
    ]
    for name, row in (("all", found["all_ms"]), ("request", found["request_ms"]), ("compile", found["compile_ms"])):
        part = row["total"] / found["all_ms"]["total"]
        lines.append(_line(name, row, part, row["total"] * 1000 / max(1, found["micro_ops"])))
    lines.append("")
    lines += [_line(stage, stages, stages["share"], stages["micro_op_us"]) for stage, stages in found["stages"].items()]
    lines += ["", "by micro-ops"]
    lines += [
        f"  {size['micro_ops']:>14}  {size['kernels']:5} kernels  {size['micro_op_us']:8.1f} µs per micro-op" for size in found["sizes"]
    ]
    lines += ["", "slowest"]
    for slow in found["slowest"]:
        parts = ", ".join(f"{stage} {part:.0%}" for stage, part in slow["stages"].items())
        lines.append(f"  {slow['id']:24} {slow['ms']:9.2f} ms  {slow['micro_ops']:6} micro-ops  {parts}")
    lines += [f"  refused {refused.id}: {refused.category}: {refused.message}" for refused in run.refused[:SLOWEST]]
    return "\n".join(lines)


def _line(name: str, row: Spread, share: float, micro_op_us: float) -> str:
    return (
        f"{name:12}{row['total']:10.1f}{row['median']:10.3f}{row['p90']:10.3f}{row['p99']:10.3f}{row['slowest']:10.2f}"
        f"{share:9.1%}{micro_op_us:13.2f}"
    )
