"""Parallel axes onto the three dimensions of a launch, x first.

Logical axes are many, hardware dimensions three and bounded. Axes are split where one is too long, collapsed where there are too many,
and decoded from the hardware indices as mixed-radix digits; an axis without a suitable factor is split by ceiling division and guarded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from core.device import Triple
from core.dtypes import INDEX
from core.errors import LimitExceeded
from core.index import TRUE, add, all_of, floordiv, less, mod, multiply, number, scale
from core.ir.op import Op
from core.ir.value import Value, make
from core.kernel.leaves import Extent, as_value, most
from core.schedule.axis import Axis

SpecialKind = Literal["group", "local", "global"]
DIMENSIONS = 3


@dataclass(frozen=True, slots=True)
class Digit:
    """A part of an axis: it counts for `weight` in the axis's value."""

    axis: int
    extent: Extent
    weight: int


@dataclass(frozen=True, slots=True)
class Mapping3:
    """sizes: of the three dimensions. values: per axis its value over the hardware indices. guard: what must hold for a point to be one.

    order: numbers of the axes whose digits make up the linear index (x fastest), lowest first.
    """

    sizes: tuple[Value, Value, Value]
    values: tuple[Value, ...]
    guard: Value
    order: tuple[int, ...]


Position = list[Digit]


def map_axes(axes: tuple[Axis, ...], maxima: Triple | None, kind: SpecialKind, *, reverse: bool, may_guard: bool) -> Mapping3:
    """A bijection from the hardware box onto the box of `axes` (under `guard`). Raises LimitExceeded where the axes do not fit.

    reverse: the last axis becomes x (global axes of targets with work-groups), else the first.
    """
    limits = tuple(m if m is not None else None for m in (maxima or (None, None, None)))
    order = range(len(axes) - 1, -1, -1) if reverse else range(len(axes))
    positions: list[Position] = [[Digit(k, axes[k].extent, 1)] for k in order if axes[k].extent != 1]
    placed = _place(positions, limits)
    guard: Value = TRUE
    if placed is None and may_guard:
        placed = _place(_split(positions, limits, exact=False), limits)
    if placed is None:
        extents = [most(a.extent) for a in axes]
        raise LimitExceeded("/device", limit=f"{kind}_max", needed=extents, allowed=list(limits))
    values: list[Value] = [number(0)] * len(axes)
    for dimension, position in enumerate(placed):
        for digit, value in _decode(position, kind, dimension):
            values[digit.axis] = add(values[digit.axis], scale(value, digit.weight))
    for k, axis in enumerate(axes):
        if values[k].hi >= most(axis.extent) > 0:  # type: ignore[operator]
            guard = all_of((guard, less(values[k], as_value(axis.extent))))
    sizes = [_size(p) for p in placed] + [number(1)] * (DIMENSIONS - len(placed))
    return Mapping3((sizes[0], sizes[1], sizes[2]), tuple(values), guard, tuple(d.axis for p in placed for d in p))


def _fits(size: int, limit: int | None) -> bool:
    return limit is None or size <= limit


def _extent(position: Position) -> int:
    result = 1
    for digit in position:
        result *= most(digit.extent)
    return result


def _size(position: Position) -> Value:
    result: Value = number(1)
    for digit in position:
        result = multiply(result, as_value(digit.extent))
    return result


def _place(positions: list[Position], limits: tuple[int | None, ...]) -> list[Position] | None:
    """At most three positions within the limits: as they are, on other dimensions, split, collapsed, or grouped in any way that fits."""
    if len(positions) <= DIMENSIONS:
        if all(_fits(_extent(p), limits[k]) for k, p in enumerate(positions)):
            return positions
        for order in permutations(range(DIMENSIONS), len(positions)):
            if all(_fits(_extent(p), limits[k]) for k, p in zip(order, positions, strict=True)):
                out: list[Position] = [[] for _ in range(max(order) + 1)]
                for k, p in zip(order, positions, strict=True):
                    out[k] = p
                return out
    split = _split(positions, limits, exact=True)
    collapsed = _collapse(split, limits)
    return collapsed if collapsed is not None else _group(split, limits)


def _split(positions: list[Position], limits: tuple[int | None, ...], *, exact: bool) -> list[Position]:
    """Positions that exceed their dimension's limit cut in two, by the smallest factor that fits; by ceiling division unless `exact`."""
    out = list(positions)
    k = 0
    while k < min(len(out), DIMENSIONS):
        digit = out[k][0]
        limit = limits[k]
        if limit is not None and isinstance(digit.extent, int) and digit.extent > limit:
            d = digit.extent
            least = -(-d // limit)
            factor = next((f for f in range(max(2, least), d + 1) if d % f == 0 and d // f <= limit), None) if exact else least
            if factor is not None:
                low = -(-d // factor)
                out[k : k + 1] = [[Digit(digit.axis, low, digit.weight)], [Digit(digit.axis, factor, digit.weight * low)]]
        k += 1
    return out


def _collapse(positions: list[Position], limits: tuple[int | None, ...]) -> list[Position] | None:
    """Neighbours multiplied into the leftmost position that can hold them, until three are left."""
    out = [list(p) for p in positions]
    while len(out) > DIMENSIONS:
        for k in range(min(DIMENSIONS, len(out) - 1)):
            if _fits(_extent(out[k]) * _extent(out[k + 1]), limits[k]):
                out[k : k + 2] = [out[k] + out[k + 1]]
                break
        else:
            return None
    return out if all(_fits(_extent(p), limits[k]) for k, p in enumerate(out)) else None


MAX_GROUPED = 10  # positions among which every grouping is tried: 3**10 at most


def _group(positions: list[Position], limits: tuple[int | None, ...]) -> list[Position] | None:
    """Any assignment of positions to the three dimensions that fits: the first three where they are, if the others find room, else any.

    Of several the first in dictionary order.
    """
    if len(positions) > MAX_GROUPED:
        return None
    out: list[Position] = []

    def fill(at: int) -> bool:
        if at == len(positions):
            return True
        for k in range(DIMENSIONS):
            if _fits(_extent(out[k]) * _extent(positions[at]), limits[k]):
                out[k] = out[k] + positions[at]
                if fill(at + 1):
                    return True
                out[k] = out[k][: len(out[k]) - len(positions[at])]
        return False

    for kept in (DIMENSIONS, 0):
        out[:] = [list(p) for p in positions[:kept]] + [[] for _ in range(DIMENSIONS - len(positions[:kept]))]
        if all(_fits(_extent(p), limits[k]) for k, p in enumerate(out)) and fill(len(positions[:kept])):
            return out
    return None


def _decode(position: Position, kind: SpecialKind, dimension: int) -> list[tuple[Digit, Value]]:
    """The digits of a hardware index, first merged lowest; symbolic digits go last, where nothing is divided by them."""
    ordered = [d for d in position if isinstance(d.extent, int)] + [d for d in position if not isinstance(d.extent, int)]
    rest = special(kind, dimension, _size(ordered))
    out = []
    for k, digit in enumerate(ordered):
        if digit.extent == 0:  # nothing is launched
            out.append((digit, number(0)))
            continue
        last = k == len(ordered) - 1
        out.append((digit, rest if last else mod(rest, as_value(digit.extent))))
        if not last:
            rest = floordiv(rest, as_value(digit.extent))
    return out


def special(kind: SpecialKind, dimension: int, extent: Value) -> Value:
    """A hardware index; the number 0 where no other is possible."""
    if extent.hi <= 1:  # type: ignore[operator]
        return number(0)
    return make(Op.SPECIAL, INDEX, (extent,), (kind, dimension), 1, (0, extent.hi - 1))  # type: ignore[operator]
