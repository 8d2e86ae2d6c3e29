"""One table per DAG, and its name.

Whatever the order of rows, however often a node is written, with or without defaults and spaces: one canonical kernel, one
text, one `ast_hash`. The compiler works on the canonical kernel alone, so equal hashes mean equal programs. `docs/keys.md`
is this page for those who compute a hash elsewhere. The text is RFC 8785 JSON: members sorted, no spaces, no number that a
double does not hold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from core.dtypes import float_bits
from core.kernel.check import reachable, shapes_of
from core.kernel.expression import Expression, Size
from core.kernel.node import Const, Elementwise, Formula, Kernel, Load, Node, Reduce, Store, Views

_EXACT = 2**53 - 1  # integers beyond it are not all doubles: written as strings
_SOURCES = "\0"  # stands in a node's text for the rows of its operands; JSON has no such character


@dataclass(frozen=True, slots=True)
class Canonical:
    """kernel: in canonical order; rows: per node of it, the row of the table it came from; text: the canonical AST."""

    kernel: Kernel
    rows: tuple[int, ...]
    text: str

    @property
    def ast_hash(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def canonical(kernel: Kernel) -> Canonical:
    """A checked kernel's canonical form: what the outputs need, equal nodes once, as a depth-first walk finishes them."""
    texts, unique = _merge_equal(kernel)
    rows = _finishing_order(kernel, unique)
    place = {row: number for number, row in enumerate(rows)}
    nodes: list[Node] = []
    written: list[str] = []
    for row in rows:
        node = kernel.nodes[row]
        src = tuple([place[unique[source]] for source in node.src])
        nodes.append(node if src == node.src else _with_sources(node, src))
        written.append(texts[row].replace(_SOURCES, ",".join(map(str, src))) if src else texts[row])
    variables = tuple(sorted(kernel.variables, key=lambda variable: variable.name))
    outputs = tuple([place[unique[row]] for row in kernel.outputs])
    result = Kernel(variables, tuple(nodes), outputs, tuple([kernel.shapes[row] for row in rows]), kernel.full)
    if any(type(extent) is not int for extent in kernel.full):  # which of equal expressions stands for all: the first in canonical order
        shapes, full = shapes_of(result)
        result = Kernel(variables, result.nodes, outputs, shapes, full)
    declared = ",".join([f'{{"max":{v.max},"min":{v.min},"name":"{v.name}"}}' for v in variables])
    text = f'{{"nodes":[{",".join(written)}],"outputs":[{",".join(map(str, outputs))}],"variables":[{declared}],"version":1}}'
    return Canonical(result, tuple(rows), text)


def canonicalize(kernel: Kernel) -> Kernel:
    return canonical(kernel).kernel


def canonical_ast(kernel: Kernel) -> dict[str, object]:
    """The canonical AST as the value `ast_hash` is over; constants' values and large integers are strings in it."""
    value: dict[str, object] = json.loads(canonical(kernel).text)
    return value


def ast_hash(kernel: Kernel) -> str:
    return canonical(kernel).ast_hash


def _merge_equal(kernel: Kernel) -> tuple[dict[int, str], list[int]]:
    """Per needed row its text, and per row the first row equal to it."""
    needed = reachable(kernel)
    first: dict[object, int] = {}
    texts: dict[int, str] = {}
    unique = list(range(len(kernel.nodes)))
    for row, node in enumerate(kernel.nodes):
        if needed[row]:
            text = texts[row] = _node_text(node)
            unique[row] = first.setdefault((text, *[unique[source] for source in node.src]), row)
    return texts, unique


def _finishing_order(kernel: Kernel, unique: list[int]) -> list[int]:
    order: list[int] = []
    done: set[int] = set()
    waiting = [unique[row] for row in reversed(kernel.outputs)]
    while waiting:
        row = waiting[-1]
        if row in done:
            waiting.pop()
            continue
        before = len(waiting)
        for source in reversed(kernel.nodes[row].src):
            if unique[source] not in done:
                waiting.append(unique[source])
        if len(waiting) == before:
            waiting.pop()
            done.add(row)
            order.append(row)
    return order


def _with_sources(node: Node, src: tuple[int, ...]) -> Node:
    match node:
        case Elementwise():
            return Elementwise(node.op, node.dtype, src)
        case Reduce():
            return Reduce(node.op, node.dtype, node.axes, src)
        case Store():
            return Store(node.buffer, node.dtype, node.place, src, node.image)
        case Load():
            return Load(node.buffer, node.dtype, node.place, node.image, src)
        case Const():
            return node


def _node_text(node: Node) -> str:
    """The node's canonical JSON, members in sorted order, with a stand-in for the rows of its operands."""
    if isinstance(node, Elementwise):
        if node.op in ("CAST", "BITCAST"):
            return f'{{"dtype":"{node.dtype.name}","op":"{node.op}","src":[{_SOURCES}]}}'
        return f'{{"op":"{node.op}","src":[{_SOURCES}]}}'
    if isinstance(node, Reduce):
        return f'{{"axes":[{",".join(map(str, node.axes))}],"op":"{node.op}","src":[{_SOURCES}]}}'
    place = node.place
    if isinstance(node, Const):
        head = f'{{"dtype":"{node.dtype.name}"'
        if node.expr is not None:
            head += f',"expr":{_size(node.expr)}'
            value = ""
        else:
            value = f',"value":"{_value(node)}"'
        if isinstance(place, Views):
            return f'{head},"op":"CONST"{value},"views":{_views(place)}}}'
        return f'{head},"op":"CONST","shape":{_sizes(place.shape)},"valid":{_valid(place)}{value}}}'
    image = "" if node.image is None else f',"image":[{node.image[0]},{node.image[1]},4]'
    sources = f',"src":[{_SOURCES}]' if node.src else ""
    head = f'{{"buffer":{_size(node.buffer)},"dtype":"{node.dtype.name}"{image}'
    if isinstance(place, Views):
        return f'{head},"op":"{node.op}"{sources},"views":{_views(place)}}}'
    assert place.index is not None
    index = f',"index":{_size(place.index)}'
    return f'{head}{index},"op":"{node.op}","shape":{_sizes(place.shape)}{sources},"valid":{_valid(place)}}}'


def _value(node: Const) -> str:
    if node.dtype.is_float:
        written = node.written if node.written is not None else node.value
        assert written is not None
        return f"{float_bits(float(written)):016x}"
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return str(node.value)


def _views(place: Views) -> str:
    texts = []
    for view in place.views:
        mask = "null"
        if view.mask is not None:
            mask = "[" + ",".join([f"[{_size(begin)},{_size(end)}]" for begin, end in view.mask]) + "]"
        texts.append(f'{{"mask":{mask},"offset":{_size(view.offset)},"shape":{_sizes(view.shape)},"strides":{_sizes(view.strides)}}}')
    return "[" + ",".join(texts) + "]"


def _valid(place: Formula) -> str:
    return "[" + ",".join([f'"{condition.text}"' for condition in place.valid]) + "]"


def _sizes(sizes: tuple[Size, ...]) -> str:
    return "[" + ",".join([_size(size) for size in sizes]) + "]"


def _size(size: Size) -> str:
    if isinstance(size, Expression):
        return f'"{size.text}"'
    return str(size) if -_EXACT <= size <= _EXACT else f'"{size}"'
