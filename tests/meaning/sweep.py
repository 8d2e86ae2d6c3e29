"""Kernels from files, compiled and run, compared with what they mean.

    python -m tests.meaning.sweep FILE... --target llvm --sample 1000 --optimize random

Each line of a file is a JSON object with a kernel as `ast` and, where it matters, device options as `device`. `--optimize`: `none`,
`heuristic`, or `random` for a list drawn from the seed and the line's number.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core import LatheError, Request
from core.reference import size_at
from tests.meaning.choices import Choices
from tests.meaning.harness import PROCESSES, compiled, verdict
from tests.meaning.random_schedules import initial_nest, random_schedule

Json = dict[str, Any]
SHOWN = 50  # kernels between two lines of the report
MOST = 1 << 22  # points of nodes: kernels of more are refused
LARGEST = 1 << 22  # elements: buffers of more take too long to fill


def rows_of(path: Path) -> Iterator[Json]:
    """The lines of a file, perhaps compressed, that have a kernel."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            row = json.loads(line)
            if "ast" in row:
                yield row


def tried(row: Json, target: str, optimize: str, choices: Choices, special: bool, device: Json) -> tuple[str, str]:
    """`right`, `wrong`, `unfit`, `large` or `refused`, and why; the list of options where it was drawn."""
    device = {"target": target, **row.get("device", {}), **device}
    options: object = optimize
    try:
        if optimize == "random":
            request = Request.from_json({"ast": row["ast"], "device": device, "optimize": "none"})
            options = random_schedule(choices, initial_nest(request), request)
        program, _ = compiled(row["ast"], target, options, device)
        if _elements(program.to_json()) > LARGEST:
            return "large", f"{_elements(program.to_json())} elements"
        found = verdict(row["ast"], target, options, ((0, False), (1, True)) if special else ((0, False),), device, MOST)
    except LatheError as error:
        return "refused", f"{error.category}: {error}"
    return found.verdict, f"{found.why} {found.detail} {json.dumps(options)}"


def _elements(program: Json) -> int:
    """Of all buffers together, at the greatest values of the variables."""
    greatest = {a["name"]: a["max"] for a in program["arguments"] if a["kind"] == "variable"}
    return sum(size_at(a["size"], greatest) for a in program["arguments"] if a["kind"] == "buffer")


def sweep(rows: Sequence[Json], target: str, optimize: str, seed: int, *, special: bool, device: Json) -> Counter[str]:
    """How many came out how. What is not right is printed."""
    tally: Counter[str] = Counter()
    for number, row in enumerate(rows):
        outcome, why = tried(row, target, optimize, Choices.random(f"{seed}/{number}"), special, device)
        tally[outcome] += 1
        if outcome != "right":
            print(outcome, row.get("id", number), why[:300], flush=True)
        if number % SHOWN == SHOWN - 1:
            print(dict(tally), flush=True)
    return tally


def main() -> int:
    """The command line; the exit status is 1 where anything was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.meaning.sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--target", default="c")
    parser.add_argument("--optimize", default="heuristic", choices=("none", "heuristic", "random"))
    parser.add_argument("--sample", type=int, default=0, help="so many lines at random; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--special", action="store_true", help="infinities, NaN and the like among the inputs too")
    parser.add_argument("--device", type=json.loads, default={}, help="device options, as JSON")
    options = parser.parse_args()
    rows = [row for path in options.files for row in rows_of(path)]
    if 0 < options.sample < len(rows):
        rows = random.Random(options.seed).sample(rows, options.sample)
    tally = sweep(rows, options.target, options.optimize, options.seed, special=options.special, device=options.device)
    print(dict(tally))
    PROCESSES.close()
    return int(tally["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
