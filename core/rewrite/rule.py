"""One rewrite rule, and tables of them.

A rule is a row: what to look for, what to put there, and when. Both sides are patterns, so that a row prints itself and can be proved by
machine; where the right side has to be computed it is a function of the holes it names as parameters (`root`: the value matched), which
returns None to let the next rule try. `when` takes holes by name in the same way. A literal's hole is its number to both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature

from core.dtypes import DType
from core.ir.op import Op
from core.ir.value import Value
from core.rewrite.compile import Matcher, compiled, orders, possible
from core.rewrite.pattern import Apply, Operand, Pattern, holes, operand
from core.rewrite.typing import Typing

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """before: an operation. after: a pattern, or a function of holes. when: a condition on holes, or None."""

    before: Apply
    after: Pattern | Callable[..., Value | None]
    when: Callable[..., bool] | None

    def __str__(self) -> str:
        after = self.after if isinstance(self.after, Pattern) else self.after.__name__
        return f"{self.before} → {after}" + (", on a condition" if self.when else "")

    def named(self) -> frozenset[str]:
        """The holes that stand twice on the left side, or that the right side or the condition asks for."""
        names = holes(self.before)
        for asks in (self.after, self.when):
            if asks is not None:
                names += holes(asks) if isinstance(asks, Pattern) else list(signature(asks).parameters)
        return frozenset(name for name, times in Counter(names).items() if times > 1)

    def typing(self) -> Typing:
        """Which parts of the rule share a type."""
        return Typing(self.before, self.after if isinstance(self.after, Pattern) else None)


def rule(before: Pattern, after: Operand | Callable[..., Value | None], when: Callable[..., bool] | None = None) -> Rule:
    """The row `before → after, when`."""
    assert isinstance(before, Apply), "a rule starts from an operation"
    return Rule(before, after if callable(after) and not isinstance(after, Pattern) else operand(after), when)


class RuleSet:
    """Rules in their order, made ready for the engine: looked up by operation, type and operands' operations, compiled when first needed.

    ops: operations that some rule starts from. found: what `candidates` has answered so far, by `key_of`.
    """

    def __init__(self, *rows: Rule | RuleSet) -> None:
        self.rules: tuple[Rule, ...] = tuple(r for row in rows for r in (row.rules if isinstance(row, RuleSet) else (row,)))
        self._by_op: dict[Op, list[_Entry]] = {}
        for r in self.rules:
            types = r.typing()
            for order in orders(r.before, r.named()):
                entry = _Entry(r, order, types.types(types.root))
                for op in order.ops:
                    self._by_op.setdefault(op, []).append(entry)
        self.ops = frozenset(self._by_op)
        self.found: dict[Key, tuple[tuple[Rule, Matcher], ...]] = {}

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def fits(self, value: Value) -> bool:
        """Whether some rule puts something in a value's place. None does for an index in which no data is looked up."""
        if value.op not in self.ops or (value.free and is_index(value)):
            return False
        found = self.found.get(key_of(value))
        for _, matcher in self.candidates(value) if found is None else found:
            other = matcher(value)
            if other is not None and other is not value:
                return True
        return False

    def candidates(self, value: Value) -> tuple[tuple[Rule, Matcher], ...]:
        """The rules that may fit a value, as far as its `key_of` tells."""
        key = key_of(value)
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = tuple(
                (e.rule, e.matcher())
                for e in self._by_op.get(value.op, ())
                if (e.types is None or value.dtype in e.types) and (len(key) == 2 or possible(e.before, tuple(s.op for s in value.src)))
            )
        return found


_INDEX = frozenset(
    (Op.AXIS, Op.VARIABLE, Op.OPAQUE, Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD, Op.LESS, Op.SPECIAL, Op.RANGE)
)  # a conjunction is none: it may hold conditions on data


def is_index(value: Value) -> bool:
    """Whether it is an index operation in which no data is looked up."""
    return value.op in _INDEX and not any(atom.op is Op.INDEX_OF for atom in value.free)


def key_of(value: Value) -> Key:
    """What rules are looked up by: an operation, its type and, if there are one to three, the operations of its operands."""
    src = value.src
    match len(src):
        case 2:
            return value.op, value.dtype, src[0].op, src[1].op
        case 1:
            return value.op, value.dtype, src[0].op
        case 3:
            return value.op, value.dtype, src[0].op, src[1].op, src[2].op
        case _:
            return value.op, value.dtype


class _Entry:
    """One order of a rule's operands."""

    __slots__ = ("_matcher", "before", "rule", "types")

    def __init__(self, owner: Rule, before: Apply, types: frozenset[DType] | None) -> None:
        self.rule, self.before, self.types = owner, before, types
        self._matcher: Matcher | None = None

    def matcher(self) -> Matcher:
        if self._matcher is None:
            self._matcher = compiled(self.before, self.rule.after, self.rule.when)
        return self._matcher
