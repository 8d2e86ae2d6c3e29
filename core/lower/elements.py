"""What a node is at one program point when expanded axes make that point stand for many: a list of values over the axes it varies on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.ir.value import Value
from core.schedule.axis import Axis


@dataclass(frozen=True, slots=True)
class Elements:
    """axes: the expanded axes the values vary on, in the nest's order; values: first axis fastest."""

    axes: tuple[Axis, ...]
    values: tuple[Value, ...]

    def at(self, digits: dict[Axis, int]) -> Value:
        """The value at a point of a larger space."""
        number, weight = 0, 1
        for axis in self.axes:
            number += digits[axis] * weight
            weight *= axis.size
        return self.values[number]


def joined(order: Sequence[Axis], parts: Sequence[Elements]) -> tuple[Axis, ...]:
    """The axes any part varies on, in the nest's order."""
    if not order:
        return ()
    wanted = {axis for part in parts for axis in part.axes}
    return tuple(axis for axis in order if axis in wanted)


def points(axes: Sequence[Axis]) -> list[dict[Axis, int]]:
    """Every combination of digits, first axis fastest."""
    out: list[dict[Axis, int]] = [{}]
    for axis in axes:
        out = [{**digits, axis: d} for d in range(axis.size) for digits in out]
    return out
