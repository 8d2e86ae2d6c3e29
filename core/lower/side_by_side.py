"""Which elements of a leaf make vectors where these may lie at any element: along an axis whole, or in runs of what is left."""

from __future__ import annotations

from core.index import split
from core.index.access import Access
from core.ir.value import Value
from core.lower.elements import size_of
from core.schedule.axis import Axis

WIDTHS = (16, 8, 4, 2, 1)  # lanes
LEAST = 4  # lanes: fewer are a mere pair
Spot = tuple[Value, tuple[int, ...], tuple[Value, ...]]  # a gate, and the terms of an index with their coefficients
At = tuple[Spot, int]  # the constant of the index beside it


def spots_of(accesses: list[Access]) -> list[At | None]:
    """Where accesses lie: elements of one spot are their offsets apart. None where nothing is accessed."""
    result: list[At | None] = []
    for access in accesses:
        part, factors, terms = split(access.index)
        result.append(None if access.never else ((access.valid, tuple(factors), tuple(terms)), part))
    return result


def side_by_side(axes: tuple[Axis, ...], spots: list[At | None]) -> list[list[int]]:
    """Element numbers of each access, lanes in order: the widest vectors that an axis holds, along the axis with the fewest of them."""
    best = [[n] for n in range(len(spots))]
    stride = 1
    for axis in axes:
        cut: list[list[int]] = []
        for first in (n for n in range(size_of(axes)) if n // stride % axis.size == 0):
            for start, width in pieces(axis.size):
                chunk = [first + (start + lane) * stride for lane in range(width)]
                cut.extend([chunk] if _is_vector([spots[n] for n in chunk]) else [[n] for n in chunk])
        if len(cut) < len(best):
            best = cut
        stride *= axis.size
    return best


def in_runs(chunks: list[list[int]], spots: list[At | None]) -> bool:
    """Whether accesses are better made in runs of all elements of a spot than as these vectors: few runs, instead of many that are mere
    pairs, or share elements as windows do."""
    vectors = {spots[chunk[0]]: len(chunk) for chunk in chunks if len(chunk) > 1}
    if not vectors:
        return False
    offsets: dict[Spot, set[int]] = {}
    for found in spots:
        if found is not None:
            offsets.setdefault(found[0], set()).add(found[1])
    if max(vectors.values()) >= LEAST and sum(vectors.values()) <= sum(map(len, offsets.values())):
        return False
    return 2 * sum(len(runs(sorted(at))) for at in offsets.values()) < len(vectors)


def _is_vector(spots: list[At | None]) -> bool:
    first = spots[0]
    return first is not None and all(s is not None and s[0] == first[0] and s[1] == first[1] + lane for lane, s in enumerate(spots))


def pieces(extent: int) -> list[tuple[int, int]]:
    """(start, width) of vectors that make up an extent, the widest first."""
    result, at = [], 0
    for width in WIDTHS:
        while extent - at >= width:
            result.append((at, width))
            at += width
    return result


def runs(offsets: list[int]) -> list[tuple[int, int]]:
    """(first, width) of vectors that make up these ascending offsets."""
    result: list[tuple[int, int]] = []
    begin = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
            result += [(offsets[begin] + start, width) for start, width in pieces(at - begin)]
            begin = at
    return result
