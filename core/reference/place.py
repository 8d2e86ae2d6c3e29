"""Where a leaf's elements lie: the index and validity of every point of a box, both spellings, in exact integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from core.kernel.expression import Comparison, Size, parse_expression
from core.kernel.node import Formula, Place, Views
from core.reference.bounded import Array
from core.reference.boxes import Box

EXACT_IN_64_BITS = 1 << 31  # values in an index beyond this are computed with Python's integers

_APPLY: dict[str, Callable[..., Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "~": np.negative,
}
_HOLDS: dict[str, Callable[[Array, Array], Array]] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def extent(size: Size, variables: Mapping[str, int]) -> int:
    """A size at launch."""
    if isinstance(size, int):
        return size
    return size.run(int, lambda name: variables[name], _INTEGERS)


def size_at(size: int | str, variables: Mapping[str, int]) -> int:
    """A size of a program, an integer or an expression as text, at launch."""
    return extent(parse_expression(size) if isinstance(size, str) else size, variables)


_INTEGERS: dict[str, Callable[..., int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "~": lambda a: -a,
}


def grid(box: Box, shape: Sequence[int]) -> list[Array]:
    """Per axis of a leaf the positions a box covers, shaped to broadcast; where the leaf has extent 1 it is 0."""
    axes = []
    for axis, ((begin, end), full) in enumerate(zip(box, shape, strict=True)):
        positions = np.arange(begin, end, dtype=np.int64) if full != 1 else np.zeros(min(1, end - begin), np.int64)
        axes.append(positions.reshape([-1 if k == axis else 1 for k in range(len(box))]))
    return axes


def located(
    place: Place, axes: list[Array], variables: Mapping[str, int], sources: Mapping[str, Array]
) -> tuple[Array | None, Array | None]:
    """(index, validity) at the points of a grid. No index: a formula without one (a constant). No validity: it holds everywhere."""
    if isinstance(place, Views):
        return _through(place, axes, variables)
    return _by_formula(place, axes, variables, sources)


def _through(place: Views, axes: list[Array], variables: Mapping[str, int]) -> tuple[Array, Array | None]:
    valid: Array | None = None
    flat: Array = np.zeros((), np.int64)
    for number in range(len(place.views) - 1, -1, -1):
        view = place.views[number]
        shape = [extent(size, variables) for size in view.shape]
        for axis, (begin, end) in enumerate(view.mask or ()):
            low, high = max(0, extent(begin, variables)), min(shape[axis], extent(end, variables))
            if low > 0 or high < shape[axis]:
                holds = (axes[axis] >= low) & (axes[axis] < high)
                valid = holds if valid is None else valid & holds
        flat = np.full((), extent(view.offset, variables), np.int64)
        for position, stride in zip(axes, view.strides, strict=True):
            step = extent(stride, variables)
            flat = flat + position * step if step else flat
        if number:
            axes = _unravelled(flat, [extent(size, variables) for size in place.views[number - 1].shape])
    return flat, valid


def _unravelled(flat: Array, shape: list[int]) -> list[Array]:
    """Row-major positions; where the flat one is outside of the shape (masked off) they are anything."""
    axes: list[Array] = []
    inner = 1
    for axis in range(len(shape) - 1, -1, -1):
        position = flat // max(inner, 1)
        axes.append(position % max(shape[axis], 1) if axis else position)
        inner *= shape[axis]
    return axes[::-1]


def _by_formula(
    place: Formula, axes: list[Array], variables: Mapping[str, int], sources: Mapping[str, Array]
) -> tuple[Array | None, Array | None]:
    names: dict[str, Array] = {f"axis{k}": positions for k, positions in enumerate(axes)}
    names |= {name: _exact(values) for name, values in sources.items()}
    names |= {name: np.asarray(value, np.int64) for name, value in variables.items()}
    valid: Array | None = None
    for condition in place.valid:
        holds = _holds(condition, names)
        valid = holds if valid is None else valid & holds
    return (None if place.index is None else value_of(place.index, names)), valid


def _exact(values: Array) -> Array:
    """Values of an index as integers that do not overflow in what follows."""
    if values.dtype.kind == "b" or values.dtype.itemsize < 4:
        return values.astype(np.int64)
    if values.size and (int(values.max()) > EXACT_IN_64_BITS or int(values.min()) < -EXACT_IN_64_BITS):
        return values.astype(object)
    return values.astype(np.int64)


def value_of(size: Size, names: Mapping[str, Array]) -> Array:
    """An expression at all points."""
    if isinstance(size, int):
        return np.asarray(size, np.int64)
    return size.run(lambda literal: np.asarray(literal, np.int64), lambda name: names[name], _APPLY)


def _holds(condition: Comparison, names: Mapping[str, Array]) -> Array:
    result = _HOLDS[condition.relation](value_of(condition.left, names), value_of(condition.right, names))
    return np.asarray(result, np.bool_)
