"""A listing as text of a language of the C family: OpenCL, C and whatever else a Dialect describes.

One statement per value that is used more than once, the rest inside their users; loops and conditions as they stand in the listing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from core.device import DeviceOptions
from core.dtypes import BOOL, FLOAT32
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import access, moved, param
from core.ir.value import Value
from core.linear.listing import Listing
from core.render import convert_text, data_text, index_text, memory_text
from core.render.dialect import Dialect
from core.render.page import Page
from core.render.placement import BY_NAME, operands, place
from core.render.text import PLUS, PRIMARY, Text

MAX_DEPTH = 64  # nested operations of one expression; compilers built on clang stop at 256 brackets
MAX_WORDS = 400  # characters of one expression that stands inside another

_INDEX = frozenset((Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD))


def render(listing: Listing, device: DeviceOptions, dialect: Dialect) -> str:
    """The program's text. Comments say where lines come from if the listing does."""
    return Printer(listing, device, dialect).run()


class Printer:
    """One listing on its way to text. WGSL derives from it: other expressions, the same lines.

    statements: how operations are written that are more than an expression; expressions: the rest; by_name: those whose operands are names.
    """

    statements: ClassVar[Mapping[Op, Callable[[Any, Value], None]]]
    expressions: ClassVar[Mapping[Op, Callable[[Any, Value], Text]]]
    by_name: ClassVar[frozenset[Op]] = BY_NAME

    def __init__(self, listing: Listing, device: DeviceOptions, dialect: Dialect, page: Page | None = None) -> None:
        self.listing = listing
        self.dialect = dialect
        self.page = page or Page(dialect, device, listing.name)
        self.placement = place(listing.body, self.by_name)
        self.lines: list[str] = []
        self.indent = "  "
        self.shared: list[str] = []
        self.origins: dict[Value, frozenset[int]] = {}
        self.array_types: dict[Value, str] = {}
        self.bytes_at_once: dict[Value, int] = {}  # the widest access to a shared array, if it is of a vector
        self.registers: list[Value] = []  # not declared yet

    def run(self) -> str:
        accesses = [v for v in self.listing.body if v.op is Op.LOAD or v.op is Op.STORE]
        self._arrays(accesses)
        params = self._params()
        self._body()
        body = [*self.shared, *self._sampler(accesses), *self.lines]
        sizes = self.listing.local_size
        head = self.dialect.head if sizes is None or not self.dialect.sized_head else self.dialect.sized_head
        x, y, z = sizes or (1, 1, 1)
        opening = head.format(name=self.listing.name, params=params, x=x, y=y, z=z, lanes=x * y * z)
        helpers = [self.dialect.helpers[name].text.replace("{n}", n) for name, n in self.page.helpers]
        function = [opening, *body, "}", ""]
        before = [*self._preamble("\n".join([*helpers, *function])), *helpers]
        return "\n".join([*before, "", *function] if before else function)

    # ---- around the body ---------------------------------------------------------------------------------------------------

    def _arrays(self, accesses: list[Value]) -> None:
        """Names and element types of arrays, and the alignment vector accesses need of shared ones."""
        widened: set[Value] = set()
        used: set[Value] = set()
        for value in accesses:
            array, element = value.src[0], moved(value)
            if element.dtype is FLOAT32 and self.page.narrow(array.dtype) is not None:
                widened.add(array)
            if array.op is Op.SHARED:
                used.add(array)
                if element.lanes > 1:
                    size = element.lanes * array.dtype.itemsize
                    self.bytes_at_once[array] = max(size, self.bytes_at_once.get(array, 0))
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
                params.append(self.dialect.param.format(const=const, t=self.array_types[array], name=name, k=len(params)))
        for name, _, _ in self.listing.variables:
            text = self.page.variables[name] = self.page.names.variable(name)
            params.append(self.dialect.variable.format(name=text.words, k=len(params)))
        asked = {_special(v)[0] for v in self._launch_indices()} if self.dialect.launch_params else ()
        params += [param for kind, param in self.dialect.launch_params.items() if kind in asked]
        return ", ".join(params) or self.dialect.no_params

    def _sampler(self, accesses: list[Value]) -> list[str]:
        images = self.dialect.images
        is_read = images is not None and any(v.op is Op.LOAD and _is_image(v.src[0]) for v in accesses)
        return [f"  {images.sampler}"] if images is not None and is_read else []

    def _preamble(self, text: str) -> list[str]:
        possible = [*self.dialect.half_preamble, *self.dialect.preamble] if self.page.native_half else self.dialect.preamble
        return [p.line for p in possible if not (p.exact and self.page.fast) and p.is_needed(text)]

    # ---- the body ----------------------------------------------------------------------------------------------------------

    def _body(self) -> None:
        for value in sorted(self._launch_indices(), key=_launch_order):
            self._launch_index(value)
        for value in self.listing.body:
            write = self.statements.get(value.op)
            if value in self.placement.dead:
                continue
            if write is None:
                self._expression(value)
            else:
                write(self, value)

    def _launch_indices(self) -> list[Value]:
        return [v for v in self.listing.body if v.op is Op.SPECIAL and v not in self.placement.dead]

    def _launch_index(self, value: Value) -> None:
        kind, dimension = _special(value)
        self._declare(value, self.dialect.special[kind].format(d=dimension, l="xyz"[dimension]), "l" if kind == "local" else "g")

    def _store(self, value: Value) -> None:
        self._line(value, memory_text.store(self.page, value))

    def _update(self, value: Value) -> None:
        name = self.page.text(value.src[0])
        self._line(value, f"{name.words} = {self.page.text(value.src[1]).words};")
        self.page.texts[value] = name

    def _register(self, value: Value) -> None:
        """Declared right before the outermost loop that carries it."""
        self.registers.append(value)

    def _loop(self, value: Value) -> None:
        for register in [r for r in self.registers if value in r.src]:
            self.registers.remove(register)
            self._declare(register, self.page.text(register.src[0]).words, "a", moves=True)
        name, end = self.page.names.next("r"), self.page.text(value.src[0]).at(PLUS)
        self._open(value, self.dialect.loop.format(t=self.page.word(value.dtype), name=name.words, end=end))
        self.page.texts[value] = name

    def _condition(self, value: Value) -> None:
        self._open(value, f"if ({self.page.text(value.src[0]).words}) {{")
        self.page.open_gates.add(value.src[0])

    def _open(self, value: Value, words: str) -> None:
        self._line(value, words)
        self.indent += "  "

    def _close(self, value: Value) -> None:
        self.indent = self.indent[:-2]
        self.lines.append(self.indent + "}")
        self.page.open_gates.difference_update(value.src[0].src)

    def _barrier(self, value: Value) -> None:
        in_place = any(param(array).access == "readwrite" for array in self.listing.params)  # one lane stores what all have read
        self._line(value, self.dialect.barrier_of_buffers if in_place else self.dialect.barrier)

    def _load(self, value: Value) -> None:
        if value.lanes > 1 and memory_text.gate_of(self.page, access(value)) is not None:
            self._gated_vector(value)
        else:
            self._expression(value)

    def _gated_vector(self, value: Value) -> None:
        parts = access(value)
        assert parts.gate is not None
        assert parts.alternative is not None
        gate, read = self.page.text(parts.gate).words, memory_text.opened(self.page, value, parts).words
        name = self._declare(value, self.page.text(parts.alternative).words, "v")
        self._line(value, f"if ({gate}) {name} = {read};")

    def _expression(self, value: Value) -> None:
        write = self.expressions.get(value.op)
        if write is None:
            raise CompilerBug("render", f"{value.op.name} has no text in {self.dialect.name}")
        self._written(value, write(self.page, value))

    def _written(self, value: Value, text: Text) -> None:
        """An expression where its value is used, or in a line of its own."""
        page = self.page
        if value in self.placement.inline and text.depth < MAX_DEPTH and len(text.words) <= MAX_WORDS:
            page.texts[value] = text
            page.inlined.add(value)
        elif text.depth == 0 and text.is_name and not text.moves:
            page.texts[value] = text
        else:
            self._declare(value, text.words, letter_of(value))
            return
        if self.listing.provenance:
            self.origins[value] = self._origins(value)

    def _declare(self, value: Value, words: str, letter: str, *, moves: bool = False) -> str:
        name = self.page.names.next(letter, moves=moves)
        how = self.dialect.register if moves else self.dialect.declare
        self._line(value, how.format(t=self.page.type_of(value.dtype, value.lanes), name=name.words, x=words))
        self.page.texts[value] = name
        return name.words

    def _shared(self, value: Value) -> None:
        _, elements = _shared(value)
        name = self.page.names.next("s")
        size = self.bytes_at_once.get(value, 0)
        align = self.dialect.aligned.format(a=max(size, 16)) if size else ""
        words = self.dialect.shared.format(t=self.page.element(value.dtype), name=name.words, n=max(elements, 1), align=align)
        self.shared.append(f"  {words}")
        self.page.texts[value] = name

    # ---- lines -------------------------------------------------------------------------------------------------------------

    def _line(self, value: Value, words: str) -> None:
        if self.listing.provenance:
            nodes = sorted(self._origins(value))
            if nodes:
                words = f"{words} {self.dialect.comment.format(x=' '.join(map(str, nodes)))}"
        self.lines.append(self.indent + words)

    def _origins(self, value: Value) -> frozenset[int]:
        """Nodes of a line: those of its value and of all that is written inside it."""
        inner = (self.origins[s] for s in operands(value) if s in self.origins)
        return frozenset(self.listing.provenance.get(value, ())).union(*inner)


STATEMENTS: dict[Op, Callable[[Any, Value], None]] = {
    Op.STORE: Printer._store,
    Op.UPDATE: Printer._update,
    Op.ACC: Printer._register,
    Op.RANGE: Printer._loop,
    Op.IF: Printer._condition,
    Op.END: Printer._close,
    Op.BARRIER: Printer._barrier,
    Op.LOAD: Printer._load,
    Op.SPECIAL: lambda printer, value: None,  # declared before all else
}
EXPRESSIONS: dict[Op, Callable[[Page, Value], Text]] = {
    **dict.fromkeys((Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD), index_text.index),
    Op.LESS: index_text.less,
    Op.ALL: index_text.conjunction,
    Op.LOAD: memory_text.load,
    Op.CAST: convert_text.converted,
    Op.INDEX_OF: convert_text.converted,
    Op.BITCAST: convert_text.reinterpreted,
    Op.ROUND: convert_text.rounded,
    Op.VECTOR: data_text.vector,
    Op.EXTRACT: data_text.extract,
    Op.NEG: data_text.negative,
    Op.NOT: data_text.negation,
    Op.RECIP: data_text.reciprocal,
    **dict.fromkeys((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT), data_text.function),
    **dict.fromkeys((Op.ADD, Op.MUL, Op.IDIV, Op.REM, Op.XOR, Op.AND, Op.OR, Op.SHL, Op.SHR), data_text.binary),
    Op.MAX: data_text.maximum,
    Op.CMPLT: data_text.comparison,
    Op.CMPNE: data_text.comparison,
    Op.WHERE: data_text.where,
    Op.MMA: data_text.matrix,
}
Printer.statements = STATEMENTS
Printer.expressions = EXPRESSIONS


def letter_of(value: Value) -> str:
    """What the name of a value begins with."""
    return "c" if value.dtype is BOOL else "i" if value.dtype.is_index or value.op in _INDEX else "v"


def _launch_order(value: Value) -> tuple[bool, int]:
    """Groups from the slowest axis to the fastest, then the work-items of one."""
    kind, dimension = _special(value)
    return kind == "local", dimension if kind == "local" else -dimension


def _special(value: Value) -> tuple[str, int]:
    assert isinstance(value.arg, tuple)
    kind, dimension = value.arg
    return kind, dimension


def _is_image(array: Value) -> bool:
    return array.op is Op.PARAM and param(array).image is not None


def _shared(value: Value) -> tuple[int, int]:
    assert isinstance(value.arg, tuple)
    number, elements = value.arg
    return number, elements
