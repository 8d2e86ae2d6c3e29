"""What a function of LLVM IR is written on: its lines and blocks, the names of its values, what it declares and defines besides."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType, Number
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import content
from core.ir.value import Value
from core.render.llvm_helpers import NEEDS, helper
from core.render.llvm_words import TYPES, lanes_of, literal, repeated

PREFIX = "arg_"
_OURS = re.compile(r"entry|([a-z]|loop|done|then|next|load|loaded)\d+(\.\w+)?")
_HELPERS = {FLOAT16: "half", BFLOAT16: "bfloat"}
_FAST = "nsz arcp contract afn "  # never nnan or ninf: masks are infinite on purpose


def argument_name(name: str) -> str:
    """What the argument for a client's variable is called; different variables are called differently."""
    return f"%{PREFIX}{name}" if name.startswith(PREFIX) or _OURS.fullmatch(name) else f"%{name}"


class Page:
    """words: the name or constant of every value written so far. open_gates: conditions of the branches around.

    comment: what stands behind each line from now on. reassociated: sums and products whose terms may be taken in any order.
    """

    def __init__(self, device: DeviceOptions) -> None:
        self.fast = device.fast_math
        self.narrow = frozenset((BFLOAT16,) if device.float16 else (BFLOAT16, FLOAT16))  # kept as integers, computed in float
        self.lines: list[str] = []
        self.words: dict[Value, str] = {}
        self.open_gates: set[Value] = set()
        self.reassociated: set[Value] = set()
        self.block = "%entry"
        self.comment = ""
        self.declared: dict[str, str] = {}
        self.helpers: dict[tuple[str, int], None] = {}  # in the order to define them
        self._counts: dict[str, int] = {}
        self._known: list[dict[str, str]] = [{}]  # index instructions and what they gave, by the scopes around

    # ---- words -------------------------------------------------------------------------------------------------------------

    def type_of(self, dtype: DType, lanes: int = 1) -> str:
        return lanes_of(self.word(dtype), lanes)

    def word(self, dtype: DType) -> str:
        """The type of a scalar in a register."""
        return "i16" if dtype in self.narrow else TYPES[dtype.name]

    def constant(self, number: Number, dtype: DType, lanes: int = 1) -> str:
        return repeated(literal(number, dtype, as_bits=dtype in self.narrow), self.word(dtype), lanes)

    def operand(self, value: Value) -> str:
        """A value as an operand, without its type."""
        found = self.words.get(value)
        if found is None:
            if value.op is Op.CONST:
                found = self.constant(content(value), value.dtype, value.lanes)
            elif value.op is Op.VARIABLE:
                found = argument_name(value.arg[0])  # type: ignore[index]  # (name, least, greatest)
            else:
                raise CompilerBug("render", f"{value!r} is used before it is written")
            self.words[value] = found
        return found

    def typed(self, value: Value) -> str:
        """A value as an operand, with its type."""
        return f"{self.type_of(value.dtype, value.lanes)} {self.operand(value)}"

    def flags(self, value: Value) -> str:
        """What an optimiser may do with this operation on floats beyond IEEE."""
        if not self.fast or not value.dtype.is_float:
            return ""
        return f"reassoc {_FAST}" if value in self.reassociated else _FAST

    # ---- lines -------------------------------------------------------------------------------------------------------------

    def next(self, letter: str) -> str:
        """The next name of a class."""
        return f"%{letter}{self.number(letter)}"

    def number(self, kind: str) -> int:
        found = self._counts.get(kind, 0)
        self._counts[kind] = found + 1
        return found

    def line(self, words: str) -> int:
        """Writes a line; returns its place."""
        self.lines.append(f"  {words}{self.comment}")
        return len(self.lines) - 1

    def set(self, letter: str, words: str) -> str:
        """An instruction and the name of what it gives."""
        name = self.next(letter)
        self.line(f"{name} = {words}")
        return name

    def label(self, name: str) -> None:
        """A block begins."""
        self.lines.append(f"{name}:")
        self.block = f"%{name}"

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.line(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def open_scope(self) -> None:
        self._known.append({})

    def close_scope(self) -> None:
        self._known.pop()

    def index(self, words: str) -> str:
        """An instruction on indices and the name of what it gives: the same one again where it stands in a scope around."""
        for known in self._known:
            if words in known:
                return known[words]
        name = self._known[-1][words] = self.set("i", words)
        return name

    def wide(self, index: Value) -> str:
        """An index in 64 bits."""
        words = self.operand(index)
        return words if index.dtype.bits == 64 or index.is_const else self.index(f"sext i32 {words} to i64")

    # ---- calls -------------------------------------------------------------------------------------------------------------

    def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]], flags: str = "") -> str:
        """A call of an intrinsic, which then is declared. arguments: types and operands."""
        self.declared[name] = f"declare {result} @{name}({', '.join(t for t, _ in arguments)})"
        return f"call {flags}{result} @{name}({', '.join(f'{t} {x}' for t, x in arguments)})"

    def bits(self, operand: str, dtype: DType, lanes: int) -> str:
        """A float rounded to a narrow type, as its bits."""
        return self._helper(f"{_HELPERS[dtype]}_bits", self.word(dtype), TYPES[FLOAT32.name], operand, lanes)

    def value(self, operand: str, dtype: DType, lanes: int) -> str:
        """The float that bits of a narrow type are."""
        return self._helper(f"{_HELPERS[dtype]}_value", TYPES[FLOAT32.name], self.word(dtype), operand, lanes)

    def rounded(self, operand: str, dtype: DType, lanes: int) -> str:
        """A float rounded to a narrow type."""
        return self._helper(f"round_{_HELPERS[dtype]}", TYPES[FLOAT32.name], TYPES[FLOAT32.name], operand, lanes)

    def _helper(self, name: str, result: str, of: str, operand: str, lanes: int) -> str:
        for needed in (*NEEDS.get(name, ()), name):
            self.helpers[needed, lanes] = None
        return f"call {lanes_of(result, lanes)} @{name}{'' if lanes == 1 else lanes}({lanes_of(of, lanes)} {operand})"

    def besides(self) -> list[str]:
        """Definitions and declarations for what was called."""
        return [*(helper(name, lanes) for name, lanes in self.helpers), *([*self.declared.values(), ""] if self.declared else ())]
