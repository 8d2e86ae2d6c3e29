"""A matrix instruction in a nest: which axes are bits of its tiles' coordinates.

The axes are cut so that lanes and elements hold the result as the instruction leaves it. They are known by themselves, not by where they
stand, so whatever is done to other axes afterwards touches nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.fragments import Bit, Dim, Layout
from core.schedule.axis import Axis


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring bits of a coordinate that are neighbouring bits of a lane's or an element's number. first: the lowest of those.

    weight: the lowest bit of the coordinate. length: how many.
    """

    dim: Dim
    letter: str
    first: int
    weight: int
    length: int


def runs(dim: Dim, bits: tuple[Bit, ...]) -> list[Run]:
    """The bits of a coordinate in runs as long as they get, lowest first."""
    found: list[Run] = []
    for at, (letter, bit) in enumerate(bits):
        last = found[-1] if found else None
        if last is not None and last.letter == letter and last.first + last.length == bit:
            found[-1] = Run(dim, letter, last.first, last.weight, last.length + 1)
        else:
            found.append(Run(dim, letter, bit, at, 1))
    return found


@dataclass(frozen=True, slots=True)
class Part:
    """A cut axis, and the bits it is."""

    axis: Axis
    run: Run


@dataclass(frozen=True, slots=True)
class Tile:
    """layout: the instruction. a, b: sites of the values that its operands' elements are. lanes: local axes, the lowest bits of the lane
    number first; elements: upcast axes, likewise; depth: the unrolled axis along which the instruction sums. m, n: what is left of the
    output axes that rows and columns were cut from, if anything.
    """

    layout: Layout
    a: int
    b: int
    lanes: tuple[Part, ...]
    elements: tuple[Part, ...]
    depth: Axis
    m: Axis | None
    n: Axis | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every cut axis."""
        depth = self.layout.size("k").bit_length() - 1
        return (*self.lanes, *self.elements, Part(self.depth, Run("k", "", 0, 0, depth)))

    @property
    def axes(self) -> frozenset[Axis]:
        return frozenset(part.axis for part in self.parts)

    def has_lane(self, axis: Axis) -> bool:
        """Whether an axis is among the lanes, which belong to the instruction."""
        return any(part.axis is axis for part in self.lanes)
