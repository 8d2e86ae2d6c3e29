"""Programs of cuda, hip and metal as functions of this process, many of them in one text; the same interface as a device's runner.

A block's threads are fibers that take turns at barriers and matrix instructions (`launch.h`); what a language calls things stands in a
header of its own beside it. Undefined behaviour, misaligned accesses among it, ends the process.
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
FLAGS = (
    "-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off",
    "-fsanitize=undefined,float-cast-overflow",
)  # fmt: skip
GCC = ("g++", *FLAGS, "-fno-sanitize-recover=all")  # looks at how structs are aligned too, which CUDA's vectors are
CLANG = ("clang++-19", *FLAGS, "-fsanitize-trap=all")  # has vectors of the kind that the others' are
PROBLEMS = {1: "threads of a block wait at different places"}


@dataclass(frozen=True, slots=True)
class Language:
    """How texts of a target are read. command: the compiler, told where its words are.

    dropped: helpers that the words already have, for what no CPU can do.
    """

    command: tuple[str, ...]
    dropped: str = r"(?!)"


LANGUAGES = {
    "cuda": Language(
        (*GCC, "-include", str(FOLDER / "cuda.h"), "-I", str(FOLDER / "cuda")),
        dropped=r"^template <class A, class B> static __device__ __forceinline__ float4 mma_\w+\(.*?^}\n",
    ),
    "hip": Language((*CLANG, "-include", str(FOLDER / "hip.h"))),
    "metal": Language((*CLANG, "-I", str(FOLDER / "metal"))),
}
_BEFORE = re.compile(r"^(?=#include|#ifndef|#pragma|#define barrier|using |static |struct |template |typedef |extern )", re.MULTILINE)
# Where an array of a block is declared, to be made static.
_SHARED = re.compile(
    r"^(  (?:alignas\(\d+\) )?)(?=__attribute__\(\(shared|threadgroup \w+ s\d)", re.MULTILINE
)  # declared so, an array is static
_LAUNCH = {  # parameters that a launch fills by itself, by what marks them
    "threadgroup_position_in_grid": "blockIdx",
    "thread_position_in_threadgroup": "threadIdx",
    "thread_position_in_grid": "uint3{blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, "
    "blockIdx.z * blockDim.z + threadIdx.z}",
}
_WAITS = re.compile(r"\b(__syncthreads|barrier|threadgroup_barrier|(mma|mfma|wmma)_\w+)\(")


@dataclass(frozen=True, slots=True)
class Function:
    """A launchable kernel of a shared object, which must live as long."""

    module: ctypes.CDLL
    name: str


def together(target: str, programs: Sequence[Json]) -> list[Function | str]:
    """Per program a function, or what the compiler says against it. What texts begin with stands once."""
    if not programs:
        return []
    built = _library(LANGUAGES[target], programs)
    if not isinstance(built, str):
        return [Function(built, f"launch_{k}") for k in range(len(programs))]
    if len(programs) == 1:
        return [f"not built: {built}"]
    middle = len(programs) // 2
    return [*together(target, programs[:middle]), *together(target, programs[middle:])]


def _library(language: Language, programs: Sequence[Json]) -> ctypes.CDLL | str:
    head: dict[str, None] = {}
    bodies: list[str] = []
    for k, program in enumerate(programs):
        before, body = parted(program["source"], program["name"], f"kernel_{k}", language.dropped)
        head.update(dict.fromkeys(before))
        passed = [f"Argument{{a[{n}]}}" for n in range(len(program["arguments"]))]
        passed += [_LAUNCH[mark] for mark in re.findall(r"\[\[(thread\w*_position_in_\w+)\]\]", body)]
        waits = int(_WAITS.search(body) is not None)
        bodies.append(
            f"{body}\n"
            f'extern "C" int launch_{k}(void** a, const unsigned int* grid, const unsigned int* block) {{\n'
            f"    return launch([](void** a) {{ kernel_{k}({', '.join(passed)}); }}, a, grid, block, {waits});\n}}\n"
        )
    with tempfile.TemporaryDirectory(prefix="lathe-fibers-") as folder:
        source, library = Path(folder) / "batch.cpp", Path(folder) / "batch.so"
        source.write_text("".join([*head, *bodies]))
        command = [*language.command, str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr[:2000] if done.returncode else ctypes.CDLL(str(library))


def parted(source: str, name: str, new: str, dropped: str = r"(?!)") -> tuple[list[str], str]:
    """What a text begins with, piece by piece and without what is dropped; its kernel under another name, arrays of its block static."""
    start = re.search(rf"^.*\bvoid (.* )?{name}\(", source, re.MULTILINE)
    assert start is not None
    before = re.sub(dropped, "", source[: start.start()], flags=re.MULTILINE | re.DOTALL)
    pieces = [piece.rstrip() + "\n" for piece in _BEFORE.split(before) if piece.strip()]
    kernel = re.sub(rf"\b{name}\(", f"{new}(", source[start.start() :], count=1)
    return pieces, _SHARED.sub(r"\1static ", kernel)


class FiberRunner:
    """Programs of one target built one at a time, and runs of whatever was built."""

    def __init__(self, target: str) -> None:
        self._target = target

    def build(self, program: Json) -> Function:
        """Raises NotBuilt."""
        (built,) = together(self._target, [program])
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
