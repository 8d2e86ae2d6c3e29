"""What can be said of Metal's texts without Apple's compiler: C++ by a header of ours, address spaces in it, and attributes against a list.

It shows grammar, types, names that are known, and which memory a pointer leads into. It does not show that Apple's library has what the
header has, nor what Apple's compiler makes of the text.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from core.program import Program
from tests.tools.amdgpu import together

HEADERS = Path(__file__).parent / "fibers" / "metal"
COMMAND = (
    "clang++-19", "-x", "c++", "-std=c++17", "-fsyntax-only", "-DCHECKED", "-I", str(HEADERS), "-Wall", "-Wno-unused",
    "-Wno-unknown-attributes", "-Wno-unknown-pragmas",
)  # fmt: skip
_ATTRIBUTE = re.compile(r"\[\[(.*?)\]\]")
_BUFFER = re.compile(r"(?:device (?:const )?\w+\*|constant int&) \w+ \[\[buffer\((\d+)\)\]\]")
_INDEX = re.compile(
    r"uint3 (?:gid \[\[threadgroup_position_in_grid|lid \[\[thread_position_in_threadgroup|tid \[\[thread_position_in_grid)\]\]"
)
# C++ takes any cast, Metal only one that stays in the same memory.
_CAST = re.compile(r"\((?:(device|threadgroup) )?(?:const )?\w+\*\)\(([ds])\d")
_SPACES = {"d": "device", "s": "threadgroup"}
_HEAD = re.compile(r"^(\[\[max_total_threads_per_threadgroup\(\d+\)\]\] )?kernel void \w+\((.*)\) \{$", re.MULTILINE)


def misread(source: str) -> str:
    """What C++ does not see: each parameter has its attribute, buffers are numbered from 0, there are no others; casts keep the space."""
    head = _HEAD.search(source)
    if head is None:
        return "no kernel function"
    params = [param for param in head[2].split(", ") if param]
    buffers = [found[1] for param in params if (found := _BUFFER.fullmatch(param))]
    if buffers != [str(n) for n in range(len(buffers))] or len(buffers) > 31:
        return f"buffers {buffers}"
    others = params[len(buffers) :]
    if not all(_INDEX.fullmatch(param) for param in others) or len(set(others)) < len(others):
        return f"parameters {others}"
    for space, letter in _CAST.findall(source):
        if space != _SPACES[letter]:
            return f"a cast into another address space, {space or 'none'}"
    extra = len(_ATTRIBUTE.findall(source)) - len(params) - (head[1] is not None)
    return f"{extra} more attributes" if extra else ""


def complaints(programs: Mapping[str, Program]) -> dict[str, str]:
    """Per program that is not in order, what is said of it. They are compiled as one text while all is well."""
    found = {name: said for name, program in programs.items() if (said := misread(program.source))}
    rest = [(name, program) for name, program in programs.items() if name not in found]
    return {**found, **_refused(rest)}


def _refused(programs: list[tuple[str, Program]]) -> dict[str, str]:
    if not programs:
        return {}
    with tempfile.TemporaryDirectory(prefix="lathe-metal-") as folder:
        file = Path(folder) / "kernel.metal"
        file.write_text(together([program for _, program in programs]))
        done = subprocess.run([*COMMAND, str(file)], capture_output=True, text=True, check=False)
    said = done.stderr.strip() or ("refused" if done.returncode else "")
    if not said:
        return {}
    if len(programs) == 1:
        return {programs[0][0]: said[:2000]}
    middle = len(programs) // 2
    return {**_refused(programs[:middle]), **_refused(programs[middle:])}
