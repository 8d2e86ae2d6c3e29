"""Runs compiled kernels and compares them with what they mean: OpenCL on the first attached device, C by the machine's
compiler, LLVM IR by LLVM.

Each program runs in a process that may die, with guard zones around its buffers. `assert_means` is the whole of it for most tests.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from core import Request
from core.compiler import compile_kernel
from core.program import Program
from core.reference import evaluate, sample_inputs, sample_variables
from core.reference.bounded import Array
from service.device.device import Trial, Verdict
from service.device.judge import judge
from service.device.opencl import begin
from service.device.run import Ran, Runner, bound
from tests.tools.fibers.emulator import LANGUAGES, FiberRunner
from tests.tools.guarded import Guarded
from tests.tools.llvm import LlvmRunner
from tests.tools.ptx.evaluator import PtxRunner
from tests.tools.wgsl.runner import WgslRunner

Json = dict[str, Any]
TARGETS = ("opencl", "c", "llvm")
SECONDS = 60.0
CC = ("gcc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-w")  # no -fwrapv, no other promise: the text must not need any


class CRunner:
    """A C program as a function in this process, with the same interface as an OpenCL device's runner."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._flags = tuple(flags)

    def build(self, program: Mapping[str, Any]) -> Any:
        with tempfile.TemporaryDirectory(prefix="lathe-c-") as folder:  # a loaded library needs its file no more
            source = Path(folder) / "k.c"
            library = source.with_suffix(".so")
            source.write_text(program["source"])
            done = subprocess.run([*CC, *self._flags, str(source), "-o", str(library), "-lm"], capture_output=True, text=True, check=False)
            if done.returncode:
                raise AssertionError(f"the C compiler rejects the text:\n{done.stderr[:2000]}")
            function = ctypes.CDLL(str(library))[program["name"]]
        function.restype = None
        return function

    def run(self, program: Mapping[str, Any], kernel: Any, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Ran:
        guarded = Guarded(program, buffers, bound(program["arguments"], variables))
        kernel(*guarded.arguments)
        return guarded.ran()


_RUNNERS: dict[str, Callable[[], Any]] = {
    "opencl": lambda: Runner((0, 0)),
    "c": CRunner,
    **{target: partial(FiberRunner, target) for target in (*LANGUAGES, "fibers")},
    "llvm": LlvmRunner,
    "ptx": PtxRunner,
    "wgsl": WgslRunner,
}
_runners: dict[str, Any] = {}  # in the process that runs programs


def runner_of(target: str) -> Any:
    """What builds and runs programs in this process, made when it is first needed."""
    if target not in _runners:
        _runners[target] = _RUNNERS[target]()
    return _runners[target]


def _judged(target: str, trial: Trial) -> Verdict:
    return judge(runner_of(target), trial)


def _ran(target: str, program: Json, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Ran:
    runner = runner_of(target)
    return runner.run(program, runner.build(program), buffers, variables)  # type: ignore[no-any-return]  # both runners give a Ran


@dataclass(slots=True)
class Processes:
    """One process per target, started when it is first needed."""

    pools: dict[str, ProcessPool] = field(default_factory=dict)

    def of(self, target: str) -> ProcessPool:
        if target not in self.pools:
            folder = os.environ.get("POCL_CACHE_DIR", "")
            self.pools[target] = ProcessPool(max_workers=1, initializer=begin, initargs=(folder, 0), context=get_context("spawn"))
        return self.pools[target]

    def close(self) -> None:
        for pool in self.pools.values():
            pool.stop()  # type: ignore[no-untyped-call]  # pebble's
            pool.join()
        self.pools.clear()


PROCESSES = Processes()


def compiled(ast: Json, target: str, optimize: object = "none", device: Json | None = None) -> tuple[Program, Json]:
    """The program of a kernel, and the request it is the answer to."""
    body: Json = {"ast": ast, "device": {"target": target, **(device or {})}, "optimize": optimize}
    return compile_kernel(Request.from_json(body)), body


def run_opencl(program: Program, buffers: Mapping[int, Array], variables: Mapping[str, int] | None = None) -> Ran:
    """What an OpenCL program leaves in its buffers. Raises ProcessExpired where it ends its process."""
    return run("opencl", program.to_json(), buffers, variables)


def run_c(program: Program, buffers: Mapping[int, Array], variables: Mapping[str, int] | None = None) -> Ran:
    """The same for a C program."""
    return run("c", program.to_json(), buffers, variables)


def run(target: str, program: Json, buffers: Mapping[int, Array], variables: Mapping[str, int] | None = None) -> Ran:
    """What a program of this target leaves in its buffers."""
    future = PROCESSES.of(target).schedule(_ran, args=[target, program, dict(buffers), dict(variables or {})], timeout=SECONDS)
    ran: Ran = future.result()
    return ran


def verdict(
    ast: Json,
    target: str,
    optimize: object = "none",
    runs: Sequence[tuple[int, bool]] = ((0, False),),
    device: Json | None = None,
    points: int = 1 << 26,
) -> Verdict:
    """The verdict of a kernel, compiled and run. points: of nodes that the reference computes at most; else it raises LimitExceeded."""
    program, body = compiled(ast, target, optimize, device)
    trial = Trial(program.to_json(), body, tuple(runs), points=points)
    try:
        found: Verdict = PROCESSES.of(target).schedule(_judged, args=[target, trial], timeout=SECONDS).result()
    except ProcessExpired as error:
        found = Verdict("wrong", "crash", f"exit code {error.exitcode}")
    except NotInTime:
        found = Verdict("wrong", "crash", f"not done within {SECONDS:g} s")
    return found


def assert_means(
    ast: Json, target: str, optimize: object = "none", seeds: Sequence[int] = (0, 1), *, special: bool = False, device: Json | None = None
) -> None:
    """The compiled kernel does what the kernel means, for inputs by these seeds (and with special values among them)."""
    runs = [(seed, False) for seed in seeds] + ([(seed, True) for seed in seeds] if special else [])
    found = verdict(ast, target, optimize, runs, device)
    if found.verdict != "right":
        program, _ = compiled(ast, target, optimize, device)
        raise AssertionError(f"{found.verdict}, {found.why}: {found.detail}\n{_worst(found)}\n{program.source}")


def _worst(found: Verdict) -> str:
    return "\n".join(str(run) for run in found.runs[-1:])


def meaning(
    ast: Json, buffers: Mapping[int, Array] | None = None, variables: Mapping[str, int] | None = None, seed: int = 0
) -> dict[int, Array]:
    """The outputs of a kernel by the reference, elements as stored."""
    kernel = Request.from_json({"ast": ast, "device": {"target": "c"}}).kernel
    bindings = dict(variables) if variables is not None else sample_variables(kernel, seed)
    given = dict(buffers) if buffers is not None else sample_inputs(kernel, bindings, seed)
    return {number: result.values for number, result in evaluate(kernel, given, bindings).items()}
