"""Which values of a listing are written into their one user, and which stand in a line of their own.

A value moves into its user only where that changes nothing: one user, in the same scope, no store, barrier or assignment in between that
could change what it reads. Decided from the end, so that the place a user is itself moved to is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from core.ir.op import Op
from core.ir.parts import coefficients, without_tokens
from core.ir.value import Value

_STATEMENTS = frozenset((Op.STORE, Op.BARRIER, Op.RANGE, Op.IF, Op.END, Op.UPDATE))
_STAY = _STATEMENTS | {Op.ACC}
_MENTIONS: dict[Op, Callable[[Value], tuple[Value, ...]]] = {  # where that is not every operand
    **dict.fromkeys((Op.LOAD, Op.STORE), without_tokens),
    **dict.fromkeys((Op.BARRIER, Op.END, Op.SPECIAL), lambda value: ()),
    Op.ACC: lambda value: value.src[:1],
}
BY_NAME = frozenset((Op.MAX, Op.EXTRACT, Op.SIN))  # whose operands' texts may stand in theirs more than once
_ATOMS = frozenset((Op.SPECIAL, Op.RANGE, Op.VARIABLE, Op.CONST))
_CHEAP = frozenset((Op.SUM, Op.PRODUCT, Op.LESS))
_CHEAP_TERMS = 3
_FEW = 3


@dataclass(slots=True)
class Placement:
    """inline: written where they are used. dead: written nowhere."""

    inline: set[Value] = field(default_factory=set)
    dead: set[Value] = field(default_factory=set)


def operands(value: Value) -> tuple[Value, ...]:
    """The values a line for this one mentions."""
    mentions = _MENTIONS.get(value.op)
    return value.src if mentions is None else mentions(value)


def place(body: tuple[Value, ...], by_name: frozenset[Op] = BY_NAME) -> Placement:
    """Where each value of a body is written. by_name: operations that ask for names as their operands."""
    return _Placing(body, by_name).run()


class _Placing:
    """Everything by position in the body.

    scopes: the innermost around it. uses, user: how often it is mentioned, and where first. latest: the last line that it may be written
    in. named: it must be a name where it is used. stores: where stores and barriers are. updated: where each register is assigned.
    """

    def __init__(self, body: tuple[Value, ...], by_name: frozenset[Op]) -> None:
        self.body = body
        self.by_name = by_name
        self.position = {value: at for at, value in enumerate(body)}
        self.uses = [0] * len(body)
        self.user = [0] * len(body)
        self.latest = [0] * len(body)
        self.named = [False] * len(body)
        self.scopes: list[int] = []
        self.stores: list[int] = []
        self.updated: dict[Value, int] = {}
        self._scan()

    def _scan(self) -> None:
        scopes = self.scopes
        opened = [0]
        count = 0
        for at, op in [(at, value.op) for at, value in enumerate(self.body) if value.op in _STATEMENTS]:
            if op is Op.RANGE or op is Op.IF:
                scopes += [opened[-1]] * (at + 1 - len(scopes))
                count += 1
                opened.append(count)
            elif op is Op.END:
                scopes += [opened.pop()] * (at - len(scopes))
            elif op is Op.UPDATE:
                self.updated[self.body[at].src[0]] = at
            else:
                self.stores.append(at)
        scopes += [0] * (len(self.body) - len(scopes))

    def run(self) -> Placement:
        inline: set[Value] = set()
        dead: set[Value] = set()
        position, uses, user, latest = self.position, self.uses, self.user, self.latest
        for at in range(len(self.body) - 1, -1, -1):
            value = self.body[at]
            op = value.op
            line = at
            if op not in _STAY:
                if not uses[at]:
                    dead.add(value)
                    continue
                if self._moves(value, at):
                    inline.add(value)
                    line = latest[at]
            for operand in operands(value) if op in _MENTIONS else value.src:
                if operand in position:
                    there = position[operand]
                    uses[there] += 1
                    user[there] = at
                    if line > latest[there]:
                        latest[there] = line
            if op in self.by_name:
                self._name_operands(value)
        return Placement(inline, dead)

    def _name_operands(self, value: Value) -> None:
        """Operands whose text stands in that of `value` more than once, or has a lane taken."""
        if value.op is not Op.SIN or value.lanes > 1:
            for operand in value.src:
                if operand in self.position:
                    self.named[self.position[operand]] = True

    def _moves(self, value: Value, at: int) -> bool:
        if value.op is Op.SPECIAL or self.named[at]:
            return False
        return self._may_move(value, at) and (self.updated.keys().isdisjoint(value.src) or self._unassigned(value, at))

    def _may_move(self, value: Value, at: int) -> bool:
        op, uses, user = value.op, self.uses[at], self.user[at]
        is_alone = uses == 1 and self.scopes[at] == self.scopes[user]
        if op is Op.LOAD:
            return is_alone and self._may_read_later(value, at)
        if is_alone or op is Op.EXTRACT or (op is Op.SUM and uses <= _FEW and _is_tiny(value)):  # the last two are as good as a name
            return True
        return uses == 1 and _is_cheap(value)

    def _may_read_later(self, load: Value, at: int) -> bool:
        """Whether a load's one user may read memory instead: nothing is stored in between, and no loop reads it at each turn."""
        is_gated = load.lanes > 1 and load.arg[1]  # type: ignore[index]  # (addresses, gated)
        is_stored = bisect_left(self.stores, at) != bisect_left(self.stores, self.latest[at])
        return not is_gated and not is_stored and self.body[self.user[at]].op is not Op.RANGE

    def _unassigned(self, value: Value, at: int) -> bool:
        """Whether no register that is read here is assigned before the line it would be read in."""
        return not any(at < self.updated[s] < self.latest[at] for s in value.src if s in self.updated)


def _is_cheap(value: Value) -> bool:
    """An index so small that a loop may hold it: compilers compute it before."""
    return (
        value.op in _CHEAP
        and len(value.src) <= _CHEAP_TERMS
        and all(s.op in _ATOMS or (s.op in _CHEAP and len(s.src) == 1 and s.src[0].op in _ATOMS) for s in value.src)
    )


def _is_tiny(value: Value) -> bool:
    """A sum of two parts, such as g0 + r0 or g0 - 2: no longer than a name would be clear."""
    if not value.dtype.is_index or any(s.op not in _ATOMS for s in value.src):
        return False
    constant, factors = coefficients(value)
    return len(factors) + (constant != 0) <= 2 and all(abs(c) == 1 for c in factors)
