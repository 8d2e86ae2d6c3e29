"""A listing as text of a language of the C family: OpenCL, C and whatever else a Dialect describes.

One statement per value that is used more than once, the rest inside their users; loops and conditions as they stand in the listing.
"""

from __future__ import annotations

import re

from core.device import DeviceOptions
from core.dtypes import BOOL, FLOAT32
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import access, param
from core.ir.value import Value
from core.linear.listing import Listing
from core.render import convert_text, data_text, index_text, memory_text
from core.render.dialect import Dialect
from core.render.page import Page
from core.render.placement import operands, place
from core.render.text import PLUS, PRIMARY, Text

MAX_DEPTH = 64  # nested operations of one expression; compilers built on clang stop at 256 brackets
MAX_WORDS = 400  # characters of one expression that stands inside another

_INDEX = frozenset((Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD))
_BINARY = frozenset((Op.ADD, Op.MUL, Op.IDIV, Op.REM, Op.XOR, Op.AND, Op.OR, Op.SHL, Op.SHR))
_FUNCTIONS = frozenset((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT))


def render(listing: Listing, device: DeviceOptions, dialect: Dialect) -> str:
    """The program's text. Comments say where lines come from if the listing does."""
    return _Printer(listing, device, dialect).run()


class _Printer:
    def __init__(self, listing: Listing, device: DeviceOptions, dialect: Dialect) -> None:
        self.listing = listing
        self.dialect = dialect
        self.page = Page(dialect, device, listing.name)
        self.placement = place(listing.body)
        self.lines: list[str] = []
        self.level = 1
        self.shared: list[str] = []
        self.origins: dict[Value, frozenset[int]] = {}
        self.array_types: dict[Value, str] = {}
        self.registers: list[Value] = []  # not declared yet

    def run(self) -> str:
        self._arrays()
        params = self._params()
        for value in sorted((v for v in self.listing.body if v.op is Op.SPECIAL), key=_launch_order):
            self._write(value)
        for value in self.listing.body:
            if value.op is not Op.SPECIAL:
                self._write(value)
        body = [*self.shared, *self._sampler(), *self.lines]
        sizes = self.listing.local_size
        head = self.dialect.head if sizes is None or not self.dialect.sized_head else self.dialect.sized_head
        x, y, z = sizes or (1, 1, 1)
        opening = head.format(name=self.listing.name, params=params, x=x, y=y, z=z)
        helpers = [self.dialect.helpers[name].text.replace("{n}", n) for name, n in self.page.helpers]
        function = [opening, *body, "}", ""]
        before = [*self._preamble("\n".join([*helpers, *function])), *helpers]
        return "\n".join([*before, "", *function] if before else function)

    # ---- around the body ---------------------------------------------------------------------------------------------------

    def _arrays(self) -> None:
        """Names and element types of arrays, and the alignment vector accesses need of shared ones."""
        widened: set[Value] = set()
        bytes_at_once: dict[Value, int] = {}
        for value in self.listing.body:
            if _is_access(value):
                parts = access(value)
                moved = parts.stored if parts.stored is not None else value
                if moved.dtype is FLOAT32 and self.page.narrow(parts.array.dtype) is not None:
                    widened.add(parts.array)
                if moved.lanes > 1:
                    size = moved.lanes * parts.array.dtype.itemsize
                    bytes_at_once[parts.array] = max(size, bytes_at_once.get(parts.array, 0))
        self.bytes_at_once = bytes_at_once
        used = {parts.array for parts in map(access, filter(_is_access, self.listing.body)) if parts.array.op is Op.SHARED}
        for array in sorted(used, key=_shared):
            self._shared(array)
        for array in self.listing.params:
            self.page.texts[array] = Text(f"d{param(array).number}", PRIMARY)
            self.array_types[array] = memory_text.element_word(self.page, array, array in widened)

    def _params(self) -> str:
        params = []
        for array in self.listing.params:
            facts = param(array)
            name = self.page.texts[array].words
            if facts.image is not None and self.dialect.images is not None:
                params.append(self.dialect.images.params[facts.access].format(name=name))
            else:
                const = self.dialect.const if facts.access == "read" else ""
                params.append(self.dialect.param.format(const=const, t=self.array_types[array], name=name))
        self.variables = {name: self.page.names.variable(name) for name, _, _ in self.listing.variables}
        params.extend(self.dialect.variable.format(name=name) for name in self.variables.values())
        return ", ".join(params) or self.dialect.no_params

    def _sampler(self) -> list[str]:
        images = self.dialect.images
        is_read = any(v.op is Op.LOAD and _image_of(v) for v in self.listing.body)
        return [f"  {images.sampler}"] if images is not None and is_read else []

    def _preamble(self, text: str) -> list[str]:
        lines = [line for pattern, line in self.dialect.preamble if re.search(pattern, text)]
        if self.page.native_half and re.search(self.dialect.half_pattern, text):
            lines = [*self.dialect.half_preamble, *lines]
        return lines

    # ---- the body ----------------------------------------------------------------------------------------------------------

    def _write(self, value: Value) -> None:
        if value not in self.placement.live:
            return
        for operand in operands(value):
            if operand.op is Op.VARIABLE and operand not in self.page.texts:
                self.page.texts[operand] = self._variable(operand)
        match value.op:
            case Op.STORE:
                parts = access(value)
                words = memory_text.store(self.page, value)
                gate = f"if ({self.page.text(parts.gate).words}) " if parts.gate is not None else ""
                self._line(value, gate + words)
            case Op.UPDATE:
                name = self.page.text(value.src[0])
                self._line(value, f"{name.words} = {self.page.text(value.src[1]).words};")
                self.page.texts[value] = name
            case Op.ACC:
                self.registers.append(value)
            case Op.RANGE:
                self._registers(value)
                self._loop(value)
            case Op.IF:
                self._open(value, f"if ({self.page.text(value.src[0]).words}) {{")
            case Op.END:
                self.level -= 1
                self.lines.append("  " * self.level + "}")
            case Op.BARRIER:
                in_place = any(param(array).access == "readwrite" for array in self.listing.params)  # one lane stores what all have read
                self._line(value, self.dialect.barrier_of_buffers if in_place else self.dialect.barrier)
            case Op.SPECIAL:
                kind, dimension = _special(value)
                self._declare(value, Text(self.dialect.special[kind].format(d=dimension), PRIMARY), "l" if kind == "local" else "g")
            case Op.LOAD if value.lanes > 1 and access(value).gate is not None:
                self._gated_vector(value)
            case _:
                self._expression(value)

    def _expression(self, value: Value) -> None:
        text = self._text(value)
        if value in self.placement.inline and text.depth < MAX_DEPTH and len(text.words) <= MAX_WORDS:
            self.page.texts[value] = text
            self.page.inlined.add(value)
            self._remember(value)
        elif text.depth == 0 and text.is_name and not text.moves:
            self.page.texts[value] = text
            self._remember(value)
        else:
            self._declare(value, text, "c" if value.dtype is BOOL else "i" if value.dtype.is_index or value.op in _INDEX else "v")

    def _declare(self, value: Value, text: Text, letter: str) -> None:
        name = self.page.names.next(letter)
        self._line(value, f"{self.page.type_of(value.dtype, value.lanes)} {name} = {text.words};")
        self.page.texts[value] = Text(name, PRIMARY)

    def _gated_vector(self, value: Value) -> None:
        parts = access(value)
        assert parts.gate is not None
        assert parts.alternative is not None
        name = self.page.names.next("v")
        gate, read = self.page.text(parts.gate).words, memory_text.opened(self.page, value, parts).words
        self._line(value, f"{self.page.type_of(value.dtype, value.lanes)} {name} = {self.page.text(parts.alternative).words};")
        self._line(value, f"if ({gate}) {name} = {read};")
        self.page.texts[value] = Text(name, PRIMARY)

    def _registers(self, loop: Value) -> None:
        """Registers are declared right before the outermost loop that carries them."""
        for register in [r for r in self.registers if loop in r.src]:
            self.registers.remove(register)
            name = self.page.names.next("a")
            self._line(register, f"{self.page.type_of(register.dtype, register.lanes)} {name} = {self.page.text(register.src[0]).words};")
            self.page.texts[register] = Text(name, PRIMARY, moves=True)

    def _loop(self, value: Value) -> None:
        name, end = self.page.names.next("r"), self.page.text(value.src[0])
        word = self.page.word(value.dtype)
        self._open(value, f"for ({word} {name} = 0; {name} < {end.at(PLUS)}; {name}++) {{")
        self.page.texts[value] = Text(name, PRIMARY)

    def _shared(self, value: Value) -> None:
        _, elements = _shared(value)
        name = self.page.names.next("s")
        size = self.bytes_at_once.get(value, 0)
        align = self.dialect.aligned.format(a=max(size, 16)) if size else ""
        words = self.dialect.shared.format(t=self.page.element(value.dtype), name=name, n=max(elements, 1), align=align)
        self.shared.append(f"  {words}")
        self.page.texts[value] = Text(name, PRIMARY)

    def _variable(self, value: Value) -> Text:
        assert isinstance(value.arg, tuple)
        name = str(value.arg[0])
        return Text(self.variables[name], PRIMARY)

    # ---- lines -------------------------------------------------------------------------------------------------------------

    def _open(self, value: Value, words: str) -> None:
        self._line(value, words)
        self.level += 1

    def _line(self, value: Value, words: str) -> None:
        comment = ""
        if self.listing.provenance:
            nodes = sorted(self._origins(value))
            comment = " " + self.dialect.comment.format(x=" ".join(map(str, nodes))) if nodes else ""
        self.lines.append("  " * self.level + words + comment)

    def _remember(self, value: Value) -> None:
        if self.listing.provenance:
            self.origins[value] = self._origins(value)

    def _origins(self, value: Value) -> frozenset[int]:
        """Nodes of a line: those of its value and of all that is written inside it."""
        inner = (self.origins[s] for s in operands(value) if s in self.origins)
        return frozenset(self.listing.provenance.get(value, ())).union(*inner)

    # ---- expressions -------------------------------------------------------------------------------------------------------

    def _text(self, value: Value) -> Text:
        page, op = self.page, value.op
        if op in _INDEX:
            return index_text.index(page, value)
        if op in _BINARY:
            return data_text.binary(page, value)
        if op in _FUNCTIONS:
            return data_text.function(page, value)
        match op:
            case Op.LESS:
                return index_text.less(page, value)
            case Op.ALL:
                return index_text.conjunction(page, value)
            case Op.LOAD:
                return memory_text.load(page, value)
            case Op.CAST | Op.INDEX_OF:
                return convert_text.converted(page, value)
            case Op.BITCAST:
                return convert_text.reinterpreted(page, value)
            case Op.ROUND:
                return convert_text.rounded(page, value)
            case Op.VECTOR:
                return data_text.vector(page, value)
            case Op.EXTRACT:
                return data_text.extract(page, value)
            case Op.NEG:
                return data_text.negative(page, value)
            case Op.NOT:
                return data_text.negation(page, value)
            case Op.RECIP:
                return data_text.reciprocal(page, value)
            case Op.MAX:
                return data_text.maximum(page, value)
            case Op.CMPLT | Op.CMPNE:
                return data_text.comparison(page, value)
            case Op.WHERE:
                return data_text.where(page, value)
            case _:
                raise CompilerBug("render", f"{op.name} has no text in {self.dialect.name}")


def _launch_order(value: Value) -> tuple[bool, int]:
    """Groups from the slowest axis to the fastest, then the work-items of one."""
    kind, dimension = _special(value)
    return kind == "local", dimension if kind == "local" else -dimension


def _special(value: Value) -> tuple[str, int]:
    assert isinstance(value.arg, tuple)
    kind, dimension = value.arg
    return kind, dimension


def _image_of(value: Value) -> bool:
    array = access(value).array
    return array.op is Op.PARAM and param(array).image is not None


def _is_access(value: Value) -> bool:
    return value.op is Op.LOAD or value.op is Op.STORE


def _shared(value: Value) -> tuple[int, int]:
    assert isinstance(value.arg, tuple)
    number, elements = value.arg
    return number, elements
