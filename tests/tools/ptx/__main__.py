"""Kernels of files as PTX, each given to NVIDIA's assembler; the exit status is 1 where a text is not taken in silence.

python -m tests.tools.ptx FILE…        lines of JSON, each with a kernel as `ast`, plain or compressed by gzip
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.compiler import compile_kernel
from core.errors import LatheError
from core.request import Request
from tests.tools.ptx.assembler import complaints

Json = dict[str, Any]
ARCHES = ("sm_75", "sm_80", "sm_90", "sm_120")
BATCH = 25  # texts of one module


def kernels(files: Sequence[str]) -> Iterator[Json]:
    for file in files:
        with gzip.open(file, "rt") if Path(file).suffix == ".gz" else Path(file).open() as lines:
            yield from (row["ast"] for row in map(json.loads, lines) if "ast" in row)


def main(files: Sequence[str]) -> int:
    tally: Counter[str] = Counter()
    waiting: dict[str, list[tuple[Json, str]]] = {arch: [] for arch in ARCHES}

    def assemble(arch: str) -> None:
        batch, waiting[arch] = waiting[arch], []
        for (ast, _), said in zip(batch, complaints([text for _, text in batch]) if batch else (), strict=True):
            tally["complained of" if said else "taken"] += 1
            if said:
                print(f"{arch}: {said}\n{json.dumps(ast)}", flush=True)

    for number, ast in enumerate(kernels(files)):
        arch = ARCHES[number % len(ARCHES)]
        try:
            program = compile_kernel(Request.from_json({"ast": ast, "device": {"target": "ptx", "arch": arch}}))
        except LatheError as error:
            tally[f"refused ({error.category})"] += 1
            continue
        waiting[arch].append((ast, program.source))
        if len(waiting[arch]) == BATCH:
            assemble(arch)
    for arch in ARCHES:
        assemble(arch)
    print(", ".join(f"{count} {what}" for what, count in tally.items()))
    return int(tally["complained of"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
