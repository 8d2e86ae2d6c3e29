"""Values and error bounds of single ops, against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, UINT64, DType
from core.reference import arithmetic, integers
from core.reference.bounded import Array, Bounded, from_integers, held_type, overflow_at, rounded, to_stored, ulp
from core.reference.convert import bitcast, cast

INF, NAN = math.inf, math.nan


def exact(dtype: DType, *values: float) -> Bounded:
    if dtype.is_float:
        return Bounded(dtype, rounded(np.array(values, np.float64), dtype))
    return Bounded(dtype, np.array(values, held_type(dtype)))


def within(error: float, dtype: DType, *values: float) -> Bounded:
    return Bounded(dtype, rounded(np.array(values, np.float64), dtype), np.full(len(values), error))


def error_of(value: Bounded) -> list[float]:
    error: Array = np.zeros(()) if value.error is None else value.error
    return [float(e) for e in np.broadcast_to(error, value.values.shape)]


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64])
def test_rounding_agrees_with_the_compilers_own(dtype: DType) -> None:
    random = np.random.default_rng(1)
    values = np.ldexp(random.standard_normal(400), random.integers(-160, 140, 400))
    values = np.concatenate([values, [0.0, -0.0, INF, -INF, overflow_at(dtype), np.nextafter(overflow_at(dtype), 0)]])

    assert [dtype.round(float(v)) for v in values] == rounded(values, dtype).astype(np.float64).tolist()


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64])
@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int8])
def test_integers_round_once(dtype: DType, kind: type[np.integer[np.typing.NBitBase]]) -> None:
    info = np.iinfo(kind)
    random = np.random.default_rng(2)
    values = random.integers(info.min, info.max, 300, kind, endpoint=True) >> random.integers(0, 60, 300).astype(kind)

    assert [dtype.round(int(v)) for v in values] == from_integers(values, dtype).astype(np.float64).tolist()


def test_units_in_the_last_place() -> None:
    values = np.array([1.0, 1.5, 2.0, 0.0, 2.0**-126, 2.0**-149, INF])

    assert [2.0**-23, 2.0**-23, 2.0**-22, 2.0**-149, 2.0**-149, 2.0**-149, 0.0] == ulp(values, FLOAT32).tolist()
    assert [2.0**-24, 2.0**-10] == ulp(np.array([0.0, 1.0]), FLOAT16).tolist()


def test_a_sum_of_exact_operands_is_exact_and_rounds_once() -> None:
    result = arithmetic.add(exact(FLOAT16, 2048.0, 1.0), exact(FLOAT16, 1.0, 2.0**-12))

    assert ([2048.0, 1.0], [0.0, 0.0]) == (result.values.tolist(), error_of(result))


def test_a_sum_carries_its_operands_errors_and_one_more_unit() -> None:
    result = arithmetic.add(within(0.25, FLOAT32, 1.0), within(0.5, FLOAT32, 2.0))

    assert [0.75 + 2.0**-22] == error_of(result)


def test_a_product_that_is_not_exact_may_be_added_unrounded() -> None:
    third = 1.0 / 3.0
    product = arithmetic.mul(exact(FLOAT32, third, 0.5), exact(FLOAT32, third, 0.5))
    total = arithmetic.add(product, exact(FLOAT32, 1.0, 1.0))

    assert product.error is None
    assert error_of(total)[0] > 0.0
    assert 0.0 == error_of(total)[1]


def test_subnormals_may_be_taken_for_zeros_but_not_those_of_float16() -> None:
    tiny = 2.0**-130

    assert [tiny] == error_of(arithmetic.neg(exact(FLOAT32, tiny)))
    assert [0.0] == error_of(arithmetic.neg(exact(FLOAT16, 2.0**-20)))
    assert [INF] == error_of(arithmetic.function("RECIP", exact(FLOAT32, tiny)))


def test_an_overflow_is_sure_or_not() -> None:
    greatest = float(np.finfo(np.float32).max)

    assert ([INF], [0.0]) == ((r := arithmetic.mul(exact(FLOAT32, greatest), exact(FLOAT32, 2.0))).values.tolist(), error_of(r))
    assert [INF] == error_of(arithmetic.add(within(1e33, FLOAT32, greatest), exact(FLOAT32, 0.0)))
    assert [0.0] == error_of(arithmetic.add(within(1.0, FLOAT32, greatest), exact(FLOAT32, INF)))


def test_nan_is_sure_whatever_else_is_not() -> None:
    result = arithmetic.add(within(INF, FLOAT32, 1.0), exact(FLOAT32, NAN))

    assert [0.0] == error_of(result)
    assert np.isnan(result.values[0])


def test_functions_are_within_four_units_and_exact_at_their_special_points() -> None:
    result = arithmetic.function("EXP2", exact(FLOAT32, -INF, 0.5, NAN))
    logarithm = arithmetic.function("LOG2", exact(FLOAT32, 0.0, -1.0, INF, 8.0))

    assert [0.0, 0.0] == [error_of(result)[0], error_of(result)[2]]
    assert 4 * 2.0**-23 <= error_of(result)[1] <= 5 * 2.0**-23
    assert [0.0, 0.0, 0.0] == error_of(logarithm)[:3]
    assert [-INF, INF, 3.0] == [logarithm.values[0], logarithm.values[2], logarithm.values[3]]
    assert np.isnan(logarithm.values[1])


def test_a_reciprocal_near_zero_may_be_anything() -> None:
    assert [INF] == error_of(arithmetic.function("RECIP", within(0.5, FLOAT32, 0.25)))
    assert [0.0] == error_of(arithmetic.function("RECIP", exact(FLOAT32, INF)))


def test_a_comparison_that_an_error_could_turn_is_open() -> None:
    less = arithmetic.less(within(0.1, FLOAT32, 1.0, 1.0, 1.0), exact(FLOAT32, 1.05, 2.0, NAN))
    differs = arithmetic.differs(within(0.1, FLOAT32, 1.0, 1.0, 1.0), exact(FLOAT32, 1.0, 2.0, NAN))

    assert ([INF, 0.0, 0.0], [True, True, False]) == (error_of(less), less.values.tolist())
    assert ([INF, 0.0, 0.0], [False, True, True]) == (error_of(differs), differs.values.tolist())


def test_the_sign_of_a_zero_maximum_is_open() -> None:
    zero = arithmetic.maximum(exact(FLOAT32, 0.0), exact(FLOAT32, -0.0))

    assert zero.open_zero
    assert [0.0] == error_of(arithmetic.less(zero, exact(FLOAT32, 0.0)))
    assert [INF] == error_of(arithmetic.function("RECIP", zero))
    assert [INF] == error_of(bitcast(zero, INT32))


def test_a_choice_by_an_open_condition_allows_for_both() -> None:
    condition = Bounded(BOOL, np.array([True, True, False]), np.array([INF, INF, 0.0]))
    result = arithmetic.chosen(condition, exact(FLOAT32, 1.0, 4.0, 1.0), exact(FLOAT32, 1.0, 6.0, 2.0))

    assert ([1.0, 4.0, 2.0], [0.0, 2.0, 0.0]) == (result.values.tolist(), error_of(result))


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("IDIV", -47, 5, -9), ("IDIV", 9, -4, -2), ("MOD", -47, 5, -2), ("MOD", 47, -5, 2), ("ADD", 100, 100, -56),
        ("MUL", 16, 17, 16), ("SHL", 64, 1, -128), ("SHR", -8, 1, -4), ("XOR", 5, 3, 6), ("MAX", -1, -2, -1),
    ],
)  # fmt: skip
def test_integers_wrap_truncate_and_shift(op: str, a: int, b: int, expected: int) -> None:
    result = integers.binary(op, exact(INT8, a), exact(INT8, b))

    assert ([expected], [0.0]) == (result.values.tolist(), error_of(result))


@pytest.mark.parametrize(
    ("op", "dtype", "a", "b"),
    [
        ("IDIV", INT8, 5, 0), ("MOD", UINT8, 5, 0), ("IDIV", INT8, -128, -1), ("MOD", INT32, -(2**31), -1), ("SHL", INT8, 1, 8),
        ("SHR", INT8, 1, -1),
    ],
)  # fmt: skip
def test_what_is_undefined_may_be_anything(op: str, dtype: DType, a: int, b: int) -> None:
    assert [INF] == error_of(integers.binary(op, exact(dtype, a), exact(dtype, b)))


def test_what_cannot_matter_loses_nothing() -> None:
    lost = Bounded(INT8, np.array([3, 3], np.int8), np.array([INF, INF]))
    unknown = Bounded(BOOL, np.array([True, True]), np.array([INF, INF]))

    assert [0.0, INF] == error_of(integers.binary("MUL", lost, exact(INT8, 0, 1)))
    assert [0.0, INF] == error_of(integers.logical("MUL", unknown, exact(BOOL, False, True)))
    assert [INF, 0.0] == error_of(integers.logical("ADD", unknown, exact(BOOL, False, True)))
    assert [0.0, INF] == error_of(integers.logical("CMPLT", unknown, exact(BOOL, False, True)))


def test_bools_are_a_lattice() -> None:
    a, b = exact(BOOL, False, False, True, True), exact(BOOL, False, True, False, True)
    table: dict[str, list[bool]] = {op: integers.logical(op, a, b).values.tolist() for op in ("ADD", "MUL", "CMPLT", "CMPNE")}

    assert {"ADD": [False, True, True, True], "MUL": [False, False, False, True], "CMPLT": [False, True, False, False],
            "CMPNE": [False, True, True, False]} == table  # fmt: skip
    assert [True, True, False, False] == integers.negated(a).values.tolist()


def test_a_float_truncates_where_it_fits_and_is_anything_elsewhere() -> None:
    result = cast(exact(FLOAT32, -1.9, 2.9, 127.9, 128.0, NAN, INF), INT8)

    assert [-1, 2, 127] == result.values.tolist()[:3]
    assert [0.0, 0.0, 0.0, INF, INF, INF] == error_of(result)
    assert [0.0, INF] == error_of(cast(exact(FLOAT32, -0.5, -1.0), UINT8))


def test_an_inexact_float_truncates_surely_or_not() -> None:
    assert [0.0, INF] == error_of(cast(within(0.25, FLOAT32, 1.5, 2.0), INT64))


def test_anything_but_zero_is_true() -> None:
    result = cast(exact(FLOAT64, 0.0, -0.0, NAN, 0.25), BOOL)

    assert ([False, False, True, True], [0.0] * 4) == (result.values.tolist(), error_of(result))
    assert [INF, 0.0] == error_of(cast(within(0.25, FLOAT64, 0.0, 1.0), BOOL))


def test_integers_keep_their_low_bits() -> None:
    assert [250, 44] == cast(exact(INT32, -6, 300), UINT8).values.tolist()
    assert [2**64 - 1] == cast(exact(INT8, -1), UINT64).values.tolist()


def bits(value: Bounded) -> list[int]:
    stored: Array = to_stored(value.values, value.dtype)
    result: list[int] = stored.view(f"u{stored.dtype.itemsize}").tolist()
    return result


def test_bits_are_kept_by_reinterpretation() -> None:
    assert [0x3F800000] == bits(bitcast(exact(FLOAT32, 1.0), INT32))
    assert [1, 0] == bits(bitcast(exact(UINT8, 2, 0), BOOL))
    assert [0x3F80] == bits(exact(BFLOAT16, 1.00390625))
    assert [0x3F82] == bits(exact(BFLOAT16, 1.01171875))


def test_a_conversion_to_the_same_type_is_none() -> None:
    """What is added to a product may come with it as one rounding, whether or not a conversion that does nothing stands between."""
    product = arithmetic.mul(exact(FLOAT32, 3e38), exact(FLOAT32, 2.0))
    total = arithmetic.add(cast(product, FLOAT32), exact(FLOAT32, -INF))

    assert [INF] == error_of(total)
