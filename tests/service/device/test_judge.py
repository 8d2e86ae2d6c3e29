"""Verdicts on declared sizes: too little is wrong, more is allowed, and a bound of the reference's own condemns nobody."""

from __future__ import annotations

from typing import Any

import pytest

from core import Request, compile_kernel
from core.reference import sizes
from service.device.device import Trial, Verdict
from service.device.judge import judge
from tests.meaning.harness import CRunner

AST = {
    "version": 1,
    "variables": [],
    "nodes": [
        {"op": "LOAD", "buffer": 1, "dtype": "int32", "shape": [64], "index": "axis0*2 - axis0"},
        {"op": "STORE", "buffer": 0, "dtype": "int32", "shape": [64], "index": "axis0", "src": [0]},
    ],
    "outputs": [1],
}
BODY: dict[str, Any] = {"ast": AST, "device": {"target": "c"}, "optimize": "none"}


def verdict(size: int) -> Verdict:
    """Of a copy that declares this many elements for what it reads."""
    program: dict[str, Any] = compile_kernel(Request.from_json(BODY)).to_json()
    assert 64 == program["arguments"][1]["size"]
    program["arguments"][1]["size"] = size
    return judge(CRunner(), Trial(program, BODY, ((0, False),), points=1 << 20))


def test_a_program_may_declare_more_than_is_touched_and_not_less() -> None:
    assert "right" == verdict(64).verdict
    assert "right" == verdict(70).verdict
    assert ("wrong", "launch") == (verdict(63).verdict, verdict(63).why)


def test_where_the_reference_only_bounds_a_size_the_program_may_know_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "ENUMERATED", 10)  # so small that this kernel is beyond it: 127 elements by intervals

    assert "right" == verdict(64).verdict
    assert "unfit" == verdict(63).verdict
