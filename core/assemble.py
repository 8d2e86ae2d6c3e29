"""What a program says beside its text: its name, its arguments, its estimates."""

from __future__ import annotations

from collections.abc import Mapping

from core.ir.op import Op
from core.ir.parts import integer, param
from core.ir.size_text import expression_text
from core.ir.value import Value
from core.kernel.expression import Size
from core.kernel.leaves import Extent, Leaves
from core.kernel.node import Const, Elementwise, Kernel, Load, Reduce, Store
from core.linear.cost import Amount, Count, product, total
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


def arguments_of(kernel: Kernel, sizes: Mapping[int, Value], listing: Listing, widest: Mapping[int, int]) -> tuple[Argument, ...]:
    """Buffers by number, each one a node refers to; then the declared variables by name. widest: lanes, as the listing accesses them."""
    out = []
    for value in listing.params:
        facts = param(value)
        size = sizes[facts.number]
        members: dict[str, object] = {
            "kind": "buffer", "index": facts.number, "dtype": value.dtype.name,
            "size": integer(size) if size.op is Op.CONST else expression_text(size),
            "access": facts.access, "alignment": min(widest.get(facts.number, 1) * value.dtype.itemsize, facts.alignment),
        }  # fmt: skip
        if facts.image is not None:
            members["image"] = list(facts.image)
        out.append(Argument(members))
    for variable in kernel.variables:
        out.append(Argument({"kind": "variable", "name": variable.name, "dtype": "int32", "min": variable.min, "max": variable.max}))
    return tuple(out)


def work_items(global_size: tuple[Value, Value, Value] | None, local_size: tuple[Value, Value, Value] | None) -> Amount:
    """How many work-items a launch starts; 1 for a function that is called."""
    return product((*(global_size or ()), *(local_size or ())))


def estimates(kernel: Kernel, leaves: Leaves, sizes: Mapping[int, Value], count: Count) -> tuple[Amount, Amount]:
    """(operations, bytes): of each the smaller of what the kernel's nodes say and what the listing does.

    The kernel's count knows each element once, but nothing of what simplification removed.
    """
    return _smaller(_kernel_operations(kernel, leaves), count.operations), _smaller(_kernel_bytes(kernel, leaves, sizes), count.moved)


def _smaller(x: Amount, y: Amount) -> Amount:
    """The estimate with the smaller maximum."""
    return y if _most(y) < _most(x) else x


def _larger(x: Amount, y: Amount) -> Amount:
    return y if _most(x) < _most(y) else x


def _most(x: Amount) -> int:
    return x if isinstance(x, int) else x.hi or 0


def _points(leaves: Leaves, shape: tuple[Size, ...]) -> Amount:
    return product([extent for extent, here in zip(leaves.extents, shape, strict=True) if here != 1])


def _kernel_operations(kernel: Kernel, leaves: Leaves) -> Amount:
    """Each elementwise node's points once (a MULACC's twice), each reduce's operand's points."""
    often: dict[tuple[Size, ...], int] = {}
    for row, node in enumerate(kernel.nodes):
        if isinstance(node, Elementwise) and node.op not in _COUNTS_NOT:
            shape = kernel.shapes[row]
            often[shape] = often.get(shape, 0) + (2 if node.op == _COUNTS_TWICE else 1)
        elif isinstance(node, Reduce):
            shape = kernel.shapes[node.src[0]]
            often[shape] = often.get(shape, 0) + 1
    return total([(_points(leaves, shape), times) for shape, times in often.items()])


def _kernel_bytes(kernel: Kernel, leaves: Leaves, sizes: Mapping[int, Value]) -> Amount:
    """Each buffer's touched elements once; a gather whose values nothing bounds reads as many as it has points."""
    counted: dict[int, Amount] = {}
    itemsize: dict[int, int] = {}
    for row, node in enumerate(kernel.nodes):
        if isinstance(node, (Load, Store)):
            itemsize[node.buffer] = node.dtype.itemsize
            size = product((sizes[node.buffer],))
            if isinstance(node, Load) and node.src and _most(size) == 1:
                size = _points(leaves, kernel.shapes[row])
            counted[node.buffer] = _larger(counted.get(node.buffer, size), size)
    return total([(size, itemsize[buffer]) for buffer, size in counted.items()])
