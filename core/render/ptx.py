"""A listing as PTX, NVIDIA's assembly language: typed registers, predicates for conditions, labels and branches for loops.

Registers are named by what they hold: `%d0` where an argument begins, `%g0 %l0` launch indices, `%loop0` counters, `%a0` accumulators,
`%s0` shared arrays, `%arg_n` variables; values are numbered by type: `%f` float32, `%fd` float64, `%h` all of 16 bits, `%r` 32, `%rd` 64
bits, `%p` predicates. Source of facts: NVIDIA, *Parallel Thread Execution ISA* 8.5.
"""

from __future__ import annotations

from collections.abc import Callable

from core.device import DeviceOptions
from core.errors import CompilerBug
from core.ir.op import OPS, Op
from core.ir.parts import param, shared
from core.ir.value import Value
from core.linear.listing import Listing
from core.render import ptx_convert, ptx_data, ptx_index, ptx_memory
from core.render.ptx_flow import flow_of
from core.render.ptx_page import PARAM, Page, class_of

_AXES = "xyz"


def render(listing: Listing, device: DeviceOptions, version: str) -> str:
    """A module of one kernel, for the device's architecture. version: of the language, the lowest that knows it."""
    printer = _Printer(listing, device)
    body = printer.run()
    head = [f".version {version}", f".target {device.arch}", ".address_size 64", ""]
    return "\n".join([*head, *printer.signature(), "{", *body, "}", ""])


class _Printer:
    def __init__(self, listing: Listing, device: DeviceOptions) -> None:
        self.listing = listing
        self.page = Page(listing, device, flow_of(listing.body))
        self.waiting: list[Value] = []  # registers whose loop has not begun
        self.ends: dict[Value, str] = {}  # of what is open, the label behind it
        self.starts: dict[Value, str] = {}

    def signature(self) -> list[str]:
        arrays = [f".param .u64 d{param(a).number}" for a in self.listing.params]  # `.ptr` would promise an alignment
        parameters = ", ".join([*arrays, *(f".param .s32 {PARAM}{name}" for name, _, _ in self.listing.variables)])
        lines = [f".visible .entry {self.listing.name}({parameters})"]
        sizes = self.listing.local_size
        return lines if sizes is None else [*lines, f".maxntid {', '.join(map(str, sizes))}"]

    def run(self) -> list[str]:
        page, dead = self.page, self.page.flow.dead
        for array in self._used():
            page.array(array)
        specials = [v for v in self.listing.body if v.op is Op.SPECIAL and v not in dead]
        for value in sorted(specials, key=_launch_order):
            self._launch_index(value)
        for at, value in enumerate(self.listing.body):
            page.at = at
            if value in dead or value in page.flow.fused:
                continue
            since = len(page.lines)
            write = _STATEMENTS.get(value.op)
            if write is not None:
                write(self, value)
            else:
                self._value(value)
            if self.listing.provenance:
                page.origins(value, since)
        page.emit("ret")
        lines = [line[2:] for line in page.lines]
        return [*page.declarations(), *self._shared(), *page.top, *lines]

    def _used(self) -> list[Value]:
        """The arrays that are accessed: buffers by number, then shared ones."""
        accessed = {v.src[0] for v in self.listing.body if v.op is Op.LOAD or v.op is Op.STORE}
        arrays = sorted((a for a in accessed if a.op is Op.SHARED), key=lambda a: shared(a).number)
        return [a for a in self.listing.params if a in accessed] + arrays

    def _shared(self) -> list[str]:
        lines = []
        for array in self._used():
            if array.op is Op.SHARED:
                number, elements = shared(array)
                lines.append(f"  .shared .align 16 .b8 s{number}[{max(elements, 1) * array.dtype.itemsize}];")
        return lines

    # ---- values ------------------------------------------------------------------------------------------------------------

    def _value(self, value: Value) -> None:
        page = self.page
        if value in page.flow.addresses:
            for array in page.flow.addresses[value]:
                ptx_index.pointer(page, array, value)
            return
        several = _SEVERAL.get(value.op)
        if several is not None:
            page.names[value] = several(page, value)
            return
        one = _ONE.get(value.op)
        if one is None:
            raise CompilerBug("render", f"{OPS[value.op].name} has no text in PTX")
        page.names[value] = (one(page, value),)

    def _launch_index(self, value: Value) -> None:
        page = self.page
        assert isinstance(value.arg, tuple)
        kind, dimension = value.arg
        assert isinstance(dimension, int)
        axis = _AXES[dimension]
        bits = value.dtype.bits
        register = page.name(f"b{bits}", page.number("l" if kind == "local" else "g"))
        page.names[value] = (register,)
        if kind == "global":
            group, size, lane = (page.computed("mov.u32", "b32", f"%{word}.{axis}") for word in ("ctaid", "ntid", "tid"))
            if bits == 64:
                page.emit(f"mad.wide.u32 {register}, {group}, {size}, {page.computed('cvt.u64.u32', 'b64', lane)}")
            else:
                page.emit(f"mad.lo.u32 {register}, {group}, {size}, {lane}")
            return
        word = f"%{'tid' if kind == 'local' else 'ctaid'}.{axis}"
        if bits == 64:
            page.emit(f"cvt.u64.u32 {register}, {page.computed('mov.u32', 'b32', word)}")
        else:
            page.emit(f"mov.u32 {register}, {word}")

    # ---- statements --------------------------------------------------------------------------------------------------------

    def _register(self, value: Value) -> None:
        """Given its first value right before the outermost loop that carries it."""
        kind = class_of(value.dtype)
        names = tuple([self.page.name(kind, self.page.number("a")) for _ in range(value.lanes)])
        self.page.names[value] = names
        self.page.moving.update(dict.fromkeys(names, self.page.flow.updated.get(value, -1)))
        self.waiting.append(value)

    def _update(self, value: Value) -> None:
        page = self.page
        registers, names = page.operands(value.src[0]), page.operands(value.src[1])
        if any(name in registers and name != register for register, name in zip(registers, names, strict=True)):  # lanes change places
            names = tuple([page.computed(f"mov.{class_of(value.dtype)}", class_of(value.dtype), name) for name in names])
        for register, name in zip(registers, names, strict=True):
            if register != name:
                page.emit(f"mov.{class_of(value.dtype)} {register}, {name}")
        page.names[value] = registers

    def _loop(self, value: Value) -> None:
        """Tested at its end; before it only where it may have no turn."""
        page = self.page
        for register in [r for r in self.waiting if value in r.src]:
            self.waiting.remove(register)
            for name, start in zip(page.operands(register), page.operands(register.src[0]), strict=True):
                page.emit(f"mov.{class_of(register.dtype)} {name}, {start}")
        bits = value.dtype.bits
        name = page.number("loop")
        counter = page.name(f"b{bits}", name)
        page.names[value] = (counter,)
        end = value.src[0]
        page.emit(f"mov.b{bits} {counter}, 0")
        if end.lo is None or end.lo < 1:
            has_none = page.computed(f"setp.lt.s{bits}", "pred", page.in_register(page.operand(end), f"b{bits}"), "1")
            self.ends[value] = f"DONE_{name[4:]}"
            page.emit(f"@{has_none} bra {self.ends[value]}")
        self.starts[value] = f"LOOP_{name[4:]}"
        page.open()
        page.label(self.starts[value])

    def _condition(self, value: Value) -> None:
        page = self.page
        self.ends[value] = f"SKIP_{page.number('skip')[4:]}"
        page.emit(f"@!{page.operand(value.src[0])} bra {self.ends[value]}")
        page.open()
        page.open_gates.add(value.src[0])

    def _close(self, value: Value) -> None:
        page, opener = self.page, value.src[0]
        if opener.op is Op.RANGE:
            bits, counter = opener.dtype.bits, page.operand(opener)
            page.emit(f"add.s{bits} {counter}, {counter}, 1")
            goes_on = page.computed(f"setp.lt.s{bits}", "pred", counter, page.operand(opener.src[0]))
            page.emit(f"@{goes_on} bra {self.starts[opener]}")
        page.close()
        if opener in self.ends:
            page.open()
            page.label(self.ends[opener])
            page.close()
        page.open_gates.difference_update(opener.src)

    def _barrier(self, value: Value) -> None:
        self.page.emit("bar.sync 0")


_STATEMENTS: dict[Op, Callable[[_Printer, Value], None]] = {
    Op.STORE: lambda printer, value: ptx_memory.store(printer.page, value),
    Op.UPDATE: _Printer._update,
    Op.ACC: _Printer._register,
    Op.RANGE: _Printer._loop,
    Op.IF: _Printer._condition,
    Op.END: _Printer._close,
    Op.BARRIER: _Printer._barrier,
    Op.SPECIAL: lambda printer, value: None,  # there before all else
}
_SEVERAL: dict[Op, Callable[[Page, Value], tuple[str, ...]]] = {
    Op.LOAD: ptx_memory.load,
    Op.VECTOR: ptx_data.vector,
    Op.MMA: ptx_data.matrix,
}
_ONE: dict[Op, Callable[[Page, Value], str]] = {
    **dict.fromkeys((Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD), ptx_index.index),
    Op.LESS: ptx_index.less,
    Op.ALL: ptx_index.conjunction,
    Op.CAST: ptx_convert.converted,
    Op.INDEX_OF: ptx_convert.converted,
    Op.BITCAST: ptx_convert.reinterpreted,
    Op.ROUND: ptx_convert.rounded,
    Op.EXTRACT: ptx_data.extract,
    Op.NEG: ptx_data.negative,
    Op.NOT: ptx_data.negation,
    **dict.fromkeys((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT, Op.RECIP), ptx_data.function),
    **dict.fromkeys((Op.ADD, Op.MUL, Op.IDIV, Op.REM, Op.XOR, Op.AND, Op.OR, Op.SHL, Op.SHR), ptx_data.binary),
    Op.MAX: ptx_data.maximum,
    Op.CMPLT: ptx_data.comparison,
    Op.CMPNE: ptx_data.comparison,
    Op.WHERE: ptx_data.where,
}


def _launch_order(value: Value) -> tuple[bool, int]:
    """Groups from the slowest axis to the fastest, then the work-items of one."""
    assert isinstance(value.arg, tuple)
    kind, dimension = value.arg
    assert isinstance(dimension, int)
    return kind == "local", dimension if kind == "local" else -dimension
