"""Programs of the target cuda as functions of this process, many of them in one text; the same interface as a device's runner.

A block's threads are fibers that take turns at barriers and matrix instructions (`shim.h`), which are swapped for plain functions that
compute the product of a warp's fragments. Undefined behaviour, misaligned accesses among it, ends the process.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.linear.interpret import Fault
from core.reference.bounded import Array
from service.device.run import NotBuilt, Ran, bound, launch_of
from tests.tools.guarded import Guarded

Json = dict[str, Any]
FOLDER = Path(__file__).parent
COMMAND = (
    "g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-fsanitize=undefined", "-fno-sanitize-recover=undefined",
    "-include", str(FOLDER / "shim.h"), "-I", str(FOLDER / "headers"),
)  # fmt: skip
PROBLEMS = {1: "threads of a block wait at different places"}
_INSTRUCTION = re.compile(
    r"^template <class A, class B> static __device__ __forceinline__ float4 mma_\w+\(.*?^}\n", re.MULTILINE | re.DOTALL
)
_BEFORE = re.compile(r"^(?=#include|#ifndef|static |struct )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Function:
    """A launchable kernel of a shared object, which must live as long."""

    module: ctypes.CDLL
    name: str


def together(programs: Sequence[Json]) -> list[Function | str]:
    """Per program a function, or what the compiler says against it. What texts begin with stands once."""
    built = _library(programs)
    if not isinstance(built, str):
        return [Function(built, f"launch_{k}") for k in range(len(programs))]
    if len(programs) == 1:
        return [f"not built: {built}"]
    middle = len(programs) // 2
    return [*together(programs[:middle]), *together(programs[middle:])]


def _library(programs: Sequence[Json]) -> ctypes.CDLL | str:
    head: dict[str, None] = {}
    bodies: list[str] = []
    for k, program in enumerate(programs):
        before, body = _parted(program["source"], program["name"], f"kernel_{k}")
        head.update(dict.fromkeys(before))
        waits = "true" if "__syncthreads()" in body or "mma_m" in body else "false"
        bodies.append(
            f"{body}\n"
            f'extern "C" int launch_{k}(void** a, const unsigned int* grid, const unsigned int* block) {{\n'
            f"    return launch([](void** a) {{ called(kernel_{k}, a); }}, a, grid, block, {waits});\n}}\n"
        )
    with tempfile.TemporaryDirectory(prefix="lathe-cuda-") as folder:
        source, library = Path(folder) / "batch.cpp", Path(folder) / "batch.so"
        source.write_text("".join([*head, *bodies]))
        done = subprocess.run([*COMMAND, str(source), "-o", str(library), "-lm"], capture_output=True, text=True, check=False)
        return done.stderr[:2000] if done.returncode else ctypes.CDLL(str(library))


def _parted(source: str, name: str, new: str) -> tuple[list[str], str]:
    """What a text begins with, piece by piece and without its matrix instructions; its kernel under another name."""
    start = source.index('extern "C" __global__')
    before = _INSTRUCTION.sub("", source[:start])
    pieces = [piece.rstrip() + "\n" for piece in _BEFORE.split(before) if piece.strip()]
    return pieces, re.sub(rf"\b{name}\(", f"{new}(", source[start:], count=1)


class CudaRunner:
    """Programs built one at a time, and runs of whatever was built."""

    def build(self, program: Json) -> Function:
        """Raises NotBuilt."""
        (built,) = together([program])
        if isinstance(built, str):
            raise NotBuilt(built)
        return built

    def run(self, program: Mapping[str, Any], kernel: Function, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Ran:
        """One launch on copies of the buffers, guards around them. Raises Fault for threads that part."""
        values = bound(program["arguments"], variables)
        launch = launch_of(program, values)
        group = launch.group or _chosen(launch.items)
        guarded = Guarded(program, buffers, values)
        arguments = guarded.arguments
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(a) for a in arguments))
        grid = (ctypes.c_uint * 3)(*(items // size for items, size in zip(launch.items, group, strict=True)))
        problem = kernel.module[kernel.name](pointers, grid, (ctypes.c_uint * 3)(*group))
        if problem:
            raise Fault(PROBLEMS[problem])
        return guarded.ran()


def _chosen(items: tuple[int, ...]) -> tuple[int, ...]:
    """A work-group size where the program leaves it to the runtime."""
    return tuple(next((n for n in (4, 3, 2) if count and count % n == 0), 1) for count in items)
