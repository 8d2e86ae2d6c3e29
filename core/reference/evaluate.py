"""What a kernel means, node by node in numpy, in boxes small enough for the memory at hand.

Straight from "What a kernel means" on the wire page, and on purpose nothing else: no schedule, no sites, no simplification. A node's value
at a point depends on the axes it is full on and on nothing else, so a box of the output is evaluated by evaluating each node over that
box; a reduce evaluates its operand over the same box widened to the operand's own extent on the reduced axes, piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.dtypes import FLOAT32, INT64
from core.errors import LimitExceeded
from core.kernel.node import Const, Elementwise, Kernel, Load, Reduce, Store
from core.reference import arithmetic, integers
from core.reference.bounded import (
    Array,
    Bounded,
    forgotten,
    from_stored,
    held_type,
    rounded,
    settled,
    stored_type,
    to_stored,
    ulp,
    wide,
)
from core.reference.convert import bitcast, cast
from core.reference.place import Box, extent, grid, located, value_of
from core.reference.reduction import Accumulator, accumulator

PIECE = 1 << 17  # points evaluated at a time: a few arrays of them fit a cache
OUTPUTS = 1 << 14  # outputs evaluated at a time where reduces widen each of them
KEPT = 1 << 22  # reduced values kept for a second use within one box
NESTED = 100  # reduces within reduces: each takes a few frames of Python's stack
BUDGET = 1 << 31  # points of nodes, the default


class OutsideBuffer(ValueError):
    """The inputs make the kernel read or write outside of a buffer: it has no meaning for them."""


@dataclass(frozen=True, slots=True)
class Result:
    """One output buffer after the kernel: its elements as stored (bool as bytes, bfloat16 as 16 bits), and what is allowed beside them.

    tolerance: per element the largest distance from a right value, float64: 0 is bit for bit, infinite anything. A positive one at a NaN
    allows every NaN, at a zero both zeros.
    """

    values: Array
    tolerance: Array


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to get some nodes at a point: the nodes in order, those whose values are of no use after each, the reduces among them."""

    order: tuple[int, ...]
    dropped: tuple[tuple[int, ...], ...]
    reduces: tuple[int, ...]


def evaluate(
    kernel: Kernel, buffers: Mapping[int, Array], variables: Mapping[str, int], budget: int = BUDGET
) -> dict[int, Result]:
    """Every output buffer, by number. `buffers` (all of the kernel's, outputs included) hold elements as stored and are left alone.

    Raises LimitExceeded when more than `budget` points of nodes would have to be evaluated, OutsideBuffer when the inputs lead astray.
    """
    run = _Run(kernel, buffers, variables)
    needed = run.work()
    if needed > budget:
        raise LimitExceeded("/ast", limit="reference points", needed=needed, allowed=budget)
    with np.errstate(all="ignore"):
        return run.outputs()


def work(kernel: Kernel, variables: Mapping[str, int]) -> int:
    """How many points of nodes `evaluate` would have to go through."""
    return _Run(kernel, {}, variables).work()


class _Run:
    """One evaluation. Shapes have an axis of extent 1 in front, so that no array here is without axes."""

    def __init__(self, kernel: Kernel, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> None:
        self.nodes = kernel.nodes
        self.stores = tuple(node for node in (kernel.nodes[row] for row in kernel.outputs) if isinstance(node, Store))
        self.variables = variables
        self.shapes = [(1, *(extent(size, variables) for size in shape)) for shape in kernel.shapes]
        self.shape = self.shapes[kernel.outputs[0]]
        self.buffers = buffers
        self.plans: dict[tuple[int, ...], _Plan] = {}
        self.reduced: dict[tuple[int, Box], Bounded] = {}
        self.kept = 0
        self.targets = tuple(dict.fromkeys(row for store in self.stores for row in store.src))

    # -- how much there is to do

    def work(self) -> int:
        seen: dict[tuple[tuple[int, ...], Box], int] = {}
        return self._work(self.targets, _whole(self.shape), seen, 0)

    def _work(self, targets: tuple[int, ...], box: Box, seen: dict[tuple[tuple[int, ...], Box], int], depth: int) -> int:
        if depth > NESTED:
            raise LimitExceeded("/ast", limit="reduces within reduces", needed=f"more than {NESTED}", allowed=NESTED)
        if (targets, box) in seen:
            return 0
        plan = self.plan(targets)
        seen[targets, box] = 0
        return sum(_volume(self.cut(box, row)) for row in plan.order) + sum(
            self._work(self.nodes[row].src, self.widened(row, box), seen, depth + 1) for row in plan.reduces
        )

    # -- the outputs

    def outputs(self) -> dict[int, Result]:
        values = {store.buffer: np.array(self.buffers[store.buffer], stored_type(store.dtype)) for store in self.stores}
        tolerance = {number: np.zeros(held.shape) for number, held in values.items()}
        per_box = OUTPUTS if self.plan(self.targets).reduces else PIECE
        for box in pieces(_whole(self.shape), range(len(self.shape)), per_box):
            here = dict(zip(self.targets, self.at(self.targets, box), strict=True))
            for store in self.stores:
                self._store(store, here, box, values[store.buffer], tolerance[store.buffer])
        return {number: Result(values[number], tolerance[number]) for number in values}

    def _store(self, store: Store, here: Mapping[int, Bounded], box: Box, values: Array, tolerance: Array) -> None:
        index, valid, unsure = self._place(store, {f"src{k}": here[row] for k, row in enumerate(store.src) if k}, box, self.shape)
        assert index is not None
        covered = tuple(end - begin for begin, end in box)
        value = here[store.src[0]]
        if store.image is not None and store.dtype is not FLOAT32:
            value = _narrowed(value, store)
        stored = to_stored(np.broadcast_to(value.values, covered), store.dtype)
        allowed = np.broadcast_to(_allowed(value), covered)
        if unsure is not None:
            allowed = np.where(unsure, np.inf, allowed)
            valid = unsure if valid is None else valid | unsure
        index = np.broadcast_to(index, covered)
        if valid is not None:
            valid = np.broadcast_to(valid, covered)
            index, stored, allowed = index[valid], stored[valid], allowed[valid]
        _inside(index, values, store)
        index = index.astype(np.int64)
        values[index] = stored
        tolerance[index] = allowed

    # -- nodes over a box

    def cut(self, box: Box, row: int) -> Box:
        """The part of a box a node varies over: where it has extent 1, position 0 (nothing where the box is empty)."""
        return tuple((0, 1) if full == 1 else ends for ends, full in zip(box, self.shapes[row], strict=True))

    def widened(self, row: int, box: Box) -> Box:
        """The box of a reduce's operand."""
        reduce = self.nodes[row]
        assert isinstance(reduce, Reduce)
        operand = self.shapes[reduce.src[0]]
        ends = list(self.cut(box, row))
        for axis in reduce.axes:
            ends[axis + 1] = (0, operand[axis + 1])
        return tuple(ends)

    def plan(self, targets: tuple[int, ...]) -> _Plan:
        if targets not in self.plans:
            self.plans[targets] = self._planned(targets)
        return self.plans[targets]

    def _planned(self, targets: tuple[int, ...]) -> _Plan:
        needed, waiting = set(targets), list(targets)
        while waiting:
            node = self.nodes[waiting.pop()]
            if not isinstance(node, Reduce):
                waiting += (row for row in node.src if row not in needed)
                needed.update(node.src)
        order = tuple(sorted(needed))
        last = {row: row for row in order}
        for row in order:
            node = self.nodes[row]
            if not isinstance(node, Reduce):
                last.update(dict.fromkeys(node.src, row))
        dropped: dict[int, list[int]] = {row: [] for row in order}
        for row, user in last.items():
            if row not in targets:
                dropped[user].append(row)
        reduces = tuple(row for row in order if isinstance(self.nodes[row], Reduce))
        return _Plan(order, tuple(tuple(dropped[row]) for row in order), reduces)

    def at(self, targets: tuple[int, ...], box: Box) -> list[Bounded]:
        """The targets' values over a box, each with extent 1 where its node has it; in between, arrays are as small as they come."""
        plan = self.plan(targets)
        values: dict[int, Bounded] = {}
        reduced = self._reduce(plan.reduces, box)
        for row, dropped in zip(plan.order, plan.dropped, strict=True):
            node = self.nodes[row]
            if isinstance(node, Reduce):
                values[row] = reduced[row]
            elif isinstance(node, Elementwise):
                values[row] = elementwise(node, [values[source] for source in node.src])
            elif isinstance(node, Load):
                values[row] = self._load(row, node, {f"src{k}": values[source] for k, source in enumerate(node.src)}, box)
            elif isinstance(node, Const):
                values[row] = self._const(row, node, box)
            for gone in dropped:
                del values[gone]
        return [_spread(values[row], self.cut(box, row)) for row in targets]

    def _place(
        self, leaf: Load | Const | Store, sources: Mapping[str, Bounded], box: Box, shape: Sequence[int]
    ) -> tuple[Array | None, Array | None, Array | None]:
        """(index, validity, where both are unknown) of a leaf over a box."""
        axes = grid(box, shape)[1:]
        index, valid = located(leaf.place, axes, self.variables, {name: value.values for name, value in sources.items()})
        unsure: Array | None = None
        for value in sources.values():
            if value.lost is not None:
                unsure = value.lost if unsure is None else unsure | value.lost
        rank = len(box)
        return (
            None if index is None else _with_axes(index, rank),
            None if valid is None else _with_axes(valid, rank),
            unsure,
        )

    def _load(self, row: int, load: Load, sources: Mapping[str, Bounded], box: Box) -> Bounded:
        index, valid, unsure = self._place(load, sources, self.cut(box, row), self.shapes[row])
        assert index is not None
        elements = self.buffers[load.buffer]
        guarded = valid if unsure is None else (~unsure if valid is None else valid & ~unsure)
        if guarded is not None:
            index = np.where(guarded, index, 0)
            if not len(elements):
                elements = np.zeros(1, elements.dtype)
        _inside(index, elements, load)
        values = from_stored(elements[index.astype(np.int64)], load.dtype)
        if load.image is not None:
            values = values.astype(np.float32)
        if guarded is not None:
            values = np.where(guarded, values, values.dtype.type(0))
        value = Bounded(FLOAT32 if load.image is not None else load.dtype, values)
        return value if unsure is None else forgotten(value, unsure)

    def _const(self, row: int, const: Const, box: Box) -> Bounded:
        here = self.cut(box, row)
        axes = grid(here, self.shapes[row])[1:]
        _, valid = located(const.place, axes, self.variables, {})
        vague = None
        if const.expr is not None:
            names = {f"axis{k}": positions for k, positions in enumerate(axes)}
            names |= {name: np.asarray(value, np.int64) for name, value in self.variables.items()}
            ramp = cast(Bounded(INT64, _with_axes(value_of(const.expr, names), len(here))), const.dtype)
            values = ramp.values
        else:
            scalar = np.asarray(const.value).astype(held_type(const.dtype)) if not const.dtype.is_float else _constant(const)
            values = _with_axes(scalar, len(here))
            vague = const.dtype.is_float and const.value != const.value
        if valid is not None:
            values = np.where(valid, values, values.dtype.type(0))
        return Bounded(const.dtype, values, open_nan=bool(vague))

    # -- reduces

    def _reduce(self, rows: Sequence[int], box: Box) -> dict[int, Bounded]:
        """These reduces' values over the box; those over the same widened box are taken in one go."""
        if self.kept > KEPT:
            self.reduced.clear()
            self.kept = 0
        found = {row: self.reduced[key] for row in rows if (key := (row, self.cut(box, row))) in self.reduced}
        missing = [row for row in rows if row not in found]
        while missing:
            ready = [row for row in missing if not set(self.plan(self.nodes[row].src).reduces) & set(missing)]
            wide_box = self.widened(ready[0], box)
            group = [row for row in ready if self.widened(row, box) == wide_box]
            for row, value in zip(group, self._take(group, wide_box, box), strict=True):
                found[row] = self.reduced[row, self.cut(box, row)] = value
                self.kept += value.values.size
            missing = [row for row in missing if row not in found]
        return found

    def _take(self, group: list[int], wide_box: Box, box: Box) -> list[Bounded]:
        totals: list[Accumulator] = []
        axes: set[int] = set()
        for row in group:
            reduce = self.nodes[row]
            assert isinstance(reduce, Reduce)
            shape = tuple(end - begin for begin, end in self.cut(box, row))
            own = tuple(axis + 1 for axis in reduce.axes)
            totals.append(accumulator(reduce.op, reduce.dtype, shape, own))
            axes.update(own)
        operands = tuple(self.nodes[row].src[0] for row in group)
        for piece in pieces(wide_box, sorted(axes), PIECE):
            for total, value in zip(totals, self.at(operands, piece), strict=True):
                total.take(value)
        return [total.result() for total in totals]


def elementwise(node: Elementwise, sources: list[Bounded]) -> Bounded:
    """One node of the elementwise ops, by what its operands are."""
    first = sources[0]
    match node.op:
        case "CAST":
            return cast(first, node.dtype)
        case "BITCAST":
            return bitcast(first, node.dtype)
        case "WHERE":
            return arithmetic.chosen(first, sources[1], sources[2])
        case "NEG":
            return arithmetic.neg(first) if first.dtype.is_float else integers.negated(first)
        case "MULACC":
            if first.dtype.is_float:
                return arithmetic.mulacc(first, sources[1], sources[2])
            exact = integers.logical if first.dtype.name == "bool" else integers.binary
            return exact("ADD", exact("MUL", first, sources[1]), sources[2])
        case "EXP2" | "LOG2" | "SIN" | "SQRT" | "RECIP":
            return arithmetic.function(node.op, first)
    if first.dtype.is_float:
        return {
            "ADD": arithmetic.add,
            "MUL": arithmetic.mul,
            "MAX": arithmetic.maximum,
            "CMPLT": arithmetic.less,
            "CMPNE": arithmetic.differs,
        }[node.op](first, sources[1])
    if first.dtype.name == "bool":
        return integers.logical(node.op, first, sources[1])
    return integers.binary(node.op, first, sources[1])


def pieces(box: Box, axes: Sequence[int], points: int) -> Iterator[Box]:
    """A box cut along some axes, the first ones finest, into boxes of at most `points` where that can be; nothing of an empty one."""
    if _volume(box) == 0:
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


def _whole(shape: Sequence[int]) -> Box:
    return tuple((0, full) for full in shape)


def _volume(box: Box) -> int:
    return math.prod(end - begin for begin, end in box)


def _spread(value: Bounded, box: Box) -> Bounded:
    """Every array of it at its full size."""
    shape = tuple(end - begin for begin, end in box)
    return replace(
        value,
        values=np.broadcast_to(value.values, shape),
        error=None if value.error is None else np.broadcast_to(value.error, shape),
        slack=None if value.slack is None else np.broadcast_to(value.slack, shape),
    )


def _with_axes(values: Array, rank: int) -> Array:
    """An array of at least this rank: numpy's scalars behave differently."""
    return values.reshape((1,) * (rank - values.ndim) + values.shape)


def _constant(const: Const) -> Array:
    assert const.value is not None
    return rounded(np.asarray(float(const.value)), const.dtype)


def _allowed(value: Bounded) -> Array:
    """The tolerance of stored values: a hair where only the sign of a zero or the bits of a NaN are open."""
    error: Array = np.zeros(value.values.shape) if value.error is None else np.broadcast_to(value.error, value.values.shape)
    if not value.dtype.is_float or not (value.open_zero or value.open_nan):
        return error
    vague = ((value.values == 0) & value.open_zero) | (np.isnan(value.values) & value.open_nan)
    return np.where(vague & (error == 0), np.finfo(np.float64).smallest_subnormal, error)


def _narrowed(value: Bounded, store: Store) -> Bounded:
    """A float32 as an image of halves keeps it; what is between two halves may become either."""
    values = wide(value.values)
    half = settled(values, value.error, store.dtype)
    moved = np.where(np.isnan(values) | (wide(half.values) == values), 0.0, ulp(np.abs(values), store.dtype))
    error: Array = np.zeros(()) if half.error is None else half.error
    return replace(half, error=error + moved, open_zero=value.open_zero, open_nan=value.open_nan)


def _inside(index: Array, elements: Array, leaf: Load | Store) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= len(elements)):
        worst = int(index.min()) if int(index.min()) < 0 else int(index.max())
        raise OutsideBuffer(f"{leaf.op} of buffer {leaf.buffer} at {worst}; it has {len(elements)} elements")


__all__ = ["BUDGET", "OutsideBuffer", "Result", "elementwise", "evaluate", "pieces", "work"]
