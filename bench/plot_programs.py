"""`bench plot` of a run of `bench programs`: how many times as quick as OpenCL by hand each version is, one row a workload."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from bench.plot import FAINT, QUIET, STYLE, Axis, line, words
from bench.programs import HAND, HEURISTIC, NONE, NUMPY, Measured, ProgramsRun, mean

WIDTH = 960
TOP, PITCH = 96, 24
LEFT, RIGHT = 150, 720
COLOURS = {HEURISTIC: "#3f72af", NONE: "#9aa4af", NUMPY: "#c44e52"}
RADIUS = {HEURISTIC: 5.5, NONE: 4.0, NUMPY: 4.0}


def svg(run: ProgramsRun) -> str:
    """The picture of a run."""
    bottom = TOP + PITCH * len(run.workloads)
    height = bottom + 48
    speed = mean([_speed(w, HEURISTIC) for w in run.workloads])
    title = f"{len(run.workloads)} workloads, {run.cores} cores: {speed:.2f} times as quick as OpenCL by hand in the geometric mean"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        words(20, 28, title, "title"),
        words(20, 48, run.device, "small"),
        *_legend(),
        *_rows(run, bottom),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _speed(work: Measured, version: str) -> float:
    return work.versions[HAND].least_ms / work.versions[version].least_ms


def _legend() -> Iterator[str]:
    x = LEFT
    for version, name in ((HEURISTIC, "the compiler's schedule"), (NONE, "no schedule"), (NUMPY, "numpy")):
        yield f'<circle cx="{x}" cy="{TOP - 26}" r="{RADIUS[version]}" fill="{COLOURS[version]}"/>'
        yield words(x + 10, TOP - 22, name, "small")
        x += 170
    yield words(RIGHT + 20, TOP - 22, "the schedule's program", "small")


def _rows(run: ProgramsRun, bottom: int) -> Iterator[str]:
    speeds = [_speed(w, version) for w in run.workloads for version in COLOURS if version in w.versions]
    x = Axis.over(speeds, LEFT, RIGHT)
    for tick in x.ticks():
        yield line(x.at(tick), TOP - 8, x.at(tick), bottom, QUIET if math.isclose(tick, 1) else FAINT)
        yield words(x.at(tick), bottom + 18, f"{tick:g}", "small", "middle")
    yield words((LEFT + RIGHT) / 2, bottom + 36, "times the speed of OpenCL by hand", "small", "middle")
    for k, work in enumerate(run.workloads):
        y = TOP + PITCH * (k + 0.5)
        yield words(LEFT - 12, y + 4, work.name, anchor="end")
        yield line(LEFT, y, RIGHT, y, FAINT, "1 3")
        for version in (v for v in (NUMPY, NONE, HEURISTIC) if v in work.versions):
            yield f'<circle cx="{x.at(_speed(work, version)):.1f}" cy="{y:.1f}" r="{RADIUS[version]}" fill="{COLOURS[version]}"/>'
        rate = f"{work.gflops(HEURISTIC):.1f} GFLOP/s · " if work.flops else ""
        yield words(RIGHT + 20, y + 4, f"{work.versions[HEURISTIC].least_ms:.3g} ms · {rate}{work.gbytes(HEURISTIC):.1f} GB/s", "small")
