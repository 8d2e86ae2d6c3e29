"""What each elementwise op does to floats, with its error. Conversions are in `convert`, integers and bools in `integers`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from core.dtypes import BOOL, DType
from core.reference.bounded import Array, Bounded, from_mask, operand, settled, together, ulp

FUNCTION_ULPS = 4  # EXP2, LOG2, SIN, SQRT, RECIP are within this of the true value


def _sure(values: Array, error: Array | None) -> Array:
    """Where a value is what it is: its error is finite."""
    return np.ones(values.shape, np.bool_) if error is None else np.broadcast_to(np.isfinite(error), values.shape)


def _sure_nan(a: Array, ea: Array | None, b: Array, eb: Array | None) -> Array:
    return np.asarray((np.isnan(a) & _sure(a, ea)) | (np.isnan(b) & _sure(b, eb)))


def add(a: Bounded, b: Bounded) -> Bounded:
    """One rounding; a product among the operands may come unrounded."""
    (x, ex), (y, ey) = operand(a), operand(b)
    total = x + y
    error = together(ex, ey, a.slack, b.slack)
    if error is not None:
        infinite = np.isinf(x) | np.isinf(y)
        overflown = np.isinf(total) & ~infinite & (error > 0)
        error = np.where(overflown, np.inf, error)
        error = np.where(_sure_nan(x, ex, y, ey), 0.0, error)
    return settled(total, error, a.dtype, open_zero=a.open_zero or b.open_zero)


def mul(a: Bounded, b: Bounded) -> Bounded:
    (x, ex), (y, ey) = operand(a), operand(b)
    product = x * y
    error = _product_error(x, ex, y, ey)
    result = settled(product, error, a.dtype, open_zero=a.open_zero or b.open_zero)
    return replace(result, slack=_unrounded(product, x, y, result))


def _product_error(x: Array, ex: Array | None, y: Array, ey: Array | None) -> Array | None:
    if ex is None and ey is None:
        return None
    dx: Array = np.zeros(()) if ex is None else ex
    dy: Array = np.zeros(()) if ey is None else ey
    ax, ay = np.abs(x), np.abs(y)
    error = np.where(dy > 0, ax * dy, 0.0) + np.where(dx > 0, ay * dx, 0.0) + np.where((dx > 0) & (dy > 0), dx * dy, 0.0)
    odd = ~(np.isfinite(x) & np.isfinite(y))
    if odd.any():
        stays = (np.isinf(x) & (ay > dy) & np.isfinite(dx)) | (np.isinf(y) & (ax > dx) & np.isfinite(dy))
        stays |= (dx == 0) & (dy == 0)
        stays |= (np.isnan(x) & np.isfinite(dx)) | (np.isnan(y) & np.isfinite(dy))
        error = np.where(odd, np.where(stays, 0.0, np.inf), error)
    overflown = np.isinf(x * y) & ~odd & (error > 0)
    return np.where(overflown | np.isnan(error), np.inf, error)


def _unrounded(product: Array, x: Array, y: Array, result: Bounded) -> Array | None:
    """How far the exact product is from its rounded value; float64's own is not at hand, so half a unit, unless it is plainly exact."""
    if result.dtype.significand == 53:
        plain = (np.abs(product) < 2.0**53) & (x == np.rint(x)) & (y == np.rint(y))
        slack = np.where(plain, 0.0, 0.5 * ulp(np.abs(product), result.dtype))
        slack = np.where(np.isinf(product) & np.isfinite(x) & np.isfinite(y), np.inf, slack)
    else:
        value = result.values.astype(np.float64)
        same = (product == value) | np.isnan(product)
        slack = np.where(same, 0.0, np.abs(product - value))
    return slack if slack.any() else None


def mulacc(a: Bounded, b: Bounded, c: Bounded) -> Bounded:
    return add(mul(a, b), c)


def neg(a: Bounded) -> Bounded:
    _, error = operand(a)
    return Bounded(a.dtype, np.negative(a.values), error, a.slack, a.open_zero, open_nan=True)


def maximum(a: Bounded, b: Bounded) -> Bounded:
    """NaN where an operand is; the sign of a zero is open."""
    (x, ex), (y, ey) = operand(a), operand(b)
    values = np.maximum(a.values, b.values)
    error: Array | None = None
    if ex is not None or ey is not None:
        dx: Array = np.zeros(()) if ex is None else ex
        dy: Array = np.zeros(()) if ey is None else ey
        top = np.maximum(x + dx, y + dy)
        bottom = np.maximum(x - dx, y - dy)
        value = np.maximum(x, y)
        error = np.where(value == top, 0.0, top - value)
        error = np.maximum(error, np.where(value == bottom, 0.0, value - bottom))
        error = np.where(np.isnan(error) | np.isinf(dx) | np.isinf(dy), np.inf, error)
        error = np.where(_sure_nan(x, ex, y, ey), 0.0, error)
    return Bounded(a.dtype, values, error, open_zero=True, open_nan=True)


def less(a: Bounded, b: Bounded) -> Bounded:
    """False with NaN; unknown where the bounds overlap."""
    (x, ex), (y, ey) = operand(a), operand(b)
    values = np.asarray(x < y)
    if ex is None and ey is None:
        return Bounded(BOOL, values)
    (x0, x1), (y0, y1) = _ends(x, ex), _ends(y, ey)
    return from_mask(BOOL, values, ~((x1 < y0) | (x0 >= y1) | _sure_nan(x, ex, y, ey)))


def differs(a: Bounded, b: Bounded) -> Bounded:
    """True with NaN."""
    (x, ex), (y, ey) = operand(a), operand(b)
    values = np.asarray(x != y)
    if ex is None and ey is None:
        return Bounded(BOOL, values)
    (x0, x1), (y0, y1) = _ends(x, ex), _ends(y, ey)
    same = (x0 == x1) & (y0 == y1) & (x0 == y0)
    return from_mask(BOOL, values, ~((x1 < y0) | (y1 < x0) | same | _sure_nan(x, ex, y, ey)))


def _ends(x: Array, error: Array | None) -> tuple[Array, Array]:
    """The interval a value lies in, rounded outwards."""
    if error is None:
        return x, x
    inexact = error > 0
    return np.where(inexact, np.nextafter(x - error, -np.inf), x), np.where(inexact, np.nextafter(x + error, np.inf), x)


Function = Callable[[Array], Array]


def _function(name: str, dtype: DType) -> Function:
    """In float64, for float64 in the widest type there is."""
    run: Function = {"EXP2": np.exp2, "LOG2": np.log2, "SIN": np.sin, "SQRT": np.sqrt, "RECIP": np.reciprocal}[name]
    if dtype.significand < 53:
        return run
    return lambda x: run(x.astype(np.longdouble)).astype(np.float64)


def function(name: str, a: Bounded) -> Bounded:
    """EXP2, LOG2, SIN, SQRT, RECIP."""
    x, ex = operand(a)
    run = _function(name, a.dtype)
    exact = run(x)
    error = FUNCTION_ULPS * ulp(np.abs(exact), a.dtype)
    if ex is not None:
        error = error + np.where(ex > 0, _carried(name, run, x, ex, exact), 0.0)
    special = ~np.isfinite(x)
    if name in ("LOG2", "SQRT"):
        special |= x <= 0
    elif name == "RECIP":
        special |= x == 0
    if ex is not None:
        special &= (ex == 0) | (np.isnan(x) & np.isfinite(ex))
        if name in ("LOG2", "SQRT"):  # far enough below zero stays NaN
            special |= (x + ex < 0) & np.isfinite(ex)
    result = settled(exact, np.where(special, 0.0, error), a.dtype, open_zero=a.open_zero or name == "SQRT")
    if name == "RECIP" and a.open_zero:
        result = replace(result, error=np.where(x == 0, np.inf, 0.0 if result.error is None else result.error))
    return result


def _carried(name: str, run: Function, x: Array, ex: Array, exact: Array) -> Array:
    """How far the function of anything within `ex` of x may be from that of x."""
    if name == "SIN":
        return np.where(np.isfinite(x), np.minimum(ex, 2.0), np.inf)
    low, high = _ends(x, ex)
    carried = np.maximum(np.abs(run(high) - exact), np.abs(run(low) - exact))
    if name == "RECIP":
        carried = np.where((low <= 0) & (high >= 0), np.inf, carried)
    elif name != "EXP2":
        carried = np.where(low <= 0, np.inf, carried)
    else:
        carried = np.where((exact == 0) & (run(high) == 0), 0.0, carried)
    return np.where(np.isnan(carried) | np.isinf(ex), np.inf, carried)


def chosen(condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """WHERE: moves values. Where the condition is unknown both must be allowed for."""
    pick = condition.values
    values = np.where(pick, a.values, b.values).astype(a.values.dtype, copy=False)
    error: Array | None = None
    if a.error is not None or b.error is not None:
        error = np.where(pick, 0.0 if a.error is None else a.error, 0.0 if b.error is None else b.error)
    unknown = condition.lost
    if unknown is not None and unknown.any():
        ea: Array = np.zeros(()) if a.error is None else a.error
        eb: Array = np.zeros(()) if b.error is None else b.error
        if a.dtype.is_float:
            x, y = a.values.astype(np.float64), b.values.astype(np.float64)
            away = np.where(x == y, 0.0, np.abs(x - y))
            away = np.where(np.isnan(x) & np.isnan(y), 0.0, away)
            both = np.where(np.isnan(away), np.inf, away + np.maximum(ea, eb))
        else:
            both = np.where(np.asarray(a.values == b.values) & (ea == 0) & (eb == 0), 0.0, np.inf)
        error = np.where(unknown, both, 0.0 if error is None else error)
    unsure = unknown is not None and bool(unknown.any())
    return Bounded(a.dtype, values, error, open_zero=a.open_zero or b.open_zero or unsure, open_nan=a.open_nan or b.open_nan or unsure)
