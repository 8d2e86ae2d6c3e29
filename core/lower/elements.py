"""What a node is at one program point when expanded axes make that point stand for many: a list of values over the axes it varies on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.ir.value import Value
from core.schedule.axis import Axis


@dataclass(frozen=True, slots=True)
class Elements:
    """axes: the expanded axes the values vary on, in the nest's order; values: first axis fastest."""

    axes: tuple[Axis, ...]
    values: tuple[Value, ...]

    def over(self, axes: tuple[Axis, ...]) -> Sequence[Value]:
        """The value at each point of a larger space, or of this one in another order."""
        if axes == self.axes:
            return self.values
        if not self.axes:
            return self.values * size_of(axes)
        values = self.values
        return [values[n] for n in numbers(axes, strides_of(self.axes))]


def size_of(axes: Iterable[Axis]) -> int:
    """How many points a space has."""
    size = 1
    for axis in axes:
        size *= axis.size
    return size


def strides_of(axes: Iterable[Axis]) -> dict[Axis, int]:
    """By how much the number of a point grows with each axis, first axis fastest."""
    strides, size = {}, 1
    for axis in axes:
        strides[axis] = size
        size *= axis.size
    return strides


def numbers(axes: Iterable[Axis], strides: Mapping[Axis, int]) -> list[int]:
    """Σ digit · stride at each point of a space, first axis fastest; an axis without a stride counts for nothing."""
    out = [0]
    for axis in axes:
        stride = strides.get(axis, 0)
        out = [n + digit for digit in range(0, stride * axis.size, stride) for n in out] if stride else out * axis.size
    return out


def joined(order: Sequence[Axis], parts: Sequence[Elements]) -> tuple[Axis, ...]:
    """The axes any part varies on, in the nest's order."""
    if not order:
        return ()
    wanted = {axis for part in parts for axis in part.axes}
    return tuple([axis for axis in order if axis in wanted])


def points(axes: Sequence[Axis]) -> list[dict[Axis, int]]:
    """Every combination of digits, first axis fastest."""
    out: list[dict[Axis, int]] = [{}]
    for axis in axes:
        out = [{**digits, axis: d} for d in range(axis.size) for digits in out]
    return out
