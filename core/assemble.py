"""What a program says beside its text: its name, its arguments, its estimates."""

from __future__ import annotations

from collections.abc import Mapping

from core.index import add, multiply, number, scale
from core.ir.op import Op
from core.ir.parts import access, integer, param, shared
from core.ir.size_text import expression_text
from core.ir.value import Value
from core.kernel.leaves import Extent, Leaves, as_value
from core.kernel.node import Const, Elementwise, Kernel, Load, Reduce, Store
from core.linear.cost import listing_cost, smaller
from core.linear.listing import Listing
from core.program import Argument
from core.schedule.nest import Nest

_COUNTS_TWICE = "MULACC"
_COUNTS_NOT = frozenset(("CAST", "BITCAST"))


def kernel_name(nest: Nest) -> str:
    """`r_6_8_5`: a letter for what the kernel does, the number of outputs if several, every axis's extent in order."""
    nodes = nest.kernel.nodes
    if any(isinstance(n, Reduce) for n in nodes):
        letter = "r"
    else:
        letter = "C" if all(isinstance(n, (Load, Const, Store)) for n in nodes) else "E"
    outputs = len(nest.kernel.outputs)
    extents = [identifier(a.extent) for a in nest.axes]
    return "_".join([f"{letter}{outputs if outputs > 1 else ''}", *extents])


def identifier(extent: Extent) -> str:
    """An extent as part of a name: any character that can't stand there as its two hexadecimal digits."""
    text = str(extent) if isinstance(extent, int) else expression_text(extent)
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"{ord(c):02x}" for c in text)


def arguments_of(kernel: Kernel, sizes: Mapping[int, Value], listing: Listing) -> tuple[Argument, ...]:
    """Buffers by number, each one a node refers to; then the declared variables by name."""
    widest = widest_accesses(listing)
    out = []
    for value in listing.params:
        facts = param(value)
        size = sizes[facts.number]
        members: dict[str, object] = {
            "kind": "buffer", "index": facts.number, "dtype": value.dtype.name,
            "size": integer(size) if size.op is Op.CONST else expression_text(size),
            "access": facts.access, "alignment": widest.get(facts.number, 1) * value.dtype.itemsize,
        }  # fmt: skip
        if facts.image is not None:
            members["image"] = list(facts.image)
        out.append(Argument(members))
    for variable in kernel.variables:
        out.append(Argument({"kind": "variable", "name": variable.name, "dtype": "int32", "min": variable.min, "max": variable.max}))
    return tuple(out)


def widest_accesses(listing: Listing) -> dict[int, int]:
    """Lanes of the widest access to each buffer that assumes alignment."""
    widest: dict[int, int] = {}
    for v in listing.body:
        if v.op in (Op.LOAD, Op.STORE) and v.src[0].op is Op.PARAM:
            facts, stored = param(v.src[0]), access(v).stored
            lanes = v.lanes if stored is None else stored.lanes
            if facts.image is None:
                widest[facts.number] = max(widest.get(facts.number, 1), lanes)
    return widest


def shared_bytes_of(listing: Listing) -> int:
    """Local memory of a work-group: each array once."""
    arrays = {v.src[0] for v in listing.body if v.op in (Op.LOAD, Op.STORE) and v.src[0].op is Op.SHARED}
    return sum(a.dtype.itemsize * shared(a).elements for a in arrays)


def work_items(global_size: tuple[Value, Value, Value] | None, local_size: tuple[Value, Value, Value] | None) -> Value:
    """How many work-items a launch starts; 1 for a function that is called."""
    total: Value = number(1)
    for size in (*(global_size or ()), *(local_size or ())):
        total = multiply(total, size)
    return total


def estimates(kernel: Kernel, leaves: Leaves, sizes: Mapping[int, Value], listing: Listing, items: Value) -> tuple[Value, Value]:
    """(operations, bytes): the smaller of what the kernel's nodes say and what the listing does."""
    operations, moved = listing_cost(listing, items)
    return smaller(kernel_operations(kernel, leaves), operations), smaller(kernel_bytes(kernel, leaves, sizes), moved)


def _points(kernel: Kernel, leaves: Leaves, row: int) -> Value:
    result: Value = number(1)
    for k in leaves.full_axes(row):
        result = multiply(result, as_value(leaves.extents[k]))
    return result


def kernel_operations(kernel: Kernel, leaves: Leaves) -> Value:
    """Each elementwise node's points once (a MULACC's twice), each reduce's operand's points."""
    total: Value = number(0)
    for row, node in enumerate(kernel.nodes):
        if isinstance(node, Elementwise) and node.op not in _COUNTS_NOT:
            total = add(total, scale(_points(kernel, leaves, row), 2 if node.op == _COUNTS_TWICE else 1))
        elif isinstance(node, Reduce):
            total = add(total, _points(kernel, leaves, node.src[0]))
    return total


def kernel_bytes(kernel: Kernel, leaves: Leaves, sizes: Mapping[int, Value]) -> Value:
    """Each buffer's touched elements once; a gather whose values nothing bounds reads as many as it has points."""
    total: Value = number(0)
    counted: dict[int, Value] = {}
    itemsize: dict[int, int] = {}
    for row, node in enumerate(kernel.nodes):
        if isinstance(node, (Load, Store)):
            itemsize[node.buffer] = node.dtype.itemsize
            size = sizes[node.buffer]
            if isinstance(node, Load) and node.src and size.hi == 1:
                size = _points(kernel, leaves, row)
            before = counted.get(node.buffer)
            counted[node.buffer] = size if before is None or (before.hi or 0) < (size.hi or 0) else before
    for buffer, size in counted.items():
        total = add(total, scale(size, itemsize[buffer]))
    return total
