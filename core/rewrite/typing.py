"""Which types the parts of a rule may have, as far as its operations tie them together."""

from __future__ import annotations

from core.ir.op import Op
from core.rewrite.pattern import BOOLS, INTEGERS, ROUNDED, Apply, Fold, Hole, Pattern, Types

SAME_AS_RESULT = frozenset((
    Op.NEG, Op.NOT, Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT, Op.RECIP, Op.ADD, Op.MUL, Op.IDIV, Op.REM, Op.MAX, Op.XOR, Op.AND, Op.OR, Op.MULACC,
    Op.UPDATE,
))  # fmt: skip


class Typing:
    """Which parts of a rule are of one type, and which types that may be.

    A part's class is a number; `types` of a class is None where any type will do. Two rules: operands of arithmetic are of the result's
    type, those of a comparison of one another's.
    """

    def __init__(self, before: Pattern, after: Pattern | None) -> None:
        self._parent: list[int] = []
        self._of: dict[int, int] = {}
        self._holes: dict[str, int] = {}
        self._kept: list[Pattern] = []
        self._types: dict[int, Types] = {}
        self.root = self._class(before)
        if after is not None:
            self._join(self._class(after), self.root)

    def of(self, pattern: Pattern) -> int:
        return self._find(self._of[id(pattern)])

    def types(self, number: int) -> Types | None:
        return self._types.get(self._find(number))

    def _new(self) -> int:
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def _find(self, number: int) -> int:
        while self._parent[number] != number:
            number = self._parent[number]
        return number

    def _join(self, a: int, b: int) -> None:
        a, b = self._find(a), self._find(b)
        if a != b:
            allowed = self._types.pop(a, None)
            self._parent[a] = b
            self._restrict(b, allowed)

    def _restrict(self, number: int, types: Types | None) -> None:
        if types is not None:
            number = self._find(number)
            known = self._types.get(number)
            self._types[number] = types if known is None else known & types

    def _class(self, pattern: Pattern) -> int:
        known = self._of.get(id(pattern))
        if known is not None:
            return known
        self._kept.append(pattern)
        number = self._of[id(pattern)] = self._class_of(pattern)
        return number

    def _class_of(self, pattern: Pattern) -> int:
        match pattern:
            case Hole():
                number = self._holes.setdefault(pattern.name, -1)
                if number < 0:
                    number = self._holes[pattern.name] = self._new()
                self._restrict(number, pattern.types)
                return number
            case Fold():
                return self._class(pattern.pattern)
            case Apply():
                return self._class_of_operation(pattern)
            case _:
                return self._new()

    def _class_of_operation(self, pattern: Apply) -> int:
        result = self._new()
        inner = [self._class(s) for s in pattern.src]
        if len(pattern.ops) > 1 or not inner:
            return result
        op = pattern.ops[0]
        if op in SAME_AS_RESULT:
            for k in inner:
                self._join(k, result)
        elif op is Op.SHL or op is Op.SHR:
            self._join(inner[0], result)
            self._restrict(inner[1], INTEGERS)
        elif op is Op.ROUND:
            self._join(inner[0], result)
            self._restrict(result, ROUNDED)
        elif op is Op.CMPLT or op is Op.CMPNE:
            self._join(inner[0], inner[1])
            self._restrict(result, BOOLS)
        elif op is Op.WHERE:
            self._restrict(inner[0], BOOLS)
            self._join(inner[1], result)
            self._join(inner[2], result)
        return result
