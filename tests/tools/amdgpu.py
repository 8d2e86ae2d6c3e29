"""What clang says of HIP texts, which it compiles to AMD's machine code: no GPU, no header, no library."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from core.program import Program
from tests.tools.fibers.emulator import parted

COMMAND = ("clang-19", "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O1", "-S", "-Wall", "-Wno-unused", "-o", "-")


def compiled(source: str, arch: str) -> tuple[str, str]:
    """The machine code as text, and what the compiler says; no code where it refuses the text."""
    with tempfile.TemporaryDirectory(prefix="lathe-hip-") as folder:
        file = Path(folder) / "kernel.hip"
        file.write_text(source)
        done = subprocess.run([*COMMAND, f"--offload-arch={arch}", str(file)], capture_output=True, text=True, check=False)
    return ("" if done.returncode else done.stdout), done.stderr.strip() or ("refused" if done.returncode else "")


def complaints(programs: Mapping[str, Program], arch: str) -> dict[str, str]:
    """Per program that the compiler does not take in silence, what it says. They are compiled as one text while it does."""
    if not programs:
        return {}
    _, said = compiled(together([*programs.values()]) if len(programs) > 1 else next(iter(programs.values())).source, arch)
    if not said:
        return {}
    if len(programs) == 1:
        return dict.fromkeys(programs, said[:2000])
    rows = [*programs.items()]
    middle = len(rows) // 2
    return {**complaints(dict(rows[:middle]), arch), **complaints(dict(rows[middle:]), arch)}


def together(programs: list[Program]) -> str:
    """Several texts as one: what they begin with stands once, each kernel has a name of its own."""
    head: dict[str, None] = {}
    bodies = []
    for number, program in enumerate(programs):
        before, body = parted(program.source, program.name, f"kernel_{number}")
        head.update(dict.fromkeys(before))
        bodies.append(body)
    return "".join([*head, *bodies])
