"""The collector of cycles rests while a kernel is compiled, and misses next to nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from core import TARGETS, LatheError, Limits, Request, compile_kernel
from tests.core.test_determinism import KERNELS

FEW = 100  # objects in cycles that a small kernel may leave; it makes thousands


@pytest.fixture
def at_rest() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def compiled(ast: dict[str, Any], target: str) -> None:
    compile_kernel(Request.from_json({"ast": ast, "device": {"target": target}, "optimize": "heuristic"}))


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize("target", list(TARGETS))
def test_a_compile_leaves_next_to_no_cycles(target: str) -> None:
    for ast in KERNELS:
        try:
            compiled(ast, target)
        except LatheError:
            assert target == "wgsl"  # which has not every type
        assert gc.collect() < FEW


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
