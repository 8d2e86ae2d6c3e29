"""`bench programs`: the named workloads on this machine's OpenCL device, each as several versions, in turns.

Versions are the compiler's own schedule, the same kernel without one, OpenCL written by hand, and numpy. Every result is compared with
numpy's before anything is timed.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.compare import LEAST_KERNEL, Change, change
from bench.device import Device, Launch, Timed
from bench.handwritten import handwritten
from bench.workloads import Array, Workload
from core import COMPILER, Request, compile_kernel
from core.schedule.heuristic import Decision

HEURISTIC, NONE, HAND, NUMPY = "heuristic", "none", "by hand", "numpy"
VERSIONS = (HEURISTIC, NONE, HAND, NUMPY)
TOLERANCE = 2e-3  # of the largest result: sums in another order


@dataclass(frozen=True)
class Times:
    """Milliseconds of one version, by round: on the device's clock (numpy: on the wall), and of CPU, all threads."""

    device_ms: list[float]
    cpu_ms: list[float]

    @property
    def least_ms(self) -> float:
        return min(self.device_ms)


@dataclass(frozen=True)
class Measured:
    """One workload. bytes: of all buffers, each once. schedule: the options chosen. model_ms: the cost model's CPU time, where it chose.

    versions: without `none` where that computes each row anew for every element.
    """

    name: str
    flops: int
    bytes: int
    schedule: list[str]
    model_ms: float | None
    versions: dict[str, Times]

    def gflops(self, version: str) -> float:
        return self.flops / self.versions[version].least_ms / 1e6

    def gbytes(self, version: str) -> float:
        return self.bytes / self.versions[version].least_ms / 1e6

    @property
    def model_ratio(self) -> float | None:
        """The model's CPU time over what was measured."""
        return None if self.model_ms is None else self.model_ms / min(self.versions[HEURISTIC].cpu_ms)


@dataclass(frozen=True)
class ProgramsRun:
    device: str
    python: str
    cores: int
    compiler: str
    rounds: int
    workloads: tuple[Measured, ...]

    def to_json(self) -> dict[str, object]:
        return {"bench": "programs", **asdict(self), "summary": summary(self)}


def read_programs(value: dict[str, object], file: Path) -> ProgramsRun:
    """A stored run. Raises ValueError where the value is none."""
    try:
        rows: list[dict[str, object]] = value["workloads"]  # type: ignore[assignment]
        workloads = tuple(
            Measured(**{**row, "versions": {name: Times(**times) for name, times in row["versions"].items()}})  # type: ignore[arg-type,attr-defined]
            for row in rows
        )
        facts = {name: value[name] for name in ("device", "python", "cores", "compiler", "rounds")}
        return ProgramsRun(**facts, workloads=workloads)  # type: ignore[arg-type]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} holds a run of another form: {error}") from None


def measure(workloads: Sequence[Workload], rounds: int, seconds: float, tell: Callable[[str], None]) -> ProgramsRun:
    """seconds: for each version in each round; a version that takes longer runs once."""
    device = Device()
    found = []
    for work in workloads:
        tell(work.name)
        found.append(_measured(device, work, rounds, seconds))
    return ProgramsRun(
        device=device.name,
        python=f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}",
        cores=len(os.sched_getaffinity(0)),
        compiler=COMPILER,
        rounds=rounds,
        workloads=tuple(found),
    )


def _measured(device: Device, work: Workload, rounds: int, seconds: float) -> Measured:
    data = work.data()
    want = work.numpy(*data)
    inputs = [device.holding(array) for array in data]
    runs: dict[str, Callable[[float], Timed]] = {}
    schedule: list[str] = []
    model_ms = None
    for version in (HEURISTIC,) if work.is_fused else (HEURISTIC, NONE):
        seen: dict[str, object] = {}
        body = {"ast": work.ast, "device": {"target": "opencl", "device_class": "cpu"}, "optimize": version}
        program = compile_kernel(Request.from_json(body), watch=seen.__setitem__)
        value: dict[str, Any] = program.to_json()
        if version == HEURISTIC:
            schedule = [" ".join(str(part) for part in option.values() if part is not None) for option in value["applied"]]
            model_ms = _model_ms(seen.get("decisions", ()))
        local = value["local_size"]
        items = [int(n) * (int(local[k]) if local else 1) for k, n in enumerate(value["global_size"])]
        out = device.holding(np.empty(work.output, np.float32))
        buffers = [out if a["index"] == 0 else inputs[a["index"] - 1] for a in value["arguments"]]
        launch = Launch(device, value["source"], value["name"], items, local, buffers)
        runs[version] = _checked(launch, device.read(out, np.empty_like(want)), want, work, version)
    written = handwritten(work)
    out = device.holding(np.empty(work.output, np.float32))
    launch = Launch(device, written.source, "k", written.items, written.group, [out, *inputs])
    runs[HAND] = _checked(launch, device.read(out, np.empty_like(want)), want, work, HAND)
    runs[NUMPY] = lambda limit: _host(lambda: work.numpy(*data), limit)
    times: dict[str, list[Timed]] = {version: [] for version in runs}
    for _ in range(rounds):
        for version, run in runs.items():
            times[version].append(run(seconds))
    versions = {v: Times([round(t.device_ms, 5) for t in all_], [round(t.cpu_ms, 5) for t in all_]) for v, all_ in times.items()}
    return Measured(work.name, work.flops, work.bytes, schedule, model_ms, versions)


def _checked(launch: Launch, got: Array, want: Array, work: Workload, version: str) -> Callable[[float], Timed]:
    """Raises ValueError for a program that is wrong: its time would mean nothing."""
    error = float(np.max(np.abs(got - want))) / max(1.0, float(np.max(np.abs(want))))
    if not error <= TOLERANCE:
        raise ValueError(f"{work.name}, {version}: the result is {error:.2g} of the largest off")
    return launch.timed


def _host(call: Callable[[], object], seconds: float) -> Timed:
    end, cpu = time.perf_counter() + seconds, time.process_time()
    least, count = math.inf, 0
    while not count or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        least, count = min(least, time.perf_counter() - begin), count + 1
    return Timed(least * 1e3, (time.process_time() - cpu) * 1e3 / count)


def _model_ms(decisions: object) -> float | None:
    """What the cost model said of the schedule that it chose."""
    assert isinstance(decisions, tuple)
    said = [d.estimate_us for d in decisions if isinstance(d, Decision) and d.estimate_us is not None]
    return said[-1] / 1e3 if said else None


def mean(ratios: Sequence[float]) -> float:
    """The geometric one."""
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios)) if ratios else math.nan


def summary(run: ProgramsRun) -> dict[str, object]:
    """How many times as quick as each other version the heuristic's programs are; and how far the model is off."""
    speed = {
        version: round(
            mean([w.versions[version].least_ms / w.versions[HEURISTIC].least_ms for w in run.workloads if version in w.versions]), 3
        )
        for version in VERSIONS
        if version != HEURISTIC
    }
    ratios = sorted(w.model_ratio for w in run.workloads if w.model_ratio is not None)
    if not ratios:
        return {"speed": speed, "model": None}
    within = sum(0.5 <= ratio <= 2 for ratio in ratios)
    model = {"least": ratios[0], "median": statistics.median(ratios), "greatest": ratios[-1], "within_two": within, "of": len(ratios)}
    return {"speed": speed, "model": {name: round(value, 3) for name, value in model.items()}}


def text(run: ProgramsRun) -> str:
    """For a terminal."""
    lines = [
        f"{run.device}, {run.cores} cores; {run.python}",
        f"milliseconds on the device, the least of {run.rounds} rounds; model: its CPU time over the CPU time measured",
        "",
        f"{'':18}" + "".join(f"{version:>11}" for version in VERSIONS) + f"{'GFLOP/s':>10}{'GB/s':>8}{'model':>8}  schedule",
    ]
    for w in run.workloads:
        ratio = "" if w.model_ratio is None else f"{w.model_ratio:.2f}"
        times = "".join(f"{w.versions[v].least_ms:11.3f}" if v in w.versions else f"{'':11}" for v in VERSIONS)
        lines.append(f"{w.name:18}{times}{w.gflops(HEURISTIC):10.1f}{w.gbytes(HEURISTIC):8.1f}{ratio:>8}  {', '.join(w.schedule)}")
    found = summary(run)
    speed = found["speed"]
    assert isinstance(speed, dict)
    lines += [
        "",
        "the compiler's schedule is, in the geometric mean, "
        + ", ".join(f"{times:g} times as quick as {name}" for name, times in speed.items()),
    ]
    if isinstance(found["model"], dict):
        m = found["model"]
        lines.append(
            f"the model: {m['least']:g} to {m['greatest']:g} times, median {m['median']:g}; within two: {m['within_two']:g} of {m['of']:g}"
        )
    return "\n".join(lines)


def compared(old: ProgramsRun, new: ProgramsRun) -> str:
    """What changed by more than the noise. Raises ValueError where the runs share no workload, or are of different devices."""
    if old.device != new.device:
        raise ValueError(f"{old.device} and {new.device} are not the same device")
    was = {w.name: w for w in old.workloads}
    pairs = [(was[w.name], w) for w in new.workloads if w.name in was]
    if not pairs:
        raise ValueError("the two runs share no workload")
    machine = _change("by hand", pairs, HAND)
    lines = [f"{len(pairs)} workloads in both, {old.compiler[:12]} → {new.compiler[:12]}"]
    if machine.is_told:
        lines.append(f"programs by hand, which are the same, took {1 + machine.part:.2f} times as long: so much is the machine's")
    for version in (HEURISTIC, NONE):
        both = [(before, after) for before, after in pairs if version in before.versions and version in after.versions]
        told = [c for c in (_of_one(before, after, version) for before, after in both) if c.is_told]
        slower = sum(c.part > 0 for c in told)
        lines += ["", f"{version}: {slower} slower, {len(told) - slower} faster", *map(str, told)]
    return "\n".join(lines)


def _of_one(old: Measured, new: Measured, version: str) -> Change:
    return change(new.name, old.versions[version].device_ms, new.versions[version].device_ms, LEAST_KERNEL)


def _change(name: str, pairs: Sequence[tuple[Measured, Measured]], version: str) -> Change:
    """Of all workloads together, by round."""
    sums = [[sum(times) for times in zip(*(w[side].versions[version].device_ms for w in pairs), strict=False)] for side in (0, 1)]
    return change(name, sums[0], sums[1])


def stored(run: ProgramsRun) -> str:
    return json.dumps(run.to_json(), separators=(",", ":")) + "\n"
