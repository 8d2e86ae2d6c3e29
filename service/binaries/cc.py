"""GCC and Clang for C, Clang for LLVM IR: a shared object with the program as its one function, for any processor of an architecture.

The architecture is always named, never the host's own, so that every host makes the same bytes and every rank can load them.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.binaries.binary import Tool
from service.binaries.compiler import Task, call, first_line, written

# What -march is told, by the machine that the host is: the levels of the x86-64 psABI; versions of the Arm architecture.
ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    "x86_64": ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
    "aarch64": ("armv8-a", "armv8.2-a", "armv9-a"),
}
OPTIONS = ("-O3", "-w", "-fPIC", "-shared", "-Wl,--build-id=none")  # no id, no path, no time in the file


@dataclass(frozen=True, slots=True)
class Cc:
    """A compiler and what links for it. commands: names it may go by, the first that is there is taken. language: its options, file."""

    name: str
    commands: tuple[str, ...]
    language: tuple[str, ...] = ("-std=c11", "-fno-math-errno")
    file: str = "kernel.c"

    def find(self, path: str) -> Tool | None:
        command = next((found for name in self.commands if (found := shutil.which(name, path=path))), None)
        linker = shutil.which("ld", path=path)
        if command is None or linker is None or platform.machine() not in ARCHITECTURES:
            return None
        versions = first_line((command, "--version"), path), first_line((linker, "--version"), path)
        if None in versions:
            return None
        return Tool("; ".join(str(version) for version in versions), (command,), {"PATH": path})

    def architectures(self, tool: Tool) -> Sequence[str]:
        return ARCHITECTURES[platform.machine()]

    def options(self, format_: str, arch: str) -> tuple[str, ...]:
        return (*self.language, *OPTIONS, f"-march={arch}", "-lm")

    def compile(self, task: Task) -> bytes:
        (task.folder / self.file).write_text(task.source, encoding="utf-8")
        *options, libraries = task.recipe.options
        call(task, (*options, self.file, "-o", "kernel.so", libraries))
        return written(task, "kernel.so")


GCC = Cc("gcc", ("gcc",))
CLANG = Cc("clang", ("clang", *(f"clang-{version}" for version in range(24, 13, -1))))
CLANG_IR = Cc("clang-ir", tuple(f"clang-{version}" for version in range(24, 14, -1)), ("-x", "ir"), "kernel.ll")  # 14 knows no plain `ptr`
