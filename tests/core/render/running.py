"""Programs compiled and run: C by the host's compiler in a process of its own, OpenCL by whatever device there is."""

from __future__ import annotations

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

from core.targets.c import C
from tests.core.render.building import Built

Array = NDArray[Any]
CHECKED = ("-O1", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")  # undefined behaviour ends the program
FAST = ("-O3", "-march=native", "-ffp-contract=fast")
_WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")

_CALLS = """
import ctypes, sys, pickle
import numpy as np
folder = sys.argv[1]
library = ctypes.CDLL(folder + "/all.so")
with open(folder + "/in", "rb") as file:
    calls = pickle.load(file)
for name, arrays, integers in calls:
    function = getattr(library, name)
    function.restype = None
    function(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays), *(ctypes.c_int(n) for n in integers))
with open(folder + "/out", "wb") as file:
    pickle.dump([arrays for _, arrays, _ in calls], file)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A program, what its buffers hold before it runs, the values of its variables, how many points it has."""

    built: Built
    arrays: tuple[Array, ...]
    points: int = 1
    integers: tuple[int, ...] = ()


def run(runs: Sequence[Run], flags: tuple[str, ...] = CHECKED) -> list[tuple[Array, ...]]:
    """What the buffers of each hold afterwards. All of one target."""
    return _run_c(runs, flags) if runs[0].built.target is C else [_run_opencl(r) for r in runs]


def _run_c(runs: Sequence[Run], flags: tuple[str, ...]) -> list[tuple[Array, ...]]:
    import pickle

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
        calls = [(one.built.listing.name, [np.array(a) for a in one.arrays], one.integers) for one in runs]
        (root / "in").write_bytes(pickle.dumps(calls))
        ran = subprocess.run([sys.executable, "-c", _CALLS, folder], capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == 0, ran.stderr[:4000]
        results: list[list[Array]] = pickle.loads((root / "out").read_bytes())
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
