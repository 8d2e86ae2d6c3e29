"""CAST and BITCAST."""

from __future__ import annotations

import numpy as np

from core.dtypes import BOOL, DType
from core.reference.bounded import (
    Array,
    Bounded,
    forgotten,
    from_integers,
    from_mask,
    from_stored,
    held_type,
    operand,
    settled,
    stored_type,
    to_stored,
    wide,
)


def cast(a: Bounded, to: DType) -> Bounded:
    """Value conversion: floats truncate to integers (out of range: any value), integers keep low bits, floats round once."""
    if a.dtype is to:  # nothing is converted: a product may still come unrounded to what it is added to
        return a
    if to is BOOL:
        return _to_bool(a)
    if to.is_float:
        if not a.dtype.is_float:
            return _settle_lost(Bounded(to, from_integers(a.values, to), open_nan=True), a.lost)
        values, error = operand(a)
        return settled(values, error, to, open_zero=a.open_zero)
    if a.dtype.is_float:
        return _to_integer(a, to)
    return from_mask(to, a.values.astype(held_type(to)), a.lost)


def _settle_lost(value: Bounded, lost: Array | None) -> Bounded:
    return value if lost is None else forgotten(value, lost)


def _to_bool(a: Bounded) -> Bounded:
    if not a.dtype.is_float:
        return from_mask(BOOL, np.asarray(a.values != 0), a.lost)
    values, error = operand(a)
    lost = None if error is None else ~(np.abs(values) > error) & (error > 0) & ~(np.isnan(values) & np.isfinite(error))
    return from_mask(BOOL, np.asarray(values != 0), lost)


def _to_integer(a: Bounded, to: DType) -> Bounded:
    values, error = operand(a)
    whole = np.trunc(values)
    low, high = float(to.least), float(int(to.greatest) + 1)  # both are powers of two (or 0): exact
    fits = (whole >= low) & (whole < high)
    lost = ~fits
    if error is not None:
        lost = lost | np.isinf(error) | (np.trunc(values - error) != whole) | (np.trunc(values + error) != whole)
    return from_mask(to, np.where(fits, whole, 0.0).astype(held_type(to)), lost)


def bitcast(a: Bounded, to: DType) -> Bounded:
    """The same bits as another type of that width. What is not exact has no bits to speak of."""
    bits = np.ascontiguousarray(to_stored(a.values, a.dtype))
    values = from_stored(bits.view(stored_type(to)), to)
    lost = None if a.error is None else np.broadcast_to(a.error > 0, values.shape)
    if a.dtype.is_float and (a.open_zero or a.open_nan):
        x = wide(a.values)
        vague = np.asarray((x == 0) & a.open_zero) | np.asarray(np.isnan(x) & a.open_nan)
        lost = vague if lost is None else lost | vague
    return from_mask(to, values, lost)
