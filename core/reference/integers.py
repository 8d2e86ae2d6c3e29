"""What each elementwise op does to integers and bools: exact, wrapping, or any value at all.

Undefined results (a division by 0, of the least integer by -1, a shift by the width or more) and what follows from them are lost; a
lost operand that can't matter (`0 *`, `false and`) loses nothing.
"""

from __future__ import annotations

import numpy as np

from core.dtypes import BOOL, DType
from core.reference.bounded import Array, Bounded, from_mask, merged


def binary(op: str, a: Bounded, b: Bounded) -> Bounded:
    """Any two-operand op of integers."""
    x, y = a.values, b.values
    lost = merged(a.lost, b.lost)
    match op:
        case "ADD":
            return from_mask(a.dtype, x + y, lost)
        case "MUL":
            return from_mask(a.dtype, x * y, _unless(lost, a, b, 0))
        case "MAX":
            return from_mask(a.dtype, np.maximum(x, y), lost)
        case "AND":
            return from_mask(a.dtype, x & y, _unless(lost, a, b, 0))
        case "OR":
            return from_mask(a.dtype, x | y, _unless(lost, a, b, -1 if a.dtype.is_signed else a.dtype.greatest))
        case "XOR":
            return from_mask(a.dtype, x ^ y, lost)
        case "CMPLT":
            return from_mask(BOOL, np.asarray(x < y), lost)
        case "CMPNE":
            return from_mask(BOOL, np.asarray(x != y), lost)
        case "IDIV" | "MOD":
            return _divided(op, a.dtype, x, y, lost)
        case "SHL" | "SHR":
            return _shifted(op, a.dtype, x, y, lost)
        case _:
            raise AssertionError(op)


def _unless(lost: Array | None, a: Bounded, b: Bounded, decides: object) -> Array | None:
    """Lost only where neither operand surely is the value that decides alone."""
    if lost is None:
        return None
    return lost & ~_surely(a, decides) & ~_surely(b, decides)


def _surely(a: Bounded, value: object) -> Array:
    same = np.asarray(a.values == np.asarray(value).astype(a.values.dtype))
    return same if a.lost is None else same & ~a.lost


def _divided(op: str, dtype: DType, x: Array, y: Array, lost: Array | None) -> Bounded:
    bad = np.asarray(y == 0)
    if dtype.is_signed:
        bad = bad | (np.asarray(x == dtype.least) & np.asarray(y == -1))
    divisor = np.where(bad, np.ones((), y.dtype), y)
    remainder = np.fmod(x, divisor)
    values = remainder if op == "MOD" else (x - remainder) // divisor
    return from_mask(dtype, values, merged(lost, bad))


def _shifted(op: str, dtype: DType, x: Array, y: Array, lost: Array | None) -> Bounded:
    bad = np.asarray(y >= dtype.bits) | np.asarray(y < 0)
    amount = np.where(bad, np.zeros((), y.dtype), y).astype(x.dtype)
    values = np.left_shift(x, amount) if op == "SHL" else np.right_shift(x, amount)
    return from_mask(dtype, values, merged(lost, bad))


def negated(a: Bounded) -> Bounded:
    values = ~a.values if a.dtype is BOOL else np.negative(a.values)
    return from_mask(a.dtype, values, a.lost)


def logical(op: str, a: Bounded, b: Bounded) -> Bounded:
    """Any two-operand op of bools."""
    x, y = a.values, b.values
    lost = merged(a.lost, b.lost)
    match op:
        case "ADD" | "MAX" | "OR":
            return from_mask(BOOL, x | y, _unless(lost, a, b, True))
        case "MUL" | "AND":
            return from_mask(BOOL, x & y, _unless(lost, a, b, False))
        case "XOR" | "CMPNE":
            return from_mask(BOOL, x ^ y, lost)
        case "CMPLT":
            settled = None if lost is None else lost & ~_surely(a, True) & ~_surely(b, False)
            return from_mask(BOOL, ~x & y, settled)
        case _:
            raise AssertionError(op)
