"""A kernel on a terminal: one node a line, its shape and dtype beside it."""

from __future__ import annotations

from core.kernel.node import Const, Elementwise, Formula, Kernel, Load, Place, Reduce, Store, View


def show_kernel(kernel: Kernel) -> str:
    """The canonical table, as people read it; a final newline."""
    lines = [f"variable {v.name} in [{v.min}, {v.max}]" for v in kernel.variables]
    rows = [
        (str(row), _node(node), f"{node.dtype} {_shape(shape)}")
        for row, (node, shape) in enumerate(zip(kernel.nodes, kernel.shapes, strict=True))
    ]
    width = max((len(text) for _, text, _ in rows), default=0)
    lines += [f"{row:>4} = {text:{min(width, 96)}} : {kind}" for row, text, kind in rows]
    lines.append("outputs " + ", ".join(map(str, kernel.outputs)))
    return "\n".join(lines) + "\n"


def _node(node: Load | Const | Store | Elementwise | Reduce) -> str:
    match node:
        case Load():
            return f"load buf{node.buffer}{_src(node.src)} {_place(node.place)}"
        case Const():
            return f"const {node.value if node.expr is None else node.expr} {_place(node.place)}"
        case Store():
            return f"store buf{node.buffer}{_src(node.src)} {_place(node.place)}"
        case Elementwise():
            return f"{node.op.lower()}{_src(node.src)}"
        case Reduce():
            return f"{node.op.lower()}{_src(node.src)} over {', '.join(map(str, node.axes))}"


def _src(src: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, src))})" if src else ""


def _shape(shape: tuple[object, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _place(place: Place) -> str:
    if isinstance(place, Formula):
        valid = f" where {' and '.join(c.text for c in place.valid)}" if place.valid else ""
        return f"at {place.index}{valid}" if place.index is not None else valid.strip()
    return "via " + " then ".join(_view(v) for v in place.views)


def _view(view: View) -> str:
    offset = f"+{view.offset}" if view.offset != 0 else ""
    mask = "" if view.mask is None else " masked " + "×".join(f"[{b},{e})" for b, e in view.mask)
    return f"{_shape(view.shape)}:{_shape(view.strides)}{offset}{mask}"
