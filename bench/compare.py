"""Two runs side by side: what changed by more than the noise.

The noise of a figure is twice the way from its least repeat to its median one, of the noisier run: one disturbed pass does not
widen it, an unsteady machine does. Where the yardstick says that the machine was slower, the earlier run is scaled by as much.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.run import KernelTimes, Run

LEAST = 0.02  # of a total; a smaller change is never told, however steady the repeats were
LEAST_KERNEL = 0.05  # of one kernel, whose time is a fraction of a millisecond
MOST_KERNELS = 10


@dataclass(frozen=True, slots=True)
class Change:
    """before and after: milliseconds, the least of the repeats. noise: a part of the whole, like `part`."""

    name: str
    before: float
    after: float
    noise: float

    @property
    def part(self) -> float:
        return self.after / self.before - 1 if self.before else 0.0

    @property
    def is_told(self) -> bool:
        return abs(self.part) > self.noise

    def __str__(self) -> str:
        return f"{self.name:26} {self.before:10.3f} → {self.after:10.3f} ms  {self.part:+7.1%}  (noise {self.noise:.1%})"


def noise(repeats: Sequence[float]) -> float:
    """How far a figure moves by itself, as a part of it."""
    least = min(repeats)
    return 2 * (statistics.median(repeats) - least) / least if least else 0.0


def change(name: str, before: Sequence[float], after: Sequence[float], least: float = LEAST) -> Change:
    return Change(name, min(before), min(after), max(least, noise(before), noise(after)))


def compared(old: Run, new: Run) -> str:
    """What a terminal shows of two runs. Raises ValueError where they share no kernel, or measured something else."""
    if (old.target, old.optimize) != (new.target, new.optimize):
        raise ValueError(f"{old.target}, {old.optimize} and {new.target}, {new.optimize} are not the same work")
    was = {kernel.id: kernel for kernel in old.kernels}
    pairs = [(was[kernel.id], kernel) for kernel in new.kernels if kernel.id in was]
    if not pairs:
        raise ValueError("the two runs share no kernel")
    machine = change("yardstick", old.yardstick_ms, new.yardstick_ms)
    scale = 1 + machine.part if machine.is_told else 1.0
    lines = [f"{len(pairs)} kernels in both, {old.compiler[:12]} → {new.compiler[:12]}"]
    if min(old.repeats, new.repeats) < 3:
        lines.append("fewer than 3 repeats on one side: the noise is not known well")
    if scale != 1:
        lines.append(f"the machine took {scale:.2f} times as long for the yardstick; the earlier times are scaled by that")
    total = change("all", *_totals(pairs, None, scale))
    stages = list(dict.fromkeys((*old.stages, *new.stages)))
    rows = [change(stage, *_totals(pairs, stage, scale)) for stage in stages if stage in old.stages and stage in new.stages]
    told = [row for row in rows if row.is_told]
    lines += [str(total) + ("" if total.is_told else "  within the noise"), ""]
    lines += [str(row) for row in told] or ["no stage changed by more than the noise"]
    lines += [f"{stage:26} only in the {'earlier' if stage in old.stages else 'later'} run" for stage in stages
              if (stage in old.stages) != (stage in new.stages)]  # fmt: skip
    lines += ["", *_kernels(pairs, scale), *_gone(old, new)]
    return "\n".join(lines)


def _totals(pairs: Sequence[tuple[KernelTimes, KernelTimes]], stage: str | None, scale: float) -> tuple[list[float], list[float]]:
    """Per pass the sum over all kernels, of one stage or of all, before and after."""
    before = _passes([old for old, _ in pairs], stage)
    return [ms * scale for ms in before], _passes([new for _, new in pairs], stage)


def _passes(kernels: Sequence[KernelTimes], stage: str | None) -> list[float]:
    count = min(len(kernel.passes) for kernel in kernels)
    return [sum(_of(kernel.passes[k], stage) for kernel in kernels) for k in range(count)]


def _of(stages: dict[str, float], stage: str | None) -> float:
    return sum(stages.values()) if stage is None else stages.get(stage, 0.0)


def _kernels(pairs: Sequence[tuple[KernelTimes, KernelTimes]], scale: float) -> list[str]:
    """The kernels that changed, those first whose change is most milliseconds."""
    rows = [change(new.id, *_totals([(old, new)], None, scale), LEAST_KERNEL) for old, new in pairs]
    told = sorted((row for row in rows if row.is_told), key=lambda row: -abs(row.after - row.before))
    slower = sum(row.part > 0 for row in told)
    head = f"kernels by more than their noise: {slower} slower, {len(told) - slower} faster"
    return [head, *map(str, told[:MOST_KERNELS])]


def _gone(old: Run, new: Run) -> list[str]:
    """Kernels that one of the runs compiled and the other refused."""
    before, after = ({refused.id: refused for refused in run.refused} for run in (old, new))
    compiled = {kernel.id for kernel in old.kernels}, {kernel.id for kernel in new.kernels}
    return [
        *(f"refused now: {id}: {after[id].message}" for id in after if id in compiled[0]),
        *(f"no longer refused: {id}" for id in before if id in compiled[1]),
    ]
