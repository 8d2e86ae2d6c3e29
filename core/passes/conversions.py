"""Conversions that say nothing, or say in two steps what one would."""

from __future__ import annotations

import math

from core.ir.op import Op
from core.ir.value import Value, make
from core.ir.value import cast as converted
from core.rewrite import RuleSet, any_value, apply, bitcast, cast, rule

s = any_value("s")


def loses_nothing(value: Value, root: Value) -> bool:
    """Whether a conversion of `value` to `root`'s type can be undone: every value it may have is a value there."""
    source, dtype = value.dtype, root.dtype
    if dtype.is_float:
        if source.is_float:
            return source.significand <= dtype.significand and source.exponent_max <= dtype.exponent_max
        most = 1 << dtype.significand
        low, high = _least_and_greatest(value)
        return -most <= low and high <= most and most.bit_length() <= dtype.exponent_max + 1
    if source.is_float or not dtype.is_integer:
        return False
    low, high = _least_and_greatest(value)
    return dtype.least <= low and high <= dtype.greatest


def _least_and_greatest(value: Value) -> tuple[float, float]:
    if value.lo is None or value.hi is None:
        return -math.inf, math.inf
    return value.lo, value.hi


def same_type(root: Value, s: Value) -> Value | None:
    return s if s.dtype is root.dtype else None


def cast_once(root: Value, s: Value) -> Value | None:
    """Both conversions as one, where the first loses nothing."""
    return converted(s, root.dtype) if loses_nothing(s, root.src[0]) else None


def bits_once(root: Value, s: Value) -> Value | None:
    """Both reinterpretations as one; a bool between them keeps one bit only."""
    if not root.src[0].dtype.is_integer:
        return None
    return s if s.dtype is root.dtype else make(Op.BITCAST, root.dtype, (s,), None, root.lanes)


def is_rounded(root: Value, s: Value) -> Value | None:
    """Rounding what is rounded so already, or came from that type, changes nothing."""
    inner = root.src[0]
    return inner if root.arg is (inner.arg if inner.op is Op.ROUND else s.dtype) else None


CONVERSIONS = RuleSet(
    rule(cast(s), same_type),
    rule(bitcast(s), same_type),
    rule(cast(cast(s)), cast_once),
    rule(bitcast(bitcast(s)), bits_once),
    rule(apply(Op.ROUND, apply(Op.ROUND, s)), is_rounded),
    rule(apply(Op.ROUND, cast(s)), is_rounded),
)
