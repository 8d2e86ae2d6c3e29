"""Strides that nest: how far an index moves along each axis, and whether no two points can meet.

An axis may be one of the kernel's or a digit of a position; either has a stride and a reach, numbers or expressions of variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.index.bounds import lower
from core.index.enumerate import own_bounds
from core.index.extremes import greatest_values
from core.index.given import Given
from core.index.linear import add, multiply, negate, number, split, subtract
from core.ir.op import Op
from core.ir.value import Value

_MOST_REACHES = 4  # upper bounds of one reach that are kept, where several are known and none is the least


@dataclass(frozen=True, slots=True)
class Stride:
    """How an index moves along one axis. spans: upper bounds of greatest minus least value on it, each of them right."""

    stride: Value
    spans: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Linear:
    """An index as Σ strides·axes + terms + what no axis is in. terms: with coefficients, those that axes are in otherwise."""

    strides: dict[Value, Value]
    terms: tuple[tuple[Value, int], ...]


def linear(index: Value, axes: frozenset[Value]) -> Linear:
    """The parts of an index that axes are in."""
    _, coefficients, terms = split(index)
    strides: dict[Value, Value] = {}
    rest: list[tuple[Value, int]] = []
    for t, c in zip(terms, coefficients, strict=True):
        inside = axes & t.free
        if not inside:
            continue
        if t in axes:
            axis, by = t, number(c)
        elif t.op is Op.PRODUCT and sum(f in axes for f in t.src) == sum(not axes.isdisjoint(f.free) for f in t.src) == 1:
            (axis,) = inside
            by = number(c)
            for f in t.src:
                by = by if f is axis else multiply(by, f)
        else:
            rest.append((t, c))
            continue
        strides[axis] = add(strides[axis], by) if axis in strides else by
    return Linear(strides, tuple(rest))


def spans(axis: Value, given: Given) -> tuple[Value, ...]:
    """Upper bounds of how far an axis runs where the conditions hold."""
    low, high = given.bounds(axis)
    found = {number(high - low): None}
    for greatest in greatest_values(axis, given):
        found[subtract(greatest, number(low))] = None
    return tuple(found)


def nested(strides: Iterable[Stride]) -> bool:
    """Whether each stride exceeds the reach of the smaller ones: then different positions give different sums."""
    strides = tuple(strides)
    if all(s.stride.op is Op.CONST and len(s.spans) == 1 for s in strides):
        return _numbers_nest(sorted((abs(own_bounds(s.stride)[0]), own_bounds(s.spans[0])[1]) for s in strides))
    steps = [_upwards(s) for s in strides]
    if any(s is None for s in steps):
        return False
    reaches = [number(0)]
    for s in sorted((s for s in steps if s is not None), key=lambda s: (s.stride.hi, s.stride.lo)):
        if not any(lower(subtract(s.stride, reach)) >= 1 for reach in reaches):
            return False
        reaches = _further(reaches, s)
    return True


def _numbers_nest(steps: list[tuple[int, int]]) -> bool:
    reach = 0
    for stride, span in steps:
        if stride <= reach:
            return False
        reach += stride * span
    return True


def reaches_below(strides: Iterable[Stride], limit: Value) -> bool:
    """Whether all that these strides reach together is less than `limit`."""
    reaches = [number(0)]
    for s in strides:
        step = _upwards(s)
        if step is None:
            return False
        reaches = _further(reaches, step)
    return any(lower(subtract(limit, reach)) >= 1 for reach in reaches)


def _upwards(s: Stride) -> Stride | None:
    """The stride's absolute value; None where its sign is not known."""
    if s.stride.lo >= 0:  # type: ignore[operator]  # index values have bounds
        return s
    return Stride(negate(s.stride), s.spans) if s.stride.hi <= 0 else None  # type: ignore[operator]


def _further(reaches: list[Value], s: Stride) -> list[Value]:
    further = {add(reach, multiply(s.stride, span)): None for reach in reaches for span in s.spans}
    return sorted(further, key=lambda r: (r.hi, r.order))[:_MOST_REACHES]


def times(strides: dict[Value, Value]) -> Value:
    """Σ strides·axes."""
    result = number(0)
    for axis, by in strides.items():
        result = add(result, multiply(axis, by))
    return result
