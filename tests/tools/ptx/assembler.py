"""NVIDIA's assembler, from a wheel: no GPU, no driver. Many texts are one module for it, so that they cost one process."""

from __future__ import annotations

import importlib
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

_HEAD = re.compile(r"\.version \d+\.\d+\n\.target (\w+)\n\.address_size 64\n\n")
_ENTRY = re.compile(r"\.visible \.entry \w+\(")
_LINE = re.compile(r"line (\d+); (?:fatal|error|warning|info) .*")


def assembler() -> Path:
    """Where it is."""
    folder: str = next(iter(importlib.import_module("nvidia.cuda_nvcc").__path__))
    return Path(folder) / "bin" / "ptxas"


def complaints(texts: Sequence[str]) -> list[str]:
    """Per text what the assembler says, errors and warnings; nothing of one it takes in silence. All are for one architecture."""
    heads = [_HEAD.match(text) for text in texts]
    first = heads[0]
    assert first is not None
    assert all(head is not None and head[0] == first[0] for head in heads)
    bodies = [_ENTRY.sub(f".visible .entry kernel_{k}(", text[first.end() :], count=1) for k, text in enumerate(texts)]
    starts, line = [], first[0].count("\n") + 1
    for body in bodies:
        starts.append(line)
        line += body.count("\n")
    with tempfile.TemporaryDirectory(prefix="lathe-ptx-") as folder:
        source = Path(folder) / "batch.ptx"
        source.write_text("".join([first[0], *bodies]))
        command = [str(assembler()), f"-arch={first[1]}", str(source), "-o", str(Path(folder) / "batch.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    found: list[list[str]] = [[] for _ in texts]
    other: list[str] = []
    for words in said.splitlines():
        at = _LINE.search(words)
        if at is None:
            other.append(words)
        else:
            found[max(k for k, start in enumerate(starts) if start <= int(at[1]))].append(at[0])
    if (done.returncode or other) and not any(found):
        return [said or f"exit code {done.returncode}"] * len(texts)
    return ["\n".join(lines) for lines in found]
