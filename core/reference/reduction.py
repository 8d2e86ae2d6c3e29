"""Reduces, fed in pieces: what a sum, product or maximum is, and how far any order of taking it may be from that.

Sums and products of floats may be taken in any order, those of float16 and bfloat16 also in a wider type. The bound is that of n roundings
against the sum of magnitudes; where every partial sum in any order is a number of the type (small integers, say) there is no error.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from core.dtypes import BOOL, DType
from core.reference.bounded import (
    Array,
    Bounded,
    from_mask,
    held_type,
    operand,
    overflow_at,
    rounded,
    settled,
    smallest_normal,
    together,
    wide,
)

NO_BITS = 1 << 14  # the lowest set bit of zero: above any exponent


class Accumulator(Protocol):
    """Takes pieces of the operand, gives the reduced value. Every piece covers all the other axes."""

    def take(self, piece: Bounded) -> None:
        """One more piece."""

    def result(self) -> Bounded:
        """The value of all that was taken; of nothing the identity."""


def accumulator(op: str, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> Accumulator:
    """shape: of the result, 1 on the axes."""
    if dtype is BOOL:
        return _Logical(op, shape, axes)
    if not dtype.is_float:
        return _Integer(op, dtype, shape, axes)
    if op == "REDUCE_MAX":
        return _Maximum(dtype, shape, axes)
    return _Sum(dtype, shape, axes) if op == "REDUCE_SUM" else _Product(dtype, shape, axes)


class _Logical:
    """Or of bools (SUM, MAX), or and (MUL)."""

    def __init__(self, op: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.axes = axes
        self.decides = op != "REDUCE_MUL"  # the value that decides alone
        self.decided = np.zeros(shape, np.bool_)
        self.lost = np.zeros(shape, np.bool_)

    def take(self, piece: Bounded) -> None:
        lost = np.zeros((), np.bool_) if piece.lost is None else piece.lost
        here = (piece.values == self.decides) & ~lost
        self.decided |= here.any(axis=self.axes, keepdims=True)
        self.lost |= np.broadcast_to(lost, piece.values.shape).any(axis=self.axes, keepdims=True)

    def result(self) -> Bounded:
        return from_mask(BOOL, self.decided if self.decides else ~self.decided, self.lost & ~self.decided)


class _Integer:
    """Wrapping sums and products, and maxima."""

    def __init__(self, op: str, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.op, self.dtype, self.axes = op, dtype, axes
        identity = {"REDUCE_SUM": 0, "REDUCE_MUL": 1}.get(op, int(dtype.least))
        self.total = np.full(shape, identity, held_type(dtype))
        self.lost = np.zeros(shape, np.bool_)
        self.zero = np.zeros(shape, np.bool_)

    def take(self, piece: Bounded) -> None:
        values = piece.values
        if self.op == "REDUCE_SUM":
            self.total += values.sum(axis=self.axes, keepdims=True, dtype=values.dtype)
        elif self.op == "REDUCE_MUL":
            self.total *= values.prod(axis=self.axes, keepdims=True, dtype=values.dtype)
            sure = values == 0 if piece.lost is None else (values == 0) & ~piece.lost
            self.zero |= sure.any(axis=self.axes, keepdims=True)
        elif values.size:
            np.maximum(self.total, values.max(axis=self.axes, keepdims=True), out=self.total)
        if piece.lost is not None:
            self.lost |= np.broadcast_to(piece.lost, values.shape).any(axis=self.axes, keepdims=True)

    def result(self) -> Bounded:
        return from_mask(self.dtype, np.where(self.zero, self.total.dtype.type(0), self.total), self.lost & ~self.zero)


class _Floats:
    """What sums, products and maxima of floats have in common: special values seen."""

    def __init__(self, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.dtype, self.axes, self.shape = dtype, axes, shape
        self.nan = np.zeros(shape, np.bool_)  # surely NaN
        self.lost = np.zeros(shape, np.bool_)
        self.up = np.zeros(shape, np.bool_)  # an element is +inf
        self.down = np.zeros(shape, np.bool_)
        self.count = 0

    def any(self, mask: Array) -> Array:
        return np.asarray(mask.any(axis=self.axes, keepdims=True))

    def sum(self, values: Array) -> Array:
        return np.asarray(values.sum(axis=self.axes, keepdims=True))

    def look(self, piece: Bounded, slack: Array | None = None) -> tuple[Array, Array]:
        """(values, error) with everything special noted and replaced by what changes nothing. slack: more of an error."""
        values, error = operand(piece)
        error = together(error, slack)
        bound: Array = np.zeros(values.shape) if error is None else np.broadcast_to(error, values.shape)
        self.count += math.prod(values.shape[axis] for axis in self.axes)
        odd = ~np.isfinite(values) | np.isinf(bound)
        if odd.any():
            sure = ~np.isinf(bound)
            self.lost |= self.any(~sure)
            self.nan |= self.any(np.isnan(values) & sure)
            self.up |= self.any((values == np.inf) & sure)
            self.down |= self.any((values == -np.inf) & sure)
            values, bound = np.where(odd, self.instead(values), values), np.where(odd, 0.0, bound)
        return values, bound

    def instead(self, values: Array) -> Array:
        """What stands for special values in the finite part."""
        return np.zeros_like(values)

    def finished(self, exact: Array, error: Array, infinity: Array, plain: Array) -> Bounded:
        """The finite part settled, then what is special put over it; `infinity` is the one to give where there is any.

        plain: the reduce of the values as they are, infinities and all: what to show where anything is right.
        """
        value = settled(exact, error, self.dtype, open_zero=True)
        infinite = self.up | self.down
        if not (self.nan | infinite | self.lost).any():
            return value
        old: Array = np.zeros(()) if value.error is None else value.error
        values = np.where(self.nan, np.nan, np.where(infinite, infinity, wide(value.values)))
        values = np.where(self.lost & ~self.nan, rounded(plain, self.dtype), values)
        bound = np.where(self.lost, np.inf, np.where(infinite, 0.0, old))
        return Bounded(self.dtype, values.astype(value.values.dtype), np.where(self.nan, 0.0, bound), open_zero=True, open_nan=True)


class _Sum(_Floats):
    def __init__(self, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        super().__init__(dtype, shape, axes)
        self.total = np.zeros(shape)
        self.plain = np.zeros(shape)
        self.magnitude = np.zeros(shape)
        self.spread = np.zeros(shape)
        self.grain = np.full(shape, NO_BITS, np.int64)  # exponent of the lowest bit set in any element

    def take(self, piece: Bounded) -> None:
        values, bound = self.look(piece, piece.slack)
        self.total += self.sum(values)
        self.plain += self.sum(wide(piece.values))
        self.magnitude += self.sum(np.abs(values))
        self.spread += self.sum(bound)
        if values.size:
            np.minimum(self.grain, lowest_bit(values).min(axis=self.axes, keepdims=True), out=self.grain)

    def result(self) -> Bounded:
        precision = self.dtype.significand
        growth = math.expm1(self.count * math.log1p(math.ldexp(1.0, -precision)))
        own = self.count * math.ldexp(1.0, -52)  # of this float64 sum
        coarse = self.grain >= 2 - self.dtype.exponent_max  # then no partial sum is subnormal
        exact = coarse & (self.magnitude <= np.ldexp(1.0, np.minimum(self.grain + precision, 1023))) & (self.spread == 0)
        exact &= self.magnitude < overflow_at(self.dtype)
        error = self.spread + growth * (self.magnitude + self.spread) + own * self.magnitude
        if self.dtype.name != "float16":
            error += np.where(coarse, 0.0, self.count * smallest_normal(self.dtype))
        limit = overflow_at(self.dtype) / (1 + growth)
        upwards = ~exact & ((self.magnitude + self.total) / 2 + self.spread >= limit)  # the positive elements alone, or with a few others
        downwards = ~exact & ((self.magnitude - self.total) / 2 + self.spread >= limit)
        surely = np.abs(self.total) - error > overflow_at(self.dtype)
        vague = (upwards & downwards) | ((upwards | downwards) & ~surely)
        self.nan |= self.up & self.down
        self.lost |= (self.up & downwards) | (self.down & upwards)
        error = np.where(exact, 0.0, np.where(vague & ~(self.up | self.down), np.inf, error))
        return self.finished(self.total, error, np.where(self.up, np.inf, -np.inf), self.plain)


def lowest_bit(values: Array) -> Array:
    """The exponent of the lowest set bit of each finite float64; of zero NO_BITS."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    _, low = np.frexp((whole & -whole).astype(np.float64))
    return np.where(values == 0, NO_BITS, exponent - 53 + (low - 1))


class _Product(_Floats):
    def __init__(self, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        super().__init__(dtype, shape, axes)
        self.total = np.ones(shape)
        self.plain = np.ones(shape)
        self.upper = np.ones(shape)  # product of the greatest magnitudes within the errors
        self.grows = np.zeros(shape)  # sum of positive log2 of the magnitudes: no partial product is larger
        self.shrinks = np.zeros(shape)
        self.digits = np.zeros(shape)  # log2 of the product of the significands as odd integers: no partial product needs more
        self.spread = np.zeros(shape)
        self.zero = np.zeros(shape, np.bool_)

    def take(self, piece: Bounded) -> None:
        values, bound = self.look(piece)
        magnitude = np.abs(values)
        self.total *= np.asarray(values.prod(axis=self.axes, keepdims=True))
        self.plain *= np.asarray(wide(piece.values).prod(axis=self.axes, keepdims=True))
        self.upper *= np.asarray((magnitude + bound).prod(axis=self.axes, keepdims=True))
        self.zero |= self.any((values == 0) & (bound == 0))
        logs = np.log2(np.where(values == 0, 1.0, magnitude))
        self.grows += self.sum(np.maximum(np.log2(np.maximum(magnitude + bound, 1.0)), 0.0))
        self.shrinks += self.sum(np.minimum(logs, 0.0))
        odd = np.where(values == 0, 0.0, logs - np.where(values == 0, 0, lowest_bit(values)))
        self.digits += self.sum(odd)
        self.spread += self.sum(bound)

    def result(self) -> Bounded:
        precision = self.dtype.significand
        growth = math.expm1(self.count * math.log1p(math.ldexp(1.0, -precision)))
        own = self.count * math.ldexp(1.0, -52)
        stays = self.shrinks > 3 - self.dtype.exponent_max
        exact = (self.spread == 0) & stays & (self.digits <= precision - 0.5)
        error = (self.upper - np.abs(self.total)) + (growth + own) * self.upper
        overflows = self.grows > self.dtype.exponent_max + 0.5
        exact &= ~(overflows & (self.zero | (self.shrinks < 0)))  # beyond the type in some order, and back by what is small
        exact |= self.zero & ~overflows
        error = np.where(exact, 0.0, np.where(overflows | ~stays, np.inf, error))
        infinite = self.up | self.down
        self.nan |= infinite & self.zero & ~overflows
        self.lost |= infinite & ((self.spread > 0) | ~stays | overflows)
        return self.finished(np.where(self.zero, 0.0, self.total), error, np.copysign(np.inf, self.total), self.plain)

    def instead(self, values: Array) -> Array:
        return np.where(np.isinf(values), np.sign(values), 1.0)


class _Maximum(_Floats):
    """NaN where an element is."""

    def __init__(self, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        super().__init__(dtype, shape, axes)
        self.best = np.full(shape, -np.inf)
        self.top = np.full(shape, -np.inf)
        self.bottom = np.full(shape, -np.inf)

    def take(self, piece: Bounded) -> None:
        values, error = operand(piece)
        if not values.size:
            return
        bound: Array = np.zeros(()) if error is None else error
        sure = np.isfinite(bound)
        self.nan |= self.any(np.isnan(values) & sure)
        self.lost |= self.any(np.broadcast_to(~sure, values.shape))
        values = np.where(np.isnan(values) | ~sure, -np.inf, values)
        bound = np.where(sure, bound, 0.0)
        for kept, now in ((self.best, values), (self.top, values + bound), (self.bottom, values - bound)):
            np.maximum(kept, now.max(axis=self.axes, keepdims=True), out=kept)

    def result(self) -> Bounded:
        same = (self.top == self.best) & (self.bottom == self.best)
        error = np.where(same, 0.0, np.maximum(self.top - self.best, self.best - self.bottom))
        error = np.where(self.lost, np.inf, error)
        values = np.where(self.nan, np.nan, self.best).astype(held_type(self.dtype))
        error = np.where(self.nan, 0.0, error)
        return Bounded(self.dtype, values, error if error.any() else None, open_zero=True, open_nan=True)
