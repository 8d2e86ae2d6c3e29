"""Closed forms of reduce loops: nothing is left to run, and what is computed is what the loop would have (acceptance 182-186, 111, 273)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ir.op import Op
from tests.core.listings import left, listing_of, loops
from tests.meaning.harness import assert_means

Json = dict[str, Any]


def counting(outputs: int, terms: int, conditions: list[str], dtype: str = "int32", value: object = 1) -> Json:
    """out[i] = how often the conditions on axis0 = i and axis1 hold, times value."""
    return {
        "version": 1,
        "variables": [],
        "nodes": [
            {"op": "CONST", "dtype": dtype, "value": value, "shape": [outputs, terms], "valid": conditions},
            {"op": "REDUCE_SUM", "axes": [1], "src": [0]},
            {"op": "STORE", "buffer": 0, "dtype": dtype, "shape": [outputs, 1], "index": "axis0", "src": [1]},
        ],
        "outputs": [2],
    }


def one_hot(rows: int, table: int, width: int, dtype: str = "float32") -> Json:
    """out[i, j] = Σ over r of (ids[i] == r ? data[r, j] : 0)."""
    return {
        "version": 1,
        "variables": [],
        "nodes": [
            {"op": "LOAD", "buffer": 1, "dtype": "int32", "shape": [rows, 1, 1], "index": "axis0"},
            {"op": "CONST", "dtype": "int32", "expr": "axis2", "shape": [1, 1, table]},
            {"op": "CMPNE", "src": [0, 1]},
            {"op": "CONST", "dtype": dtype, "value": 0.0, "shape": [1, 1, 1]},
            {"op": "LOAD", "buffer": 2, "dtype": dtype, "shape": [1, width, table], "index": f"axis2*{width} + axis1"},
            {"op": "WHERE", "src": [2, 3, 4]},
            {"op": "REDUCE_SUM", "axes": [2], "src": [5]},
            {"op": "STORE", "buffer": 0, "dtype": dtype, "shape": [rows, width, 1], "index": f"axis0*{width} + axis1", "src": [6]},
        ],
        "outputs": [7],
    }


@pytest.mark.parametrize("step", [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])
def test_every_arange_up_to_64_has_no_loop_and_counts_exactly(step: int) -> None:
    """I 182."""
    for n in range(1, 65, 3):
        ast = counting(n, n, [f"axis0 + axis1*{step} < {n // 2}"])
        listing, _ = listing_of(ast)

        assert 0 == loops(listing), f"n = {n}"
        expected = [sum(i + j * step < n // 2 for j in range(n)) for i in range(n)]
        assert expected == left(ast, {0: [0] * n})[0], f"n = {n}"


@given(
    st.integers(1, 9),
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5).filter(bool), st.integers(-20, 20)), min_size=1, max_size=3),
    st.sampled_from(["int32", "uint8", "float32", "bool"]),
)
def test_conditions_on_the_loop_variable_count_as_the_loop_would(
    outputs: int, terms: int, conditions: list[tuple[int, int, int]], dtype: str
) -> None:
    texts = [f"axis0*{a} + axis1*{m} < {limit}" for a, m, limit in conditions]
    ast = counting(outputs, terms, texts, dtype, {"float32": 1.5, "bool": True}.get(dtype, 3))

    got = left(ast, {0: [0] * outputs})[0]

    for i in range(outputs):
        count = sum(all(i * a + j * m < limit for a, m, limit in conditions) for j in range(terms))
        expected = {"float32": 1.5 * count, "bool": count > 0, "uint8": 3 * count % 256}.get(dtype, 3 * count)
        assert expected == got[i]


def test_a_triangle_is_counted_without_a_loop() -> None:
    """F 111."""
    ast = counting(10, 10, ["axis0 + axis1 >= 9"])

    assert 0 == loops(listing_of(ast)[0])
    assert list(range(1, 11)) == left(ast, {0: [0] * 10})[0]


@pytest.mark.parametrize("optimize", [[{"op": "GROUP", "axis": 0, "amount": 16}, {"op": "UNROLL", "axis": 1, "amount": 4}],
                                      [{"op": "UPCAST", "axis": 0, "amount": 4}], [{"op": "LOCAL", "axis": 0, "amount": 8}]])  # fmt: skip
def test_an_arange_is_right_under_options(optimize: list[Json]) -> None:
    """I 183."""
    ast = counting(64, 64, ["axis0 + axis1 >= 63"])

    assert list(range(1, 65)) == left(ast, {0: [0] * 64}, "opencl", optimize)[0]


def test_a_sum_of_floats_whose_count_is_no_float_keeps_its_loop() -> None:
    """I 184."""
    ast = counting(1, 5000, ["axis1 < 4999"], "float16", 1.0)
    listing, _ = listing_of(ast)

    assert 0 == loops(listing)  # float16 adds up in float32, which holds 4999
    ast = counting(1, 1 << 25, ["axis1 < 33554431"], "float32", 1.0)
    assert 1 == loops(listing_of(ast)[0])


def test_what_does_not_depend_on_the_loop_is_multiplied() -> None:
    """I 185."""
    ast = counting(1, 256, [], "float32", 0.5)

    assert 0 == loops(listing_of(ast)[0])
    assert [128.0] == left(ast, {0: [0.0]})[0]


@pytest.mark.parametrize("ids", [[0, 4, 2], [-1, 5, 3], [2147483647, -2147483648, 1]])
def test_a_one_hot_sum_is_one_gated_load(ids: list[int]) -> None:
    """I 186."""
    ast = one_hot(3, 5, 2)
    listing, _ = listing_of(ast)
    table = [float(n) for n in range(10)]

    assert 0 == loops(listing)
    assert 2 == sum(v.op is Op.LOAD for v in listing.body)
    expected = [table[i * 2 + j] if 0 <= i < 5 else 0.0 for i in ids for j in range(2)]
    assert expected == left(ast, {0: [9.0] * 6, 1: ids, 2: table})[0]


@pytest.mark.parametrize("target", ["opencl", "c"])
def test_a_one_hot_sum_means_the_same_on_a_device(target: str) -> None:
    assert_means(one_hot(7, 11, 4), target, special=True)


def test_terms_with_and_without_a_closed_form_part_ways() -> None:
    ast = counting(4, 6, ["axis1 >= axis0"], "int32", 2)
    nodes = ast["nodes"]
    nodes[1:] = [
        {"op": "LOAD", "buffer": 1, "dtype": "int32", "shape": [4, 6], "index": "axis0*6 + axis1"},
        {"op": "ADD", "src": [0, 1]},
        {"op": "REDUCE_SUM", "axes": [1], "src": [2]},
        {"op": "STORE", "buffer": 0, "dtype": "int32", "shape": [4, 1], "index": "axis0", "src": [3]},
    ]
    ast["outputs"] = [4]
    data = [n * n % 17 for n in range(24)]

    got = left(ast, {0: [0] * 4, 1: data})[0]

    assert [sum(data[i * 6 + j] + (2 if j >= i else 0) for j in range(6)) for i in range(4)] == got
