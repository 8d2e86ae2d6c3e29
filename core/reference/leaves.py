"""Loads, constants and stores over a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.dtypes import FLOAT32, INT64
from core.kernel.node import Const, Load, Store
from core.reference.bounded import Array, Bounded, forgotten, from_stored, held_type, rounded, settled, to_stored, ulp, wide
from core.reference.boxes import Box, extents
from core.reference.convert import cast
from core.reference.place import grid, located, value_of


class OutsideBuffer(ValueError):
    """The inputs make the kernel read or write outside of a buffer: it has no meaning for them."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """One launch's buffers and variables. Boxes and shapes here have an axis of extent 1 before the kernel's own."""

    buffers: Mapping[int, Array]
    variables: Mapping[str, int]

    def _place(
        self, leaf: Load | Const | Store, sources: Mapping[str, Bounded], box: Box, shape: Sequence[int]
    ) -> tuple[Array | None, Array | None, Array | None]:
        """(index, validity, where both are unknown) of a leaf over a box."""
        axes = grid(box, shape)[1:]
        index, valid = located(leaf.place, axes, self.variables, {name: value.values for name, value in sources.items()})
        unsure: Array | None = None
        for value in sources.values():
            if value.lost is not None:
                unsure = value.lost if unsure is None else unsure | value.lost
        rank = len(box)
        return (
            None if index is None else _with_axes(index, rank),
            None if valid is None else _with_axes(valid, rank),
            unsure,
        )

    def load(self, load: Load, shape: Sequence[int], sources: Mapping[str, Bounded], box: Box) -> Bounded:
        index, valid, unsure = self._place(load, sources, box, shape)
        assert index is not None
        elements = self.buffers[load.buffer]
        guarded = valid if unsure is None else (~unsure if valid is None else valid & ~unsure)
        if guarded is not None:
            index = np.where(guarded, index, 0)
            if not len(elements):
                elements = np.zeros(1, elements.dtype)
        _inside(index, elements, load)
        values = from_stored(elements[index.astype(np.int64)], load.dtype)
        if load.image is not None:
            values = values.astype(np.float32)
        if guarded is not None:
            values = np.where(guarded, values, values.dtype.type(0))
        value = Bounded(FLOAT32 if load.image is not None else load.dtype, values)
        return value if unsure is None else forgotten(value, unsure)

    def const(self, const: Const, shape: Sequence[int], box: Box) -> Bounded:
        axes = grid(box, shape)[1:]
        _, valid = located(const.place, axes, self.variables, {})
        vague = None
        if const.expr is not None:
            names = {f"axis{k}": positions for k, positions in enumerate(axes)}
            names |= {name: np.asarray(value, np.int64) for name, value in self.variables.items()}
            ramp = cast(Bounded(INT64, _with_axes(value_of(const.expr, names), len(box))), const.dtype)
            values = ramp.values
        else:
            scalar = np.asarray(const.value).astype(held_type(const.dtype)) if not const.dtype.is_float else _constant(const)
            values = _with_axes(scalar, len(box))
            vague = const.dtype.is_float and const.value != const.value
        if valid is not None:
            values = np.where(valid, values, values.dtype.type(0))
        return Bounded(const.dtype, values, open_nan=bool(vague))

    def store(self, store: Store, here: Mapping[int, Bounded], shape: Sequence[int], box: Box, values: Array, tolerance: Array) -> None:
        """Writes one output's part: elements as stored, and what is allowed beside them. here: the values by row."""
        index, valid, unsure = self._place(store, {f"src{k}": here[row] for k, row in enumerate(store.src) if k}, box, shape)
        assert index is not None
        covered = extents(box)
        value = here[store.src[0]]
        if store.image is not None and store.dtype is not FLOAT32:
            value = _narrowed(value, store)
        stored = to_stored(np.broadcast_to(value.values, covered), store.dtype)
        allowed = np.broadcast_to(_allowed(value), covered)
        if unsure is not None:
            allowed = np.where(unsure, np.inf, allowed)
            valid = unsure if valid is None else valid | unsure
        index = np.broadcast_to(index, covered)
        if valid is not None:
            valid = np.broadcast_to(valid, covered)
            index, stored, allowed = index[valid], stored[valid], allowed[valid]
        _inside(index, values, store)
        index = index.astype(np.int64)
        values[index] = stored
        tolerance[index] = allowed


def _with_axes(values: Array, rank: int) -> Array:
    """An array of at least this rank: numpy's scalars behave differently."""
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def _constant(const: Const) -> Array:
    assert const.value is not None
    return rounded(np.asarray(float(const.value)), const.dtype)


def _allowed(value: Bounded) -> Array:
    """The tolerance of stored values: a hair where only the sign of a zero or the bits of a NaN are open."""
    error: Array = np.zeros(value.values.shape) if value.error is None else np.broadcast_to(value.error, value.values.shape)
    if not value.dtype.is_float or not (value.open_zero or value.open_nan):
        return error
    vague = ((value.values == 0) & value.open_zero) | (np.isnan(value.values) & value.open_nan)
    return np.where(vague & (error == 0), np.finfo(np.float64).smallest_subnormal, error)


def _narrowed(value: Bounded, store: Store) -> Bounded:
    """A float32 as an image of halves keeps it; what is between two halves may become either."""
    values = wide(value.values)
    half = settled(values, value.error, store.dtype)
    moved = np.where(np.isnan(values) | (wide(half.values) == values), 0.0, ulp(np.abs(values), store.dtype))
    error: Array = np.zeros(()) if half.error is None else half.error
    return replace(half, error=error + moved, open_zero=value.open_zero, open_nan=value.open_nan)


def _inside(index: Array, elements: Array, leaf: Load | Store) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= len(elements)):
        worst = int(index.min()) if int(index.min()) < 0 else int(index.max())
        raise OutsideBuffer(f"{leaf.op} of buffer {leaf.buffer} at {worst}; it has {len(elements)} elements")
