"""What a kernel means, node by node in numpy, in boxes small enough for the memory at hand.

Straight from "What a kernel means" on the wire page, and on purpose nothing else: no schedule, no sites, no simplification. A node's value
at a point depends on the axes it is full on and on nothing else, so a box of the output is evaluated by evaluating each node over that
box; a reduce evaluates its operand over the same box widened to the operand's own extent on the reduced axes, piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.errors import LimitExceeded
from core.kernel.node import Const, Elementwise, Kernel, Load, Reduce, Store, value_dtype
from core.reference.bounded import Array, Bounded, stored_type
from core.reference.boxes import PIECE, Box, extents, pieces, volume, whole
from core.reference.leaves import Leaves
from core.reference.ops import elementwise
from core.reference.place import extent
from core.reference.reduction import accumulator

OUTPUTS = 1 << 14  # outputs evaluated at a time where reduces widen each of them
KEPT = 1 << 22  # reduced values kept for a second use within one box
NESTED = 100  # reduces within reduces: each takes a few frames of Python's stack
BUDGET = 1 << 31  # points of nodes, the default


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


def evaluate(kernel: Kernel, buffers: Mapping[int, Array], variables: Mapping[str, int], budget: int = BUDGET) -> dict[int, Result]:
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
        self.shapes = [(1, *(extent(size, variables) for size in shape)) for shape in kernel.shapes]
        self.shape = self.shapes[kernel.outputs[0]]
        self.leaves = Leaves(buffers, variables)
        self.plans: dict[tuple[int, ...], _Plan] = {}
        self.reduced: dict[tuple[int, Box], Bounded] = {}
        self.kept = 0
        self.targets = tuple(dict.fromkeys(row for store in self.stores for row in store.src))

    # -- how much there is to do

    def work(self) -> int:
        seen: dict[tuple[tuple[int, ...], Box], int] = {}
        return self._work(self.targets, whole(self.shape), seen, 0)

    def _work(self, targets: tuple[int, ...], box: Box, seen: dict[tuple[tuple[int, ...], Box], int], depth: int) -> int:
        if depth > NESTED:
            raise LimitExceeded("/ast", limit="reduces within reduces", needed=f"more than {NESTED}", allowed=NESTED)
        if (targets, box) in seen:
            return 0
        plan = self.plan(targets)
        seen[targets, box] = 0
        return sum(volume(self.cut(box, row)) for row in plan.order) + sum(
            self._work(self.nodes[row].src, self.widened(row, box), seen, depth + 1) for row in plan.reduces
        )

    # -- the outputs

    def outputs(self) -> dict[int, Result]:
        values = {store.buffer: np.array(self.leaves.buffers[store.buffer], stored_type(store.dtype)) for store in self.stores}
        tolerance = {number: np.zeros(held.shape) for number, held in values.items()}
        per_box = OUTPUTS if self.plan(self.targets).reduces else PIECE
        for box in pieces(whole(self.shape), range(len(self.shape)), per_box):
            here = dict(zip(self.targets, self.at(self.targets, box), strict=True))
            for store in self.stores:
                self.leaves.store(store, here, self.shape, box, values[store.buffer], tolerance[store.buffer])
        return {number: Result(values[number], tolerance[number]) for number in values}

    # -- nodes over a box

    def cut(self, box: Box, row: int) -> Box:
        """The part of a box a node varies over: where it has extent 1, position 0 (nothing where the box is empty)."""
        return tuple((0, 1) if full == 1 else ends for ends, full in zip(box, self.shapes[row], strict=True))

    def widened(self, row: int, box: Box) -> Box:
        """The box of a reduce's operand."""
        operand = self.shapes[self.nodes[row].src[0]]
        ends = list(self.cut(box, row))
        for axis in self.axes(row):
            ends[axis + 1] = (0, operand[axis + 1])
        return tuple(ends)

    def axes(self, row: int) -> tuple[int, ...]:
        node = self.nodes[row]
        return node.axes if isinstance(node, Reduce) else ()

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
                values[row] = self.leaves.load(
                    node, self.shapes[row], {f"src{k}": values[source] for k, source in enumerate(node.src)}, self.cut(box, row)
                )
            elif isinstance(node, Const):
                values[row] = self.leaves.const(node, self.shapes[row], self.cut(box, row))
            for gone in dropped:
                del values[gone]
        return [_spread(values[row], self.cut(box, row)) for row in targets]

    # -- reduces

    def _reduce(self, rows: Sequence[int], box: Box) -> dict[int, Bounded]:
        """These reduces' values over the box; those over the same axes and points are taken in one go."""
        if self.kept > KEPT:
            self.reduced.clear()
            self.kept = 0
        found = {row: self.reduced[key] for row in rows if (key := (row, self.cut(box, row))) in self.reduced}
        missing = [row for row in rows if row not in found]
        while missing:
            ready = [row for row in missing if not set(self.plan(self.nodes[row].src).reduces) & set(missing)]
            wide_box = self.widened(ready[0], box)
            group = [row for row in ready if self.widened(row, box) == wide_box and self.axes(row) == self.axes(ready[0])]
            for row, value in zip(group, self._take(group, wide_box, box), strict=True):
                found[row] = self.reduced[row, self.cut(box, row)] = value
                self.kept += value.values.size
            missing = [row for row in missing if row not in found]
        return found

    def _take(self, group: list[int], wide_box: Box, box: Box) -> list[Bounded]:
        axes = tuple(axis + 1 for axis in self.axes(group[0]))
        totals = [accumulator(self.nodes[row].op, value_dtype(self.nodes[row]), extents(self.cut(box, row)), axes) for row in group]
        operands = tuple(self.nodes[row].src[0] for row in group)
        for piece in pieces(wide_box, axes, PIECE):
            for total, value in zip(totals, self.at(operands, piece), strict=True):
                total.take(value)
        return [total.result() for total in totals]


def _spread(value: Bounded, box: Box) -> Bounded:
    """Every array of it at its full size."""
    shape = extents(box)
    return replace(
        value,
        values=np.broadcast_to(value.values, shape),
        error=None if value.error is None else np.broadcast_to(value.error, shape),
        slack=None if value.slack is None else np.broadcast_to(value.slack, shape),
    )
