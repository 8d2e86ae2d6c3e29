"""NVIDIA's assembler, from a CUDA toolkit on the PATH or from its wheel: machine code from PTX."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from service.binaries.binary import Tool
from service.binaries.compiler import VERSION_S, Task, call, written


class Ptxas:
    name = "ptxas"

    def find(self, path: str) -> Tool | None:
        command = shutil.which("ptxas", path=path) or _of_the_wheel()
        if command is None:
            return None
        try:
            told = subprocess.run(
                [command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=VERSION_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        release = next((line.rpartition(" V")[2] for line in told.stdout.splitlines() if " release " in line), None)
        return None if release is None else Tool(release, (command,), {"PATH": path})

    def architectures(self, tool: Tool) -> Sequence[str]:
        return ()

    def options(self, format_: str, arch: str) -> tuple[str, ...]:
        return (f"--gpu-name={arch}",)

    def compile(self, task: Task) -> bytes:
        (task.folder / "kernel.ptx").write_text(task.source, encoding="utf-8")
        call(task, (*task.recipe.options, "kernel.ptx", "--output-file", "kernel.cubin"))
        return written(task, "kernel.cubin")


def _of_the_wheel() -> str | None:
    try:
        found = find_spec("nvidia.cuda_nvcc")
    except ImportError:
        return None
    places = [] if found is None else list(found.submodule_search_locations or ())
    return next((str(file) for place in places if (file := Path(place) / "bin" / "ptxas").exists()), None)


PTXAS = Ptxas()
