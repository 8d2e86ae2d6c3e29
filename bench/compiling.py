"""`bench compile`: the sample, several times over, each kernel's stages timed."""

from __future__ import annotations

import gc
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.kernels import OWN, Case, read_cases
from bench.run import KernelTimes, Refused, Run
from bench.stages import Timed, timed, yardstick
from core import COMPILER, LatheError, Limits

YARDSTICKS = 20  # spread over a pass


def measure(
    cases: Sequence[Case],
    repeats: int,
    *,
    files: Sequence[Path],
    target: str,
    optimize: object,
    sample: int | None,
    seed: int,
    tell: Callable[[str], None],
) -> Run:
    """All kernels once, then all of them again, so that a disturbance hits no kernel in every pass.

    The first pass is preceded by one over the project's own kernels that does not count: tables of rules are compiled at their
    first use.
    """
    limits = Limits()
    refused: dict[str, Refused] = {}
    found: dict[str, list[Timed]] = {case.id: [] for case in cases}
    for case in read_cases([OWN], target, optimize):
        _attempt(case, limits, {})
    yards: list[float] = []
    gc.collect()
    gc.freeze()  # what is here now is nobody's garbage; collecting it again and again is no kernel's cost
    try:
        for number in range(repeats):
            gc.collect()
            moments: list[float] = []
            for k, case in enumerate(cases):
                if k * YARDSTICKS // len(cases) >= len(moments):
                    moments.append(yardstick())
                if case.id not in refused:
                    result = _attempt(case, limits, refused)
                    if result is not None:
                        found[case.id].append(result)
            yards.append(statistics.median(moments))
            tell(f"pass {number + 1} of {repeats}")
    finally:
        gc.unfreeze()
    kernels = tuple(
        KernelTimes(id, times[0].micro_ops, times[0].source_chars, tuple(t.ms for t in times)) for id, times in found.items() if times
    )
    return Run(
        corpus=[file.name for file in files],
        target=target,
        optimize=optimize,
        sample=sample,
        seed=seed,
        repeats=repeats,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        cores=len(os.sched_getaffinity(0)),
        compiler=COMPILER,
        yardstick_ms=[round(ms, 4) for ms in yards],
        kernels=kernels,
        refused=tuple(refused.values()),
    )


def _attempt(case: Case, limits: Limits, refused: dict[str, Refused]) -> Timed | None:
    try:
        return timed(case.body, limits)
    except LatheError as error:
        refused[case.id] = Refused(case.id, error.category, str(error)[:200])
        return None
