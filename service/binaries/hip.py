"""Clang for AMD's GPUs: a code object from HIP, which needs no header. The device library comes from ROCm, where that is installed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from core import LatheError, TargetError, TextRejected
from service.binaries.binary import Tool
from service.binaries.compiler import Task, call, first_line, written

COMMANDS = ("amdclang++", *(f"clang-{version}" for version in range(24, 16, -1)), "clang")
OLDEST = 17  # the first whose code generator has the matrix instructions of gfx11
LIBRARY = Path("/opt/rocm/amdgcn/bitcode")  # where clang itself looks for it
OPTIONS = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-fuse-cuid=none", "-O3", "-w")
_NO_ARCHITECTURE = re.compile(r"invalid target ID|unsupported .*gpu arch")
_NO_LIBRARY = re.compile(r"undefined (hidden )?symbol: __oc(ml|kl)_")


class HipClang:
    """The linker is the one that belongs to it, of LLVM."""

    name = "clang-hip"

    def find(self, path: str) -> Tool | None:
        command = next((found for name in COMMANDS if (found := shutil.which(name, path=path))), None)
        if command is None or not any(_beside(command, name) for name in ("ld.lld", "lld")):
            return None
        told = first_line((command, "--version"), path)
        if told is None or (major := re.search(r"version (\d+)", told)) is None or int(major[1]) < OLDEST:
            return None
        return Tool(told if LIBRARY.is_dir() else f"{told}; no device library", (command,), {"PATH": path})

    def architectures(self, tool: Tool) -> Sequence[str]:
        return ()

    def options(self, format_: str, arch: str) -> tuple[str, ...]:
        return (*OPTIONS, *(() if LIBRARY.is_dir() else ("-nogpulib",)), f"--offload-arch={arch}")

    def compile(self, task: Task) -> bytes:
        (task.folder / "kernel.hip").write_text(task.source, encoding="utf-8")
        try:
            call(task, (*task.recipe.options, "kernel.hip", "-o", "kernel.hsaco"))
        except TextRejected as error:
            raise _explained(task, error) from None
        return written(task, "kernel.hsaco")


def _beside(command: str, name: str) -> bool:
    return (Path(os.path.realpath(command)).parent / name).exists()


def _explained(task: Task, error: TextRejected) -> LatheError:
    """What the text is not to blame for: the compiler is too old for the architecture, or has no device library."""
    log = str(error.facts().get("log"))
    if _NO_ARCHITECTURE.search(log):
        return TargetError("/device/arch", target="hip", feature=f"architecture {task.recipe.arch} in this version of clang")
    if _NO_LIBRARY.search(log):
        return TargetError(
            "/binary", target="hip", feature="device library on this host, which some functions of this kernel are in: install ROCm"
        )
    return error


HIP = HipClang()
