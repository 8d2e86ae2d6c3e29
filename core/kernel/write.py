"""Kernel to the JSON of the wire: what `read` would read back as the same kernel.

For requests that are handed on, and for whoever wants to see a kernel as it could have been sent. The text an `ast_hash` is
over is `canonical`'s: it differs in how numbers are written.
"""

from __future__ import annotations

import math

from core.kernel.expression import Expression, Size
from core.kernel.node import Const, Elementwise, Formula, Kernel, Node, Reduce, View, Views


def kernel_to_json(kernel: Kernel) -> dict[str, object]:
    """The AST, every default written out."""
    return {
        "version": 1,
        "variables": [{"name": v.name, "min": v.min, "max": v.max} for v in kernel.variables],
        "nodes": [node_to_json(node) for node in kernel.nodes],
        "outputs": list(kernel.outputs),
    }


def node_to_json(node: Node) -> dict[str, object]:
    written: dict[str, object] = {"op": node.op}
    if isinstance(node, Elementwise):
        if node.op in ("CAST", "BITCAST"):
            written["dtype"] = node.dtype.name
    elif isinstance(node, Reduce):
        written["axes"] = list(node.axes)
    elif isinstance(node, Const):
        written |= {"dtype": node.dtype.name, **_constant(node), **_place(node.place)}
    else:
        written |= {"buffer": node.buffer, "dtype": node.dtype.name, **_place(node.place)}
        if node.image is not None:
            written["image"] = list(node.image)
    if node.src:
        written["src"] = list(node.src)
    return written


def _constant(node: Const) -> dict[str, object]:
    if node.expr is not None:
        return {"expr": _size(node.expr)}
    value = node.value if node.written is None else node.written
    if isinstance(value, float) and not math.isfinite(value):
        return {"value": "nan" if value != value else "inf" if value > 0 else "-inf"}
    return {"value": value}


def _place(place: Views | Formula) -> dict[str, object]:
    if isinstance(place, Views):
        return {"views": [_view(view) for view in place.views]}
    written: dict[str, object] = {"shape": [_size(extent) for extent in place.shape]}
    if place.index is not None:
        written["index"] = _size(place.index)
    written["valid"] = [condition.text for condition in place.valid]
    return written


def _view(view: View) -> dict[str, object]:
    mask = None if view.mask is None else [[_size(begin), _size(end)] for begin, end in view.mask]
    return {
        "shape": [_size(extent) for extent in view.shape],
        "strides": [_size(stride) for stride in view.strides],
        "offset": _size(view.offset),
        "mask": mask,
    }


def _size(size: Size) -> int | str:
    return size.text if isinstance(size, Expression) else size
