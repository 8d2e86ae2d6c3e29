"""A listing as a function of LLVM IR, in static single assignment: opaque pointers, no target triple, no passes asked for.

Loops are tested at their end, with a guard before those that may have no turn. A register is a phi at the head of each loop that carries
it; one that leaves a loop with a guard is a phi behind it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.device import DeviceOptions
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import param
from core.ir.value import Value
from core.linear.listing import Listing
from core.render import llvm_data, llvm_memory
from core.render.llvm_page import Page, argument_name
from core.render.placement import operands

_ACCESS = {"read": " readonly", "write": " writeonly", "readwrite": ""}
_KEPT = frozenset((Op.STORE, Op.UPDATE, Op.RANGE, Op.IF, Op.END))


def render(listing: Listing, device: DeviceOptions) -> str:
    """The module's text. Comments say where lines come from if the listing does."""
    return _Printer(listing, device).run()


@dataclass(slots=True)
class _Loop:
    """counter: its name. before: the block that enters it. carried: a register, the place of its phi, what it starts with, its name."""

    number: int
    counter: str
    before: str
    is_guarded: bool
    head: int = 0  # the place of the counter's phi
    carried: list[tuple[Value, int, str, str]] = field(default_factory=list)


class _Printer:
    def __init__(self, listing: Listing, device: DeviceOptions) -> None:
        self.listing = listing
        self.page = Page(device)
        self.scopes: list[_Loop | int] = []  # of a region: its number
        self.registers: list[Value] = []
        self.update_of: dict[Value, Value] = {}  # by register

    def run(self) -> str:
        page, body = self.page, self.listing.body
        for array in self.listing.params:
            page.words[array] = f"%d{param(array).number}"
        self.update_of = {value.src[0]: value for value in body if value.op is Op.UPDATE}
        page.reassociated.update(_reassociated(body))
        for value in _needed(body):
            self._comment(value)
            statement = _STATEMENTS.get(value.op)
            if statement is not None:
                statement(self, value)
                continue
            write = _INSTRUCTIONS.get(value.op)
            if write is None:
                raise CompilerBug("render", f"{value.op.name} has no text in LLVM IR")
            page.words[value] = write(page, value)
        function = [f"define void @{self.listing.name}({self._params()}) nounwind {{", "entry:", *page.lines, "  ret void", "}", ""]
        return "\n".join([*page.besides(), *function])

    def _params(self) -> str:
        buffers = [f"ptr noalias{_ACCESS[param(array).access]} {self.page.words[array]}" for array in self.listing.params]
        return ", ".join([*buffers, *(f"i32 {argument_name(name)}" for name, _, _ in self.listing.variables)])

    def _comment(self, value: Value) -> None:
        if self.listing.provenance:
            nodes = sorted(self.listing.provenance.get(value, ()))
            self.page.comment = f" ; {' '.join(map(str, nodes))}" if nodes else ""

    # ---- scopes ------------------------------------------------------------------------------------------------------------

    def _register(self, value: Value) -> None:
        """Its name becomes that of its phi in each loop that carries it."""
        self.registers.append(value)
        self.page.words[value] = self.page.operand(value.src[0])

    def _update(self, value: Value) -> None:
        self.page.words[value.src[0]] = self.page.words[value] = self.page.operand(value.src[1])

    def _open_loop(self, value: Value) -> None:
        page, end = self.page, value.src[0]
        number = page.number("loop")
        is_guarded = end.lo is None or end.lo < 1
        if is_guarded:
            any_turn = page.set("c", f"icmp sgt {page.typed(end)}, 0")
            page.branch(any_turn, f"loop{number}", f"done{number}")
        else:
            page.jump(f"loop{number}")
        loop = _Loop(number, page.next("r"), page.block, is_guarded)
        page.label(f"loop{number}")
        loop.head = page.line("")
        for register in self.registers:
            if value in register.src:
                start, name = page.operand(register), page.next("a")
                self._comment(register)
                loop.carried.append((register, page.line(""), start, name))
                page.words[register] = name
        page.words[value] = loop.counter
        page.open_scope()
        self.scopes.append(loop)

    def _open_region(self, value: Value) -> None:
        page, condition = self.page, value.src[0]
        number = page.number("then")
        page.branch(page.operand(condition), f"then{number}", f"next{number}")
        page.label(f"then{number}")
        page.open_gates.add(condition)
        page.open_scope()
        self.scopes.append(number)

    def _close(self, value: Value) -> None:
        page, opener, scope = self.page, value.src[0], self.scopes.pop()
        page.close_scope()
        if isinstance(scope, _Loop):
            self._close_loop(scope, opener)
        else:
            page.open_gates.discard(opener.src[0])
            page.jump(f"next{scope}")
            page.label(f"next{scope}")

    def _close_loop(self, loop: _Loop, opener: Value) -> None:
        page, typed = self.page, self.page.type_of(opener.dtype)
        last = page.block
        page.line(f"{loop.counter}.next = add nuw nsw {typed} {loop.counter}, 1")
        page.line(f"{loop.counter}.more = icmp slt {typed} {loop.counter}.next, {page.operand(opener.src[0])}")
        page.branch(f"{loop.counter}.more", f"loop{loop.number}", f"done{loop.number}")
        page.lines[loop.head] += f"{loop.counter} = phi {typed} [ 0, {loop.before} ], [ {loop.counter}.next, {last} ]"
        page.label(f"done{loop.number}")
        for register, place, start, name in loop.carried:
            kind, result = page.type_of(register.dtype, register.lanes), page.operand(register)
            page.lines[place] += f"{name} = phi {kind} [ {start}, {loop.before} ], [ {result}, {last} ]"
            if loop.is_guarded:
                result = page.set("a", f"phi {kind} [ {start}, {loop.before} ], [ {result}, {last} ]")
            page.words[register] = page.words[self.update_of[register]] = result


_STATEMENTS: dict[Op, Callable[[_Printer, Value], None]] = {  # operations that give no value, or no instruction
    Op.STORE: lambda printer, value: llvm_memory.store(printer.page, value),
    Op.ACC: _Printer._register,
    Op.UPDATE: _Printer._update,
    Op.RANGE: _Printer._open_loop,
    Op.IF: _Printer._open_region,
    Op.END: _Printer._close,
}
_INSTRUCTIONS: dict[Op, Callable[[Page, Value], str]] = {
    Op.SUM: llvm_data.total,
    Op.PRODUCT: llvm_data.product,
    Op.DIV: llvm_data.quotient,
    Op.MOD: llvm_data.quotient,
    Op.LESS: llvm_data.less,
    Op.ALL: llvm_data.conjunction,
    Op.LOAD: llvm_memory.load,
    Op.CAST: llvm_data.converted,
    Op.INDEX_OF: llvm_data.converted,
    Op.BITCAST: llvm_data.reinterpreted,
    Op.ROUND: llvm_data.rounded,
    Op.VECTOR: llvm_data.vector,
    Op.EXTRACT: llvm_data.extract,
    Op.NEG: llvm_data.negative,
    Op.NOT: llvm_data.negation,
    Op.RECIP: llvm_data.reciprocal,
    **dict.fromkeys((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT), llvm_data.function),
    **dict.fromkeys((Op.ADD, Op.MUL, Op.IDIV, Op.REM, Op.XOR, Op.AND, Op.OR, Op.SHL, Op.SHR), llvm_data.binary),
    Op.MAX: llvm_data.maximum,
    Op.CMPLT: llvm_data.comparison,
    Op.CMPNE: llvm_data.comparison,
    Op.WHERE: llvm_data.where,
}


def _needed(body: tuple[Value, ...]) -> list[Value]:
    """The values of a body that an instruction mentions, and the instructions that do something."""
    mentioned: set[Value] = set()
    kept: list[Value] = []
    for value in reversed(body):
        if value.op in _KEPT or value in mentioned:
            mentioned.update(operands(value))
            kept.append(value)
    return kept[::-1]


def _reassociated(body: tuple[Value, ...]) -> set[Value]:
    """Sums and products that a register is updated with: those of one operation, from the update down."""
    found: set[Value] = set()
    waiting = [value.src[1] for value in body if value.op is Op.UPDATE]
    while waiting:
        value = waiting.pop()
        if value.op in (Op.ADD, Op.MUL) and value not in found:
            found.add(value)
            waiting += [s for s in value.src if s.op is value.op]
    return found
