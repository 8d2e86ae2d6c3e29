"""What is known of a data integer's range from the operations it is made of: a short look, a few operations deep.

Only wrapping data is looked at here; index values carry their bounds. What may overflow has its whole type.
"""

from __future__ import annotations

from core.dtypes import BOOL
from core.ir.evaluate import truncated
from core.ir.op import Op
from core.ir.value import Value

DEPTH = 6  # operations looked through; rules ask at most once per value, so this bounds what a row may cost

Range = tuple[int, int]


def interval(value: Value, depth: int = DEPTH) -> Range:
    """Least and greatest value of a bool or integer, inclusive."""
    low, high = value.lo, value.hi
    if low is None or high is None:
        raise TypeError(f"{value!r} is no integer")
    if value.op is Op.CONST or depth == 0:
        return low, high
    found = _found(value, depth - 1)
    if found is None or found[0] < low or found[1] > high:
        return low, high
    return found


def _found(value: Value, depth: int) -> Range | None:
    """The range by operation; one that leaves the type has wrapped, so nothing is known."""
    src = value.src
    match value.op:
        case Op.CAST if src[0].lo is not None and value.dtype is not BOOL:
            return interval(src[0], depth)
        case Op.ADD if value.dtype is not BOOL:
            (a, b), (c, d) = interval(src[0], depth), interval(src[1], depth)
            return a + c, b + d
        case Op.MUL if value.dtype is not BOOL:
            (a, b), (c, d) = interval(src[0], depth), interval(src[1], depth)
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case Op.NEG if value.dtype is not BOOL:
            a, b = interval(src[0], depth)
            return -b, -a
        case Op.MAX if value.dtype is not BOOL:
            (a, b), (c, d) = interval(src[0], depth), interval(src[1], depth)
            return max(a, c), max(b, d)
        case Op.WHERE:
            (a, b), (c, d) = interval(src[1], depth), interval(src[2], depth)
            return min(a, c), max(b, d)
        case Op.AND if value.dtype is not BOOL:
            return _masked(interval(src[0], depth), interval(src[1], depth))
        case Op.SHR | Op.REM | Op.IDIV if src[1].op is Op.CONST and src[1].lo is not None:
            return _divided(value, interval(src[0], depth), src[1].lo)
        case _:
            return None


def _divided(value: Value, x: Range, c: int) -> Range | None:
    """x >> c, x % c or x / c by a constant, where that is more than the type says."""
    a, b = x
    if value.op is Op.SHR:
        return (a >> c, b >> c) if 0 <= c < value.dtype.bits else None
    if c <= 0:
        return None
    if value.op is Op.REM:
        return max(min(a, 0), 1 - c), min(max(b, 0), c - 1)
    return truncated(a, c), truncated(b, c)


def _masked(x: Range, y: Range) -> Range | None:
    """x & y: not negative and no more than an operand that is not negative."""
    tops = [high for low, high in (x, y) if low >= 0]
    return (0, min(tops)) if tops else None


def product_fits(x: Value, c: int) -> bool:
    """Whether x * c stays within x's type whatever x is."""
    low, high = interval(x)
    return min(low * c, high * c) >= x.dtype.least and max(low * c, high * c) <= x.dtype.greatest
