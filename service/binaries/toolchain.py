"""The table of binaries: which compilers make which format of which target; and which of them are on this host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core import TargetError
from service.binaries.binary import FORMATS, Recipe, Tool
from service.binaries.cc import CLANG, CLANG_IR, GCC
from service.binaries.compiler import Compiler
from service.binaries.hip import HIP
from service.binaries.nvrtc import NVRTC
from service.binaries.opencl import OPENCL, attached
from service.binaries.ptxas import PTXAS
from service.logs import logger

log = logger("binaries")


@dataclass(frozen=True, slots=True)
class Row:
    """One format of one target. compilers: those that can make it, of which the first that is installed does."""

    target: str
    format: str
    compilers: tuple[Compiler, ...]


TABLE = (  # of a target, the usual format comes first
    Row("c", "so", (GCC, CLANG)),
    Row("cuda", "cubin", (NVRTC,)),
    Row("cuda", "ptx", (NVRTC,)),
    Row("ptx", "cubin", (PTXAS,)),
    Row("hip", "hsaco", (HIP,)),
    Row("llvm", "so", (CLANG_IR,)),
    Row("opencl", "clbin", (OPENCL,)),
)
COMPILERS: dict[str, Compiler] = {compiler.name: compiler for row in TABLE for compiler in row.compilers}


@dataclass(frozen=True, slots=True)
class _Found:
    compiler: Compiler
    tool: Tool

    def takes(self, arch: str) -> bool:
        known = self.compiler.architectures(self.tool)
        return not known or arch in known

    def recipe(self, format_: str, arch: str | None) -> Recipe:
        chosen = arch or self.compiler.architectures(self.tool)[0]
        return Recipe(format_, chosen, self.compiler.name, self.tool.version, self.compiler.options(format_, chosen))


class Toolchain:
    """The compilers of this host. One that was never told to `find` any has none."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[_Found]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def find(self, environment: Mapping[str, str]) -> None:
        """Finds what is installed: programs along the environment's PATH, libraries among Python's. Takes some milliseconds for each."""
        path = environment.get("PATH", os.defpath)
        tools = {compiler.name: compiler.find(path) for compiler in COMPILERS.values()}
        for row in TABLE:
            for compiler in row.compilers:
                tool = tools[compiler.name]
                if tool is not None:
                    self._found.setdefault((row.target, row.format), []).append(_Found(compiler, tool))
        here = {name: tool.version for name, tool in tools.items() if tool is not None}
        log.info("device compilers", found=here)

    def attach(self, target: str, device: str, driver: str, choice: tuple[int, int], environment: Mapping[str, str]) -> None:
        """Counts an attached device among the compilers: its driver is one, if it is of OpenCL. choice: how the driver finds it."""
        if target == "opencl":
            self._found.setdefault(("opencl", "clbin"), []).append(_Found(OPENCL, attached(device, driver, choice, environment)))

    def formats(self, target: str) -> Sequence[str]:
        return [row.format for row in TABLE if row.target == target and (target, row.format) in self._found]

    def recipe(self, target: str, format_: str, arch: str | None, pointer: str) -> Recipe:
        found = self._found.get((target, format_))
        if found is None:
            raise TargetError(
                pointer, target=target, feature=f"compiler for the binary format {format_} on this host{_wanted(target, format_)}"
            )
        chosen = next((one for one in found if arch is None or one.takes(arch)), None)
        if chosen is None:
            known = ", ".join(name for one in found for name in one.compiler.architectures(one.tool))
            raise TargetError(
                "/device/arch", target=target, feature=f"architecture {arch!r} that {format_} is made for here; there are {known}"
            )
        return chosen.recipe(format_, arch)

    def tool(self, target: str, recipe: Recipe) -> Tool:
        """What makes the binary. Raises KeyError where it is not here."""
        for one in self._found.get((target, recipe.format), ()):
            if one.compiler.name == recipe.compiler and one.takes(recipe.arch):
                return one.tool
        raise KeyError(recipe)

    def described(self, target: str) -> dict[str, object]:
        told: dict[str, object] = {}
        for format_ in self.formats(target):
            found = self._found[target, format_]
            first = found[0].recipe(format_, None if found[0].compiler.architectures(found[0].tool) else "{arch}")
            told[format_] = {
                "compiler": first.compiler,
                "version": first.version,
                "options": list(first.options),
                "architectures": [name for one in found for name in one.compiler.architectures(one.tool)],
                "type": FORMATS[format_].media_type,
            }
        return told


def _wanted(target: str, format_: str) -> str:
    names = [compiler.name for row in TABLE if (row.target, row.format) == (target, format_) for compiler in row.compilers]
    return f": {' or '.join(names)} would do" if names else ""
