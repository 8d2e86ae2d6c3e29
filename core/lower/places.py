"""Where the elements of a leaf lie: one access for each way its conditions and divisions come out, moved by whole strides."""

from __future__ import annotations

from dataclasses import dataclass

from core.index import TRUE, conjuncts
from core.index.access import Access
from core.index.bounds import is_multiple
from core.index.given import Given
from core.index.linear import difference, shifted
from core.lower.elements import numbers, size_of, strides_of
from core.schedule.axis import Axis


@dataclass(frozen=True, slots=True)
class Group:
    """A vector access: `width` consecutive digits of `axis`."""

    axis: Axis
    width: int


class Places:
    """The accesses of a leaf at every point of the expanded axes it varies on.

    axes: those axes, first fastest. bases: one access per combination of `ways`, the axes along which more changes than an offset.
    strides: of the others that move the index.
    """

    __slots__ = ("_offsets", "_ways", "axes", "bases", "count")

    def __init__(
        self,
        axes: tuple[Axis, ...],
        bases: tuple[Access, ...],
        count: int,
        ways: tuple[Axis, ...] = (),
        strides: dict[Axis, int] | None = None,
    ) -> None:
        self.axes, self.bases, self.count = axes, bases, count
        self._ways = numbers(axes, strides_of(ways)) if len(bases) > 1 else [0] * count
        self._offsets = numbers(axes, strides) if strides else [0] * count

    def at(self, point: int) -> Access:
        """The access at a point."""
        base, offset = self.bases[self._ways[point]], self._offsets[point]
        return base if not offset or base.never else Access(shifted(base.index, offset), base.valid)

    def accesses(self) -> list[Access]:
        """The access at every point."""
        return [self.at(n) for n in range(self.count)]

    def consecutive(self, chunk: list[int]) -> bool:
        """Whether some points are one vector access: side by side, under one gate, aligned; or no access at all."""
        first = self.bases[self._ways[chunk[0]]]
        start = self._offsets[chunk[0]]
        for lane, point in enumerate(chunk):
            base = self.bases[self._ways[point]]
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
