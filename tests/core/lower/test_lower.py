"""Lowering is a function of the nest: twice, after an option, after a failure half way, it gives what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.errors import Pointer
from core.ir.value import Value, alu, cast, make
from core.limits import Limits
from core.lower.lower import lower
from core.request import Request
from core.schedule.apply import scheduled
from core.schedule.nest import Nest
from core.schedule.option import read_option
from core.targets import TARGETS
from tests.core.schedule.scheduling import nest_of, options_of
from tests.core.schedule.test_options import product, row_sum, two_sums

Json = dict[str, Any]

NESTS: dict[str, tuple[Json, str, str]] = {  # a kernel, some options, one more
    "product": (product(8, 8, 16), "UPCAST 1 4, UNROLL 0 4", "LOCAL 0 2"),
    "grouped": (row_sum(8, 48), "GROUP 0 4", "UPCAST 0 2"),
    "two sums": (two_sums(6, 32), "UNROLL 0 4", "GROUP 0 8"),
    "padded": (row_sum(4, 13), "PADTO 1 8", "UNROLL 0 4"),
}


def lowered(nest: Nest) -> Value:
    device = Request.from_json({"ast": row_sum(1, 1), "device": {"target": "opencl"}}).device
    return lower(nest, device, called=TARGETS["opencl"].called, micro_op_limit=100_000).root


@pytest.mark.parametrize("name", NESTS)
def test_a_nest_and_its_copy_give_one_graph(name: str) -> None:
    """A 3: the same object, for equal values are one."""
    ast, options, _ = NESTS[name]
    nest = nest_of(ast, options)

    assert lowered(nest) is lowered(nest)
    assert lowered(nest) is lowered(replace(nest))
    assert lowered(nest) is lowered(nest_of(ast, options))


@pytest.mark.parametrize("name", NESTS)
def test_an_option_after_lowering_is_an_option_before_it(name: str) -> None:
    """A 4."""
    ast, options, another = NESTS[name]
    nest = nest_of(ast, options)
    first = lowered(nest)
    request = Request.from_json({"ast": ast, "device": {"target": "opencl"}})
    more = [read_option(o, Pointer("/optimize") / n) for n, o in enumerate(options_of(another))]

    after = lowered(scheduled(nest, more, request.device, Limits(), request.rows))

    assert after is lowered(nest_of(ast, f"{options}, {another}"))
    assert after is not first
    assert first is lowered(nest)


@pytest.mark.parametrize("name", NESTS)
def test_a_failure_half_way_leaves_the_nest_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 6: wherever a micro-op is made."""
    nest = nest_of(*NESTS[name][:2])
    whole = lowered(nest)
    failed = True
    at = 0
    while failed:
        with monkeypatch.context() as patch:
            broken = Breaking(at)
            for function in (make, alu, cast):
                for room in ("lower", "memory", "grouped", "axes"):
                    patch.setattr(f"core.lower.{room}.{function.__name__}", broken.instead_of(function), raising=False)
            try:
                lowered(nest)
                failed = False
            except Broken:
                at += 1
        assert whole is lowered(nest)
    assert at > 6


class Broken(Exception):
    """What is thrown in."""


class Breaking:
    """Functions that make values, broken when one is called for the at-th time."""

    def __init__(self, at: int) -> None:
        self.left = at

    def instead_of(self, function: Callable[..., Value]) -> Callable[..., Value]:
        def made(*arguments: Any, **named: Any) -> Value:
            self.left -= 1
            if self.left < 0:
                raise Broken
            return function(*arguments, **named)

        return made
