"""Where the elements of a leaf lie: an access for each way its conditions and divisions come out, moved by whole strides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from core.index import TRUE, conjuncts
from core.index.access import Access
from core.index.bounds import is_multiple
from core.index.given import Given
from core.index.linear import difference, shifted
from core.lower.elements import numbers, size_of, strides_of
from core.schedule.axis import Axis

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """A vector access: `width` consecutive digits of `axis`."""

    axis: Axis
    width: int


class Places:
    """The accesses of a leaf at every point of the expanded axes it varies on.

    axes: those axes, first fastest. bases: the accesses that differ by more than an offset. which: per point the number of its base, or
    None where there is one only. strides: of the axes along which only an offset changes.
    """

    __slots__ = ("_moved", "_offsets", "_which", "axes", "bases", "count")

    def __init__(
        self,
        axes: tuple[Axis, ...],
        bases: tuple[Access, ...],
        count: int,
        which: list[int] | None = None,
        strides: dict[Axis, int] | None = None,
    ) -> None:
        self.axes, self.bases, self.count = axes, bases, count
        self._which = which if which is not None else [0] * count
        self._moved = bool(strides)
        self._offsets = numbers(axes, strides) if strides else [0] * count

    def at(self, point: int) -> Access:
        """The access at a point."""
        base, offset = self.bases[self._which[point]], self._offsets[point]
        return base if not offset or base.never else Access(shifted(base.index, offset), base.valid)

    def accesses(self) -> list[Access]:
        """The access at every point."""
        return self.each(lambda access: access)

    def each(self, made: Callable[[Access], T]) -> list[T]:
        """What `made` gives of the access at every point; without offsets it is asked once for each base."""
        if self._moved:
            return [made(self.at(n)) for n in range(self.count)]
        done = [made(base) for base in self.bases]
        return [done[n] for n in self._which]

    def consecutive(self, chunk: list[int]) -> bool:
        """Whether some points are one vector access: side by side, under one gate, aligned; or no access at all."""
        first = self.bases[self._which[chunk[0]]]
        start = self._offsets[chunk[0]]
        for lane, point in enumerate(chunk):
            base = self.bases[self._which[point]]
            apart = 0 if base is first else difference(base.index, first.index)
            if base.valid is not first.valid or apart is None:
                return False
            if not first.never and apart + self._offsets[point] - start != lane:
                return False
        return first.never or aligned(self.at(chunk[0]), len(chunk))


def aligned(access: Access, width: int) -> bool:
    """Whether the address is a multiple of `width` at every valid point."""
    if is_multiple(access.index, width):
        return True
    return access.valid is not TRUE and is_multiple(Given(conjuncts(access.valid)).narrow(access.index), width)


def chunks(axes: tuple[Axis, ...], group: Group) -> list[list[int]]:
    """Numbers of the points of each chunk of a group, lanes in order."""
    stride = strides_of(axes)[group.axis]
    extent = group.axis.size
    starts = [n for n in range(size_of(axes)) if n // stride % extent % group.width == 0]
    return [[start + lane * stride for lane in range(group.width)] for start in starts]
