"""`bench profile`: which functions the time goes to. The profiler makes calls dearer, so these are shares, never times."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.kernels import OWN, Case, read_cases
from core import LatheError, Limits, Request, compile_kernel, read_json

ROOT = Path(__file__).parents[1]

# What pstats knows of a function: file, line and name; primitive calls, calls, own seconds, seconds with callees, callers.
Function = tuple[str, int, str]
Row = tuple[int, int, float, float, dict[Function, object]]


def profile(cases: Sequence[Case], target: str, optimize: object, top: int, *, with_callees: bool = False) -> str:
    """The functions with most time of their own, or with what they call, over all of the cases together."""
    limits = Limits()
    for case in read_cases([OWN], target, optimize):
        _whole(case, limits)
    profiler = cProfile.Profile(time.process_time_ns, 1e-9)  # CPU time: what else the machine does counts little
    for case in cases:
        profiler.enable()
        _whole(case, limits)
        profiler.disable()
    rows: dict[Function, Row] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]  # not in its stubs
    total = sum(own for _, _, own, _, _ in rows.values())
    lines = [
        f"{len(cases)} kernels, {total:.2f} s under the profiler",
        f"{'own':>7}{'with callees':>14}{'calls':>10}  function",
    ]
    for function, (_, calls, own, cumulative, _) in sorted(rows.items(), key=lambda row: -row[1][3 if with_callees else 2])[:top]:
        lines.append(f"{own / total:7.1%}{cumulative / total:14.1%}{calls:10}  {_named(function)}")
    return "\n".join(lines)


def _whole(case: Case, limits: Limits) -> None:
    with suppress(LatheError):  # what is refused took its time too
        compile_kernel(Request.from_json(read_json(case.body, limits), limits), limits)


def _named(function: Function) -> str:
    file, line, name = function
    if file.startswith("~"):
        return name
    path = Path(file)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{line} {name}"
