"""Kernels from a file: each has one outcome, and what was not tried is told apart from what is right."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.meaning.build import Build
from tests.meaning.sweep import rows_of, sweep


@pytest.mark.parametrize("optimize", ["heuristic", "random"])
def test_each_kernel_of_a_file_has_its_outcome(tmp_path: Path, optimize: str) -> None:
    good, great, double = Build(), Build(), Build()
    good.store(good.load("float32", [8, 4]).sum(1) * 2.0)
    great.store(great.load("uint8", [1 << 23]))
    double.store(double.load("float64", [4]))
    rows = [{"ast": good.ast()}, {"about": "no kernel"}, {"ast": great.ast()}, {"ast": double.ast(), "device": {"float64": False}}]
    with gzip.open(tmp_path / "kernels.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)

    tally = sweep([*rows_of(tmp_path / "kernels.jsonl.gz")], "llvm", optimize, 1, special=True, device={})

    assert {"right": 1, "large": 1, "refused": 1} == tally
