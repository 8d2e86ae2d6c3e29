"""What each operation means on plain numbers, by Python's exact integers and floats and numpy's functions: the truth tests compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, DType, Number
from core.ir.op import Op
from core.ir.value import bits_of

Array = NDArray[Any]
ANY = None  # as an expected value: nothing is promised

_NUMPY = {name: np.dtype(name) for name in DTYPES if name not in ("bool", "bfloat16")} | {
    "bool": np.dtype(np.uint8),
    "bfloat16": np.dtype(np.uint16),
}


def array(numbers: Sequence[Number], dtype: DType) -> Array:
    """Numbers, all of them values of the type, as they lie in memory."""
    if dtype is BFLOAT16:
        return np.array([bits_of(float(x), dtype) for x in numbers], np.uint16)
    if dtype.is_float:
        return np.array([float(x) for x in numbers], _NUMPY[dtype.name])
    return np.array([int(x) for x in numbers], _NUMPY[dtype.name])


def numbers(memory: Array, dtype: DType) -> list[Number]:
    """What lies in memory as numbers."""
    if dtype is BFLOAT16:
        return [float(x) for x in (memory.astype(np.uint32) << 16).view(np.float32)]
    if dtype is BOOL:
        assert set(memory.tolist()) <= {0, 1}, "a bool in memory is 0 or 1"
        return [bool(x) for x in memory]
    return [float(x) for x in memory] if dtype.is_float else [int(x) for x in memory]


def edges(dtype: DType, rng: np.random.Generator, more: int = 6) -> list[Number]:
    """Values where things go wrong, and a few others."""
    if dtype is BOOL:
        return [False, True]
    if dtype.is_float:
        tiny = math.ldexp(1.0, 1 - dtype.exponent_max)
        step = math.ldexp(1.0, 2 - dtype.exponent_max - dtype.significand)
        great = math.ldexp(2.0 - math.ldexp(1.0, 1 - dtype.significand), dtype.exponent_max)
        plain = [dtype.round(x) for x in (0.0, 1.0, 1.5, 3.0, 127.0, 128.0, 255.5, great, math.inf)] + (
            [tiny, tiny / 2, step, 3 * step] if dtype is FLOAT16 else [tiny]
        )
        random = [dtype.round(float(x)) for x in rng.standard_normal(more) * 10]
        return [*plain, *(-x for x in plain), math.nan, *random]
    least, greatest = int(dtype.least), int(dtype.greatest)
    small = [x for x in (-3, -2, -1, 0, 1, 2, 3, 7, 31) if x >= least]
    return [
        least,
        least + 1,
        *small,
        greatest - 1,
        greatest,
        *(int(x) for x in rng.integers(least, greatest, more, dtype=_NUMPY[dtype.name])),
    ]


def result(op: Op, dtype: DType, *x: Any) -> Any:
    """The value of an operation on operands of `dtype`; ANY where nothing is promised."""
    if dtype is BOOL:
        return _of_bools(op, *x)
    if op is Op.CMPLT:
        return x[0] < x[1]
    if op is Op.CMPNE:
        return x[0] != x[1]
    return _of_floats(op, dtype, *x) if dtype.is_float else _of_integers(op, dtype, *x)


def _of_bools(op: Op, a: bool, b: bool = False, c: bool = False) -> bool:
    match op:
        case Op.ADD | Op.MAX | Op.OR:
            return a or b
        case Op.MUL | Op.AND:
            return a and b
        case Op.NEG | Op.NOT:
            return not a
        case Op.XOR | Op.CMPNE:
            return a != b
        case Op.CMPLT:
            return not a and b
        case Op.MULACC:
            return (a and b) or c
        case _:
            raise KeyError(op)


def _of_integers(op: Op, dtype: DType, a: int, b: int = 0, c: int = 0) -> Any:
    match op:
        case Op.ADD:
            return dtype.wrap(a + b)
        case Op.MUL:
            return dtype.wrap(a * b)
        case Op.MULACC:
            return dtype.wrap(a * b + c)
        case Op.NEG:
            return dtype.wrap(-a)
        case Op.MAX:
            return max(a, b)
        case Op.AND:
            return a & b
        case Op.OR:
            return a | b
        case Op.XOR:
            return a ^ b
        case Op.IDIV | Op.REM:
            if b == 0 or (b == -1 and a == dtype.least):
                return ANY
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if op is Op.IDIV else a - quotient * b
        case Op.SHL | Op.SHR:
            if not 0 <= b < dtype.bits:
                return ANY
            return dtype.wrap(a << b) if op is Op.SHL else a >> b
        case _:
            raise KeyError(op)


def _of_floats(op: Op, dtype: DType, a: float, b: float = 0.0, c: float = 0.0) -> float:
    with np.errstate(all="ignore"):
        x, y = np.float64(a), np.float64(b)
        if dtype is FLOAT32:  # their sums and products, taken in double, could be rounded twice
            x32, y32 = np.float32(a), np.float32(b)
            if op in (Op.ADD, Op.MUL):
                return float(x32 + y32 if op is Op.ADD else x32 * y32)
        match op:
            case Op.ADD:
                return dtype.round(float(x + y))
            case Op.MUL:
                return dtype.round(float(x * y))
            case Op.NEG:
                return -a
            case Op.MAX:
                return math.nan if a != a or b != b else max(a, b)
            case Op.MULACC:
                product = _of_floats(Op.MUL, dtype, a, b)
                return _of_floats(Op.ADD, dtype, product, c)
            case _:
                raise KeyError(op)


def rounded(number: float | int | Fraction, dtype: DType) -> float:
    """A number as this float type keeps it: to nearest, ties to even, by exact fractions."""
    if not isinstance(number, (int, Fraction)) and (not math.isfinite(number) or number == 0.0):
        return number
    exact = abs(Fraction(number))
    if exact == 0:
        return 0.0
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > exact
    step = Fraction(2) ** max(exponent - dtype.significand + 1, 2 - dtype.exponent_max - dtype.significand)
    kept = round(exact / step) * step  # a Fraction rounds to even
    great = (Fraction(2) - Fraction(2) ** (1 - dtype.significand)) * Fraction(2) ** dtype.exponent_max
    return math.copysign(math.inf if kept > great else float(kept), 1 if number > 0 else -1)


def converted(number: Any, source: DType, dtype: DType) -> Any:
    """CAST; ANY where nothing is promised."""
    if dtype is BOOL:
        return number != 0
    if dtype.is_float:
        return rounded(int(number) if not source.is_float else number, dtype)
    if source.is_float:
        if not math.isfinite(number) or not dtype.least <= math.trunc(number) <= dtype.greatest:
            return ANY
        return math.trunc(number)
    return dtype.wrap(int(number))


def same(expected: Any, got: Any, *, signed_zeros: bool = True) -> bool:
    """Whether a result is what was promised; all NaNs are alike."""
    if expected is ANY:
        return True
    if isinstance(expected, float) and expected != expected:
        return bool(got != got)
    if isinstance(expected, float) and expected == 0.0 and signed_zeros:
        return bool(got == 0.0) and math.copysign(1.0, got) == math.copysign(1.0, expected)
    return bool(expected == got)
