"""Where values are computed: in the deepest loop they depend on and in no deeper one (acceptance 134-136, 151, 176, 252, 258)."""

from __future__ import annotations

from typing import Any

from core.ir.op import Op
from core.ir.value import Value
from tests.core.listings import left, listing_of

Json = dict[str, Any]


def load(buffer: int, shape: list[int], index: str) -> Json:
    return {"op": "LOAD", "buffer": buffer, "dtype": "float32", "shape": shape, "index": index}


def store(shape: list[int], index: str, src: int) -> Json:
    return {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": shape, "index": index, "src": [src]}


def kernel(*nodes: Json) -> Json:
    return {"version": 1, "variables": [], "nodes": list(nodes), "outputs": [len(nodes) - 1]}


def depths(body: tuple[Value, ...]) -> dict[Value, int]:
    """How many scopes are open around each value."""
    out, depth = {}, 0
    for v in body:
        depth -= v.op is Op.END
        out[v] = depth
        depth += v.op in (Op.RANGE, Op.IF)
    return out


NESTED = kernel(
    load(1, [3, 4, 8], "axis0*32 + axis1*8 + axis2"),
    {"op": "REDUCE_MAX", "axes": [2], "src": [0]},
    {"op": "REDUCE_SUM", "axes": [1], "src": [1]},
    store([3, 1, 1], "axis0", 2),
)
ROW_MINUS_MAXIMUM = kernel(
    load(1, [5, 8], "axis0*8 + axis1"),
    {"op": "REDUCE_MAX", "axes": [1], "src": [0]},
    {"op": "NEG", "src": [1]},
    {"op": "ADD", "src": [0, 2]},
    store([5, 8], "axis0*8 + axis1", 3),
)


def test_scopes_close_innermost_first() -> None:
    """I 176."""
    body = listing_of(NESTED)[0].body
    opened: list[Value] = []
    for v in body:
        if v.op in (Op.RANGE, Op.IF):
            opened.append(v)
        elif v.op is Op.END:
            assert opened.pop() is v.src[0]
    assert [] == opened


def test_an_inner_accumulator_starts_anew_in_every_turn_of_the_outer_loop() -> None:
    """N 252."""
    body = listing_of(NESTED, "opencl")[0].body
    at = depths(body)
    inner, outer = sorted((v for v in body if v.op is Op.ACC), key=lambda v: -at[v])

    assert (1, 0) == (at[inner], at[outer])


def test_nested_reduces_give_what_they_mean() -> None:
    data = [float((n * 7) % 23 - 11) for n in range(96)]
    expected = [sum(max(data[i * 32 + j * 8 : i * 32 + j * 8 + 8]) for j in range(4)) for i in range(3)]

    assert expected == left(NESTED, {0: [0.0] * 3, 1: data})[0]


def test_a_row_s_maximum_precedes_the_output_loop_of_its_row() -> None:
    """N 258, 265."""
    body = listing_of(ROW_MINUS_MAXIMUM, "c")[0].body
    at = depths(body)
    ranges = [v for v in body if v.op is Op.RANGE]

    assert [0, 1, 1] == [at[r] for r in ranges]  # rows; the reduce; the columns, beside the reduce
    (stored,) = [v for v in body if v.op is Op.STORE]
    assert 2 == at[stored]


def test_an_accumulator_is_reset_for_each_output_point() -> None:
    """G 151."""
    data = [float(n) for n in range(40)]

    assert [d - max(data[n // 8 * 8 : n // 8 * 8 + 8]) for n, d in enumerate(data)] == left(ROW_MINUS_MAXIMUM, {0: [0.0] * 40, 1: data})[0]


def test_a_load_that_depends_on_no_loop_precedes_the_loops() -> None:
    """G 134, 135."""
    ast = kernel(
        load(1, [4, 6], "axis0*6 + axis1"),
        load(2, [1, 1], "0"),
        load(3, [4, 1], "axis0"),
        {"op": "MUL", "src": [0, 1]},
        {"op": "MUL", "src": [3, 2]},
        {"op": "REDUCE_SUM", "axes": [1], "src": [4]},
        store([4, 1], "axis0", 5),
    )
    body = listing_of(ast, "c")[0].body
    at = depths(body)

    assert {1: 2, 2: 0, 3: 1} == {v.src[0].arg[0]: at[v] for v in body if v.op is Op.LOAD}  # type: ignore[index]  # of a PARAM


def test_a_product_of_one_sum_with_itself_is_one_loop() -> None:
    """G 136."""
    ast = kernel(
        load(1, [4, 6], "axis0*6 + axis1"),
        {"op": "REDUCE_SUM", "axes": [1], "src": [0]},
        {"op": "MUL", "src": [1, 1]},
        store([4, 1], "axis0", 2),
    )
    body = listing_of(ast, "opencl")[0].body
    order = [v.op for v in body]

    assert 1 == order.count(Op.RANGE)
    assert order.index(Op.END) < order.index(Op.MUL)


def test_a_reduce_at_two_sites_has_two_loops_side_by_side_or_nested_as_it_needs() -> None:
    """N 257."""
    ast = kernel(
        load(1, [3, 4, 5], "axis0*20 + axis1*5 + axis2"),
        {"op": "REDUCE_MAX", "axes": [2], "src": [0]},
        {"op": "REDUCE_SUM", "axes": [1], "src": [1]},
        {"op": "RECIP", "src": [2]},
        {"op": "MUL", "src": [1, 3]},
        store([3, 4, 1], "axis0*4 + axis1", 4),
    )
    data = [float(n % 13 + 1) for n in range(60)]
    tops = [max(data[n * 5 : n * 5 + 5]) for n in range(12)]
    body = listing_of(ast, "opencl")[0].body

    assert 3 == sum(v.op is Op.RANGE for v in body)
    got = left(ast, {0: [0.0] * 12, 1: data}, "opencl")[0]
    for n, top in enumerate(tops):
        assert abs(got[n] - top / sum(tops[n // 4 * 4 : n // 4 * 4 + 4])) < 1e-6
