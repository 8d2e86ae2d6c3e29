"""Vectors that are only moved: arithmetic lane by lane, where a language has vectors and no operators on them.

Loads, stores, registers and matrix instructions keep theirs. A load that widens as it reads, and a store that rounds, move the elements as
they lie in memory and convert each of them.
"""

from __future__ import annotations

from core.dtypes import FLOAT32, DType
from core.ir.op import OPS, Op
from core.ir.parts import access, content, integer, without_tokens
from core.ir.value import Value, cast, constant, make
from core.ir.walk import Graph, with_sources
from core.passes.rounding import unrounded

_KEPT = frozenset((Op.ACC, Op.UPDATE, Op.MMA))


def apart(graph: Graph) -> tuple[Graph, dict[Value, Value]]:
    """The same graph with no vector computed with, and what became of each value that changed and is still one value."""
    if all(value.lanes == 1 for value in graph.order):
        return graph, {}
    work = _Apart()
    for value in graph.order:
        work.visit(value)
    return graph.became(work.whole[graph.root]), {value: made for value, made in work.whole.items() if made is not value}


class _Apart:
    def __init__(self) -> None:
        self.whole: dict[Value, Value] = {}
        self.parts: dict[Value, tuple[Value, ...]] = {}
        self.narrow: dict[Value, Value] = {}  # loads that widened, and what reads the elements instead

    def visit(self, value: Value) -> None:
        if value.lanes == 1:
            self.whole[value] = self._scalar(value)
        elif value.op is Op.LOAD:
            self._load(value)
        elif value.op in _KEPT:
            self.whole[value] = self._same(value)
        elif value.op is Op.VECTOR:
            self.parts[value] = tuple([self.whole[s] for s in value.src])
        elif value.op is not Op.CONST and OPS[value.op].elementwise:
            lanes = [self.lanes_of(s) if s.lanes > 1 else (self.whole[s],) * value.lanes for s in value.src]
            self.parts[value] = tuple([make(value.op, value.dtype, src, value.arg) for src in zip(*lanes, strict=True)])
        else:
            self.whole[value] = value

    def lanes_of(self, value: Value) -> tuple[Value, ...]:
        """Each lane of a vector, a scalar."""
        found = self.parts.get(value)
        if found is None:
            whole = self.whole[value]
            if whole.is_const:
                found = (constant(content(whole), whole.dtype),) * whole.lanes
            else:
                found = tuple([make(Op.EXTRACT, whole.dtype, (whole,), lane) for lane in range(whole.lanes)])
            self.parts[value] = found
        return found

    def vector(self, value: Value) -> Value:
        """A value as one, put together where it is in parts."""
        found = self.whole.get(value)
        if found is None:
            found = self.whole[value] = make(Op.VECTOR, value.dtype, self.parts[value], None, value.lanes)
        return found

    def _sources(self, value: Value) -> list[Value]:
        """What the operands have become; what must only have happened before is an access still."""
        src = value.src
        count = len(without_tokens(value)) if value.op is Op.LOAD or value.op is Op.STORE else len(src)
        return [self.vector(s) for s in src[:count]] + [self.narrow.get(s) or self.vector(s) for s in src[count:]]

    def _same(self, value: Value) -> Value:
        src = tuple(self._sources(value))
        return value if src == value.src else with_sources(value, src)

    def _scalar(self, value: Value) -> Value:
        if value.op is Op.EXTRACT:
            return self.lanes_of(value.src[0])[integer(value)]
        if value.op is Op.STORE:
            parts = access(value)
            stored = parts.stored
            if stored is not None and stored.lanes > 1 and stored.dtype is not parts.array.dtype:
                narrow = tuple([cast(unrounded(x, parts.array.dtype), parts.array.dtype) for x in self.lanes_of(stored)])
                src = self._sources(value)
                src[1 + len(parts.addresses)] = make(Op.VECTOR, parts.array.dtype, narrow, None, stored.lanes)
                return with_sources(value, tuple(src))
        return self._same(value)

    def _load(self, value: Value) -> None:
        parts = access(value)
        dtype = parts.array.dtype
        if value.dtype is not FLOAT32 or dtype is FLOAT32:
            self.whole[value] = self._same(value)
            return
        src = self._sources(value)
        if parts.alternative is not None:
            narrow = tuple([_narrowed(x, dtype) for x in self.lanes_of(parts.alternative)])
            at = 2 + len(parts.addresses)
            alike = narrow[0].is_const and all(x is narrow[0] for x in narrow)
            src[at] = constant(content(narrow[0]), dtype, value.lanes) if alike else make(Op.VECTOR, dtype, narrow, None, value.lanes)
        load = self.narrow[value] = make(Op.LOAD, dtype, tuple(src), value.arg, value.lanes)
        self.parts[value] = tuple([cast(make(Op.EXTRACT, dtype, (load,), lane), FLOAT32) for lane in range(value.lanes)])


def _narrowed(x: Value, dtype: DType) -> Value:
    return constant(dtype.round(float(content(x))), dtype) if x.is_const else cast(x, dtype)
