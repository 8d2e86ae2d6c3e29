"""Conversions to float16 and bfloat16 where the machine computes them in float32: rounded once, whatever is converted.

Rounding twice differs from rounding once only where the first rounding lands on a tie of the second. So what is wider than float32 is
first made a float32 that lies on the same side of every such tie, and on it only if the value does ("rounded to odd": Boldo and Melquiond,
*Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd*, IEEE Transactions on Computers 57(4), 2008).
"""

from __future__ import annotations

from core.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32, DType
from core.ir.op import Op
from core.ir.parts import content, like
from core.ir.value import Value, alu, cast, constant, make

_EXACT = 1 << FLOAT32.significand  # integers up to here are float32 values
_BEYOND_HALF = 131072  # more than float16 holds, and exact in float32: all that is as large becomes infinite alike


def rounded(value: Value, narrow: DType) -> Value:
    """A FLOAT32 value rounded as `narrow`; what is known to be is returned as it came."""
    if value.op is Op.ROUND and value.arg is narrow:
        return value
    if value.is_const:
        return constant(narrow.round(float(content(value))), FLOAT32, value.lanes)
    return make(Op.ROUND, FLOAT32, (value,), narrow, value.lanes)


def unrounded(value: Value, narrow: DType) -> Value:
    """What a rounding to this type rounds: for where storing rounds by itself."""
    return value.src[0] if value.op is Op.ROUND and value.arg is narrow else value


def narrowed(value: Value, narrow: DType) -> Value:
    """`value`, of any type but `narrow`, converted to it: as the FLOAT32 of the same value."""
    if value.dtype is FLOAT64:
        return rounded(odd(value), narrow)
    if value.dtype is BOOL:
        return cast(value, FLOAT32)
    if value.dtype.is_float:  # float32, or a half the machine has
        return rounded(cast(value, FLOAT32), narrow)
    value = _as_integer(value)
    lo, hi = value.lo, value.hi
    if lo is not None and hi is not None and -_EXACT <= lo and hi <= _EXACT:
        return _unless_exact(cast(value, FLOAT32), lo, hi, narrow)
    return rounded(cast(_clamped(value) if narrow is FLOAT16 else _folded(value), FLOAT32), narrow)


def _as_integer(value: Value) -> Value:
    if not value.dtype.is_index:
        return value
    fits = value.lo is not None and value.hi is not None and INT32.least <= value.lo and value.hi <= INT32.greatest
    return make(Op.CAST, INT32 if fits else INT64, (value,), None, value.lanes, (value.lo, value.hi))


def _unless_exact(value: Value, lo: int, hi: int, narrow: DType) -> Value:
    limit = 1 << narrow.significand
    return value if -limit <= lo and hi <= limit else rounded(value, narrow)


def odd(value: Value) -> Value:
    """A FLOAT64 as a FLOAT32: itself where it is one, else its odd neighbour, which rounds to any narrow type as it does."""
    near = cast(value, FLOAT32)
    back = cast(near, FLOAT64)
    bits = make(Op.BITCAST, UINT32, (near,), None, near.lanes)
    one = like(1, bits)
    is_even = alu(Op.NOT, alu(Op.CMPNE, alu(Op.AND, bits, one), like(0, bits)))
    magnitude_grew = alu(Op.WHERE, alu(Op.CMPLT, value, like(0.0, value)), alu(Op.CMPLT, back, value), alu(Op.CMPLT, value, back))
    neighbour = alu(Op.WHERE, magnitude_grew, alu(Op.ADD, bits, like(UINT32.greatest, bits)), alu(Op.ADD, bits, one))
    moves = alu(Op.AND, alu(Op.CMPNE, back, value), is_even)
    return make(Op.BITCAST, FLOAT32, (alu(Op.WHERE, moves, neighbour, bits),), None, near.lanes)


def _clamped(value: Value) -> Value:
    least, greatest = -_BEYOND_HALF, _BEYOND_HALF
    value = alu(Op.WHERE, alu(Op.CMPLT, value, like(greatest, value)), value, like(greatest, value))
    return alu(Op.WHERE, alu(Op.CMPLT, value, like(least, value)), like(least, value), value) if value.dtype.is_signed else value


def _folded(value: Value) -> Value:
    """A 32- or 64-bit integer as one of at most 24 significant bits on the same side of every tie of bfloat16.

    From 2**(k + 8) on these ties are multiples of 2**k, so the k low bits may be replaced by a single one that says "not zero"; up to
    2**(k + 23) the result is exact in float32. Three such steps reach 64 bits, one reaches 32.
    """
    for k in (16,) if value.dtype.bits == 32 else (16, 31, 46):
        limit = 1 << (k + 8)
        low = alu(Op.AND, value, like((1 << k) - 1, value))
        mark = alu(Op.WHERE, alu(Op.CMPNE, low, like(0, value)), like(1 << (k - 1), value), like(0, value))
        high = alu(Op.AND, value, like(value.dtype.wrap(-1 << k), value))
        folded = alu(Op.OR, high, mark)
        is_small = alu(Op.CMPLT, value, like(limit, value))
        if value.dtype.is_signed:
            is_small = alu(Op.AND, is_small, alu(Op.CMPLT, like(-limit, value), value))
        value = alu(Op.WHERE, is_small, value, folded)
    return value
