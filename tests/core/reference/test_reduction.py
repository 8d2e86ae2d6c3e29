"""Reduces: values, and how far any order of taking them may be off."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, UINT8, DType
from core.reference.arithmetic import mul
from core.reference.bounded import Array, Bounded, held_type, rounded
from core.reference.reduction import accumulator, lowest_bit

INF, NAN = math.inf, math.nan


def reduced(op: str, dtype: DType, values: list[float], pieces: int = 1, error: Array | None = None) -> tuple[float, float]:
    array = rounded(np.array(values, np.float64), dtype) if dtype.is_float else np.array(values, held_type(dtype))
    total = accumulator(op, dtype, (1,), (0,))
    for part in np.array_split(np.arange(len(values)), pieces):
        total.take(Bounded(dtype, array[part], None if error is None else error[part]))
    result = total.result()
    return float(result.values[0]), 0.0 if result.error is None else float(result.error[0])


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("REDUCE_SUM", FLOAT32, 0.0), ("REDUCE_MUL", FLOAT32, 1.0), ("REDUCE_MAX", FLOAT32, -INF), ("REDUCE_MAX", INT8, -128.0),
        ("REDUCE_MAX", UINT8, 0.0), ("REDUCE_MUL", INT32, 1.0), ("REDUCE_SUM", BOOL, 0.0), ("REDUCE_MUL", BOOL, 1.0),
        ("REDUCE_MAX", BOOL, 0.0),
    ],
)  # fmt: skip
def test_nothing_reduces_to_the_identity(op: str, dtype: DType, expected: float) -> None:
    assert (expected, 0.0) == reduced(op, dtype, [])


def test_sums_of_small_integers_are_exact_in_any_order() -> None:
    assert (10.0, 0.0) == reduced("REDUCE_SUM", FLOAT16, [1.0, 2.0, 3.0, 4.0], pieces=2)
    assert (2048.0, 0.0) == reduced("REDUCE_SUM", FLOAT16, [1.0] * 2048)
    assert 0.0 < reduced("REDUCE_SUM", FLOAT16, [1.0] * 2049)[1]


def test_integers_wrap() -> None:
    assert (44.0, 0.0) == reduced("REDUCE_SUM", INT8, [100.0, 100.0, 100.0])
    assert (16.0, 0.0) == reduced("REDUCE_MUL", INT8, [16.0, 17.0])


@settings(max_examples=40)
@given(st.lists(st.floats(-64, 64, width=16), min_size=1, max_size=6), st.sampled_from([FLOAT16, BFLOAT16, FLOAT32]))
def test_every_order_of_adding_is_within_the_bound(values: list[float], dtype: DType) -> None:
    values = [dtype.round(v) for v in values]
    total, bound = reduced("REDUCE_SUM", dtype, values)
    for order in itertools.islice(itertools.permutations(values), 60):
        sum_ = 0.0
        for value in order:
            sum_ = dtype.round(sum_ + value)
        assert abs(sum_ - total) <= bound


@settings(max_examples=40)
@given(st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=6), st.sampled_from([FLOAT16, FLOAT32]))
def test_every_order_of_multiplying_is_within_the_bound(values: list[float], dtype: DType) -> None:
    values = [dtype.round(v) for v in values]
    total, bound = reduced("REDUCE_MUL", dtype, values)
    for order in itertools.islice(itertools.permutations(values), 60):
        product = 1.0
        for value in order:
            product = dtype.round(product * value)
        assert abs(product - total) <= bound


def test_products_of_powers_of_two_are_exact() -> None:
    assert (8.0, 0.0) == reduced("REDUCE_MUL", FLOAT16, [2.0, -0.5, -8.0])
    assert (15.0, 0.0) == reduced("REDUCE_MUL", FLOAT16, [3.0, 5.0])


def test_infinities_and_nan_in_a_sum() -> None:
    assert (INF, 0.0) == reduced("REDUCE_SUM", FLOAT32, [1.0, INF])
    assert np.isnan(reduced("REDUCE_SUM", FLOAT32, [INF, -INF])[0])
    assert np.isnan(reduced("REDUCE_SUM", FLOAT32, [NAN, 1.0])[0])
    assert INF == reduced("REDUCE_SUM", FLOAT32, [3e38, 3e38, -3e38])[1]
    assert (INF, 0.0) == reduced("REDUCE_SUM", FLOAT32, [3e38, 3e38, 3e38])


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_a_product_that_overflows_may_be_finite_where_it_is_added_unrounded(dtype: DType) -> None:
    greatest = float(np.finfo(dtype.name).max)
    factor = Bounded(dtype, rounded(np.array([greatest, -INF]), dtype))
    total = accumulator("REDUCE_SUM", dtype, (1,), (0,))
    total.take(mul(factor, Bounded(dtype, rounded(np.array([2.0, 1.0]), dtype))))
    error = total.result().error

    assert error is not None
    assert [INF] == error.tolist()


def test_infinities_and_zeros_in_a_product() -> None:
    assert (-INF, 0.0) == reduced("REDUCE_MUL", FLOAT32, [-2.0, INF])
    assert (INF, 0.0) == reduced("REDUCE_MUL", FLOAT32, [-INF, -INF])
    assert np.isnan(reduced("REDUCE_MUL", FLOAT32, [0.0, INF])[0])
    assert (0.0, 0.0) == reduced("REDUCE_MUL", FLOAT32, [0.0, 3.3])


def test_a_product_that_overflows_in_some_order_may_be_anything() -> None:
    """The parts of one order are beyond the type where another's are not; where none comes back, all of them are."""
    assert INF == reduced("REDUCE_MUL", FLOAT32, [2.0**66, 48.0, 2.0**66, 4.0, 0.0, 28.0])[1]
    assert INF == reduced("REDUCE_MUL", FLOAT32, [2.0**100, 2.0**100, 2.0**-100])[1]
    assert (INF, 0.0) == reduced("REDUCE_MUL", FLOAT32, [2.0**66, 48.0, 2.0**66])


def test_a_maximum_is_exact_and_nan_where_an_element_is() -> None:
    assert (-1.0, 0.0) == reduced("REDUCE_MAX", FLOAT32, [-3.0, -1.0, -2.0], pieces=2)
    assert np.isnan(reduced("REDUCE_MAX", FLOAT32, [1.0, NAN])[0])
    assert (2.0, 0.5) == reduced("REDUCE_MAX", FLOAT32, [2.0, 1.75], error=np.array([0.25, 0.75]))


def test_a_lost_element_loses_the_sum_but_not_a_decided_or() -> None:
    lost = np.array([INF, 0.0])

    assert INF == reduced("REDUCE_SUM", INT32, [1.0, 2.0], error=lost)[1]
    assert (1.0, 0.0) == reduced("REDUCE_SUM", BOOL, [0.0, 1.0], error=lost)
    assert INF == reduced("REDUCE_SUM", BOOL, [1.0, 0.0], error=lost)[1]
    assert (0.0, 0.0) == reduced("REDUCE_MUL", INT32, [5.0, 0.0], error=lost)


def test_the_lowest_bit_of_a_number() -> None:
    assert [0, 1, -1, -3, -2] == lowest_bit(np.array([1.0, 2.0, 1.5, 0.375, 10.25])).tolist()
