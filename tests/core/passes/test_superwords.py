"""Scalars side by side as one vector: what is packed, what is not, and that it means the same."""

from __future__ import annotations

from typing import Any

import pytest

from core.ir.op import OPS, Op
from core.ir.value import Value
from tests.core.listings import listing_of
from tests.kernels import const, kernel, load, node, store
from tests.meaning.harness import assert_means

Json = dict[str, Any]
CPU: Json = {"device_class": "cpu"}


def up(axis: int, amount: int) -> Json:
    return {"op": "UPCAST", "axis": axis, "amount": amount}


def unroll(axis: int, amount: int) -> Json:
    return {"op": "UNROLL", "axis": axis, "amount": amount}


def body_of(ast: Json, *options: Json) -> tuple[Value, ...]:
    return listing_of(ast, "opencl", list(options), CPU)[0].body


def arithmetic(body: tuple[Value, ...]) -> list[tuple[Op, int]]:
    return [(v.op, v.lanes) for v in body if OPS[v.op].elementwise and not v.dtype.is_index]


def scaled(n: int = 64, function: str = "EXP2") -> Json:
    """out = f(a·b + 1)"""
    shape = [n]
    return kernel(
        load(1, shape), load(2, shape), node("MUL", 0, 1), const(1.0, shape), node("ADD", 2, 3), node(function, 4), store(5, shape)
    )


def product(m: int, n: int, k: int) -> Json:
    return kernel(
        load(1, [m, n, k], strides=[k, 0, 1]),
        load(2, [m, n, k], strides=[0, 1, n]),
        node("MUL", 0, 1),
        node("REDUCE_SUM", 2, axes=[2]),
        store(3, [m, n, 1], strides=[n, 1, 0]),
    )


def rows(m: int, n: int, op: str = "REDUCE_SUM", dtype: str = "float32") -> Json:
    return kernel(load(1, [m, n], dtype), node(op, 0, axes=[1]), store(1, [m, 1], dtype=dtype, strides=[1, 0]))


def image_row() -> Json:
    """out[x] = Σ over s < 3 of a[x + s - 1], 0 beyond the ends of a row of 16."""
    a = {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [4, 16, 3], "index": "axis0*16 + axis1 + axis2 - 1"}
    a["valid"] = ["axis1 + axis2 >= 1", "axis1 + axis2 < 17"]
    return kernel(a, node("REDUCE_SUM", 0, axes=[2]), store(1, [4, 16, 1], strides=[16, 1, 0]))


def prefix(rows_: int, n: int) -> Json:
    a = {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [rows_, n, n], "index": f"axis0*{n} + axis1 + axis2 - {n - 1}"}
    a["valid"] = [f"axis1 + axis2 >= {n - 1}"]
    return kernel(a, node("REDUCE_SUM", 0, axes=[2]), store(1, [rows_, n, 1], strides=[n, 1, 0]))


@pytest.mark.parametrize("width", [4, 8, 16])
def test_elementwise_work_stays_whole_vectors(width: int) -> None:
    body = body_of(scaled(), up(0, width))

    assert [(Op.MUL, width), (Op.ADD, width), (Op.EXP2, width)] == arithmetic(body)
    assert not any(v.op in (Op.VECTOR, Op.EXTRACT) for v in body)


def test_a_tile_of_a_product_has_a_vector_register_for_each_row() -> None:
    body = body_of(product(8, 32, 8), up(1, 16), up(0, 4))

    assert [16] * 4 == [v.lanes for v in body if v.op is Op.ACC]
    assert {(Op.MUL, 16), (Op.ADD, 16)} == set(arithmetic(body))


@pytest.mark.parametrize("order", [(up(0, 4), up(1, 16)), (up(1, 16), up(0, 4))], ids=["rows first", "columns first"])
def test_lanes_lie_along_the_vectors_that_are_loaded_whatever_was_expanded_first(order: tuple[Json, Json]) -> None:
    body = body_of(product(8, 32, 8), *order)

    assert [16] * 4 == [v.lanes for v in body if v.op is Op.ACC]


def test_unrolled_terms_have_lanes_of_one_register() -> None:
    body = body_of(rows(3, 128), unroll(0, 16))

    assert [16] == [v.lanes for v in body if v.op is Op.ACC]
    assert [(Op.ADD, 16), *[(Op.ADD, 1)] * 15] == arithmetic(body)


def test_a_gpu_keeps_one_register_and_scalar_arithmetic() -> None:
    body = listing_of(rows(3, 128), "opencl", [unroll(0, 16)])[0].body

    assert [1] == [v.lanes for v in body if v.op is Op.ACC]
    assert {1} == {lanes for _, lanes in arithmetic(body)}


def test_windows_beyond_the_ends_of_a_row_are_lanes_of_what_is_loaded_once() -> None:
    """All 16 elements of a row in one load; shifted by one, they are put together from its lanes."""
    body = body_of(image_row(), up(1, 16), unroll(0, 3))

    assert [16] == [v.lanes for v in body if v.op is Op.LOAD]
    assert [(Op.ADD, 16), (Op.ADD, 16)] == arithmetic(body)


def test_what_waits_for_its_neighbour_is_never_a_vector() -> None:
    body = body_of(prefix(4, 16), {"op": "LOOP", "axis": 1, "amount": 0}, up(1, 4))

    assert [(Op.ADD, 1)] * 4 == arithmetic(body)


def test_values_of_no_vector_are_left_alone() -> None:
    """A store of columns: nothing lies side by side, and gathering lanes would cost more than adding them."""
    transposed = kernel(
        load(1, [8, 8], strides=[1, 8]), load(2, [8, 8], strides=[1, 8]), node("ADD", 0, 1), store(2, [8, 8], strides=[8, 1])
    )
    body = body_of(transposed, up(1, 4))

    assert [(Op.ADD, 1)] * 4 == arithmetic(body)


OPERATIONS = ["ADD", "MUL", "MAX", "IDIV", "MOD", "XOR", "AND", "OR", "SHL", "SHR", "CMPLT", "CMPNE"]
INTEGERS = ["int8", "uint16", "int32", "uint64"]


def binary(op: str, dtype: str) -> Json:
    compares = op in ("CMPLT", "CMPNE")
    return kernel(load(1, [32], dtype), load(2, [32], dtype), node(op, 0, 1), store(2, [32], dtype="bool" if compares else dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", OPERATIONS)
def test_whole_vectors_of_integers_mean_what_scalars_do(op: str, dtype: str) -> None:
    assert_means(binary(op, dtype), "opencl", [up(0, 16)], special=True, device=CPU)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX", "CMPLT", "CMPNE"])
def test_whole_vectors_of_floats_mean_what_scalars_do(op: str, dtype: str) -> None:
    assert_means(binary(op, dtype), "opencl", [up(0, 8)], special=True, device=CPU)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", ["EXP2", "LOG2", "SIN", "SQRT", "RECIP", "NEG"])
def test_functions_of_whole_vectors_mean_what_scalars_do(function: str, dtype: str) -> None:
    ast = kernel(load(1, [32], dtype), node(function, 0), store(1, [32], dtype=dtype))
    assert_means(ast, "opencl", [up(0, 16)], special=True, device=CPU)


@pytest.mark.parametrize("target_dtype", ["bool", "int8", "int64", "float16", "float32"])
@pytest.mark.parametrize("dtype", ["bool", "uint32", "float16", "float32"])
def test_conversions_of_whole_vectors_mean_what_scalars_do(dtype: str, target_dtype: str) -> None:
    ast = kernel(load(1, [32], dtype), node("CAST", 0, dtype=target_dtype), store(1, [32], dtype=target_dtype))
    assert_means(ast, "opencl", [up(0, 8)], device=CPU)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "float16", "float32", "float64"])
def test_choosing_lane_by_lane_means_what_scalars_do(dtype: str) -> None:
    ast = kernel(load(1, [32], "bool"), load(2, [32], dtype), load(3, [32], dtype), node("WHERE", 0, 1, 2), store(3, [32], dtype=dtype))
    assert_means(ast, "opencl", [up(0, 16)], device=CPU)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "bool", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ["REDUCE_SUM", "REDUCE_MAX", "REDUCE_MUL"])
def test_registers_abreast_mean_what_one_does(op: str, dtype: str) -> None:
    assert_means(rows(3, 64, op, dtype), "opencl", [unroll(0, 16)], device=CPU)


@pytest.mark.parametrize("options", [(), (up(1, 16), unroll(0, 3)), (up(1, 8),), (up(1, 4), up(0, 2)), (up(0, 4), unroll(0, 3))])
def test_masked_windows_mean_the_same(options: tuple[Json, ...]) -> None:
    assert_means(image_row(), "opencl", list(options), device=CPU)


def every_second(window: int) -> Json:
    """out[y, x] = Σ over s < window of a[y, 2·x + s]·b[s]."""
    shape = [4, 16, window]
    return kernel(
        {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": shape, "index": f"axis0*{32 + window} + axis1*2 + axis2"},
        {"op": "LOAD", "buffer": 2, "dtype": "float32", "shape": shape, "index": "axis2"},
        node("MUL", 0, 1),
        node("REDUCE_SUM", 2, axes=[2]),
        {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": [4, 16, 1], "index": "axis0*16 + axis1", "src": [3]},
    )


@pytest.mark.parametrize("window", [2, 3, 4, 5])
def test_windows_of_every_second_element_are_read_in_whole_runs(window: int) -> None:
    """Not as the pairs that lie along the window: all that 16 windows touch lies together."""
    body = body_of(every_second(window), up(1, 16), unroll(0, 0))
    image = next(v.src[0] for v in body if v.op is Op.LOAD and v.lanes == 16)
    beyond = {2: [], 3: [1], 4: [2], 5: [1, 2]}  # 16 windows touch 30 elements more than one does

    assert [*beyond[window], 16, 16] == sorted(v.lanes for v in body if v.op is Op.LOAD and v.src[0] is image)


@pytest.mark.parametrize("window", [3, 5])
def test_products_that_share_a_factor_are_lanes_of_one_product(window: int) -> None:
    body = body_of(every_second(window), up(1, 16), unroll(0, 0))

    products = [v for v in body if v.op is Op.MUL and not v.dtype.is_index]
    assert [16] * window == [v.lanes for v in products]
    for value in products:
        assert any(len(set(s.src)) == 1 for s in value.src)


@pytest.mark.parametrize("window", [2, 3, 4, 5])
def test_windows_of_every_second_element_mean_what_scalars_do(window: int) -> None:
    assert_means(every_second(window), "opencl", [up(1, 16), unroll(0, 0)], device=CPU)
