"""Boxes of points, and cutting them into pieces small enough for the memory at hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Box = tuple[tuple[int, int], ...]  # per axis the half-open range
PIECE = 1 << 17  # points evaluated at a time: a few arrays of them fit a cache


def whole(shape: Sequence[int]) -> Box:
    return tuple((0, full) for full in shape)


def volume(box: Box) -> int:
    return math.prod(end - begin for begin, end in box)


def extents(box: Box) -> tuple[int, ...]:
    return tuple(end - begin for begin, end in box)


def pieces(box: Box, axes: Sequence[int], points: int) -> Iterator[Box]:
    """A box cut along some axes, the first ones finest, into boxes of at most `points` where that can be; nothing of an empty one."""
    if volume(box) == 0:
        return
    steps, left = {}, max(1, points // math.prod(end - begin for axis, (begin, end) in enumerate(box) if axis not in set(axes)))
    for axis in reversed(axes):
        begin, end = box[axis]
        steps[axis] = max(1, min(end - begin, left))
        left //= steps[axis]
    todo: list[tuple[int, Box]] = [(0, box)]
    order = list(axes)
    while todo:
        depth, piece = todo.pop()
        if depth == len(order):
            yield piece
            continue
        axis = order[depth]
        begin, end = piece[axis]
        step = steps[axis]
        for at in reversed(range(begin, end, step)):
            todo.append((depth + 1, (*piece[:axis], (at, min(end, at + step)), *piece[axis + 1 :])))
