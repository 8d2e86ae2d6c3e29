"""What each axis stands for where a node is used: the outputs' axis, or that of a reduce around it.

A *site* is a node together with what the axes it is full on stand for; equal sites are one computation. A reduce at a site is an
*instance*: it has loops of its own. Reduces that name the same axes share a *class*, whose axes the schedule cuts for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import LimitExceeded
from core.kernel.node import Const, Kernel, Load, Reduce, Store

OUTPUT = -1  # in a binding: the outputs' axis; other numbers name an instance
Binding = tuple[int | None, ...]  # per wire axis; None where the node has extent 1


@dataclass(frozen=True, slots=True)
class Site:
    """node: row of the kernel's table. src: sites of its operands. instance: of a reduce. leaf: number of a leaf's access, else -1."""

    node: int
    binding: Binding
    src: tuple[int, ...]
    instance: int = -1
    leaf: int = -1


@dataclass(frozen=True, slots=True)
class Instance:
    """One reduce at one site. axes: the wire axes it really runs over, those its operand is full on; none: it yields its operand."""

    node: int
    reduce_class: int
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SiteTable:
    """sites: operands before users. classes: per reduce class its wire axes, in dictionary order. outputs: sites of the stores.

    leaves: per access number the node and its binding, instances named by class: what the schedule distinguishes.
    output_axes: wire axes on which the outputs are full.
    """

    sites: tuple[Site, ...]
    instances: tuple[Instance, ...]
    classes: tuple[tuple[int, ...], ...]
    leaves: tuple[tuple[int, Binding], ...]
    outputs: tuple[int, ...]
    output_axes: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """One reduce class at most, and the outputs have extent 1 on its axes."""
        return len(self.classes) <= 1 and not any(k in self.output_axes for axes in self.classes for k in axes)


def find_sites(kernel: Kernel, limit: int) -> SiteTable:
    """The site table of a checked kernel. Raises LimitExceeded beyond `limit` sites."""
    full = [tuple(k for k, e in enumerate(shape) if e != 1) for shape in kernel.shapes]
    classes = _classes(kernel, full)
    class_number = {axes: c for c, axes in enumerate(classes)}
    sites: list[Site] = []
    number_of: dict[tuple[int, Binding], int] = {}
    instances: list[Instance] = []
    instance_of: dict[tuple[int, Binding], int] = {}
    leaves: dict[tuple[int, Binding], int] = {}
    rank = kernel.rank
    output_axes = full[kernel.outputs[0]]
    top: Binding = tuple(OUTPUT if k in output_axes else None for k in range(rank))

    def operands(row: int, binding: Binding) -> list[tuple[int, Binding]]:
        node = kernel.nodes[row]
        inner = binding
        if isinstance(node, Reduce):
            (operand,) = node.src
            axes = tuple(k for k in node.axes if k in full[operand])
            key = (row, binding)
            if key not in instance_of:
                instance_of[key] = len(instances)
                instances.append(Instance(row, class_number.get(_class_key(kernel, node), -1), axes))
            inner = tuple(instance_of[key] if k in axes else b for k, b in enumerate(binding))
        return [(s, inner if full[s] == full[row] else tuple([b if k in full[s] else None for k, b in enumerate(inner)])) for s in node.src]

    for output in kernel.outputs:
        stack: list[tuple[int, Binding, list[tuple[int, Binding]] | None]] = [(output, top, None)]
        while stack:
            row, binding, needed = stack.pop()
            if (row, binding) in number_of:
                continue
            if needed is None:
                needed = operands(row, binding)
                stack.append((row, binding, needed))
                stack.extend((s, b, None) for s, b in reversed(needed) if (s, b) not in number_of)
                if len(stack) + len(sites) > limit:
                    raise LimitExceeded("/ast/nodes", limit="sites", needed=f"more than {limit}", allowed=limit)
                continue
            node = kernel.nodes[row]
            leaf = -1
            if isinstance(node, (Load, Const, Store)):
                by_class = tuple(b if b is None or b == OUTPUT else instances[b].reduce_class for b in binding)
                leaf = leaves.setdefault((row, by_class), len(leaves))
            number_of[row, binding] = len(sites)
            sites.append(Site(row, binding, tuple(number_of[n] for n in needed), instance_of.get((row, binding), -1), leaf))
    return SiteTable(tuple(sites), tuple(instances), classes, tuple(leaves), tuple(number_of[o, top] for o in kernel.outputs), output_axes)


def _class_key(kernel: Kernel, node: Reduce) -> tuple[int, ...]:
    return tuple(k for k in node.axes if kernel.full[k] != 1)


def _classes(kernel: Kernel, full: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The reduces' axes without those of full extent 1; a class none of whose reduces really runs over any axis is none."""
    used: dict[tuple[int, ...], set[int]] = {}
    for node in kernel.nodes:
        if isinstance(node, Reduce):
            key = _class_key(kernel, node)
            used.setdefault(key, set()).update(k for k in key if k in full[node.src[0]])
    return tuple(sorted(key for key, axes in used.items() if axes))
