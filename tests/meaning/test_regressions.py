"""Kinds of kernel on which compilers of this sort have failed (acceptance L)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.schedule.scheduling import options_of, refusal
from tests.meaning.build import Build, view
from tests.meaning.cases import Case, each, special
from tests.meaning.harness import TARGETS, assert_means, compiled, run_c
from tests.meaning.test_options import holds

Json = dict[str, Any]

SIDE = 1024
PADDED = SIDE + 2


def spread_convolution(rows: int) -> Json:
    """Windows of 3 by 3 in padded images of millions of elements, by two views; few of the rows and columns, far apart.

    Axes: image, group, output channel, row, column, input channel, window's row, window's column.
    """
    k = Build()
    images = view(
        [2, 3, PADDED, PADDED], [3 * SIDE * SIDE, SIDE * SIDE, SIDE, 1], -SIDE - 1, [[0, 2], [0, 3], [1, SIDE + 1], [1, SIDE + 1]]
    )
    step = SIDE // rows
    windows = view([2, 1, 4, rows, 2, 3, 3, 3], [3 * PADDED * PADDED, 0, 0, step * PADDED, SIDE - 1, PADDED * PADDED, PADDED, 1])
    x = k.load("float32", [], views=[images, windows])
    w = k.load("float32", [1, 1, 4, 1, 1, 3, 3, 3], [0, 0, 27, 0, 0, 9, 3, 1])
    return k.store((x * w).sum(5, 6, 7)).ast()


@pytest.mark.parametrize(
    ("target", "options"), [("c", "UPCAST 1 4"), ("opencl", "UPCAST 1 4, LOCAL 0 2"), ("emulated", "UPCAST 1 4, UNROLL 0 3")]
)
def test_a_convolution_with_strides_in_the_millions(target: str, options: str) -> None:
    """L 218."""
    holds(spread_convolution(2), target, options_of(options))


@pytest.mark.parametrize("target", ["c", "opencl", "emulated"])
def test_a_many_axis_convolution_is_padded_after_two_axes_are_expanded(target: str) -> None:
    """L 224: what is padded is another axis than those that were expanded."""
    holds(spread_convolution(11), target, options_of("UPCAST 1 4, UPCAST 0 0, PADTO 0 32"), options_of("UPCAST 1 4, PADTO 1 32"))


def test_what_was_expanded_is_not_padded() -> None:
    """L 224, C 69."""
    found = refusal(spread_convolution(11), "UPCAST 1 4, UPCAST 0 0, PADTO 5 6")

    assert "PADTO: the axis is upcast: pad before expanding" == found["reason"]


def long_product() -> Build:
    """Of halves, summed up in float32: 50257 is a prime and a vocabulary."""
    k = Build()
    x, y = k.load("float16", [2, 3, 50257], [50257, 0, 1]), k.load("float16", [2, 3, 50257], [0, 50257, 1])
    return k.store((x.cast("float32") * y.cast("float32")).sum(2))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("optimize", ["none", "heuristic"])
def test_a_product_over_the_vocabulary(target: str, optimize: str) -> None:
    """L 221."""
    assert_means(long_product().ast(), target, optimize)


def halves(*shape: int) -> Case:
    """L 226."""
    k = Build()
    x = k.load("int32", [*shape]).cast("float16")
    condition = x < k.const(2.5, "float16", [1] * len(shape))
    return special(k.store(condition.where(x * x, x + k.const(0.5, "float16", [1] * len(shape)))))


@each({"226-rank-0": halves(), "226-rank-1": halves(7)})
def test_a_choice_between_halves(case: Case, target: str) -> None:
    case.holds(target)


@pytest.mark.parametrize("optimize", ["none", "heuristic"])
def test_halves_are_the_same_whether_the_machine_computes_in_them_or_not(optimize: str) -> None:
    """J 199: by its own arithmetic, or by float32 rounded at every node."""
    k = Build()
    x = k.load("float16", [6, 16])
    ast = k.store((x * x + x).max(1)).ast()
    inputs = {0: np.zeros(6, np.uint16), 1: np.arange(0, 96 * 601, 601).astype(np.uint16) % 0x7C00}
    found = []
    for has in (False, True):
        program, _ = compiled(ast, "c", optimize, {"float16": has})
        assert_means(ast, "c", optimize, device={"float16": has}, special=True)
        found.append(run_c(program, inputs).buffers[0])
        assert has == ("_Float16 v" in program.source)

    assert np.array_equal(found[0], found[1])
    assert len(np.unique(found[0])) > 3
