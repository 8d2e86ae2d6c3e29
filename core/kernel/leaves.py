"""Every leaf's place as an Access: stacks of views and expressions become an index and a validity over the kernel's axes.

Between `check` and `schedule`. The axes are atoms `axis_value(k, extent)`; a leaf of extent 1 on an axis has 0 there. What an index names
of other nodes (a gather's values) are opaque atoms, told apart by the node and by what its axes stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce as fold

from core.dtypes import INDEX
from core.index import TRUE, all_of, at_least, conjuncts, floordiv, less, mod, multiply, number
from core.index.access import NOWHERE, Access, simplified
from core.index.given import Given
from core.index.linear import weighted
from core.ir.op import Op
from core.ir.value import Value, make
from core.kernel.node import Const, Formula, Kernel, Leaf, Load, Store, View, Views, value_dtype
from core.kernel.symbolic import Names, condition_of, size_value, value_of, variable_values

Extent = int | Value


def most(extent: Extent) -> int:
    """The largest an extent can be."""
    return extent if isinstance(extent, int) else extent.hi  # type: ignore[return-value]


def as_value(extent: Extent) -> Value:
    return number(extent) if isinstance(extent, int) else extent


def axis_value(number_: int, extent: Extent) -> Value:
    """The atom of an axis, in [0, extent); the number 0 where the extent is 0 or 1.

    An extent of 0 or 1 by a variable keeps its atom, so that what lies along the axis is not computed where the axis is empty.
    """
    if isinstance(extent, int):  # the extent is part of what it is: bounds must follow from arg and src
        return make(Op.AXIS, INDEX, (), ("axis", number_, extent), 1, (0, extent - 1)) if extent > 1 else number(0)
    return make(Op.AXIS, INDEX, (extent,), ("axis", number_), 1, (0, max(most(extent) - 1, 0)))


@dataclass(frozen=True, slots=True)
class Between:
    """A flat position in an earlier view of a stack, and the size of that view."""

    position: Value
    size: Value


class Leaves:
    """The accesses of a checked kernel's leaves, each made once. `axes`: per wire axis its atom, over the kernel's full extents."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = variable_values(kernel.variables)
        self.extents: tuple[Extent, ...] = tuple(size_value(e, self.names) for e in kernel.full)
        self.axes = tuple(axis_value(k, e) for k, e in enumerate(self.extents))
        self._made: dict[int, Access] = {}
        self._between: dict[int, list[Between]] = {}
        self._stacked: dict[Views, tuple[Value, Value, list[Between]]] = {}

    def full_axes(self, row: int) -> tuple[int, ...]:
        """The axes on which node `row` is full."""
        return tuple(k for k, e in enumerate(self.kernel.shapes[row]) if e != 1)

    def access(self, row: int) -> Access:
        """The access of the leaf in this row, over `axes`."""
        if row not in self._made:
            leaf = self.kernel.nodes[row]
            assert isinstance(leaf, (Load, Const, Store))
            self._made[row] = self._access(row, leaf)
        return self._made[row]

    def between(self, row: int) -> list[Between]:
        """Of a leaf by several views: where each view lands in the one before it, right where the leaf is valid; last view first."""
        self.access(row)
        return self._between.get(row, [])

    def _access(self, row: int, leaf: Leaf) -> Access:
        axes = tuple(a if e != 1 else number(0) for a, e in zip(self.axes, self.kernel.shapes[row], strict=True))
        if isinstance(leaf.place, Formula):
            return self._formula(leaf, leaf.place, axes)
        stacked = self._stacked.get(leaf.place)  # hundreds of constants may lie alike
        if stacked is None:
            between: list[Between] = []
            index, valid = stack_access(leaf.place.views, axes, self.names, between)
            stacked = self._stacked[leaf.place] = index, valid, between
        index, valid, between = stacked
        if between:
            self._between[row] = between
        if isinstance(leaf, Const):
            return simplified(value_of(leaf.expr, self.names) if leaf.expr is not None else number(0), valid)
        return simplified(index, valid)

    def _formula(self, leaf: Leaf, place: Formula, axes: tuple[Value, ...]) -> Access:
        names = {**self.names, **{f"axis{k}": a for k, a in enumerate(axes)}, **{f"src{j}": self.opaque(r) for j, r in enumerate(leaf.src)}}
        valid = all_of(condition_of(c, names) for c in place.valid)
        index: Value = number(0)
        if isinstance(leaf, Const):
            index = value_of(leaf.expr, names) if leaf.expr is not None else index
        elif place.index is not None:
            index = value_of(place.index, names)
        return simplified(index, valid)

    def opaque(self, row: int) -> Value:
        """The atom that stands for what node `row` gives, at the axes it is full on."""
        dtype = value_dtype(self.kernel.nodes[row])
        if dtype.is_float:  # refused by check where an index names it; a store's first source is its value and is named by nothing
            return number(0)
        src = tuple(self.axes[k] for k in self.full_axes(row))
        return make(Op.OPAQUE, INDEX, src, (row, int(dtype.least), int(dtype.greatest)), 1, (int(dtype.least), int(dtype.greatest)))


def stack_access(
    views: tuple[View, ...], axes: tuple[Value, ...], names: Names, between: list[Between] | None = None
) -> tuple[Value, Value]:
    """Index and validity of a view stack at these axes, the later views' masks assumed where the earlier are unflattened.

    between: takes each position in an earlier view, if given.
    """
    index, valid = _view(views[-1], axes, names)
    for view in reversed(views[:-1]):
        if valid is not TRUE:
            given = Given(conjuncts(valid))
            if given.impossible:
                return NOWHERE.index, NOWHERE.valid
            index = given.simplify(index)
        shape = [value_of(e, names) for e in view.shape]
        if between is not None:
            between.append(Between(index, fold(multiply, shape, number(1))))
        inner = _unflatten(index, shape)
        index, here = _view(view, inner, names)
        valid = all_of((valid, here))
    return index, valid


def _view(view: View, position: tuple[Value, ...], names: Names) -> tuple[Value, Value]:
    """A view's index and mask at a position of its own index space."""
    parts, factors = [value_of(view.offset, names)], [1]
    conditions = []
    for k, (i, stride, extent) in enumerate(zip(position, view.strides, view.shape, strict=True)):
        if extent == 1:
            i = number(0)
        parts.append(i if isinstance(stride, int) else multiply(i, value_of(stride, names)))
        factors.append(stride if isinstance(stride, int) else 1)
        if view.mask is not None:
            begin, end = view.mask[k]
            if begin != 0:
                conditions.append(at_least(i, value_of(begin, names)))
            if end != extent:
                conditions.append(less(i, value_of(end, names)))
    return weighted(0, parts, factors), all_of(conditions)


def _unflatten(flat: Value, shape: list[Value]) -> tuple[Value, ...]:
    """A flat position as a position in `shape`, row-major. The leading axis takes no remainder: valid positions lie inside."""
    position: list[Value] = []
    for k in range(len(shape)):
        inner = fold(multiply, shape[k + 1 :], number(1))
        if inner.lo < 1:  # type: ignore[operator]  # an extent that may be 0: where it is nothing is evaluated
            inner = inner if inner.op is not Op.CONST else number(1)
        digit = floordiv(flat, inner)
        outer_is_one = all(s.op is Op.CONST and s.arg == 1 for s in shape[:k])
        extent = shape[k] if not (shape[k].op is Op.CONST and shape[k].arg == 0) else number(1)
        position.append(digit if outer_is_one else mod(digit, extent))
    return tuple(position)
