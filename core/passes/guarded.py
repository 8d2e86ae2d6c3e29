"""Operations a language leaves undefined for some operands, made harmless: any value may come out, nothing else may happen.

Only where bounds do not already show that the operand is none of these.
"""

from __future__ import annotations

import math

from core.dtypes import BOOL, FLOAT32, DType
from core.index import less, number
from core.ir.op import Op
from core.ir.parts import content, like
from core.ir.value import Value, alu, cast, constant


def divided(op: Op, value: Value, divisor: Value) -> Value:
    """IDIV or REM, never by 0, and never of the least integer by -1."""
    one = like(1, divisor)
    if _may_be(divisor, 0):
        divisor = one if divisor.is_const else alu(Op.WHERE, alu(Op.CMPNE, divisor, like(0, divisor)), divisor, one)
    if not (value.dtype.is_signed and _may_be(divisor, -1) and _may_be(value, int(value.dtype.least))):
        return alu(op, value, divisor)
    if divisor.is_const:
        return alu(Op.NEG, value) if op is Op.IDIV else like(0, value)
    is_other = alu(Op.CMPNE, divisor, like(-1, divisor))
    result = alu(op, value, alu(Op.WHERE, is_other, divisor, one))
    return result if op is Op.REM else alu(Op.WHERE, is_other, result, alu(Op.NEG, value))


def shifted(op: Op, value: Value, amount: Value) -> Value:
    """SHL or SHR by an amount within the width. Lanes are shifted by amounts of their own type."""
    width = value.dtype.bits
    if amount.is_const:
        amount = constant(int(content(amount)) & (width - 1), amount.dtype, amount.lanes)
    elif not (amount.lo is not None and amount.hi is not None and amount.lo >= 0 and amount.hi < width):
        amount = alu(Op.AND, amount, like(width - 1, amount))
    return alu(op, value, cast(amount, value.dtype) if amount.lanes > 1 else amount)


def truncated(value: Value, dtype: DType, saturates: bool) -> Value:
    """A float as an integer; 0 where the integer type has nothing near it."""
    if value.dtype.bits == 16:
        value = cast(value, FLOAT32)  # which holds the bounds below
    if saturates:
        return cast(value, dtype)
    power = dtype.bits - dtype.is_signed
    below = -float((1 << power) + (1 << max(power - value.dtype.significand + 1, 0))) if dtype.is_signed else -1.0
    above = math.ldexp(1.0, power)
    holds = alu(Op.AND, alu(Op.CMPLT, like(below, value), value), alu(Op.CMPLT, value, like(above, value)))
    return cast(alu(Op.WHERE, holds, value, like(0.0, value)), dtype)


def non_zero(value: Value) -> Value:
    """Anything as a bool: NaN is true."""
    if value.dtype is BOOL:
        return value
    if value.dtype.is_index:
        return alu(Op.OR, less(value, number(0)), less(number(0), value))
    return alu(Op.CMPNE, value, like(0, value))


def _may_be(value: Value, content: int) -> bool:
    return value.lo is None or value.hi is None or value.lo <= content <= value.hi
