"""Index values and conditions at every point of a box at once: the plain way, where intervals and residues do not decide.

Points are never listed: each atom is an array along a dimension of its own, and values broadcast, so that a value of few atoms stays small;
a large box is taken in slices. Arithmetic is in 64 bits where intervals over the box prove that they suffice, else in Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.index.linear import split
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value

Array = NDArray[Any]  # int64, bool, or object of exact integers: known at run time only
Range = tuple[int, int]  # inclusive

MAX_POINTS = 1 << 20  # of one box: milliseconds to some tenths of a second
_SLICE = 1 << 15  # points computed at a time, so that every value on the way to the one asked for fits into a cache
_EXACT_COST = 64  # operations in 64 bits that one in Python's integers takes as long as
_WORD = 1 << 62  # below it nothing leaves 64 bits, one more addition included

DATA = frozenset((Op.OPAQUE, Op.INDEX_OF))  # atoms that are what nodes give
COUNTING = frozenset((Op.AXIS, Op.SPECIAL, Op.RANGE))  # atoms that run from 0 to below an extent


def atoms_of(*values: Value) -> tuple[Value, ...]:
    """The atoms these values are made of, the variables of their extents included, in canonical order.

    Where an opaque value stands is no part of it: it may be anything anywhere.
    """
    free = frozenset().union(*(x.free for x in values))
    if any(atom.op is Op.OPAQUE and atom.src for atom in free):
        free = frozenset(_beside_opaque(values))
    return tuple(sorted(free, key=lambda atom: atom.order))


def _beside_opaque(values: Iterable[Value]) -> set[Value]:
    seen: set[Value] = set()
    stack = list(values)
    while stack:
        v = stack.pop()
        if v not in seen:
            seen.add(v)
            if v.op not in DATA:
                stack.extend(v.src)
    return {v for v in seen if v in v.free}


def symbolic(atom: Value) -> bool:
    """Whether it is an axis, launch index or loop whose extent is an expression."""
    return atom.op in COUNTING and bool(atom.src) and atom.src[0].op is not Op.CONST


def own_bounds(x: Value) -> Range:
    """The bounds kept on an index value, which always has some."""
    return x.lo, x.hi  # type: ignore[return-value]


class Points:
    """Every point of a box: `ranges` gives each atom's least and greatest value; count is 0 where one has none."""

    def __init__(self, ranges: Mapping[Value, Range]) -> None:
        self.ranges = dict(ranges)
        self._arrays: dict[Value, Array] = {}
        self._bounds: dict[Value, Range] = {}
        self._wide: set[Value] = set()
        extents = [high - low + 1 for low, high in ranges.values()]
        empty = any(e <= 0 for e in extents)
        self.along = tuple(atom for atom, e in zip(ranges, extents, strict=True) if e != 1)  # atoms with a dimension of their own
        self.shape = (0,) if empty else tuple(e for e in extents if e != 1)
        self.count = prod(self.shape)
        for atom, (low, high) in ranges.items():
            wide = not -_WORD < low <= high < _WORD and not empty
            values: Array = np.arange(0 if empty else high - low + 1, dtype=object if wide else np.int64)
            self._arrays[atom] = values if empty else self._placed(atom, values + low)
            self._bounds[atom] = low, max(low, high)
            if wide:
                self._wide.add(atom)

    def _placed(self, atom: Value, values: Array) -> Array:
        if len(values) == 1:
            return values.reshape(())
        k = self.along.index(atom)
        return values.reshape((1,) * k + (-1,) + (1,) * (len(self.shape) - k - 1))

    def value(self, x: Value) -> Array:
        """The values of x, in a shape that broadcasts to the box's. Every atom of x must be one of the box's."""
        arrays = self._arrays
        stack = [x]
        while stack:
            v = stack[-1]
            if v in arrays:
                stack.pop()
                continue
            waiting = [s for s in v.src if s not in arrays]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            arrays[v] = np.asarray(self._computed(v))  # of one point of Python's integers numpy makes a plain integer
        return arrays[x]

    def holds(self, condition: Value) -> Array:
        """Where a condition holds, as `value`."""
        return self.value(condition)

    def within_extents(self) -> Array:
        """Where every atom with a symbolic extent is below it: the points of the box that exist."""
        found: Array = np.ones((), np.bool_)
        for atom in self.ranges:
            if atom.op in COUNTING and atom.src and atom.src[0].op is not Op.CONST:
                found = found & (self.value(atom) < self.value(atom.src[0]))
        return found

    def full(self, array: Array) -> Array:
        """An array of `value` or `holds`, over all points, flat; the last atom varies fastest."""
        return np.broadcast_to(array, self.shape).reshape(-1)

    def point(self, number: int) -> dict[Value, int]:
        """The atoms' values at a flat number of `full`."""
        found = {atom: low for atom, (low, _) in self.ranges.items()}
        for atom, digit in zip(self.along, np.unravel_index(number, self.shape), strict=True):
            found[atom] += int(digit)
        return found

    def slices(self, most: int = _SLICE) -> Iterator[Points]:
        """The box in boxes of at most so many points, in the order of `full`."""
        if self.count <= most:
            yield self
            return
        atom, extent = self.along[0], self.shape[0]
        low, high = self.ranges[atom]
        rest = self.count // extent
        step = max(most // rest, 1)
        for start in range(low, high + 1, step):
            part = Points({**self.ranges, atom: (start, min(start + step - 1, high))})
            yield from part.slices(most)

    # ---- one operation ---------------------------------------------------------------------------------------------------

    def _computed(self, v: Value) -> Array:
        low, high, reach = self._interval(v)
        wide = reach >= _WORD or any(s in self._wide for s in v.src)
        if wide:
            self._wide.add(v)
        self._bounds[v] = low, high
        src = [self._arrays[s] for s in v.src]
        if wide:
            src = [s if s.dtype == object else s.astype(object) for s in src]
        match v.op:
            case Op.CONST:
                return np.asarray(v.arg, dtype=np.bool_ if isinstance(v.arg, bool) else object if wide else np.int64)
            case Op.SUM:
                part, coefficients, _ = split(v)
                total = src[0] * coefficients[0] + part
                for c, s in zip(coefficients[1:], src[1:], strict=True):
                    total = total + s * c
                return total
            case Op.PRODUCT:
                result = src[0]
                for s in src[1:]:
                    result = result * s
                return result
            case Op.DIV | Op.MOD:
                divisor = src[1]
                if self._bounds[v.src[1]][0] < 1:  # an extent that may be 0: there is no point where it is
                    divisor = np.where(divisor < 1, 1, divisor)
                return src[0] // divisor if v.op is Op.DIV else src[0] % divisor
            case Op.LESS:
                return np.asarray(src[0] < v.arg, np.bool_)
            case Op.ALL:
                held = src[0]
                for s in src[1:]:
                    held = held & s
                return held
            case _:
                raise KeyError(v)

    def _interval(self, v: Value) -> tuple[int, int, int]:
        """Least and greatest value, and a bound on what is met on the way."""
        at = [self._bounds[s] for s in v.src]
        match v.op:
            case Op.CONST:
                number = integer(v)
                return number, number, abs(number)
            case Op.SUM:
                part, coefficients, _ = split(v)
                low = high = part
                reach = abs(part)
                for c, (a, b) in zip(coefficients, at, strict=True):
                    low, high = low + min(c * a, c * b), high + max(c * a, c * b)
                    reach += max(abs(c * a), abs(c * b), abs(c))
                return low, high, reach
            case Op.PRODUCT:
                low, high, reach = 1, 1, 1
                for a, b in at:
                    corners = (low * a, low * b, high * a, high * b)
                    low, high = min(corners), max(corners)
                    reach *= max(abs(a), abs(b), 1)
                return low, high, reach
            case Op.DIV:
                (a, b), (c, d) = at[0], (max(at[1][0], 1), max(at[1][1], 1))
                corners = (a // c, a // d, b // c, b // d)
                return min(corners), max(corners), max(abs(a), abs(b), d)
            case Op.MOD:
                return 0, max(at[1][1] - 1, 0), max(abs(at[0][0]), abs(at[0][1]), at[1][1])
            case Op.LESS:
                return 0, 1, max(abs(at[0][0]), abs(at[0][1]), abs(integer(v)))
            case _:
                return 0, 1, 1


def work(*values: Value) -> int:
    """What one point costs: the different operations these values are made of, those beyond 64 bits many times over."""
    cost = 0
    seen: set[Value] = set()
    stack = list(values)
    while stack:
        v = stack.pop()
        if v not in seen:
            seen.add(v)
            low, high = own_bounds(v)
            cost += 1 if -_WORD < low and high < _WORD else _EXACT_COST
            if v not in v.free:
                stack.extend(v.src)
    return cost


def first_point(box: Points, holds: Callable[[Points], Array]) -> dict[Value, int] | None:
    """The first point of a box where something holds; what is asked for is computed slice by slice."""
    for part in box.slices():
        found = np.flatnonzero(part.full(holds(part)))
        if len(found):
            return part.point(int(found[0]))
    return None


def box_points(atoms: Iterable[Value], ranges: Mapping[Value, Range] | None = None, most: int = MAX_POINTS) -> Points | None:
    """The points of these atoms, each within its range or its own bounds; None where they are more than `most`."""
    known = ranges or {}
    box: dict[Value, Range] = {}
    count = 1
    for atom in atoms:
        low, high = box[atom] = known.get(atom) or own_bounds(atom)
        count *= max(high - low + 1, 0)
        if count > most:
            return None
    return Points(box)
