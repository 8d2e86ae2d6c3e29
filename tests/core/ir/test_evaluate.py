"""Operations on plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, UINT32, DType, Number, float_bits
from core.ir.evaluate import compute, evaluate, fold, from_bits, to_bits
from core.ir.op import Op
from core.ir.value import constant, make

NUMPY = {d.name: np.dtype(d.name) for d in DTYPES.values() if d is not BFLOAT16}
FLOATS = st.floats(width=32) | st.sampled_from((0.0, -0.0, math.inf, -math.inf, math.nan, 65504.0, 6e-8))


@pytest.mark.parametrize(
    ("result", "op", "dtype", "x", "y"),
    [
        (3.0, Op.ADD, FLOAT32, 1.0, 2.0),
        (44, Op.ADD, UINT8, 200, 100),
        (76, Op.ADD, INT8, -90, -90),
        (-2, Op.IDIV, INT8, 9, -4),
        (-9, Op.IDIV, INT8, -47, 5),
        (-2, Op.REM, INT8, -47, 5),
        (1, Op.REM, INT8, 9, -4),
        (0, Op.IDIV, INT8, 5, 0),
        (0, Op.REM, INT8, 5, 0),
        (0, Op.IDIV, INT8, -128, -1),
        (0, Op.SHL, INT32, 1, 40),
        (0, Op.SHR, INT32, 1, -1),
        (-1, Op.SHR, INT32, -5, 3),
        ((1 << 60) + 1, Op.IDIV, INT64, (1 << 60) * 3 + 3, 3),
        (1.0, Op.ADD, FLOAT16, 1.0, 2.0**-12),
        (1.0, Op.ADD, BFLOAT16, 1.0, 2.0**-9),
        (math.inf, Op.MUL, FLOAT16, 300.0, 300.0),
        (math.inf, Op.MUL, FLOAT64, 1e200, 1e200),
        (0.0, Op.MAX, FLOAT32, 0.0, -0.0),
        (0.0, Op.MAX, FLOAT32, -0.0, 0.0),
        (False, Op.CMPLT, FLOAT32, math.nan, 1.0),
        (True, Op.CMPNE, FLOAT32, math.nan, math.nan),
        (False, Op.CMPNE, FLOAT32, 0.0, -0.0),
        (True, Op.ADD, BOOL, True, True),
        (False, Op.MUL, BOOL, True, False),
        (True, Op.CMPLT, BOOL, False, True),
        (250, Op.MUL, UINT8, 6, 255),
    ],
)
def test_operations_round_wrap_and_truncate(result: Number, op: Op, dtype: DType, x: Number, y: Number) -> None:
    """I 165, 166, 167."""
    found = fold(op, BOOL if op in (Op.CMPLT, Op.CMPNE) else dtype, (x, y), (dtype, dtype))

    assert (type(result), repr(result)) == (type(found), repr(found))


def test_nan_is_the_maximum_of_anything_with_it() -> None:
    for x, y in ((math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)):
        assert math.isnan(compute(Op.MAX, FLOAT32, (x, y), (FLOAT32, FLOAT32)))


@pytest.mark.parametrize(
    ("result", "dtype", "x", "source"),
    [
        (-1, INT8, 255, UINT8),
        (255, UINT8, -1, INT32),
        (True, BOOL, math.nan, FLOAT32),
        (False, BOOL, -0.0, FLOAT32),
        (-2, INT32, -2.9, FLOAT32),
        (None, INT8, 128.0, FLOAT32),
        (None, UINT32, -1.0, FLOAT32),
        (0, UINT32, -0.9, FLOAT32),
        (None, INT32, math.nan, FLOAT64),
        (16777216.0, FLOAT32, 16777217, INT32),
        (float((1 << 63) + (1 << 40)), FLOAT32, (1 << 63) + (1 << 39) + 1, DTYPES["uint64"]),
        (math.inf, FLOAT16, 65520, INT32),
        (1.0, FLOAT64, True, BOOL),
    ],
)
def test_conversions(result: Number | None, dtype: DType, x: Number, source: DType) -> None:
    found = fold(Op.CAST, dtype, (x,), (source,))

    assert (type(result), repr(result)) == (type(found), repr(found))


def test_a_bfloat16_is_rounded_once() -> None:
    between = 1.0 + 2.0**-8 + 2.0**-30  # float32 would drop the last bit, and the tie would go to even

    assert 1.0 + 2.0**-7 == compute(Op.CAST, BFLOAT16, (between,), (FLOAT64,))


def test_functions_at_their_special_points() -> None:
    def of(op: Op, x: float) -> str:
        return repr(compute(op, FLOAT32, (x,), (FLOAT32,)))

    assert ["0.0", "inf", "8.0"] == [of(Op.EXP2, x) for x in (-math.inf, 3e38, 3.0)]
    assert ["-inf", "nan", "inf", "-3.0"] == [of(Op.LOG2, x) for x in (-0.0, -1.0, math.inf, 0.125)]
    assert ["nan", "-0.0"] == [of(Op.SIN, x) for x in (math.inf, -0.0)]
    assert ["nan", "-0.0", "inf"] == [of(Op.SQRT, x) for x in (-1.0, -0.0, math.inf)]
    assert ["inf", "-inf", "-0.0"] == [of(Op.RECIP, x) for x in (0.0, -0.0, -math.inf)]


def test_what_a_library_decides_is_not_folded() -> None:
    assert fold(Op.SIN, FLOAT32, (1.0,), (FLOAT32,)) is None
    assert fold(Op.EXP2, FLOAT32, (0.5,), (FLOAT32,)) is None
    assert fold(Op.LOG2, FLOAT32, (3.0,), (FLOAT32,)) is None
    assert 8.0 == fold(Op.EXP2, FLOAT32, (3.0,), (FLOAT32,))
    assert 3.0 == fold(Op.LOG2, FLOAT32, (8.0,), (FLOAT32,))


def test_bits_are_kept_or_nothing_is_folded() -> None:
    """I 169."""
    assert 0x3F800000 == fold(Op.BITCAST, INT32, (1.0,), (FLOAT32,))
    assert fold(Op.BITCAST, FLOAT32, (0x7FC00001,), (INT32,)) is None
    assert fold(Op.BITCAST, BOOL, (-128,), (INT8,)) is True
    assert -1.5 == fold(Op.BITCAST, BFLOAT16, (0xBFC0 - (1 << 16),), (DTYPES["int16"],))


@given(st.sampled_from(sorted(NUMPY)), st.data())
def test_sums_and_products_are_numpys(name: str, data: st.DataObject) -> None:
    dtype = DTYPES[name]
    x, y = (data.draw(numbers(dtype)) for _ in range(2))
    with np.errstate(all="ignore"):
        a, b = np.array([x], NUMPY[name]), np.array([y], NUMPY[name])
        expected = {Op.ADD: a + b, Op.MUL: a * b, Op.MAX: np.maximum(a, b)}
    for op, array in expected.items():
        if not (op is Op.MAX and x == y == 0):  # numpy's choice of a zero is its own
            assert bits(array[0].item()) == bits(compute(op, dtype, (x, y), (dtype, dtype)))


@given(st.sampled_from(sorted(NUMPY)), st.sampled_from(sorted(NUMPY)), st.data())
def test_conversions_are_numpys(source: str, target: str, data: st.DataObject) -> None:
    x = data.draw(numbers(DTYPES[source]))
    if DTYPES[source].is_float and not DTYPES[target].is_float and target != "bool":
        x = math.fmod(x, 100.0) if math.isfinite(x) else 0.0
        x = DTYPES[source].round(abs(x))
    with np.errstate(all="ignore"):
        expected = np.array([x], NUMPY[source]).astype(NUMPY[target])[0].item()

    assert bits(expected) == bits(compute(Op.CAST, DTYPES[target], (x,), (DTYPES[source],)))


@given(st.sampled_from(sorted(DTYPES)), st.data())
def test_bits_and_back(name: str, data: st.DataObject) -> None:
    x = data.draw(numbers(DTYPES[name]))

    assert bits(x) == bits(from_bits(to_bits(x, DTYPES[name]), DTYPES[name]))


def numbers(dtype: DType) -> st.SearchStrategy[Number]:
    if dtype is BOOL:
        return st.booleans()
    if dtype.is_float:
        return FLOATS.map(dtype.round)
    return st.integers(int(dtype.least), int(dtype.greatest))


def bits(x: Number) -> int:
    return float_bits(x) if isinstance(x, float) else int(x)


def test_a_graph_is_evaluated_where_its_leaves_are_known() -> None:
    array = make(Op.PARAM, FLOAT32, (), (0, "read", None, 4))
    vector = make(Op.LOAD, FLOAT32, (array, constant(0, INT64)), (1, False), 2)
    doubled = make(Op.ADD, FLOAT32, (vector, vector), None, 2)

    assert (2.0, 6.0) == evaluate(doubled, {vector: (1.0, 3.0)})
    assert 6.0 == evaluate(make(Op.EXTRACT, FLOAT32, (doubled,), 1), {vector: (1.0, 3.0)})


def test_what_is_no_function_of_numbers_is_refused() -> None:
    for op, dtype in ((Op.SIN, INT32), (Op.IDIV, FLOAT32), (Op.AND, FLOAT32), (Op.LOAD, INT32), (Op.SQRT, BOOL)):
        with pytest.raises(KeyError):
            compute(op, dtype, (1, 1), (dtype, dtype))
