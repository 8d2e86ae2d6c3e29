"""Do two points of an access share an index? Shown by strides that nest, through digits of one position, or by trying every point.

The rules, in this order; the first that speaks decides:

    J0  an axis of more than one value is neither in the index nor in the validity: points that differ only there collide
    J1  each stride is larger than all that the smaller ones reach together
    J2  axes that occur only in digits of one injective position (f div 4, f mod 4): the digits stand for them, each a stride of its own
    J3  parts that share no axis: their strides and digits together, as in J1
    J4  every point is tried

An axis counts with the range that the validity leaves it, variables are constants with bounds, and conditions on values of other nodes are
left out before anything else: which points they take away nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.index.access import Access
from core.index.condition import FALSE
from core.index.decide import Decider, Outcome, Point, has_data, sample, without_data
from core.index.digits import digits_of
from core.index.enumerate import MAX_POINTS, Array, Points, atoms_of, box_points, symbolic, work
from core.index.given import Given
from core.index.strides import Linear, Stride, linear, nested, spans
from core.ir.op import Op
from core.ir.value import Value

_MOST_WORK = 1 << 30  # operations on points: 2**20 points of a formula as long as a request may have, in 64 bits; some seconds
_DEPTH = 3  # digits of digits: as many views lie on each other in the worst kernel seen, and one more


@dataclass(frozen=True, slots=True)
class Injective:
    """rule: the one that decided. points: two that collide, where known. why: in words, where it is not proved."""

    outcome: Outcome
    rule: str
    points: tuple[Point, Point] | None = None
    why: str = ""


def injective(access: Access, axes: Iterable[Value], decider: Decider | None = None, most_points: int = MAX_POINTS) -> Injective:
    """Whether no two valid points over `axes` (atoms; constants stand for axes of one value) have one index.

    most_points: a box with more is not enumerated.
    """
    decider = decider or Decider()
    valid = without_data(access.valid)
    given = decider.given(valid)
    if valid is FALSE or given.impossible:
        return Injective(Outcome.PROVED, "J0")
    index = access.index if valid is access.valid else given.simplify(access.index)
    live = [a for a in axes if a.op is not Op.CONST and _several(given.bounds(a) if valid.free else (a.lo, a.hi))]
    for axis in live:
        if axis not in index.free and axis not in valid.free:
            return _never_seen(axis, live, valid, decider)
    rule = _shown(index, frozenset(live), given, 0)
    if rule:
        return Injective(Outcome.PROVED, rule)
    return _enumerated(index, valid, live, decider, most_points)


def _several(bounds: tuple[int | None, int | None]) -> bool:
    return bounds[0] != bounds[1]


def _never_seen(axis: Value, live: list[Value], valid: Value, decider: Decider) -> Injective:
    """J0."""
    why = f"an axis of up to {decider.most(axis, valid) - decider.least(axis, valid) + 1} points is not in the index"
    points = None
    if not symbolic(axis):
        first = decider.some_point(valid)
        if first is not None:
            first = {**{a: decider.least(a, valid) for a in live if not symbolic(a)}, **first}
            low = decider.least(axis, valid)
            points = {**first, axis: low}, {**first, axis: low + 1}
    return Injective(Outcome.REFUTED, "J0", points, why)


def _shown(index: Value, axes: frozenset[Value], given: Given, depth: int) -> str:
    """J1, J2 and J3: the rule that shows it, or nothing."""
    parts = linear(index, axes)
    if not parts.terms:
        return "J1" if parts.strides.keys() == axes and nested(_strides(parts.strides, given)) else ""
    if depth >= _DEPTH:
        return ""
    groups = _groups(parts, axes)
    grouped = frozenset().union(*(g for g, _ in groups))
    alone = {axis: by for axis, by in parts.strides.items() if axis not in grouped}
    if grouped.union(alone) != axes:
        return ""
    steps = _strides(alone, given)
    for group, terms in groups:
        part = Linear({axis: by for axis, by in parts.strides.items() if axis in group}, terms)
        found = digits_of(part, group, given, lambda position, group=group: bool(_shown(position, group, given, depth + 1)))  # type: ignore[misc]
        if found is None:
            return ""
        steps.extend(found)
    if not nested(steps):
        return ""
    return "J2" if len(groups) == 1 and not alone else "J3"


def _strides(strides: dict[Value, Value], given: Given) -> list[Stride]:
    return [Stride(by, spans(axis, given)) for axis, by in strides.items()]


def _groups(parts: Linear, axes: frozenset[Value]) -> list[tuple[frozenset[Value], tuple[tuple[Value, int], ...]]]:
    """The terms that are not linear, together where they share an axis; each group with all its axes."""
    groups: list[tuple[frozenset[Value], tuple[tuple[Value, int], ...]]] = []
    for t, c in parts.terms:
        own = axes & t.free
        terms: tuple[tuple[Value, int], ...] = ((t, c),)
        apart = []
        for other, theirs in groups:
            if own.isdisjoint(other):
                apart.append((other, theirs))
            else:
                own, terms = own | other, theirs + terms
        groups = [*apart, (own, terms)]
    return groups


def _enumerated(index: Value, valid: Value, live: list[Value], decider: Decider, most_points: int) -> Injective:
    """J4, and where the points are too many at least a look at some."""
    if has_data(index):
        return Injective(Outcome.UNKNOWN, "J4", None, "the index holds values of another node")
    atoms = (*(a for a in atoms_of(index, valid, *live) if a not in live), *live)
    ranges = decider.ranges(atoms, valid)
    cost = work(index, valid)
    box = box_points(atoms, ranges, most_points)
    if box is not None and box.count * cost > _MOST_WORK:
        box = None
    points = _collision(box or sample(atoms, ranges, cost), index, valid, live)
    if points is not None:
        return Injective(Outcome.REFUTED, "J4", points, "two points have one index")
    if box is not None:
        return Injective(Outcome.PROVED, "J4")
    why = f"its strides do not nest, and it has more than {most_points} points to try, or too much at each"
    return Injective(Outcome.UNKNOWN, "J4", None, why)


def _collision(box: Points, index: Value, valid: Value, live: list[Value]) -> tuple[Point, Point] | None:
    """Two points with one index for the same variables: of all such pairs the one that begins first."""
    others = [atom for atom in box.along if atom not in live]
    numbers: list[Array] = []
    columns: list[list[Array]] = [[] for _ in range(len(others) + 1)]
    done = 0
    for part in box.slices():
        held = np.flatnonzero(part.full(part.holds(valid) & part.within_extents()))
        numbers.append(held + done)
        for column, x in zip(columns, (index, *others), strict=True):
            column.append(part.full(part.value(x))[held])
        done += part.count
    at = np.concatenate(numbers)
    keys = [np.concatenate(column) for column in columns]
    if all(k.dtype != object for k in keys):
        order = np.lexsort(keys)
    else:
        order = np.array(sorted(range(len(at)), key=lambda n: tuple(int(k[n]) for k in keys)), np.int64)
    same = np.ones(max(len(at) - 1, 0), np.bool_)
    for k in keys:
        ordered = k[order]
        same &= np.asarray(ordered[1:] == ordered[:-1], np.bool_)
    pairs = np.flatnonzero(same)
    if not len(pairs):
        return None
    first = int(pairs[np.argmin(at[order[pairs]])])
    return box.point(int(at[order[first]])), box.point(int(at[order[first + 1]]))
