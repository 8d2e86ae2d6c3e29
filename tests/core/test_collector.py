"""The collector of cycles rests while a kernel is compiled, and misses next to nothing."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from core import TARGETS, LatheError, Limits, Request, compile_kernel
from tests.core.test_determinism import KERNELS

FEW = 100  # objects in cycles that a small kernel may leave; it makes thousands

_CHILD = """
import gc, json, sys
from core import LatheError, Request, compile_kernel
gc.collect()
gc.disable()
left = []
for body in json.load(sys.stdin):
    try:
        compile_kernel(Request.from_json(body))
    except LatheError:
        pass
    left.append(gc.collect())
print(json.dumps(left))
"""


@pytest.fixture
def at_rest() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def compiled(ast: dict[str, Any], target: str) -> None:
    compile_kernel(Request.from_json({"ast": ast, "device": {"target": target}, "optimize": "heuristic"}))


def test_a_compile_leaves_next_to_no_cycles() -> None:
    """In a process of its own, where nobody else makes any."""
    bodies = [{"ast": ast, "device": {"target": target}, "optimize": "heuristic"} for target in TARGETS for ast in KERNELS]
    done = subprocess.run([sys.executable, "-c", _CHILD], input=json.dumps(bodies), capture_output=True, text=True, check=True)
    left = json.loads(done.stdout)

    assert len(bodies) == len(left)
    assert max(left) < FEW


def test_afterwards_it_is_as_before() -> None:
    seen: list[bool] = []
    request = Request.from_json({"ast": KERNELS[0], "device": {"target": "c"}, "optimize": "none"})
    compile_kernel(request, watch=lambda stage, value: seen.append(gc.isenabled()))

    assert gc.isenabled()
    assert {False} == set(seen)


def test_also_after_a_refusal() -> None:
    request = Request.from_json({"ast": KERNELS[0], "device": {"target": "c"}, "optimize": "none"})
    with pytest.raises(LatheError):
        compile_kernel(request, Limits(source_chars=1))

    assert gc.isenabled()


@pytest.mark.usefixtures("at_rest")
def test_who_has_switched_it_off_finds_it_so() -> None:
    compiled(KERNELS[0], "c")

    assert not gc.isenabled()
