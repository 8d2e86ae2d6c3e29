"""Loads and stores of expanded axes: what becomes one vector access, and what does not (acceptance 112, 114-118, 124)."""

from __future__ import annotations

from typing import Any

import pytest

from core.ir.op import Op
from tests.core.listings import left, listing_of
from tests.meaning.harness import assert_means

Json = dict[str, Any]
WHOLE = [{"op": "UPCAST", "axis": 1, "amount": 0}]


def side_by_side(width: int) -> Json:
    """out (3, 2·width): one buffer's columns, then another's: each load is masked off where the other is not."""
    a = {
        "op": "LOAD",
        "buffer": 1,
        "dtype": "float32",
        "shape": [3, 2 * width],
        "index": f"axis0*{width} + axis1",
        "valid": [f"axis1 < {width}"],
    }
    b = {**a, "buffer": 2, "index": f"axis0*{width} + axis1 - {width}", "valid": [f"axis1 >= {width}"]}
    store = {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": [3, 2 * width], "index": f"axis0*{2 * width} + axis1", "src": [2]}
    return {"version": 1, "variables": [], "nodes": [a, b, {"op": "ADD", "src": [0, 1]}, store], "outputs": [3]}


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_chunks_that_are_masked_off_in_part_are_no_vector(width: int) -> None:
    """F 112: once a chunk whose first two elements are masked off was taken to be masked off as a whole."""
    one, two = [float(n + 1) for n in range(3 * width)], [float(-n - 1) for n in range(3 * width)]
    expected = [row[i * width + j] for i in range(3) for row in (one, two) for j in range(width)]

    assert expected == left(side_by_side(width), {0: [0.0] * (6 * width), 1: one, 2: two}, "opencl", WHOLE)[0]


def test_masked_off_elements_cost_no_load() -> None:
    """F 124."""
    body = listing_of(side_by_side(2), "opencl", WHOLE)[0].body

    assert [2, 2] == sorted(v.lanes for v in body if v.op is Op.LOAD)
    assert not any(v.op is Op.WHERE for v in body)


@pytest.mark.parametrize("target", ["opencl", "c"])
def test_side_by_side_means_the_same_on_a_device(target: str) -> None:
    assert_means(side_by_side(2), target, WHOLE)


@pytest.mark.parametrize(("offset", "lanes"), [(0, [4]), (1, [1, 1, 1, 1]), (2, [2, 2]), (3, [1, 1, 1, 1])])
def test_an_address_off_by_some_elements_takes_what_alignment_allows(offset: int, lanes: list[int]) -> None:
    """F 114, 115."""
    ast: Json = {
        "version": 1,
        "variables": [],
        "nodes": [
            {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [64], "index": f"axis0 + {offset}"},
            {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": [64], "index": "axis0", "src": [0]},
        ],
        "outputs": [1],
    }
    listing, _ = listing_of(ast, "opencl", [{"op": "UPCAST", "axis": 0, "amount": 4}])

    assert lanes == [v.lanes for v in listing.body if v.op is Op.LOAD]
    assert 1 == sum(v.op is Op.STORE for v in listing.body)
