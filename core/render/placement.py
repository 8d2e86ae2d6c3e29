"""Which values of a listing are written into their one user, and which stand in a line of their own.

A value moves into its user only where that changes nothing: one user, in the same scope, no store, barrier or assignment in between that
could change what it reads. Decided from the end, so that the place a user is itself moved to is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.ir.op import Op
from core.ir.parts import access, coefficients
from core.ir.value import Value

_STATEMENTS = frozenset((Op.STORE, Op.BARRIER, Op.RANGE, Op.IF, Op.END, Op.UPDATE))
_ATOMS = frozenset((Op.SPECIAL, Op.RANGE, Op.VARIABLE, Op.CONST))
_CHEAP = frozenset((Op.SUM, Op.PRODUCT, Op.LESS))
_CHEAP_TERMS = 3
_FEW = 3
_ALWAYS_THERE = frozenset((Op.CONST, Op.PARAM, Op.SHARED, Op.VARIABLE))


@dataclass(slots=True)
class Placement:
    """inline: written where they are used. live: whatever is written at all."""

    inline: set[Value] = field(default_factory=set)
    live: set[Value] = field(default_factory=set)


def operands(value: Value) -> tuple[Value, ...]:
    """The values a line for this one mentions."""
    match value.op:
        case Op.LOAD | Op.STORE:
            return access(value).operands
        case Op.BARRIER | Op.END | Op.SPECIAL:
            return ()
        case Op.ACC:
            return value.src[:1]
        case _:
            return value.src


def place(body: tuple[Value, ...]) -> Placement:
    """Where each value of a body is written."""
    return _Placing(body).run()


class _Placing:
    def __init__(self, body: tuple[Value, ...]) -> None:
        self.body = body
        self.position = {value: at for at, value in enumerate(body)}
        self.scope: list[int] = []
        self.epoch: list[int] = []
        self.updated: dict[Value, int] = {}
        self.users: dict[Value, list[Value]] = {}
        self.named: set[Value] = set()
        self.place: dict[Value, int] = {}
        self.result = Placement()
        self._scan()

    def _scan(self) -> None:
        opened = [0]
        scopes = epoch = 0
        for at, value in enumerate(self.body):
            if value.op is Op.END:
                opened.pop()
            self.scope.append(opened[-1])
            if value.op in (Op.RANGE, Op.IF):
                scopes += 1
                opened.append(scopes)
            elif value.op is Op.UPDATE:
                self.updated[value.src[0]] = at
            self.epoch.append(epoch)
            epoch += value.op in (Op.STORE, Op.BARRIER)

    def run(self) -> Placement:
        for at in range(len(self.body) - 1, -1, -1):
            value = self.body[at]
            if value.op not in _STATEMENTS and value.op is not Op.ACC and value not in self.users:
                continue
            self.result.live.add(value)
            moved = value.op not in _STATEMENTS and self._moves(value, at)
            if moved:
                self.result.inline.add(value)
            self.place.setdefault(value, at)
            for operand in operands(value):
                if operand.op not in _ALWAYS_THERE:
                    self.users.setdefault(operand, []).append(value)
            self.named.update(_by_name(value))
        return self.result

    def _moves(self, value: Value, at: int) -> bool:
        if value.op in (Op.ACC, Op.SPECIAL) or value in self.named:
            return False
        users = self.users[value]
        places = [self.place[u] for u in users]
        if value.op is Op.EXTRACT or (len(users) <= _FEW and _is_tiny(value)):  # as good as a name
            if all(self._unassigned(value, at, there) for there in places):
                self.place[value] = max(places)
                return True
            return False
        if len(users) > 1 or (value.op is Op.LOAD and value.lanes > 1 and access(value).gate is not None):
            return False
        user, there = users[0], places[0]
        if self.scope[at] != self.scope[self.position[user]] and not _is_cheap(value):
            return False
        if value.op is Op.LOAD and self.epoch[at] != self.epoch[there]:
            return False
        if user.op is Op.RANGE and value.op is Op.LOAD:
            return False
        if not self._unassigned(value, at, there):
            return False
        self.place[value] = there
        return True

    def _unassigned(self, value: Value, at: int, there: int) -> bool:
        """Whether no register that is read here is assigned before that place."""
        return not any(at < self.updated.get(s, -1) < there for s in value.src)


def _is_cheap(value: Value) -> bool:
    """An index so small that a loop may hold it: compilers compute it before."""
    return (
        value.op in _CHEAP
        and len(value.src) <= _CHEAP_TERMS
        and all(s.op in _ATOMS or (s.op in _CHEAP and len(s.src) == 1 and s.src[0].op in _ATOMS) for s in value.src)
    )


def _is_tiny(value: Value) -> bool:
    """An index of two parts, such as g0 + r0 or g0 - 2: no longer than a name would be clear."""
    if value.op is not Op.SUM or not value.dtype.is_index or any(s.op not in _ATOMS for s in value.src):
        return False
    constant, factors = coefficients(value)
    return len(factors) + (constant != 0) <= 2 and all(abs(c) == 1 for c in factors)


def _by_name(value: Value) -> tuple[Value, ...]:
    """Operands whose text stands in that of `value` more than once, or has a lane taken."""
    return value.src if value.op in (Op.MAX, Op.EXTRACT) or (value.op is Op.SIN and value.lanes > 1) else ()
