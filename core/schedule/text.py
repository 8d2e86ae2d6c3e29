"""A nest on a terminal: its axes, and where each leaf lies over them."""

from __future__ import annotations

from core.ir.infix import infix
from core.schedule.nest import Nest, size_text


def show_nest(nest: Nest) -> str:
    """Axes in order with kind, extent and class; then each leaf's index and validity; a final newline."""
    names = {axis.var: f"{axis.kind.value}{n}" for n, axis in enumerate(nest.axes)}
    lines = [f"axes     {nest.describe()}"]
    for n, axis in enumerate(nest.axes):
        of = f"reduce class {axis.reduce_class}" if axis.is_reduced else "output"
        lines.append(
            f"  {axis.kind.value}{n:<3} {axis.kind.name.lower():6} {size_text(axis.extent):>8}  {of}, from axes {sorted(axis.wires)}"
        )
    for number, ((row, _), access) in enumerate(zip(nest.sites.leaves, nest.accesses, strict=True)):
        node = nest.kernel.nodes[row]
        valid = f" where {infix(access.valid, names)}" if access.valid.free or access.never else ""
        lines.append(f"leaf {number:<3} node {row} {node.op.lower()}: {infix(access.index, names)}{valid}")
    lines += [f"applied  {o.to_json()}" for o in nest.applied]
    return "\n".join(lines) + "\n"
