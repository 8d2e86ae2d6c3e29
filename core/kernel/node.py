"""The kernel of the wire, typed: what `read` makes and every later stage takes.

A kernel is a table of nodes in topological order; a node's `src` are rows of that table. Nothing here is checked: `read` and `check` do.
A leaf's place is a stack of `View`s, applied first to last, or an expression; `core.kernel.leaves` makes one thing of both.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.dtypes import BOOL, FLOAT32, DType, Number
from core.kernel.expression import Comparison, Expression, Size

Range = tuple[Size, Size]  # half-open
ImageShape = tuple[int, int, int]  # height, width, 4


@dataclass(frozen=True, slots=True)
class View:
    """How a shape lies in a flat buffer: element `i` is at `offset + sum(i[k] * strides[k])`, where every range of `mask` holds.

    shape, strides: one entry per axis, in elements. mask: per axis the half-open range that holds data, or None: all of it.
    """

    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0
    mask: tuple[Range, ...] | None = None


@dataclass(frozen=True, slots=True)
class Views:
    """A leaf's place as a stack of views, applied first to last; the last one's shape is what the kernel sees."""

    views: tuple[View, ...]

    @property
    def shape(self) -> tuple[Size, ...]:
        return self.views[-1].shape


@dataclass(frozen=True, slots=True)
class Formula:
    """A leaf's place by expression over `axis0`…, declared variables and (loads, conditions of stores) `src0`….

    index: None for a CONST (its `expr` is its own). valid: all must hold where the element exists.
    """

    shape: tuple[Size, ...]
    index: Size | None
    valid: tuple[Comparison, ...] = ()


Place = Views | Formula


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared integer argument (int32), bounds inclusive."""

    name: str
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a buffer. dtype: the storage type; src: the nodes whose values the index names."""

    buffer: int
    dtype: DType
    place: Place
    image: ImageShape | None = None
    src: tuple[int, ...] = ()
    op = "LOAD"


@dataclass(frozen=True, slots=True)
class Const:
    """A constant: `value` (already of its dtype: wrapped never, floats rounded) or `expr`, one of them None.

    written: the double a float `value` was rounded from; the canonical AST holds that one, and nothing else asks for it.
    """

    dtype: DType
    place: Place
    value: Number | None = None
    expr: Size | None = None
    src: tuple[int, ...] = ()
    written: float | None = None
    op = "CONST"


@dataclass(frozen=True, slots=True)
class Store:
    """Writes src[0]; by expression further sources are named in `valid`."""

    buffer: int
    dtype: DType
    place: Place
    src: tuple[int, ...]
    image: ImageShape | None = None
    op = "STORE"


@dataclass(frozen=True, slots=True)
class Elementwise:
    """op: the wire's word (ADD … WHERE, MULACC, CAST, BITCAST); dtype: of the result."""

    op: str
    dtype: DType
    src: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """op: REDUCE_SUM, REDUCE_MAX or REDUCE_MUL; axes ascending, each kept with extent 1; dtype: of operand and result."""

    op: str
    dtype: DType
    axes: tuple[int, ...]
    src: tuple[int, ...]


Leaf = Load | Const | Store
Node = Load | Const | Store | Elementwise | Reduce


def value_dtype(node: Node) -> DType:
    """The dtype of the value a node gives (of a store: takes): float32 for images, whatever they store."""
    if isinstance(node, (Load, Store)) and node.image is not None:
        return FLOAT32
    return node.dtype


@dataclass(frozen=True, slots=True)
class Kernel:
    """The table. outputs: rows of the stores, one per output buffer in buffer order.

    shapes: per node its shape (extent 1 or full per axis; a store's own); full: per axis the extent other than 1, if any node has one.
    Filled in by `check`; empty before. Extents are integers, or Expressions compared by their simplified form.
    """

    variables: tuple[Variable, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    shapes: tuple[tuple[Size, ...], ...] = ()
    full: tuple[Size, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.full)


COMPARISONS = frozenset(("CMPLT", "CMPNE"))
RESULT_IS_BOOL = BOOL  # what CMPLT and CMPNE give
__all__ = [
    "COMPARISONS",
    "RESULT_IS_BOOL",
    "Comparison",
    "Const",
    "Elementwise",
    "Expression",
    "Formula",
    "ImageShape",
    "Kernel",
    "Leaf",
    "Load",
    "Node",
    "Place",
    "Range",
    "Reduce",
    "Size",
    "Store",
    "Variable",
    "View",
    "Views",
    "value_dtype",
]
