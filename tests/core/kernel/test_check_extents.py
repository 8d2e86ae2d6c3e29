"""Extents and masks that mean nothing are refused with node, rule and what came, at a bounded cost."""

from __future__ import annotations

import time
from typing import Any

import pytest

from core.errors import KernelError, LimitExceeded
from tests.core.kernel.checking import NODES, assert_refused, checked, extent_of, masked
from tests.kernels import kernel, load, node, store, variable

REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # extents
    "(4, 32) and (4, 16)": (
        kernel(load(1, [4, 32]), load(2, [4, 16]), node("ADD", 0, 1), store(2, [4, 32])),
        f"{NODES}/2",
        "equal extents, or 1",
        "(4, 32) and (4, 16)",
    ),
    "operands of different rank": (
        kernel(load(1, [4, 1]), load(2, [4]), node("ADD", 0, 1), store(2, [4, 1])),
        f"{NODES}/2",
        "equal extents",
        "(4, 1) and (4,)",
    ),
    "0 is no 1": (
        kernel(load(1, [0]), load(2, [4]), node("ADD", 0, 1), store(2, [4])),
        f"{NODES}/2",
        "equal extents",
        "(0,) and (4,)",
    ),
    "two full extents that never meet": (
        kernel(
            load(1, [4, 8]),
            node("REDUCE_SUM", 0, axes=[1]),
            load(2, [4, 6]),
            node("REDUCE_SUM", 2, axes=[1]),
            node("ADD", 1, 3),
            store(4, [4, 1]),
        ),
        f"{NODES}/2",
        "extent 1 or 8 on axis 1",
        "6",
    ),
    "a store of another rank": (kernel(load(1, [4]), store(0, [4, 1])), f"{NODES}/1/src/0", "extents (4, 1)", "(4,)"),
    "a leaf of another rank": (
        kernel(
            load(1, [4]),
            node("REDUCE_SUM", 0, axes=[0]),
            load(2, []),
            node("REDUCE_SUM", 1, axes=[0]),
            store(3, [1]),
            store(2, [], 1),
            outputs=[4, 5],
        ),
        f"{NODES}/2",
        "rank 1",
        "shape ()",
    ),
    "full stored as 1": (kernel(load(1, [32, 4]), store(0, [1, 4])), f"{NODES}/1/src/0", "extents (1, 4)", "(32, 4)"),
    "full stored as another": (kernel(load(1, [32, 4]), store(0, [16, 4])), f"{NODES}/1/src/0", "extents (16, 4)", "(32, 4)"),
    "outputs of shapes (32, 1) and (32, 32)": (
        kernel(load(2, [32, 32]), node("REDUCE_SUM", 0, axes=[1]), store(1, [32, 1]), store(0, [32, 32], 1), outputs=[2, 3]),
        "/ast/outputs/1",
        "shape of output 0, (32, 1)",
        "(32, 32)",
    ),
    "an axis beyond the rank": (
        kernel(load(1, [4, 8]), node("REDUCE_SUM", 0, axes=[0, 2]), store(1, [1, 8])),
        f"{NODES}/1/axes/1",
        "axes of the operand",
        "2",
    ),
    "an axis of a scalar": (
        kernel(load(1, []), node("REDUCE_SUM", 0, axes=[0]), store(1, [])),
        f"{NODES}/1/axes/0",
        "which has 0",
        "0",
    ),
    "a negative extent": (extent_of(-1), f"{NODES}/0/views/0/shape/0", "never negative", "-1"),
    "an extent n - 3": (extent_of("n - 3"), f"{NODES}/0/views/0/shape/0", "never negative", "n-3"),
    "an extent m": (extent_of("m"), f"{NODES}/0/views/0/shape/0", "never negative", "m"),
    "an extent m*m - 1": (extent_of("m*m - 1"), f"{NODES}/0/views/0/shape/0", "never negative", "m*m-1"),
    "an extent 1 - 2": (extent_of("1 - 2"), f"{NODES}/0/views/0/shape/0", "never negative", "1-2"),
    "a negative extent of an earlier view": (
        kernel(
            {
                "op": "LOAD",
                "buffer": 1,
                "dtype": "float32",
                "views": [{"shape": [-4], "strides": [1]}, {"shape": [4], "strides": [1]}],
            },
            store(0, [4]),
        ),
        f"{NODES}/0/views/0/shape/0",
        "never negative",
        "-4",
    ),
    "a negative extent by expression": (
        kernel(
            {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [4, "n - 2"], "index": 0},
            store(0, [4, 1]),
            variables=[variable("n", 1, 3)],
        ),
        f"{NODES}/0/shape/1",
        "never negative",
        "n-2",
    ),
    "symbolic extents that differ": (
        kernel(
            load(1, ["n"], strides=[1]),
            load(2, ["n + 1"], strides=[1]),
            node("ADD", 0, 1),
            store(2, ["n"], strides=[1]),
            variables=[variable("n", 1, 8)],
        ),
        f"{NODES}/2",
        "equal extents",
        "(n,) and (n+1,)",
    ),
    # masks
    "mask [3, 9) on 8": (masked(8, 3, 9), f"{NODES}/0/views/0/mask/0", "≤ 8", "[3, 9)"),
    "mask [5, 3)": (masked(8, 5, 3), f"{NODES}/0/views/0/mask/0", "0 ≤ begin ≤ end", "[5, 3)"),
    "mask [-1, 3)": (masked(8, -1, 3), f"{NODES}/0/views/0/mask/0", "0 ≤ begin", "[-1, 3)"),
    "mask [9, 9) on 8": (masked(8, 9, 9), f"{NODES}/0/views/0/mask/0", "≤ 8", "[9, 9)"),
    "mask [9, n) on 8": (masked(8, 9, "n"), f"{NODES}/0/views/0/mask/0", "≤ 8", "[9, n)"),
    "mask [n, 9) on 8": (masked(8, "n", 9), f"{NODES}/0/views/0/mask/0", "≤ 8", "[n, 9)"),
    "mask [5, 3) on n": (masked("n", 5, 3), f"{NODES}/0/views/0/mask/0", "≤ n", "[5, 3)"),
    "mask [-1, n)": (masked("n", -1, "n"), f"{NODES}/0/views/0/mask/0", "≤ n", "[-1, n)"),
}


@pytest.mark.parametrize(("ast", "pointer", "expected", "got"), REFUSED.values(), ids=REFUSED)
def test_extents_that_mean_nothing_are_refused_with_their_place(ast: dict[str, Any], pointer: str, expected: str, got: str) -> None:
    """A 9-11, 14."""
    assert_refused(ast, pointer, expected, got)


def test_an_extent_too_large_for_the_algebra_is_refused_with_its_node() -> None:
    variables = [variable(f"v{k}", 0, 1) for k in range(8)]
    total = "(" + "+".join(f"v{k}" for k in range(8)) + ")"
    extent = "*".join([total] * 12)
    with pytest.raises(LimitExceeded) as refusal:
        checked(kernel(load(1, [extent], strides=[1]), store(0, [extent], strides=[1]), variables=variables))

    assert f"{NODES}/0" == refusal.value.facts()["pointer"]


def test_extents_that_have_to_be_tried_cost_a_bounded_time() -> None:
    variables = [variable("n", -300, 300), variable("m", -100, 100)]
    extents = [f"n*n*m*m + {k} + n - n*m" for k in range(500)]
    loads = [load(1, [extent], strides=[0]) for extent in extents]
    started = time.process_time()
    with pytest.raises(KernelError):
        checked(kernel(*loads, store(0, [1]), variables=variables))

    assert time.process_time() - started < 5
