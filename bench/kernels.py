"""Kernels to measure with: lines of a corpus file, or the project's own small ones.

A corpus is JSON Lines, gzipped or not, each line an object with `id` and `ast`. Everything that is done here is done before
any clock runs.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

OWN = Path(__file__).parent / "kernels.jsonl"  # of every kind that the wire format knows, small enough for a quick look
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel as a client would send it: `body` is the request's bytes."""

    id: str
    body: bytes


def read_cases(
    files: Iterable[Path], target: str, optimize: object, sample: int | None = None, seed: int = 0, ids: Sequence[str] = ()
) -> list[Case]:
    """The kernels of some files, as requests for this target and schedule.

    sample: so many of all lines, drawn by `random.Random(seed).sample`; None: all. ids: only these, where any are named. Raises
    ValueError for a line that is no such object, and for an id that is nowhere.
    """
    lines = [(file, number, line) for file in files for number, line in enumerate(_lines(file), 1)]
    if sample is not None and sample < len(lines):
        lines = [lines[k] for k in random.Random(seed).sample(range(len(lines)), sample)]
    cases = [_case(file, number, line, target, optimize) for file, number, line in lines]
    if ids:
        absent = set(ids) - {case.id for case in cases}
        if absent:
            raise ValueError(f"no kernel is called {', '.join(sorted(absent))}")
        cases = [case for case in cases if case.id in ids]
    return cases


def _lines(file: Path) -> list[bytes]:
    raw = file.read_bytes()
    return [line for line in (gzip.decompress(raw) if raw.startswith(GZIP) else raw).split(b"\n") if line.strip()]


def _case(file: Path, number: int, line: bytes, target: str, optimize: object) -> Case:
    try:
        value = json.loads(line)
        request = {"ast": value["ast"], "device": {"target": target}, "optimize": optimize}
        return Case(str(value["id"]), json.dumps(request).encode())
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file}, line {number}: expected an object with id and ast ({error})") from None
