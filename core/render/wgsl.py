"""A listing as a WGSL module: the printer of the C family with WGSL's expressions, and its arrays at module scope.

Argument k of a program is binding k of group 0, whether the program uses it or not. Every load behind a gate is a statement: `select`
evaluates both of its sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from core.device import DeviceOptions
from core.ir.op import Op
from core.ir.parts import Access, access, param, shared
from core.ir.value import Value
from core.linear.listing import Listing
from core.render import wgsl_text
from core.render.c_family import EXPRESSIONS, STATEMENTS, Printer, letter_of
from core.render.dialect import Dialect
from core.render.memory_text import gate_of
from core.render.text import PRIMARY, Text
from core.render.wgsl_memory import Arrays
from core.render.wgsl_text import WgslPage

_INPUTS = {"group": "workgroup_id", "lane": "local_invocation_id", "item": "global_invocation_id"}  # our names of the language's
MEMBERS = frozenset(_INPUTS)


def render(listing: Listing, device: DeviceOptions, dialect: Dialect) -> str:
    """The module's text. Comments say where lines come from if the listing does."""
    return WgslPrinter(listing, device, dialect).run()


class WgslPrinter(Printer):
    """One listing on its way to a module."""

    by_name = frozenset((Op.EXTRACT,))

    def __init__(self, listing: Listing, device: DeviceOptions, dialect: Dialect) -> None:
        super().__init__(listing, device, dialect, WgslPage(dialect, device, listing.name))
        self.arrays = Arrays(self.page, [v for v in listing.body if v.op is Op.LOAD or v.op is Op.STORE])
        self.bindings: list[tuple[str, str]] = []  # name, declaration

    def run(self) -> str:
        self._bind()
        for array in sorted({v for v in self.arrays.lanes if v.op is Op.SHARED}, key=lambda v: shared(v).number):
            self._shared(array)
        self._body()
        x, y, z = self.listing.local_size or (1, 1, 1)
        helpers = [self.dialect.helpers[name].text for name, _ in self.page.helpers]
        functions = [*helpers, *self.arrays.functions.values()]
        mentioned = "\n".join([*self.arrays.functions.values(), *self.lines])
        unused = [f"  _ = {name};" for name, _ in self.bindings if not _is_in(name.removeprefix("&"), mentioned)]
        inputs = [f"@builtin({builtin}) {name}: vec3<u32>" for name, builtin in _INPUTS.items() if _is_in(name, mentioned)]
        opening = self.dialect.sized_head.format(name=self.listing.name, params=", ".join(inputs), x=x, y=y, z=z)
        function = [opening, *unused, *self.lines, "}", ""]
        declared = [*(words for _, words in self.bindings), *self.shared]
        before = self._preamble("\n".join([*declared, *functions, *function]))
        return "\n".join([*before, *declared, *functions, "", *function])

    # ---- around the body ---------------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        """Buffers in the order of their numbers, then variables; one binding each."""
        for number, value in enumerate(self.listing.params):
            array = self.arrays.declare(value, f"d{param(value).number}")
            self.page.texts[value] = Text(array.name, PRIMARY)
            access_ = "read" if param(value).access == "read" else "read_write"
            words = self.dialect.param.format(k=number, const=access_, name=array.name, t=array.element)
            self.bindings.append((f"&{array.name}", words))
        for number, (name, _, _) in enumerate(self.listing.variables, len(self.listing.params)):
            text = self.page.variables[name] = self.page.names.variable(name)
            self.bindings.append((f"&{text.words}", self.dialect.variable.format(k=number, name=text.words)))

    def _shared(self, value: Value) -> None:
        array = self.arrays.declare(value, self.page.names.next("s").words)
        count = max(shared(value).elements // array.lanes, 1)
        self.shared.append(self.dialect.shared.format(t=array.element, name=array.name, n=count))
        self.page.texts[value] = Text(array.name, PRIMARY)

    # ---- the body ----------------------------------------------------------------------------------------------------------

    def _load(self, value: Value) -> None:
        parts = access(value)
        read = self.arrays.load(value, parts, self._place(value, parts))
        gate = gate_of(self.page, parts)
        if gate is None or parts.alternative is None:
            self._written(value, read)
            return
        name = self.page.names.next(letter_of(value))
        self._line(value, self.dialect.register.format(name=name.words, x=self.page.text(parts.alternative).words))
        self._line(value, f"if ({self.page.text(gate).words}) {{ {name.words} = {read.words}; }}")
        self.page.texts[value] = name

    def _place(self, value: Value, parts: Access) -> Text:
        """Where an access begins; a name where it is said more than once."""
        place = self.page.text(parts.addresses[0])
        if not self.arrays.is_apart(value) or place.is_name:
            return place
        name = self.page.names.next("i")
        self._line(value, self.dialect.declare.format(name=name.words, x=place.words))
        return name

    def _store(self, value: Value) -> None:
        parts = access(value)
        assert parts.stored is not None
        place, stored = self._place(value, parts), self.page.text(parts.stored)
        if self.arrays.is_apart(value) and not stored.is_name:
            name = self.page.names.next("v")
            self._line(value, self.dialect.declare.format(name=name.words, x=stored.words))
            stored = name
        lines, gate = self.arrays.store(parts, place, stored), gate_of(self.page, parts)
        if gate is None:
            for line in lines:
                self._line(value, line)
        else:
            self._line(value, f"if ({self.page.text(gate).words}) {{ {' '.join(lines)} }}")


WgslPrinter.statements = {
    **STATEMENTS,
    Op.LOAD: WgslPrinter._load,
    Op.STORE: WgslPrinter._store,
}
_ELEMENTWISE: dict[Op, Callable[[Any, Value], Text]] = {
    **dict.fromkeys((Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD), wgsl_text.index),
    **dict.fromkeys((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT), wgsl_text.function),
    **dict.fromkeys((Op.ADD, Op.MUL, Op.IDIV, Op.REM, Op.XOR, Op.AND, Op.OR, Op.SHL, Op.SHR), wgsl_text.binary),
    Op.CAST: wgsl_text.converted,
    Op.INDEX_OF: wgsl_text.converted,
    Op.BITCAST: wgsl_text.reinterpreted,
    Op.ROUND: wgsl_text.rounded,
    Op.VECTOR: wgsl_text.vector,
    Op.EXTRACT: wgsl_text.extract,
    Op.NEG: wgsl_text.negative,
    Op.NOT: wgsl_text.negation,
    Op.RECIP: wgsl_text.reciprocal,
    Op.MAX: wgsl_text.maximum,
    Op.CMPLT: wgsl_text.comparison,
    Op.CMPNE: wgsl_text.comparison,
    Op.WHERE: wgsl_text.where,
}
WgslPrinter.expressions = {**EXPRESSIONS, **_ELEMENTWISE}


def _is_in(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
