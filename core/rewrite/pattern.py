"""What a rule looks for and what it puts in the place: operations over named holes, written as arithmetic.

    x, y = any_value("x", INTEGERS), any_value("y", INTEGERS)     any value of these types
    c = literal("c", INTEGERS)                                     only a constant
    x * c + y, ~x, x < y, where(p, x, y), fold(c + 1), 0

`//` and `%` truncate, as on data. A hole named twice is one value. A plain number is a constant of whatever type stands there, floats by
bits: `0` is not -0.0. `fold` stands on the right side only: the constant this expression of constants is, exact in its type; where there
is none, the rule does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.dtypes import BOOL, DTYPES, FLOAT32, FLOAT64, DType, Number
from core.ir.op import OPS, Op

Types = frozenset[DType]

BOOLS: Types = frozenset((BOOL,))
INTEGERS: Types = frozenset(d for d in DTYPES.values() if d.is_integer)
ROUNDED: Types = frozenset((FLOAT32, FLOAT64))  # types narrower floats are emulated in
FLOATS: Types = frozenset(d for d in DTYPES.values() if d.is_float)
SIGNED: Types = frozenset(d for d in INTEGERS if d.is_signed)
NUMBERS: Types = INTEGERS | FLOATS


class Pattern:
    """A node of either side of a rule; operators build larger ones."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Apply:
        return apply(Op.ADD, self, other)

    def __mul__(self, other: Operand) -> Apply:
        return apply(Op.MUL, self, other)

    def __floordiv__(self, other: Operand) -> Apply:
        return apply(Op.IDIV, self, other)

    def __mod__(self, other: Operand) -> Apply:
        return apply(Op.REM, self, other)

    def __and__(self, other: Operand) -> Apply:
        return apply(Op.AND, self, other)

    def __or__(self, other: Operand) -> Apply:
        return apply(Op.OR, self, other)

    def __xor__(self, other: Operand) -> Apply:
        return apply(Op.XOR, self, other)

    def __lshift__(self, other: Operand) -> Apply:
        return apply(Op.SHL, self, other)

    def __rshift__(self, other: Operand) -> Apply:
        return apply(Op.SHR, self, other)

    def __lt__(self, other: Operand) -> Apply:
        return apply(Op.CMPLT, self, other)

    def __gt__(self, other: Operand) -> Apply:
        return apply(Op.CMPLT, other, self)

    def __neg__(self) -> Apply:
        return apply(Op.NEG, self)

    def __invert__(self) -> Apply:
        return apply(Op.NOT, self)


@dataclass(frozen=True, slots=True, eq=False)
class Hole(Pattern):
    """Any value of `types` (None: whatever type); only a constant if `constant`."""

    name: str
    types: Types | None
    constant: bool

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Exactly(Pattern):
    """The constant of the type that stands there."""

    number: Number

    def __str__(self) -> str:
        return str(self.number).lower() if isinstance(self.number, bool) else repr(self.number)


@dataclass(frozen=True, slots=True, eq=False)
class Apply(Pattern):
    """One of `ops` on these operands; no operands at all: on any."""

    ops: tuple[Op, ...]
    src: tuple[Pattern, ...]

    def __str__(self) -> str:
        if len(self.ops) > 1:
            return (
                f"any of {len(self.ops)} ops({', '.join(map(str, self.src))})" if self.src else " or ".join(OPS[op].name for op in self.ops)
            )
        op = self.ops[0]
        inner = [f"({s})" if isinstance(s, Apply) and s.ops[0] in _INFIX else str(s) for s in self.src]
        if op in _INFIX:
            return f"{inner[0]} {_INFIX[op]} {inner[1]}"
        if op in _PREFIX:
            return f"{_PREFIX[op]}{inner[0]}"
        return f"{OPS[op].name}({', '.join(map(str, self.src))})"


@dataclass(frozen=True, slots=True, eq=False)
class Fold(Pattern):
    """The constant that `pattern`, of literals and numbers only, comes to."""

    pattern: Pattern

    def __str__(self) -> str:
        return f"fold({self.pattern})"


Operand = Pattern | Number

_INFIX = {
    Op.ADD: "+",
    Op.MUL: "*",
    Op.IDIV: "//",
    Op.REM: "%",
    Op.AND: "&",
    Op.OR: "|",
    Op.XOR: "^",
    Op.SHL: "<<",
    Op.SHR: ">>",
    Op.CMPLT: "<",
    Op.CMPNE: "!=",
}
_PREFIX = {Op.NEG: "-", Op.NOT: "~"}


def holes(pattern: Pattern) -> list[str]:
    """The names of a pattern's holes, each as often as it stands there."""
    match pattern:
        case Hole():
            return [pattern.name]
        case Apply():
            return [name for s in pattern.src for name in holes(s)]
        case Fold():
            return holes(pattern.pattern)
        case _:
            return []


def any_value(name: str, types: Types | None = None) -> Hole:
    """A hole for any value of these types."""
    return Hole(name, types, False)


def literal(name: str, types: Types | None = None) -> Hole:
    """A hole for a constant; conditions and functions get its number."""
    return Hole(name, types, True)


def operand(item: Operand) -> Pattern:
    """A pattern as it is, a number as the constant it stands for."""
    return item if isinstance(item, Pattern) else Exactly(item)


def apply(op: Op, *src: Operand) -> Apply:
    """This operation; without operands: on any."""
    return Apply((op,), tuple(operand(s) for s in src))


def one_of(ops: tuple[Op, ...], *src: Operand) -> Apply:
    """One of several operations, for rules whose right side is a function."""
    return Apply(ops, tuple(operand(s) for s in src))


def fold(pattern: Operand) -> Fold:
    return Fold(operand(pattern))


def ne(x: Operand, y: Operand) -> Apply:
    return apply(Op.CMPNE, x, y)


def maximum(x: Operand, y: Operand) -> Apply:
    return apply(Op.MAX, x, y)


def recip(x: Operand) -> Apply:
    return apply(Op.RECIP, x)


def cast(x: Operand) -> Apply:
    return apply(Op.CAST, x)


def bitcast(x: Operand) -> Apply:
    return apply(Op.BITCAST, x)


def where(condition: Operand, x: Operand, y: Operand) -> Apply:
    return apply(Op.WHERE, condition, x, y)


def mulacc(x: Operand, y: Operand, z: Operand) -> Apply:
    return apply(Op.MULACC, x, y, z)


def update(x: Operand, y: Operand) -> Apply:
    return apply(Op.UPDATE, x, y)
