"""What the wire page demands of a kernel beyond its grammar: shapes, dtypes, buffers, images, masks.

Between `read` and everything else. Each node is checked by itself: its operands' dtypes and shapes, its masks, its extents.
What the outputs need is then checked together: one rank, one full extent per axis, the buffers' numbers. A node no output
needs is held to the first kind of rule and to none of the second: it takes no part in the kernel. Where elements lie
(addresses, races, two points storing to one element) needs the index algebra and is `leaves`' affair.
"""

from __future__ import annotations

from itertools import pairwise

from core.dtypes import BOOL, FLOAT16, FLOAT32, VOID, DType
from core.errors import KernelError, LimitExceeded, Pointer, Said
from core.kernel.expression import Size
from core.kernel.extents import Extents, Shape, fits, joined, shown_shape
from core.kernel.node import Const, Elementwise, Kernel, Load, Node, Reduce, Store, View, Views, value_dtype
from core.kernel.ops import BITS, ELEMENTWISE, INTEGERS, SHIFTS

AST = Pointer("/ast")


def check_kernel(kernel: Kernel, at: Pointer = AST) -> Kernel:
    """The kernel with `shapes` and `full`. Raises KernelError with the node's pointer."""
    extents = Extents(kernel.variables)
    shapes: list[Shape] = []
    dtypes: list[DType] = []  # of each node's value; VOID of a store
    for row, node in enumerate(kernel.nodes):
        try:
            shapes.append(_shape(node, shapes, dtypes, extents))
        except _Wrong as wrong:
            raise wrong.error(at / "nodes" / row, row) from None
        except LimitExceeded as error:  # of the algebra, on an extent: it knows no place
            needed, allowed = error.facts()["needed"], error.facts()["allowed"]
            raise LimitExceeded(at / "nodes" / row, limit=str(error.facts()["limit"]), needed=needed, allowed=allowed) from None
        dtypes.append(VOID if type(node) is Store else value_dtype(node))
    needed = reachable(kernel, at)
    full = _full_extents(kernel, needed, shapes, at)
    _check_outputs(kernel, shapes, at)
    _check_buffers(kernel, needed, at)
    return Kernel(kernel.variables, kernel.nodes, kernel.outputs, tuple(shapes), full)


def shapes_of(kernel: Kernel) -> tuple[tuple[Shape, ...], Shape]:
    """`shapes` and `full` of a kernel that is known to be right, every row of which is needed."""
    extents = Extents(kernel.variables)
    shapes: list[Shape] = []
    for node in kernel.nodes:
        shapes.append(_value_shape(node, shapes, extents))
    rank = len(shapes[kernel.outputs[0]])
    full: list[Size] = [1] * rank
    for shape in set(shapes):
        full = [extent if extent != 1 else known for extent, known in zip(shape, full, strict=True)]
    return tuple(shapes), tuple(full)


class _Wrong(Exception):
    """A rule broken by the node at hand. place: below the node's pointer."""

    def __init__(self, expected: str, got: str, *place: str | int) -> None:
        super().__init__(expected)
        self.expected, self.got, self.place = expected, got, place

    def error(self, at: Pointer, row: int) -> KernelError:
        for part in self.place:
            at = at / part
        return KernelError(at, expected=self.expected, got=Said(self.got), node=row)


def _shape(node: Node, shapes: list[Shape], dtypes: list[DType], extents: Extents) -> Shape:
    """The node's shape, the node being right by itself."""
    for k, source in enumerate(node.src):
        if dtypes[source] is VOID:
            raise _Wrong("an operand with a value", f"a STORE (node {source})", "src", k)
    if isinstance(node, Elementwise):
        _check_operands(node, [dtypes[source] for source in node.src])
        shape = shapes[node.src[0]] if len(node.src) == 1 else joined([shapes[source] for source in node.src])
        if shape is None:
            came = " and ".join(shown_shape(shapes[source]) for source in node.src)
            raise _Wrong("operands with equal extents, or 1, on each axis", came)
        return shape
    if isinstance(node, Reduce):
        rank = len(shapes[node.src[0]])
        if node.axes[-1] >= rank:
            raise _Wrong(f"axes of the operand, which has {rank}", str(node.axes[-1]), "axes", len(node.axes) - 1)
        return _value_shape(node, shapes, extents)
    if isinstance(node.place, Views):
        for k, view in enumerate(node.place.views):
            _check_view(view, k, extents)
    else:
        for axis, extent in enumerate(node.place.shape):
            if extents.may_be_negative(extent):
                raise _Wrong("an extent that is never negative", str(extent), "shape", axis)
    shape = _value_shape(node, shapes, extents)
    if not isinstance(node, Const):
        if node.image is not None and node.dtype is not FLOAT16 and node.dtype is not FLOAT32:
            raise _Wrong("float16 or float32, the storage types of images", node.dtype.name, "dtype")
        if node.src:
            _check_sources(node, shape, shapes, dtypes)
    return shape


def _value_shape(node: Node, shapes: list[Shape], extents: Extents) -> Shape:
    """The shape of a node that is right."""
    if isinstance(node, Elementwise):
        shape = shapes[node.src[0]] if len(node.src) == 1 else joined([shapes[source] for source in node.src])
        assert shape is not None
        return shape
    if isinstance(node, Reduce):
        reduced = list(shapes[node.src[0]])
        for axis in node.axes:
            reduced[axis] = 1
        return tuple(reduced)
    return extents.shape(node.place.shape)


def _check_operands(node: Elementwise, dtypes: list[DType]) -> None:
    op = node.op
    if op == "CAST":
        return
    if op == "BITCAST":
        if node.dtype.bits != dtypes[0].bits:
            raise _Wrong(f"a dtype of {dtypes[0].bits} bits, as {dtypes[0].name} has", f"{node.dtype.name} of {node.dtype.bits}", "dtype")
        return
    if op == "WHERE":
        if dtypes[0] is not BOOL:
            raise _Wrong("bool, the condition of a WHERE", dtypes[0].name, "src", 0)
        dtypes = dtypes[1:]
    takes = ELEMENTWISE[op].takes
    if dtypes[0] not in takes:
        raise _Wrong(f"{takes.words} for {op}", dtypes[0].name)
    if op in SHIFTS:
        if dtypes[1] not in INTEGERS:
            raise _Wrong("an integer dtype for a shift's amount", dtypes[1].name, "src", 1)
    elif dtypes[-1] is not dtypes[0] or (len(dtypes) == 3 and dtypes[1] is not dtypes[0]):
        raise _Wrong(f"operands of {op} of one dtype (nothing is promoted)", " and ".join(dtype.name for dtype in dtypes))


def _check_view(view: View, number: int, extents: Extents) -> None:
    for axis, extent in enumerate(view.shape):
        if (type(extent) is not int or extent < 0) and extents.may_be_negative(extent):
            raise _Wrong("an extent that is never negative", str(extent), "views", number, "shape", axis)
    if view.mask is None:
        return
    for axis, (begin, end) in enumerate(view.mask):
        extent = extents.one(view.shape[axis])
        if type(begin) is int and type(end) is int and type(extent) is int and 0 <= begin <= end <= extent:
            continue
        known = [bound for bound in (0, begin, end, extent) if isinstance(bound, int)]
        if any(low > high for low, high in pairwise(known)):
            raise _Wrong(f"a range with 0 ≤ begin ≤ end ≤ {extent}, the extent", f"[{begin}, {end})", "views", number, "mask", axis)


def _check_sources(node: Load | Store, shape: Shape, shapes: list[Shape], dtypes: list[DType]) -> None:
    """What a store stores, and the values that index or valid name."""
    values = node.src
    if isinstance(node, Store):
        stored = values[0]
        values = values[1:]
        came = dtypes[stored]
        if came is not value_dtype(node):
            what = f"{value_dtype(node).name}, {'what an image takes' if node.image else 'the dtype of the store'}"
            raise _Wrong(what, came.name, "src", 0)
        if not fits(shapes[stored], shape):
            raise _Wrong(f"a value with the store's extents {shown_shape(shape)}, or 1", shown_shape(shapes[stored]), "src", 0)
    first = len(node.src) - len(values)
    for k, source in enumerate(values, first):
        came = dtypes[source]
        if came not in BITS:
            raise _Wrong("an integer or bool for a value named in index or valid", came.name, "src", k)
        if not fits(shapes[source], shape):
            raise _Wrong(f"a value with the leaf's extents {shown_shape(shape)}, or 1", shown_shape(shapes[source]), "src", k)


def reachable(kernel: Kernel, at: Pointer = AST) -> list[bool]:
    """Per row: whether an output needs it."""
    needed = [False] * len(kernel.nodes)
    for k, row in enumerate(kernel.outputs):
        if not isinstance(kernel.nodes[row], Store):
            raise KernelError(
                at / "outputs" / k,
                expected="the index of a STORE",
                got=Said(f"a {kernel.nodes[row].op} (node {row})"),
                node=row,
            )
        needed[row] = True
    for row in range(len(kernel.nodes) - 1, -1, -1):
        if needed[row]:
            for source in kernel.nodes[row].src:
                needed[source] = True
    return needed


def _full_extents(kernel: Kernel, needed: list[bool], shapes: list[Shape], at: Pointer) -> Shape:
    """Per axis the extent other than 1 that a leaf has there (no other node brings one in), else 1."""
    first = kernel.outputs[0]
    rank = len(shapes[first])
    full: list[Size] = [1] * rank
    fitting: set[Shape] = set()
    for row, node in enumerate(kernel.nodes):
        if not needed[row] or isinstance(node, (Elementwise, Reduce)) or shapes[row] in fitting:
            continue
        shape = shapes[row]
        if len(shape) != rank:
            where = at / "nodes" / row
            raise KernelError(where, expected=f"rank {rank}, as output 0 has", got=Said(f"shape {shown_shape(shape)}"), node=row)
        for axis, extent in enumerate(shape):
            if full[axis] == 1:
                full[axis] = extent
            elif extent not in (1, full[axis]):
                where = at / "nodes" / row
                raise KernelError(where, expected=f"extent 1 or {full[axis]} on axis {axis}", got=Said(str(extent)), node=row)
        fitting.add(shape)
    return tuple(full)


def _check_outputs(kernel: Kernel, shapes: list[Shape], at: Pointer) -> None:
    for k, row in enumerate(kernel.outputs):
        store = kernel.nodes[row]
        assert isinstance(store, Store)
        if store.buffer != k:
            expected = f"a store to buffer {k}: outputs store to buffers 0, 1, … in order"
            raise KernelError(at / "outputs" / k, expected=expected, got=Said(f"one to buffer {store.buffer} (node {row})"), node=row)
        if shapes[row] != shapes[kernel.outputs[0]]:
            expected = f"the shape of output 0, {shown_shape(shapes[kernel.outputs[0]])}"
            raise KernelError(at / "outputs" / k, expected=expected, got=Said(f"{shown_shape(shapes[row])} (node {row})"), node=row)


def _check_buffers(kernel: Kernel, needed: list[bool], at: Pointer) -> None:
    """Numbers without a gap; one dtype and image per buffer; an image read or written, not both."""
    seen: dict[int, tuple[int, Load | Store]] = {}
    for row, node in enumerate(kernel.nodes):
        if not needed[row] or not isinstance(node, (Load, Store)):
            continue
        first_row, first = seen.setdefault(node.buffer, (row, node))
        where = at / "nodes" / row
        if node.dtype is not first.dtype:
            expected = f"{first.dtype.name}, the dtype of buffer {node.buffer} in node {first_row}"
            raise KernelError(where / "dtype", expected=expected, got=Said(node.dtype.name), node=row)
        if node.image != first.image:
            expected = f"the image of buffer {node.buffer} in node {first_row}, {list(first.image) if first.image else 'none'}"
            came = Said(str(list(node.image)) if node.image else "none")
            raise KernelError(where / "image" if node.image else where, expected=expected, got=came, node=row)
        if node.image is not None and type(node) is not type(first):
            expected = f"image buffer {node.buffer} read or written, not both"
            raise KernelError(where, expected=expected, got=Said(f"a {node.op} beside the {first.op} of node {first_row}"), node=row)
    for number in range(len(seen)):
        if number not in seen:
            beyond = min(buffer for buffer in seen if buffer > number)
            row = seen[beyond][0]
            where = at / "nodes" / row / "buffer"
            raise KernelError(where, expected=f"buffer numbers without a gap ({number} is not in use)", got=Said(str(beyond)), node=row)
