"""How many elements each buffer of a kernel must have, and which values an index may be looked up by.

Exact where no value of another node is in the index: the largest valid index, found in closed form or by going through the points. With
values in it the index is bounded by intervals of what those values may be, given the range of what is loaded (`core.reference.inputs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.dtypes import BOOL, DType
from core.kernel.expression import Expression, Size
from core.kernel.node import Const, Elementwise, Formula, Kernel, Load, Reduce, Store, Views, value_dtype
from core.reference.boxes import PIECE, Box, pieces
from core.reference.place import extent, grid, located

ENUMERATED = 1 << 26  # points of one leaf gone through for its largest index; beyond that an interval bounds it
LOOKED_UP = 1 << 24  # elements of a table whose index nothing bounds better


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers from low to high, both included; ends may be infinite."""

    low: float | int
    high: float | int

    def __or__(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))


ZERO = Interval(0, 0)
TRUTH = Interval(0, 1)
ANYTHING = Interval(-math.inf, math.inf)


def _times(a: float | int, b: float | int) -> float | int:
    return 0 if a == 0 or b == 0 else a * b


def _product(a: Interval, b: Interval) -> Interval:
    ends = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(min(ends), max(ends))


def _floored(a: float | int, b: float | int) -> float | int:
    return a if isinstance(a, float) and math.isinf(a) else a // b


def _modulo(a: Interval, b: Interval) -> Interval:
    inside = b.low == b.high and a.low != -math.inf and a.high != math.inf and a.low // b.low == a.high // b.low
    return Interval(a.low % b.low, a.high % b.low) if inside else Interval(0, b.high - 1)


_APPLY: dict[str, Callable[..., Interval]] = {
    "+": lambda a, b: Interval(a.low + b.low, a.high + b.high),
    "-": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "*": _product,
    "//": lambda a, b: Interval(_floored(a.low, b.low), _floored(a.high, b.low)),
    "%": _modulo,
    "~": lambda a: Interval(-a.high, -a.low),
}


def within(size: Size, names: Mapping[str, Interval]) -> Interval:
    """The interval of an index expression."""
    if not isinstance(size, Expression):
        return Interval(size, size)
    return size.run(lambda literal: Interval(literal, literal), lambda name: names[name], _APPLY)


def guarded(place: Formula, names: dict[str, Interval]) -> dict[str, Interval]:
    """The same intervals, those of values as narrow as the place's conditions of the form `srcK < …` make them."""
    names = dict(names)
    for condition in place.valid:
        for mine, theirs, relation in (
            (condition.left, condition.right, condition.relation),
            (condition.right, condition.left, condition.relation.translate(str.maketrans("<>", "><"))),
        ):
            if not (isinstance(mine, Expression) and mine.text.startswith("src") and mine.text in names):
                continue
            bound, strict = within(theirs, names), "=" not in relation
            limit = Interval(-math.inf, bound.high - strict) if relation[0] == "<" else Interval(bound.low + strict, math.inf)
            names[mine.text] &= limit
    return names


def buffer_sizes(kernel: Kernel, variables: Mapping[str, int], loaded: Mapping[int, Interval] | None = None) -> dict[int, int]:
    """Elements each buffer must have for these variables. loaded: of buffers an index depends on, the range of what will stand in them."""
    ranges: list[Interval] | None = None
    sizes: dict[int, int] = {}
    for row, node in enumerate(kernel.nodes):
        if not isinstance(node, (Load, Store)):
            continue
        if node.image is not None:
            needed = math.prod(node.image)
        elif isinstance(node, Load) and node.src:
            ranges = ranges or value_ranges(kernel, variables, loaded or {})
            needed = _looked_up(kernel, row, variables, ranges)
        else:
            needed = _largest(kernel, row, variables, ranges) + 1
        sizes[node.buffer] = max(needed, sizes.get(node.buffer, 0))
    return dict(sorted(sizes.items()))


def bounded_buffers(kernel: Kernel, variables: Mapping[str, int]) -> frozenset[int]:
    """Buffers whose size may be more than what is touched: some leaf of them has too many points to go through."""
    leaves = [(row, node) for row, node in enumerate(kernel.nodes) if isinstance(node, (Load, Store)) and node.image is None]
    return frozenset(node.buffer for row, node in leaves if _is_beyond(node.place, _shape(kernel, row, variables)))


def _is_beyond(place: Views | Formula, shape: tuple[int, ...]) -> bool:
    """Whether the index is bounded by intervals: the points are too many."""
    return isinstance(place, Formula) and place.index is not None and math.prod(end for _, end in _box(place, shape)) > ENUMERATED


def _box(place: Views | Formula, shape: tuple[int, ...]) -> Box:
    """The points that matter: of an axis that nothing depends on one."""
    used = _axes_used(place)
    return tuple((0, full if axis in used else min(full, 1)) for axis, full in enumerate(shape))


def _shape(kernel: Kernel, row: int, variables: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(extent(size, variables) for size in kernel.shapes[row])


def _largest(kernel: Kernel, row: int, variables: Mapping[str, int], ranges: Sequence[Interval] | None) -> int:
    """The largest valid index, -1 where there is none. Conditions on values (of a store) count as holding."""
    node = kernel.nodes[row]
    assert isinstance(node, (Load, Store))
    place = node.place
    if isinstance(place, Formula):
        plain = tuple(c for c in place.valid if not any(name.startswith("src") for name in c.names))
        place = Formula(place.shape, place.index, plain)
    shape = _shape(kernel, row, variables)
    if isinstance(place, Views) and len(place.views) == 1:
        return _of_view(place, variables)
    box = _box(place, shape)
    if _is_beyond(place, shape):
        assert isinstance(place, Formula)
        assert place.index is not None
        names = {f"axis{axis}": Interval(0, full - 1) for axis, full in enumerate(shape)}
        names |= {name: Interval(value, value) for name, value in variables.items()}
        return int(within(place.index, names).high)
    best = -1
    for piece in pieces(box, range(len(box)), PIECE):
        index, valid = located(place, grid(piece, shape), variables, {})
        assert index is not None
        if valid is not None:
            index = np.where(valid, index, -1)
        best = max(best, int(index.max()))
    return best


def _of_view(place: Views, variables: Mapping[str, int]) -> int:
    view = place.views[0]
    total = extent(view.offset, variables)
    for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        full, step = extent(size, variables), extent(stride, variables)
        begin, end = 0, full
        if view.mask is not None:
            begin, end = max(0, extent(view.mask[axis][0], variables)), min(full, extent(view.mask[axis][1], variables))
        if begin >= end:
            return -1
        total += max(step * begin, step * (end - 1))
    return total


def _axes_used(place: Views | Formula) -> set[int]:
    if isinstance(place, Views):
        last = place.views[-1]
        masked = {axis for axis, ends in enumerate(last.mask or ()) if ends != (0, last.shape[axis])}
        return masked | {axis for axis, stride in enumerate(last.strides) if stride != 0}
    names = {name for condition in place.valid for name in condition.names}
    if isinstance(place.index, Expression):
        names.update(place.index.names)
    return {int(name[4:]) for name in names if name.startswith("axis") and name[4:].isdigit()}


def _looked_up(kernel: Kernel, row: int, variables: Mapping[str, int], ranges: Sequence[Interval]) -> int:
    load = kernel.nodes[row]
    assert isinstance(load, Load)
    assert isinstance(load.place, Formula)
    assert load.place.index is not None
    names = guarded(load.place, place_names(kernel, row, variables, ranges))
    if any(interval.low > interval.high for interval in names.values()):
        return 0
    return int(max(0, min(within(load.place.index, names).high + 1, LOOKED_UP)))


def place_names(kernel: Kernel, row: int, variables: Mapping[str, int], ranges: Sequence[Interval]) -> dict[str, Interval]:
    """The interval of each name in a leaf's expressions."""
    names = {f"axis{axis}": Interval(0, full - 1) for axis, full in enumerate(_shape(kernel, row, variables))}
    names |= {name: Interval(value, value) for name, value in variables.items()}
    return names | {f"src{k}": ranges[source] for k, source in enumerate(kernel.nodes[row].src)}


def value_ranges(kernel: Kernel, variables: Mapping[str, int], loaded: Mapping[int, Interval]) -> list[Interval]:
    """Per node what its values may be, roughly; of what is not followed everything its dtype holds."""
    ranges: list[Interval] = []
    for row, node in enumerate(kernel.nodes):
        dtype = value_dtype(node)
        everything = TRUTH if dtype is BOOL else Interval(dtype.least, dtype.greatest)
        match node:
            case Load():
                found = loaded.get(node.buffer, everything) | ZERO
            case Const(value=None):
                assert node.expr is not None
                found = within(node.expr, place_names(kernel, row, variables, ranges)) | ZERO
            case Const():
                assert node.value is not None
                found = Interval(node.value, node.value) | ZERO
            case Elementwise():
                found = _of_op(node, [ranges[source] for source in node.src], [value_dtype(kernel.nodes[source]) for source in node.src])
            case Reduce(op="REDUCE_SUM") if dtype is not BOOL:
                operand = _shape(kernel, node.src[0], variables)
                terms = math.prod(operand[axis] for axis in node.axes)
                found = _product(ranges[node.src[0]], Interval(terms, terms)) | ZERO
            case Reduce(op="REDUCE_MAX"):
                found = ranges[node.src[0]]
            case _:
                found = everything
        fits = found.low <= found.high and found.low >= everything.low and found.high <= everything.high
        ranges.append(found if fits or dtype.is_float else everything)
    return ranges


def _of_op(node: Elementwise, operands: list[Interval], dtypes: list[DType]) -> Interval:
    if node.dtype is BOOL:
        return TRUTH
    a, b = operands[0], operands[1 if len(operands) > 1 else 0]
    match node.op:
        case "ADD":
            return _APPLY["+"](a, b)
        case "MUL":
            return _product(a, b)
        case "MULACC":
            return _APPLY["+"](_product(a, b), operands[2])
        case "NEG":
            return _APPLY["~"](a)
        case "MAX":
            return Interval(max(a.low, b.low), max(a.high, b.high))
        case "WHERE":
            return operands[1] | operands[2]
        case "CAST":
            return Interval(_whole(a.low), _whole(a.high)) if dtypes[0].is_float and not node.dtype.is_float else a
        case "IDIV" if b.low > 0:
            if b.low == b.high:
                return Interval(_toward_zero(a.low, b.low), _toward_zero(a.high, b.low))
            return Interval(min(a.low, 0), max(a.high, 0))
        case "MOD" if b.low > 0:
            return Interval(min(0, 1 - b.high) if a.low < 0 else 0, b.high - 1)
        case "AND" if a.low >= 0 and b.low >= 0:
            return Interval(0, min(a.high, b.high))
        case "SHR" if a.low >= 0:
            return Interval(0, a.high)
        case "SIN":
            return Interval(-1, 1)
        case _:
            return ANYTHING


def _whole(value: float | int) -> float | int:
    return value if isinstance(value, float) and not math.isfinite(value) else int(value)


def _toward_zero(a: float | int, b: float | int) -> float | int:
    if isinstance(a, float) and math.isinf(a):
        return a
    return a // b if a >= 0 else -(-a // b)
