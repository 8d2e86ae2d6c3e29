"""Programs compiled and run: C and LLVM IR in a process of their own, OpenCL by whatever device there is."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.core.render.building import Built

Array = NDArray[Any]
CHECKED = ("-O1", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")  # undefined behaviour ends the program
FAST = ("-O3", "-march=native", "-ffp-contract=fast")
_WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")

# Each gives `functions`: what a program's number and name lead to, to be called with its buffers and integers.
_CALLS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1] + "/all.so")
functions = lambda number, name: getattr(library, name)
"""
_JIT = """
import ctypes, pickle, sys
from tests.tools.llvm import LlvmRunner
with open(sys.argv[1] + "/texts", "rb") as file:
    level, texts = pickle.load(file)
runner, kept = LlvmRunner(level), []
def functions(number, name):
    kept.append(runner.build({"source": texts[number], "name": name}))
    return ctypes.CFUNCTYPE(None)(kept[-1].address)
"""
_CALLING = """
import pickle
import numpy as np
with open(sys.argv[1] + "/in", "rb") as file:
    calls = pickle.load(file)
def aligned(array):
    raw = np.empty(array.nbytes + 128, np.uint8)
    copy = raw[-raw.ctypes.data % 128 :][: array.nbytes].view(array.dtype)
    copy[:] = array.ravel()
    return copy
results = []
for number, (name, arrays, integers) in enumerate(calls):
    function, arrays = functions(number, name), [aligned(a) for a in arrays]
    function.restype, function.argtypes = None, [ctypes.c_void_p] * len(arrays) + [ctypes.c_int] * len(integers)
    function(*(a.ctypes.data for a in arrays), *integers)
    results.append(arrays)
with open(sys.argv[1] + "/out", "wb") as file:
    pickle.dump(results, file)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A program, what its buffers hold before it runs, the values of its variables, how many points it has."""

    built: Built
    arrays: tuple[Array, ...]
    points: int = 1
    integers: tuple[int, ...] = ()


def run(runs: Sequence[Run], flags: tuple[str, ...] = CHECKED) -> list[tuple[Array, ...]]:
    """What the buffers of each hold afterwards. All of one target. flags: of C; LLVM runs its passes where they are FAST."""
    match runs[0].built.target.name:
        case "c":
            return _run_c(runs, flags)
        case "llvm":
            return _run_llvm(runs, 3 if flags is FAST else 0)
        case _:
            return [_run_opencl(r) for r in runs]


def _run_c(runs: Sequence[Run], flags: tuple[str, ...]) -> list[tuple[Array, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sources = []
        for number, one in enumerate(runs):
            source = root / f"{number}.c"
            source.write_text(one.built.source)
            sources.append(str(source))
        compiled = subprocess.run(
            ["gcc", *_WARNINGS, *flags, "-fPIC", "-shared", *sources, "-o", str(root / "all.so"), "-lm"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert compiled.returncode == 0, compiled.stderr[:4000]
        return _called(runs, _CALLS, root)


def _run_llvm(runs: Sequence[Run], level: int) -> list[tuple[Array, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "texts").write_bytes(pickle.dumps((level, [one.built.source for one in runs])))
        return _called(runs, _JIT, Path(folder))


def _called(runs: Sequence[Run], script: str, folder: Path) -> list[tuple[Array, ...]]:
    """What a process leaves in the buffers that calls each program."""
    calls = [(one.built.listing.name, [np.array(a) for a in one.arrays], one.integers) for one in runs]
    (folder / "in").write_bytes(pickle.dumps(calls))
    command = [sys.executable, "-c", script + _CALLING, str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, f"exit code {ran.returncode}\n{ran.stderr[:4000]}"
    results: list[list[Array]] = pickle.loads((folder / "out").read_bytes())
    return [tuple(arrays) for arrays in results]


@cache
def _queue() -> Any:
    import pyopencl

    context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
    return pyopencl.CommandQueue(context)


def _run_opencl(one: Run) -> tuple[Array, ...]:
    import pyopencl as cl

    queue = _queue()
    flags: Any = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers: list[Any] = []
    for array, param in zip(one.arrays, one.built.listing.params, strict=True):
        image = param.arg[2]  # type: ignore[index]  # (number, access, image, alignment)
        if image is None:
            buffers.append(cl.Buffer(queue.context, flags, hostbuf=np.ascontiguousarray(array)))
        else:
            kind = cl.channel_type.HALF_FLOAT if array.dtype == np.float16 else cl.channel_type.FLOAT
            form = cl.ImageFormat(cl.channel_order.RGBA, kind)
            buffers.append(cl.create_image(queue.context, flags, form, shape=(image[1], image[0]), hostbuf=np.ascontiguousarray(array)))
    kernel = getattr(cl.Program(queue.context, one.built.source).build(), one.built.listing.name)
    sizes = one.built.listing.local_size or (1, 1, 1)
    kernel(queue, (one.points * sizes[0], *sizes[1:]), sizes, *buffers, *(np.int32(n) for n in one.integers))
    out = []
    for array, param, buffer in zip(one.arrays, one.built.listing.params, buffers, strict=True):
        result = np.array(array)
        image = param.arg[2]  # type: ignore[index]
        if image is None:
            cl.enqueue_copy(queue, result, buffer)
        else:
            cl.enqueue_copy(queue, result, buffer, origin=(0, 0), region=(image[1], image[0]))
        out.append(result)
    queue.finish()
    return tuple(out)
