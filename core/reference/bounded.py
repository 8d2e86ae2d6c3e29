"""Values with how far a right program may be from them.

The arithmetic under `core.reference`: every array of values carries an error bound that follows from what the wire page promises
(one rounding for a sum or a product, 4 ulp for a function, subnormals that may be taken for zeros, fused products), so that a comparison
needs no global tolerance. An error of 0 means bit for bit, an infinite one that any value is right.

Values are held as numpy arrays of their own width; bfloat16 as the float32 it is the upper half of. Floats are computed in float64, which
holds every sum, product and quotient of the narrower types well enough that rounding it once more is rounding once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dtypes import BFLOAT16, BOOL, DType

Array = NDArray[Any]  # numpy's own parameter: the dtype is known at run time only

_HELD = {"bool": np.bool_, "bfloat16": np.float32}
_STORED = {"bool": np.uint8, "bfloat16": np.uint16}


@dataclass(frozen=True, slots=True)
class Bounded:
    """One node's values over a box.

    error: float64, broadcastable against `values`; None: exact. slack: of a product of floats, how far the unrounded product is from
    the value, for who adds it. open_zero, open_nan: the sign of zeros, the bits of NaNs are not promised.
    """

    dtype: DType
    values: Array
    error: Array | None = None
    slack: Array | None = None
    open_zero: bool = False
    open_nan: bool = False

    @property
    def lost(self) -> Array | None:
        """Where any value is right; None: nowhere."""
        return None if self.error is None else np.isinf(self.error)


def held_type(dtype: DType) -> type[np.generic]:
    """The numpy type values of this dtype are computed with here."""
    return np.dtype(_HELD.get(dtype.name, dtype.name)).type


def stored_type(dtype: DType) -> type[np.generic]:
    """The numpy type of a buffer's elements: bool is a byte, bfloat16 its 16 bits."""
    return np.dtype(_STORED.get(dtype.name, dtype.name)).type


def from_stored(elements: Array, dtype: DType) -> Array:
    """Elements of a buffer as values."""
    if dtype is BOOL:
        return np.asarray(elements != 0)
    if dtype is BFLOAT16:
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return elements


def to_stored(values: Array, dtype: DType) -> Array:
    """Values as elements of a buffer."""
    if dtype is BOOL:
        return values.astype(np.uint8)
    if dtype is BFLOAT16:
        return (np.ascontiguousarray(values).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values


def wide(values: Array) -> Array:
    """Floats as float64, exactly."""
    return values.astype(np.float64, copy=False)


def rounded(values: Array, dtype: DType) -> Array:
    """float64 values rounded once, to nearest even, as this float type holds them."""
    if dtype is not BFLOAT16:
        return values.astype(held_type(dtype))
    _, exponent = np.frexp(values)
    unit = np.maximum(exponent - dtype.significand, 2 - dtype.exponent_max - dtype.significand)
    result = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    finite = np.isfinite(values)
    result = np.where(finite & (np.abs(result) >= math.ldexp(1.0, dtype.exponent_max + 1)), np.copysign(np.inf, values), result)
    return np.where(finite, result, values).astype(np.float32)


def from_integers(values: Array, dtype: DType) -> Array:
    """Integers or bools rounded once to this float type: beyond 2**53 by way of 53 bits rounded to odd, which rounding again can't tell."""
    if dtype.significand == 53 or values.dtype.itemsize < 8:
        return rounded(values.astype(np.float64), dtype)
    sticky = (values & 0x7FF) != 0
    odd = ((values >> 11) | sticky.astype(values.dtype)) << 11
    small = values < (1 << 53) if values.dtype.kind == "u" else (values < (1 << 53)) & (values > -(1 << 53))
    return rounded(np.where(small, values, odd).astype(np.float64), dtype)


def smallest_normal(dtype: DType) -> float:
    return math.ldexp(1.0, 1 - dtype.exponent_max)


def overflow_at(dtype: DType) -> float:
    """The least magnitude that rounds to an infinity (of float64: the greatest finite value)."""
    if dtype.significand == 53:
        return float(np.finfo(np.float64).max)
    return math.ldexp(2.0 - math.ldexp(1.0, -dtype.significand), dtype.exponent_max)


def ulp(magnitude: Array, dtype: DType) -> Array:
    """One unit in the last place of float64 magnitudes, as this type has them; of what is not finite 0."""
    finite = np.isfinite(magnitude)
    _, exponent = np.frexp(np.where(finite, magnitude, 0.0))
    exponent = np.maximum(exponent, 2 - dtype.exponent_max)  # frexp's exponent is one more than the IEEE one; zero gives 0, which is enough
    exponent = np.where(magnitude == 0, 2 - dtype.exponent_max, np.minimum(exponent, dtype.exponent_max + 1))
    return np.where(finite, np.ldexp(1.0, exponent - dtype.significand), 0.0)


def together(*errors: Array | None) -> Array | None:
    """The sum of errors; None is none."""
    total: Array | None = None
    for error in errors:
        if error is not None:
            total = error if total is None else total + error
    return total


def may_vanish(values: Array, error: Array | None, dtype: DType) -> Array | None:
    """The error once subnormals among float64 `values` may be taken for zeros, as all but float16 may."""
    if dtype.name == "float16":
        return error
    tiny = smallest_normal(dtype)
    magnitude = np.abs(values)
    if error is None:
        touched = (magnitude < tiny) & (magnitude > 0)
        return np.where(touched, magnitude, 0.0) if touched.any() else None
    touched = (magnitude - error < tiny) & ((magnitude > 0) | (error > 0))
    return np.where(touched, error + np.minimum(tiny, magnitude + error), error) if touched.any() else error


def operand(value: Bounded) -> tuple[Array, Array | None]:
    """A float as arithmetic takes it: in float64, its subnormals perhaps zeros."""
    values = wide(value.values)
    return values, may_vanish(values, value.error, value.dtype)


def settled(exact: Array, error: Array | None, dtype: DType, *, open_zero: bool = False, slack: Array | None = None) -> Bounded:
    """The result of float arithmetic: `exact` rounded once, where a right program rounds something within `error` of it.

    exact: float64. Where the error is 0 the program rounds the same number, so the result has none either.
    """
    values = rounded(exact, dtype)
    if error is not None:
        magnitude = np.abs(exact)
        upper, lower = magnitude + error, magnitude - error
        total = np.where(error > 0, error + ulp(upper, dtype), 0.0)
        limit = overflow_at(dtype)
        total = np.where((upper >= limit) & (lower <= limit) & (error > 0), np.inf, total)
        certain = (lower > limit) & np.isfinite(error)
        values = np.where(certain, np.copysign(np.inf, exact), values).astype(values.dtype)
        total = np.where((np.isnan(exact) | certain) & np.isfinite(error), 0.0, total)
        error = np.where(np.isnan(total), np.inf, total)
        if not error.any():
            error = None
    result = wide(values)
    return Bounded(dtype, values, may_vanish(result, error, dtype), slack, open_zero, open_nan=True)


def forgotten(value: Bounded, where: Array) -> Bounded:
    """The same with any value right at these points."""
    if not where.any():
        return value
    error = 0.0 if value.error is None else value.error
    values = np.broadcast_to(value.values, np.broadcast_shapes(value.values.shape, where.shape))
    return replace(value, values=values, error=np.where(where, np.inf, error))


def merged(a: Array | None, b: Array | None) -> Array | None:
    """Where either mask holds; None is nowhere."""
    if a is None or b is None:
        return a if b is None else b
    return np.asarray(a | b)


def from_mask(dtype: DType, values: Array, lost: Array | None) -> Bounded:
    """Exact values, except that any is right where `lost` holds."""
    if lost is None or not lost.any():
        return Bounded(dtype, values)
    return Bounded(dtype, values, np.where(lost, np.inf, 0.0))
