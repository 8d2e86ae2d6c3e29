"""Kernels written like arithmetic: `k = Build(); x = k.load("float32", [4, 8]); k.store(x - x.max(1))`; `k.ast()` is the wire's table.

Buffers are numbered as the wire wants them: outputs first, in the order of the stores, then loads in the order they were made.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
Extent = int | str


def dense(shape: list[Extent]) -> list[Extent]:
    """Row-major strides, as expressions where an extent is one; 0 where the extent is 1."""
    strides: list[Extent] = []
    step: Extent = 1
    for extent in reversed(shape):
        strides.append(0 if extent == 1 else step)
        step = extent * step if isinstance(extent, int) and isinstance(step, int) else f"({extent})*({step})"
    return strides[::-1]


def view(shape: list[Extent], strides: list[Extent] | None = None, offset: Extent = 0, mask: list[list[Extent]] | None = None) -> Json:
    found: Json = {"shape": shape, "strides": dense(shape) if strides is None else strides, "offset": offset}
    return found | ({} if mask is None else {"mask": mask})


class Term:
    """A node, with the operators of what it computes."""

    def __init__(self, build: Build, row: int, dtype: str, shape: list[Extent]) -> None:
        self.build, self.row, self.dtype, self.shape = build, row, dtype, shape

    def op(self, name: str, *others: Term | float | bool | str, dtype: str | None = None) -> Term:
        """An elementwise node; numbers become constants of this dtype, of extent 1."""
        terms = [self, *(o if isinstance(o, Term) else self.build.const(o, self.dtype, [1] * len(self.shape)) for o in others)]
        shape = [next((t.shape[k] for t in terms if t.shape[k] != 1), 1) for k in range(len(self.shape))]
        found: Json = {"op": name, "src": [t.row for t in terms]}
        if name in ("CAST", "BITCAST"):
            found["dtype"] = dtype
        result = "bool" if name in ("CMPLT", "CMPNE") else terms[1].dtype if name == "WHERE" else dtype or self.dtype
        return self.build.node(found, result, shape)

    def __add__(self, other: Term | float) -> Term:
        return self.op("ADD", other)

    def __mul__(self, other: Term | float) -> Term:
        return self.op("MUL", other)

    def __sub__(self, other: Term) -> Term:
        return self + -other

    def __neg__(self) -> Term:
        return self.op("NEG")

    def __lt__(self, other: Term | float) -> Term:
        return self.op("CMPLT", other)

    def differs(self, other: Term | float) -> Term:
        return self.op("CMPNE", other)

    def where(self, then: Term, otherwise: Term) -> Term:
        return self.op("WHERE", then, otherwise)

    def cast(self, dtype: str) -> Term:
        return self.op("CAST", dtype=dtype)

    def bitcast(self, dtype: str) -> Term:
        return self.op("BITCAST", dtype=dtype)

    def exp2(self) -> Term:
        return self.op("EXP2")

    def recip(self) -> Term:
        return self.op("RECIP")

    def sqrt(self) -> Term:
        return self.op("SQRT")

    def maximum(self, other: Term | float) -> Term:
        return self.op("MAX", other)

    def reduce(self, name: str, *axes: int) -> Term:
        shape = [1 if k in axes else extent for k, extent in enumerate(self.shape)]
        return self.build.node({"op": name, "axes": list(axes), "src": [self.row]}, self.dtype, shape)

    def sum(self, *axes: int) -> Term:
        return self.reduce("REDUCE_SUM", *axes)

    def max(self, *axes: int) -> Term:
        return self.reduce("REDUCE_MAX", *axes)

    def prod(self, *axes: int) -> Term:
        return self.reduce("REDUCE_MUL", *axes)


class Build:
    """A table of nodes that grows. variables: name → (min, max)."""

    def __init__(self, **variables: tuple[int, int]) -> None:
        self._variables = variables
        self._nodes: list[Json] = []
        self._outputs: list[int] = []
        self._loads = 0

    def node(self, node: Json, dtype: str, shape: list[Extent]) -> Term:
        self._nodes.append(node)
        return Term(self, len(self._nodes) - 1, dtype, shape)

    def load(
        self,
        dtype: str,
        shape: list[Extent],
        strides: list[Extent] | None = None,
        *,
        offset: Extent = 0,
        mask: list[list[Extent]] | None = None,
        views: list[Json] | None = None,
        buffer: str | None = None,
        image: list[int] | None = None,
    ) -> Term:
        """A load by views, of a new buffer or of one named before: `in0`, `in1` … for loads, `out0` … for outputs."""
        place: Json = {"views": views or [view(shape, strides, offset, mask)]}
        return self._load(dtype, views[-1]["shape"] if views else shape, place, buffer, image)

    def index(
        self, dtype: str, shape: list[Extent], index: Extent, *valid: str, values: list[Term] | None = None, buffer: str | None = None
    ) -> Term:
        """A load by expression; `values` are `src0`, `src1` …"""
        place: Json = {"shape": shape, "index": index, "valid": list(valid)}
        if values:
            place["src"] = [value.row for value in values]
        return self._load(dtype, shape, place, buffer, None)

    def _load(self, dtype: str, shape: list[Extent], place: Json, buffer: str | None, image: list[int] | None) -> Term:
        if buffer is None:
            buffer = f"in{self._loads}"
            self._loads += 1
        node: Json = {"op": "LOAD", "buffer": buffer, "dtype": dtype, **place}
        if image is not None:
            node["image"] = image
        return self.node(node, "float32" if image is not None else dtype, shape)

    def const(self, value: float | bool | str, dtype: str, shape: list[Extent], mask: list[list[Extent]] | None = None) -> Term:
        return self.node({"op": "CONST", "value": value, "dtype": dtype, "views": [view(shape, [0] * len(shape), 0, mask)]}, dtype, shape)

    def ramp(self, expr: str, dtype: str, shape: list[Extent], *valid: str) -> Term:
        """A constant that is an expression of the axes."""
        return self.node({"op": "CONST", "expr": expr, "dtype": dtype, "shape": shape, "valid": list(valid)}, dtype, shape)

    def store(
        self,
        term: Term,
        shape: list[Extent] | None = None,
        strides: list[Extent] | None = None,
        *,
        offset: Extent = 0,
        mask: list[list[Extent]] | None = None,
        index: Extent | None = None,
        valid: list[str] | None = None,
        values: list[Term] | None = None,
        image: list[int] | None = None,
        storage: str | None = None,
    ) -> Build:
        """A store of the next output, by views or by expression (`values` are `src1` …)."""
        full = term.shape if shape is None else shape
        place: Json = {"views": [view(full, strides, offset, mask)]}
        if index is not None:
            place = {"shape": full, "index": index, "valid": valid or []}
        node: Json = {"op": "STORE", "buffer": f"out{len(self._outputs)}", "dtype": storage or term.dtype, **place}
        node["src"] = [term.row, *(value.row for value in values or ())]
        if image is not None:
            node["image"] = image
        self._outputs.append(len(self._nodes))
        self._nodes.append(node)
        return self

    def ast(self) -> Json:
        numbers = {f"out{k}": k for k in range(len(self._outputs))} | {f"in{k}": len(self._outputs) + k for k in range(self._loads)}
        nodes = [node | {"buffer": numbers[node["buffer"]]} if "buffer" in node else node for node in self._nodes]
        declared = [{"name": name, "min": least, "max": greatest} for name, (least, greatest) in self._variables.items()]
        return {"version": 1, "variables": declared, "nodes": nodes, "outputs": self._outputs}
