"""A rule as a Python function, `value → replacement or None`: written as source, straight down, and executed once.

Interpreting patterns node by node costs ten times as much; most calls end at their first test.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from itertools import product

from core.dtypes import BOOL, DType, Number, float_bits
from core.ir.evaluate import fold
from core.ir.op import OPS, Op
from core.ir.value import Value, constant, make
from core.rewrite.pattern import Apply, Exactly, Fold, Hole, Pattern
from core.rewrite.typing import Typing

Matcher = Callable[[Value], Value | None]


def orders(before: Apply, named: frozenset[str]) -> list[Apply]:
    """`before` with the operands of commuting operations in each order that makes a difference to matching.

    named: holes that stand twice, or that the rest of the rule asks for; which of the others is which makes no difference. A literal
    operand needs no second order: a matcher looks for it on either side.
    """
    choices = [orders(s, named) if isinstance(s, Apply) else [s] for s in before.src]
    found = []
    for src in product(*choices):
        found.append(Apply(before.ops, tuple(src)))
        if _commutes(before) and not _literal_side(before) and _shape(src[0], named) != _shape(src[1], named):
            found.append(Apply(before.ops, (src[1], src[0])))
    return found


def _commutes(pattern: Apply) -> bool:
    return len(pattern.src) == 2 and all(OPS[op].commutes for op in pattern.ops)


def _is_literal(pattern: Pattern) -> bool:
    return isinstance(pattern, Exactly) or (isinstance(pattern, Hole) and pattern.constant)


def _literal_side(pattern: Apply) -> int:
    """Of a commuting operation: 2 if only its second operand is a literal, 1 if only its first, else 0."""
    first, second = (_is_literal(s) for s in pattern.src)
    return 0 if first == second else 2 if second else 1


def _shape(pattern: Pattern, named: frozenset[str]) -> str:
    """The pattern's text with literals and holes nobody asks for left nameless: operands of equal shape need no second order."""
    match pattern:
        case Hole(constant=True):
            return "literal"
        case Hole() if pattern.name not in named:
            return f"any of {pattern.types}"
        case Apply():
            return f"{pattern.ops}({', '.join(_shape(s, named) for s in pattern.src)})"
        case _:
            return str(pattern)


def possible(before: Apply, ops: tuple[Op, ...]) -> bool:
    """Whether operands of these operations could match, by their operations alone."""
    if not before.src:
        return True
    if _commutes(before) and _literal_side(before):
        return _fits(before.src, ops) or _fits(before.src, ops[::-1])
    return _fits(before.src, ops)


def _fits(patterns: tuple[Pattern, ...], ops: tuple[Op, ...]) -> bool:
    for pattern, op in zip(patterns, ops, strict=True):
        if _is_literal(pattern):
            if op is not Op.CONST:
                return False
        elif isinstance(pattern, Apply) and op not in pattern.ops:
            return False
    return True


def compiled(before: Apply, after: Pattern | Callable[..., Value | None], when: Callable[..., bool] | None) -> Matcher:
    """The function that matches `before` (its operation and type known to fit) and returns what stands in its place, or None."""
    writer = _Writer(before, after)
    writer.match_operands(before, "root")
    if when is not None:
        writer.line(f"if not {writer.call(when)}: return None")
    if isinstance(after, Pattern):
        writer.line(f"return {writer.build(after)}")
    else:
        writer.line(f"return {writer.call(after)}")
    return writer.function()


class _Writer:
    """Lines of one matcher, and the names they refer to."""

    def __init__(self, before: Apply, after: Pattern | Callable[..., Value | None]) -> None:
        self._lines = ["def matcher(root):"]
        self._names: dict[str, object] = {
            "CONST": Op.CONST, "constant_of": constant_of, "is_exactly": is_exactly, "folded": folded, "make": make, "BOOL": BOOL,
        }  # fmt: skip
        self._typing = Typing(before, after if isinstance(after, Pattern) else None)
        self._matched = Typing(before, None)  # what matching alone makes one type: only that needs no second look
        self._checked = {self._matched.of(before)}
        self._holes: dict[str, Hole] = {}
        self._types = {self._typing.of(before): "root.dtype"}
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append(f"    {text}")

    def function(self) -> Matcher:
        exec(compile("\n".join(self._lines), "<rule>", "exec"), self._names)
        return self._names["matcher"]  # type: ignore[return-value]  # what the source defines

    def _name(self, thing: object) -> str:
        for name, known in self._names.items():
            if known is thing:
                return name
        name = f"n{len(self._names)}"
        self._names[name] = thing
        return name

    def _fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def match_operands(self, pattern: Apply, value: str) -> None:
        """Tests for the operands of `value`, whose operation fits already."""
        if not pattern.src:
            return
        names = [self._fresh() for _ in pattern.src]
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {value}.src")
        side = _literal_side(pattern) if _commutes(pattern) else 0
        if side:
            of_literal, other = names[side - 1], names[2 - side]
            self.line(f"if {of_literal}.op is not CONST: {of_literal}, {other} = {other}, {of_literal}")
        wanted = sorted(zip(pattern.src, names, strict=True), key=lambda item: not _is_literal(item[0]))
        deep = [(s, name) for s, name in wanted if isinstance(s, Apply)]
        for s, name in wanted:
            self._match_top(s, name)
        for s, name in deep:
            self.match_operands(s, name)

    def _match_top(self, pattern: Pattern, name: str) -> None:
        match pattern:
            case Apply():
                if len(pattern.ops) == 1:
                    self.line(f"if {name}.op is not {self._name(pattern.ops[0])}: return None")
                else:
                    self.line(f"if {name}.op not in {self._name(pattern.ops)}: return None")
                self._check_type(pattern, name)
            case Exactly():
                self._check_type(pattern, name)
                self.line(f"if {name}.op is not CONST or not is_exactly({name}, {self._name(pattern.number)}): return None")
            case Hole():
                if pattern.name in self._holes:
                    self.line(f"if {name} is not {pattern.name}: return None")
                    return
                self._holes[pattern.name] = pattern
                if pattern.constant:
                    self.line(f"if {name}.op is not CONST: return None")
                self._check_type(pattern, name)
                self.line(f"{pattern.name} = {name}")
            case _:
                raise TypeError("a rule's left side folds nothing")

    def _check_type(self, pattern: Pattern, name: str) -> None:
        number, matched = self._typing.of(pattern), self._matched.of(pattern)
        if matched in self._checked:
            return
        self._checked.add(matched)
        self._types.setdefault(number, f"{name}.dtype")
        allowed = self._typing.types(number)
        if allowed is None:
            return
        if len(allowed) == 1:
            self.line(f"if {name}.dtype is not {self._name(next(iter(allowed)))}: return None")
        else:
            self.line(f"if {name}.dtype not in {self._name(allowed)}: return None")

    def call(self, function: Callable[..., object]) -> str:
        """A call of a condition or a replacing function with the holes it names."""
        given = []
        for name in signature(function).parameters:
            if name == "root":
                given.append("root")
            else:
                given.append(f"{name}.arg" if self._holes[name].constant else name)
        return f"{self._name(function)}({', '.join(given)})"

    def build(self, pattern: Pattern) -> str:
        """An expression for the right side; lines for what has to be computed before."""
        match pattern:
            case Hole():
                return pattern.name
            case Exactly():
                return f"constant_of({self._name(pattern.number)}, {self._types[self._typing.of(pattern)]}, root.lanes)"
            case Fold():
                name = self._fresh()
                self.line(f"{name} = {self._build_folded(pattern.pattern)}")
                self.line(f"if {name} is None: return None")
                return name
            case Apply():
                built = [self.build(s) for s in pattern.src]
                return f"make({self._name(pattern.ops[0])}, {self._type_of(pattern)}, ({', '.join(built)},), None, root.lanes)"
            case _:
                raise TypeError(f"no right side can be a {type(pattern).__name__}")

    def _type_of(self, pattern: Pattern) -> str:
        number = self._typing.of(pattern)
        if number not in self._types and self._typing.types(number) == frozenset((BOOL,)):
            return "BOOL"
        return self._types[number]

    def _build_folded(self, pattern: Pattern) -> str:
        if not isinstance(pattern, Apply):
            return self.build(pattern)
        inner = []
        for s in pattern.src:
            name = self._fresh()
            self.line(f"{name} = {self._build_folded(s)}")
            self.line(f"if {name} is None: return None")
            inner.append(name)
        return f"folded({self._name(pattern.ops[0])}, {self._type_of(pattern)}, {', '.join(inner)})"


def constant_of(number: Number, dtype: DType, lanes: int) -> Value:
    """A rule's plain number as a constant of this type: integers wrap, floats are rounded."""
    if dtype.is_float:
        return constant(dtype.round(float(number)), dtype, lanes)
    if dtype.is_integer:
        return constant(dtype.wrap(int(number)), dtype, lanes)
    return constant(number, dtype, lanes)


def is_exactly(value: Value, number: Number) -> bool:
    """Whether a constant is this number in its type: floats by bits, integers wrapped."""
    dtype, arg = value.dtype, value.arg
    if dtype.is_float:
        if arg != number and number == number:  # most are told apart by this
            return False
        return float_bits(arg) == float_bits(float(number))  # type: ignore[arg-type]  # a float CONST's arg is a float
    if dtype.is_integer:
        return arg == dtype.wrap(int(number))
    return arg == number


def folded(op: Op, dtype: DType, *values: Value) -> Value | None:
    """The constant an operation on constants is, or None."""
    number = fold(op, dtype, [v.arg for v in values], [v.dtype for v in values])  # type: ignore[misc]  # a CONST's arg is its number
    return None if number is None else constant(number, dtype, values[0].lanes)
