"""What one PTX program is written on: its lines and registers, and what each value is called there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.device import DeviceOptions
from core.dtypes import BOOL, FLOAT32, FLOAT64, DType, Number
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import content, param, shared
from core.ir.value import Value, bits_of
from core.linear.listing import Listing
from core.render.ptx_flow import Flow

PREFIXES = {"pred": "p", "b16": "h", "b32": "r", "b64": "rd", "f32": "f", "f64": "fd"}  # of registers that hold values
PARAM = "arg_"  # what variables' names begin with: an instruction's name is none that an argument could have


def class_of(dtype: DType) -> str:
    """The type of the registers that hold a scalar. 8-bit integers are held as the 16-bit integers of their value."""
    if dtype is BOOL:
        return "pred"
    if dtype is FLOAT32:
        return "f32"
    if dtype is FLOAT64:
        return "f64"
    return f"b{max(dtype.bits, 16)}"


def type_of(dtype: DType) -> str:
    """The type of an instruction on integers or floats of this dtype, as its suffix has it."""
    if dtype.is_float:
        return f"f{dtype.bits}"
    return f"{'s' if dtype.is_signed or dtype.is_index else 'u'}{max(dtype.bits, 16)}"


def immediate(number: Number, dtype: DType) -> str:
    """A constant as an operand; 16-bit floats and bools by their bits."""
    if dtype is FLOAT32:
        return f"0f{bits_of(float(number), dtype):08X}"
    if dtype is FLOAT64:
        return f"0d{bits_of(float(number), dtype):016X}"
    if dtype.is_float:
        return f"0x{bits_of(float(number), dtype):04X}"
    return str(int(number))


class Page:
    """lines: of the body. top: lines before it. capability: of the architecture, 80 of sm_80.

    open_gates: conditions of the branches around. moving: registers that are assigned to, and where.
    """

    def __init__(self, listing: Listing, device: DeviceOptions, flow: Flow) -> None:
        self.listing = listing
        self.flow = flow
        self.fast = device.fast_math
        self.capability = int("".join(c for c in device.arch or "" if c.isdigit()))
        self.top: list[str] = []
        self.lines: list[str] = []
        self.shared: list[str] = []
        self.open_gates: set[Value] = set()
        self.moving: dict[str, int] = {}
        self.named: dict[str, list[str]] = {}  # registers that have names of their own, by type
        self.held: dict[tuple[str, str], str] = {}  # constants in registers
        self.at = 0  # the position in the listing
        self.names: dict[Value, tuple[str, ...]] = {}  # of each value, one operand per lane
        self._counts: dict[str, int] = {}
        self._indent = "    "
        self._when = ""
        self._pointers: list[dict[object, str]] = [{}]  # per scope: what has been computed for addresses

    # ---- lines -------------------------------------------------------------------------------------------------------------

    def emit(self, words: str) -> None:
        self.lines.append(f"{self._indent}{self._when}{words};")

    def label(self, name: str) -> None:
        self.lines.append(f"{self._indent[:-2]}{name}:")

    def open(self) -> None:
        """What is written from here on is computed in a scope of its own."""
        self._indent += "  "
        self._pointers.append({})

    def close(self) -> None:
        self._indent = self._indent[:-2]
        self._pointers.pop()

    @contextmanager
    def under(self, predicate: str | None) -> Iterator[None]:
        """What is written here is done where this predicate holds."""
        self._when = f"@{predicate} " if predicate is not None else ""
        yield
        self._when = ""

    def origins(self, value: Value, since: int) -> None:
        """Says of the lines since this one which nodes they stem from, what is part of a sum among them."""
        nodes = set(self.listing.provenance.get(value, ()))
        for s in value.src:
            if s in self.flow.fused:
                nodes.update(self.listing.provenance.get(s, ()))
        if nodes:
            for k in range(since, len(self.lines)):
                if self.lines[k].endswith(";"):
                    self.lines[k] += f" // {' '.join(map(str, sorted(nodes)))}"

    # ---- registers ---------------------------------------------------------------------------------------------------------

    def register(self, kind: str) -> str:
        """A new register of a type."""
        return f"%{self.number(PREFIXES[kind])}"

    def number(self, prefix: str) -> str:
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        return f"{prefix}{count}"

    def name(self, kind: str, name: str) -> str:
        """A register with a name of its own."""
        self.named.setdefault(kind, []).append(f"%{name}")
        return f"%{name}"

    def declarations(self) -> list[str]:
        lines = [f"  .reg .{kind} {', '.join(names)};" for kind, names in sorted(self.named.items())]
        ranges = [(kind, prefix, self._counts[prefix]) for kind, prefix in PREFIXES.items() if prefix in self._counts]
        return lines + [f"  .reg .{kind} %{prefix}<{count}>;" for kind, prefix, count in ranges]

    def result(self, value: Value, lane: int = 0) -> str:
        """Where a value is computed: a new register, or the one it is assigned to right after."""
        into = self.flow.into.get(value)
        if into is not None:
            return self.names[into[0]][into[1] + lane]
        return self.register(class_of(value.dtype))

    def computed(self, instruction: str, kind: str, *operands: str) -> str:
        """A new register, and the instruction that gives it."""
        register = self.register(kind)
        self.emit(f"{instruction} {', '.join((register, *operands))}")
        return register

    def alias(self, value: Value, register: str) -> str:
        """Another name for what a register holds: a copy where the register is assigned to before the last use of the name."""
        assigned = self.moving.get(register)
        is_into = value in self.flow.into
        if not is_into and (assigned is None or not self.at <= assigned < self.flow.last.get(value, -1)):
            return register
        copy = self.result(value)
        if copy != register:
            self.emit(f"mov.{class_of(value.dtype)} {copy}, {register}")
        return copy

    # ---- operands ----------------------------------------------------------------------------------------------------------

    def operand(self, value: Value) -> str:
        """A scalar, constants as immediates."""
        return self.operands(value)[0]

    def operands(self, value: Value) -> tuple[str, ...]:
        """Each lane of a value."""
        found = self.names.get(value)
        if found is not None:
            return found
        if value.op is Op.CONST:
            if value.dtype is BOOL:
                return (self.constant("1" if content(value) else "0", "pred"),) * value.lanes
            return (immediate(content(value), value.dtype),) * value.lanes
        if value.op is Op.VARIABLE:
            name = str(value.arg[0])  # type: ignore[index]  # (name, least, greatest)
            register = self.name("b32", PARAM + name)
            self.top.append(f"  ld.param.s32 {register}, [{PARAM}{name}];")
            self.names[value] = (register,)
            return (register,)
        raise CompilerBug("render", f"{value!r} is used before it is written")

    def held_operand(self, value: Value) -> str:
        """A scalar in a register."""
        return self.in_register(self.operand(value), class_of(value.dtype))

    def in_register(self, operand: str, kind: str) -> str:
        return operand if operand[0] == "%" else self.constant(operand, kind)

    def constant(self, number: str, kind: str) -> str:
        """A register that holds a constant throughout."""
        found = self.held.get((number, kind))
        if found is None:
            found = self.held[number, kind] = self.register(kind)
            self.top.append(f"  mov.{kind} {found}, {number};")
        return found

    # ---- arrays ------------------------------------------------------------------------------------------------------------

    def array(self, array: Value) -> str:
        """The register that holds where an array begins: 64 bits of a buffer, 32 of a shared one."""
        found = self.names.get(array)
        if found is None:
            if array.op is Op.SHARED:
                name = f"s{shared(array).number}"
                register = self.name("b32", name)
                self.top.append(f"  mov.b32 {register}, {name};")
            else:
                name = f"d{param(array).number}"
                register = self.name("b64", name)
                self.top += [f"  ld.param.u64 {register}, [{name}];", f"  cvta.to.global.u64 {register}, {register};"]
            found = self.names[array] = (register,)
        return found[0]

    def known(self, key: object) -> str | None:
        """What was computed under this key, here or in a scope around."""
        for scope in reversed(self._pointers):
            if key in scope:
                return scope[key]
        return None

    def know(self, key: object, register: str) -> str:
        self._pointers[-1][key] = register
        return register
