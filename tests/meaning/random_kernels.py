"""Small kernels at random: every op and dtype, views and expressions, masks, gathers, ramps, nested and sibling reduces, several outputs,
in-place buffers, symbolic and empty extents.

Most are kernels the wire allows; those that are not are refused by the compiler's own checks, and the caller draws another.
"""

from __future__ import annotations

from typing import Any

from tests.meaning.build import Build, Extent, Term, dense, view
from tests.meaning.choices import Choices

Json = dict[str, Any]

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int32", "uint8", "int8", "uint16", "int16", "uint32", "int64", "uint64")
DTYPES = ("float32",) * 6 + ("int32",) * 5 + FLOATS + INTEGERS + ("bool",) * 2
EXTENTS = (2, 4, 3, 8, 1, 6, 12, 5, 7, 16, 9, 10, 13)
POINTS = 600  # of the iteration space, about
NUMBERS = (1, 2, 3, -1, 0, 5)
UNARY = ("NEG", "EXP2", "SIN", "SQRT", "RECIP", "LOG2")
BINARY = ("ADD", "MUL", "MAX")
OF_INTEGERS = ("XOR", "AND", "OR", "IDIV", "MOD")
OF_BOOLS = ("XOR", "AND", "OR")
REDUCES = ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MUL")
SYMBOL = "n"
SYMBOL_MOST = 9  # the variable's greatest value: small, as extents are


class RandomKernel:
    """One kernel, drawn. full: the extents of its iteration space."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.full: list[Extent] = self._shape()
        least = choices.one_of((1, 1, 0, -2)) if SYMBOL not in self.full else choices.one_of((1, 1, 0))
        self.build = Build(**({SYMBOL: (least, SYMBOL_MOST)} if SYMBOL in self.full or choices.once_in(8) else {}))
        self.symbolic = bool(self.build.ast()["variables"])
        self.terms: list[Term] = []

    def ast(self) -> Json:
        choices = self.choices
        for _ in range(choices.between(1, 3)):
            self.terms.append(self._leaf())
        for _ in range(choices.between(0, 6)):
            self.terms.append(self._node())
        reduced = [k for k in range(len(self.full)) if choices.once_in(3)]
        shape: list[Extent] = [1 if k in reduced else extent for k, extent in enumerate(self.full)]
        for _ in range(choices.one_of((1, 1, 1, 2, 3))):
            self._store(self._fitted(self._any(), shape), shape)
        return self.build.ast()

    # ---- shapes --------------------------------------------------------------------------------------------------------

    def _shape(self) -> list[Extent]:
        choices = self.choices
        shape: list[Extent] = []
        left = POINTS
        for _ in range(choices.one_of((2, 1, 2, 3, 2, 3, 4, 0))):
            fitting = [e for e in EXTENTS if e <= left] or [1]
            extent = choices.one_of(fitting)
            left //= extent
            shape.append(extent)
        if shape and choices.once_in(8):
            shape[choices.below(len(shape))] = SYMBOL
        if shape and choices.once_in(40):
            shape[choices.below(len(shape))] = 0
        return shape

    def _most(self, extent: Extent) -> int:
        return extent if isinstance(extent, int) else SYMBOL_MOST

    # ---- leaves --------------------------------------------------------------------------------------------------------

    def _leaf(self) -> Term:
        choices = self.choices
        dtype = choices.one_of(DTYPES)
        shape: list[Extent] = [1 if choices.once_in(6) else extent for extent in self.full]
        match choices.below(12):
            case 8 if self.terms:
                return self._constant(dtype, shape)
            case 9:
                return self._ramp(dtype, shape)
            case 10:
                return self._gather(dtype, shape)
            case 11:
                return self._by_expression(dtype, shape)
            case 6 | 7 if all(isinstance(e, int) for e in shape) and shape:
                return self._stacked(dtype, [int(e) for e in shape])
            case _:
                return self._by_view(dtype, shape)

    def _by_view(self, dtype: str, shape: list[Extent]) -> Term:
        strides, offset = self._strides(shape)
        return self.build.load(dtype, shape, strides, offset=offset, mask=self._mask(shape))

    def _strides(self, shape: list[Extent]) -> tuple[list[Extent], Extent]:
        """Dense in some order of the axes, here and there broadcast, flipped or with a gap."""
        choices = self.choices
        order = list(range(len(shape)))
        if len(order) > 1 and choices.once_in(3):
            order.insert(0, order.pop(choices.below(len(order))))
        strides: list[Extent] = [0] * len(shape)
        step, offset = choices.one_of((1, 1, 1, 1, 2, 3)), choices.one_of((0, 0, 0, 0, 1, 2, 4))
        for k in reversed(order):
            extent = self._most(shape[k])
            if choices.once_in(8) or extent == 1:
                continue
            if choices.once_in(10) and isinstance(shape[k], int):
                strides[k] = -step
                offset += step * max(extent - 1, 0)
            else:
                strides[k] = step
            step *= max(extent, 1)
            if choices.once_in(10):
                step += choices.between(1, 4)
        return strides, offset

    def _mask(self, shape: list[Extent]) -> list[list[Extent]] | None:
        choices = self.choices
        if not choices.once_in(4):
            return None
        mask: list[list[Extent]] = []
        for extent in shape:
            if isinstance(extent, int) and choices.once_in(2):
                begin = choices.between(0, extent)
                mask.append([begin, choices.between(begin, extent)])
            else:
                mask.append([0, extent])
        return mask

    def _stacked(self, dtype: str, shape: list[int]) -> Term:
        """A padded window, reshaped or cut; or windows that overlap."""
        choices = self.choices
        count = 1
        for extent in shape:
            count *= extent
        before, after = choices.between(0, 3), choices.between(0, 3)
        inside = max(count - before - after, 0)
        flat = view([count], [1], -before, [[min(before, count), min(before, count) + inside]])
        if choices.once_in(2):
            return self.build.load(dtype, [*shape], views=[flat, view([*shape], dense([*shape]))])
        # every axis padded on its own, then seen through a window that moves
        padded: list[Extent] = [extent + before + after for extent in shape]
        base = dense([*shape])
        offset = -sum(before * int(s) for s in base)
        mask: list[list[Extent]] = [[before, before + extent] for extent in shape]
        begin = sum(choices.between(0, before + after) * int(s) for s in dense(padded))
        return self.build.load(dtype, [*shape], views=[view(padded, base, offset, mask), view([*shape], dense(padded), begin)])

    def _by_expression(self, dtype: str, shape: list[Extent]) -> Term:
        index = self._expression(shape)
        valid = [f"axis{k} < {self.choices.between(0, self._most(e))}" for k, e in enumerate(shape) if self.choices.once_in(5)]
        if valid and self.choices.once_in(2):
            return self.build.index(dtype, shape, f"{index} - 2", f"{index} >= 2", *valid)
        return self.build.index(dtype, shape, index, *valid)

    def _expression(self, shape: list[Extent]) -> str:
        """An index that is never negative: dense, and perhaps divided, taken modulo or shifted by the variable."""
        choices = self.choices
        index, step = "0", 1
        for k in reversed(range(len(shape))):
            if not choices.once_in(6):
                index = f"axis{k}*{step} + {index}"
            step *= max(self._most(shape[k]), 1)
        a, b = choices.between(2, 8), choices.between(2, 8)
        form = choices.one_of(("{i}", "({i})//{a}*{b} + ({i})%{a}", "({i})%{a}", "({i})//{a}", "({i})*{a}%{b}", "({i} + {b})//{a}"))
        index = form.format(i=index, a=a, b=b)
        if self.symbolic and choices.once_in(2):
            index = f"{index} + {SYMBOL} + 2"
        return index

    def _gather(self, dtype: str, shape: list[Extent]) -> Term:
        choices = self.choices
        values: list[Term] = [t for t in self.terms if t.dtype in ("int32", "uint8", "int64", "bool") and self._within(t, shape)]
        computed = bool(values) and choices.once_in(2)
        value = choices.one_of(values) if computed else self._by_view(choices.one_of(("int32", "uint8", "int8", "int64")), shape)
        most = choices.between(1, 8)
        inner = "".join(f" + axis{k}" for k, extent in enumerate(shape) if extent != 1 and choices.once_in(3))
        return self.build.index(dtype, shape, f"src0*{choices.between(1, 4)}{inner}", "src0 >= 0", f"src0 < {most}", values=[value])

    def _within(self, term: Term, shape: list[Extent]) -> bool:
        return all(e in (1, full) for e, full in zip(term.shape, shape, strict=True))

    def _constant(self, dtype: str, shape: list[Extent]) -> Term:
        return self.build.const(self._number(dtype), dtype, shape, self._mask(shape))

    def _number(self, dtype: str) -> float | bool:
        number = self.choices.one_of(NUMBERS)
        if dtype == "bool":
            return number > 0
        if dtype in FLOATS:
            return number * self.choices.one_of((1.0, 0.5, 0.25))
        return abs(number) if dtype.startswith("u") else number

    def _ramp(self, dtype: str, shape: list[Extent]) -> Term:
        valid = [f"axis{k} < {self.choices.between(0, self._most(e))}" for k, e in enumerate(shape) if self.choices.once_in(5)]
        return self.build.ramp(self._expression(shape), dtype, shape, *valid)

    # ---- nodes ---------------------------------------------------------------------------------------------------------

    def _any(self) -> Term:
        """A term, the latest ones rather."""
        return self.terms[-1 - self.choices.below(min(len(self.terms), 3))]

    def _of(self, dtype: str) -> Term:
        term = self.terms[-1 - self.choices.below(len(self.terms))]
        return term if term.dtype == dtype else term.cast(dtype)

    def _node(self) -> Term:
        choices = self.choices
        term = self._any()
        match choices.below(10):
            case 0 | 1 | 2:
                ops = BINARY + (OF_INTEGERS if term.dtype in INTEGERS else OF_BOOLS if term.dtype == "bool" else ())
                return term.op(choices.one_of(ops), self._of(term.dtype))
            case 3 if term.dtype in FLOATS:
                return self._function(term)
            case 4:
                return self._selected(term)
            case 5:
                return self._converted(term)
            case 6 if self._fresh(term):
                return self._leaf_beside(term)
            case 7 | 8 | 9:
                return self._reduced(term)
            case _:
                return term.op(choices.one_of(BINARY), self._number(term.dtype))

    def _fresh(self, term: Term) -> bool:
        return len(self.terms) < 8 and term.dtype != "bool"

    def _leaf_beside(self, term: Term) -> Term:
        """One more load, into a product or a sum."""
        leaf = self._leaf()
        leaf = leaf if leaf.dtype == term.dtype else leaf.cast(term.dtype)
        if self.choices.once_in(3):
            return term.op("MULACC", leaf, self._of(term.dtype))
        return term.op(self.choices.one_of(("MUL", "ADD")), leaf)

    def _function(self, term: Term) -> Term:
        return term.op(self.choices.one_of(UNARY))

    def _selected(self, term: Term) -> Term:
        other = self._of(term.dtype)
        condition = term.op(self.choices.one_of(("CMPLT", "CMPNE")), other)
        if self.choices.once_in(3):
            return condition
        return condition.where(term, other if self.choices.once_in(2) else self._of(term.dtype))

    def _converted(self, term: Term) -> Term:
        choices = self.choices
        if term.dtype in ("int32", "uint8", "uint16", "int64") and choices.once_in(2):
            return term.op(choices.one_of(("SHL", "SHR")), choices.between(0, 7))
        same = {"float32": "int32", "int32": "uint32", "float16": "uint16", "int8": "uint8"}.get(term.dtype)
        if same and choices.once_in(3):
            return term.bitcast(same)
        return term.cast(choices.one_of(DTYPES))

    def _reduced(self, term: Term) -> Term:
        axes = [k for k in range(len(term.shape)) if self.choices.once_in(2)]
        return term.reduce(self.choices.one_of(REDUCES), *axes) if axes else -term

    # ---- outputs -------------------------------------------------------------------------------------------------------

    def _fitted(self, term: Term, shape: list[Extent]) -> Term:
        """The term with extent 1 wherever the outputs have it."""
        axes = [k for k, extent in enumerate(shape) if extent == 1 and term.shape[k] != 1]
        return term.reduce(self.choices.one_of(REDUCES), *axes) if axes else term

    def _store(self, term: Term, shape: list[Extent]) -> None:
        choices, build = self.choices, self.build
        strides, offset = dense(shape), choices.one_of((0, 0, 0, 0, 1, 4))
        order = list(range(len(shape)))
        if len(order) > 1 and choices.once_in(4) and all(isinstance(e, int) for e in shape):
            order.insert(0, order.pop(choices.below(len(order))))
            step = choices.one_of((1, 1, 2))
            for k in reversed(order):
                strides[k] = step if shape[k] != 1 else 0
                step *= int(shape[k])
        match choices.below(8):
            case 5:
                old = build.load(term.dtype, shape, strides, offset=offset, buffer=f"out{self._outputs()}")
                build.store(term.op(choices.one_of(BINARY), old), shape, strides, offset=offset)
            case 6:
                switch = self._by_view("int8", shape)
                index = " + ".join(f"axis{k}*({s})" for k, s in enumerate(strides) if s != 0) or "0"
                build.store(term, shape, index=index, valid=["src1 > -2"], values=[switch])
            case 7:
                build.store(term, shape, strides, offset=offset, mask=self._mask(shape))
            case _:
                build.store(term, shape, strides, offset=offset)

    def _outputs(self) -> int:
        return len(self.build.ast()["outputs"])


def random_kernel(choices: Choices) -> Json:
    """A kernel's AST."""
    return needed_only(RandomKernel(choices).ast())


def needed_only(ast: Json) -> Json:
    """Without the nodes no output needs; buffers numbered anew, without a gap."""
    nodes, outputs = ast["nodes"], ast["outputs"]
    needed: set[int] = set()
    waiting = list(outputs)
    while waiting:
        row = waiting.pop()
        if row not in needed:
            needed.add(row)
            waiting += nodes[row].get("src", [])
    rows = {row: at for at, row in enumerate(sorted(needed))}
    used = sorted({nodes[row]["buffer"] for row in needed if "buffer" in nodes[row]})
    numbers = {buffer: at for at, buffer in enumerate(used)}
    kept: list[Json] = []
    for row in sorted(needed):
        node = dict(nodes[row])
        if "src" in node:
            node["src"] = [rows[s] for s in node["src"]]
        if "buffer" in node:
            node["buffer"] = numbers[node["buffer"]]
        kept.append(node)
    return ast | {"nodes": kept, "outputs": [rows[row] for row in outputs]}
