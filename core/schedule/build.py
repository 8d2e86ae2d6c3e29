"""A kernel as a nest: the outputs' axes first, then each reduce class's; axes of extent 1 dropped, neighbours that are one axis merged.

The axes this gives are what clients number their options by, so they follow from strides alone: two neighbours merge where every leaf
moves along them as along one axis, and nowhere else.
"""

from __future__ import annotations

from core.index import TRUE, floordiv, mod, multiply, number, scale
from core.index.access import Access
from core.index.linear import total
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value
from core.kernel.leaves import Extent, Leaves, as_value, axis_value
from core.kernel.node import Kernel, Store
from core.schedule.axis import OF_OUTPUT, Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.sites import OUTPUT, SiteTable, find_sites


def build_nest(kernel: Kernel, leaves: Leaves, site_limit: int) -> Nest:
    """The nest of a checked kernel, no option applied."""
    table = find_sites(kernel, site_limit)
    axes, atoms, next_number = _initial_axes(kernel, leaves, table)
    accesses = tuple(_at_site(leaves, row, binding, atoms) for row, binding in table.leaves)
    axes, accesses, next_number = _merged(kernel, table, axes, accesses, next_number)
    return Nest(kernel, table, axes, accesses, (TRUE,) * len(table.classes), next_number)


def _initial_axes(kernel: Kernel, leaves: Leaves, table: SiteTable) -> tuple[tuple[Axis, ...], dict[tuple[int, int], Value], int]:
    """The axes before merging, and the atom of each (class or OF_OUTPUT, wire axis). Output axes keep the wire's atoms."""
    axes: list[Axis] = []
    atoms: dict[tuple[int, int], Value] = {}
    for k in table.output_axes:
        atoms[OF_OUTPUT, k] = leaves.axes[k]
        axes.append(Axis(leaves.axes[k], leaves.extents[k], AxisKind.GLOBAL, OF_OUTPUT, frozenset((k,))))
    number_ = kernel.rank
    for c, wires in enumerate(table.classes):
        spanned = {k for i in table.instances if i.reduce_class == c for k in i.axes}
        for k in wires:
            atoms[c, k] = axis_value(number_, leaves.extents[k])
            if k in spanned:
                axes.append(Axis(atoms[c, k], leaves.extents[k], AxisKind.REDUCE, c, frozenset((k,))))
            number_ += 1
    return tuple(axes), atoms, number_


def _at_site(leaves: Leaves, row: int, binding: tuple[int | None, ...], atoms: dict[tuple[int, int], Value]) -> Access:
    access = leaves.access(row)
    mapping = {
        leaves.axes[k]: atoms[b, k] for k, b in enumerate(binding) if b is not None and b != OUTPUT and leaves.axes[k].op is not Op.CONST
    }
    return access.substituted(Substitution(mapping)) if mapping else access


Stride = Value | None


def _merged(
    kernel: Kernel, table: SiteTable, axes: tuple[Axis, ...], accesses: tuple[Access, ...], next_number: int
) -> tuple[tuple[Axis, ...], tuple[Access, ...], int]:
    if len(axes) < 2 or any(a.extent == 0 for a in axes):
        return axes, accesses, next_number
    strides: list[list[Stride]] = [[access.stride(a.var) if a.var.op is not Op.CONST else number(0) for a in axes] for access in accesses]
    has = [[a.reduce_class == OF_OUTPUT or any(b[k] == a.reduce_class for k in a.wires) for a in axes] for _, b in table.leaves]
    borders = _image_borders(kernel, axes)
    runs: list[list[int]] = [[0]]
    for k in range(1, len(axes)):
        if k not in borders and _joins(axes, runs[-1], k, strides, has) and _reduces_agree(table, axes[k - 1], axes[k]):
            runs[-1].append(k)
        else:
            runs.append([k])
    out: list[Axis] = []
    mapping: list[tuple[list[int], Axis]] = []
    for run in runs:
        if len(run) == 1:
            out.append(axes[run[0]])
            continue
        extent: Value = number(1)
        for k in run:
            extent = multiply(extent, as_value(axes[k].extent))
        size: Extent = integer(extent) if extent.op is Op.CONST else extent
        first = axes[run[0]]
        wires = frozenset().union(*(axes[k].wires for k in run))
        merged = Axis(axis_value(next_number, size), size, first.kind, first.reduce_class, wires)
        next_number += 1
        out.append(merged)
        mapping.append((run, merged))
    if not mapping:
        return axes, accesses, next_number
    opaque = _opaque_substitution(axes, mapping)
    moved = tuple(_along_merged(a, axes, strides[n], mapping, opaque) for n, a in enumerate(accesses))
    return tuple(out), moved, next_number


def _joins(axes: tuple[Axis, ...], run: list[int], k: int, strides: list[list[Stride]], has: list[list[bool]]) -> bool:
    """Whether axis k continues the run of its left neighbour for every leaf."""
    left, right = axes[k - 1], axes[k]
    if left.reduce_class != right.reduce_class:
        return False
    extent = as_value(right.extent)
    for stride, full in zip(strides, has, strict=True):
        outer, inner = stride[k - 1], stride[k]
        if full[k - 1] != full[k] or outer is None or inner is None:
            return False
        if inner is number(0) and outer is number(0):
            continue
        if inner is number(0) or outer is not multiply(extent, inner):
            return False
    return True


def _reduces_agree(table: SiteTable, left: Axis, right: Axis) -> bool:
    """No reduce of the class runs over one of the two axes only."""
    if left.reduce_class == OF_OUTPUT:
        return True
    return all(
        (not left.wires.isdisjoint(i.axes)) == (not right.wires.isdisjoint(i.axes))
        for i in table.instances
        if i.reduce_class == left.reduce_class
    )


def _along_merged(
    access: Access, axes: tuple[Axis, ...], strides: list[Stride], mapping: list[tuple[list[int], Axis]], opaque: Substitution | None
) -> Access:
    """The access over the merged axes: each run's terms are one term of the innermost stride."""
    parts = [access.index]
    for run, merged in mapping:
        for k in run:
            parts.append(scale(multiply(axes[k].var, strides[k]), -1))  # type: ignore[arg-type]  # runs have known strides
        parts.append(multiply(merged.var, strides[run[-1]]))  # type: ignore[arg-type]
    index = total(parts)
    valid = access.valid
    if opaque is not None and any(a.op is Op.OPAQUE for a in (*index.free, *valid.free)):
        index, valid = opaque(index), opaque(valid)
    return Access(index, valid)


def _opaque_substitution(axes: tuple[Axis, ...], mapping: list[tuple[list[int], Axis]]) -> Substitution | None:
    """For values in an index that stand beside a merge: a value full on a merged axis names it by its digits."""
    digits: dict[Value, Value] = {}
    for run, merged in mapping:
        inner: Value = number(1)
        for k in reversed(run):
            extent = as_value(axes[k].extent)
            digit = floordiv(merged.var, inner)
            digits[axes[k].var] = digit if k == run[0] else mod(digit, extent)
            inner = multiply(inner, extent)
    return Substitution({var: digit for var, digit in digits.items() if var.op is not Op.CONST})


def _image_borders(kernel: Kernel, axes: tuple[Axis, ...]) -> set[int]:
    """Positions k such that no merge may join axes k-1 and k: where an output image's rows, texels and channels meet."""
    borders: set[int] = set()
    outputs = [k for k, a in enumerate(axes) if a.reduce_class == OF_OUTPUT]
    for row in kernel.outputs:
        store = kernel.nodes[row]
        if isinstance(store, Store) and store.image is not None:
            borders |= _borders_of(store.image, [(k, axes[k].extent) for k in outputs])
    return borders


def _borders_of(image: tuple[int, int, int], extents: list[tuple[int, Extent]]) -> set[int]:
    borders: set[int] = set()
    size, wanted = 1, [image[2], image[1], image[0]]
    for k, extent in reversed(extents):
        if not isinstance(extent, int) or not wanted:
            return set()
        size *= extent
        if size == wanted[0]:
            borders.add(k)
            wanted.pop(0)
            size = 1
            while wanted and wanted[0] == 1:
                wanted.pop(0)
        elif size > wanted[0]:
            return set()
    return borders if not wanted and size == 1 else set()
