"""What of a listing gets no instruction of its own in PTX: products and negatives that are part of a sum, indices that are part of an
address, and assignments whose value can be computed right into its register.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.ir.op import Op
from core.ir.parts import access, integer
from core.ir.value import Value
from core.render.placement import operands

_PARTS = frozenset((Op.MUL, Op.NEG))
_SCOPES = frozenset((Op.RANGE, Op.IF))
_KEPT = frozenset((Op.STORE, Op.BARRIER, Op.RANGE, Op.IF, Op.END, Op.UPDATE, Op.ACC))


@dataclass(slots=True)
class Flow:
    """dead: values nobody mentions. fused: products and negatives computed by the sum they are in. addresses: sums that are addresses only,
    and of which arrays. into: (register, lane) that a value may be computed into. last: the position of a value's last mention. updated:
    where a register is assigned.
    """

    dead: set[Value] = field(default_factory=set)
    fused: set[Value] = field(default_factory=set)
    addresses: dict[Value, tuple[Value, ...]] = field(default_factory=dict)
    into: dict[Value, tuple[Value, int]] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    updated: dict[Value, int] = field(default_factory=dict)


def flow_of(body: tuple[Value, ...]) -> Flow:
    """Everything by position in the body, from the end, so that what only dead values mention is dead too."""
    return _Following(body).run()


class _Following:
    def __init__(self, body: tuple[Value, ...]) -> None:
        self.body = body
        self.position = {value: at for at, value in enumerate(body)}
        self.scopes = _scopes(body)
        self.users: dict[Value, list[Value]] = {}
        self.flow = Flow(updated={value.src[0]: at for at, value in enumerate(body) if value.op is Op.UPDATE})

    def run(self) -> Flow:
        flow = self.flow
        for at in range(len(self.body) - 1, -1, -1):
            value = self.body[at]
            if value.op not in _KEPT and value not in self.users:
                flow.dead.add(value)
                continue
            for operand in operands(value):
                self.users.setdefault(operand, []).append(value)
                flow.last.setdefault(operand, at)
        for value in self.body:
            if value in flow.dead:
                continue
            if value.op in _PARTS and self._is_part_of_a_sum(value):
                flow.fused.add(value)
            elif value.op is Op.SUM and value.dtype.is_index:
                arrays = self._arrays(value)
                if arrays:
                    flow.addresses[value] = arrays
            elif value.op is Op.UPDATE:
                self._computed_into(value)
        return flow

    def _only_user(self, value: Value) -> Value | None:
        users = self.users.get(value, [])
        return users[0] if len(users) == 1 else None

    def _same_scope(self, first: Value, second: Value) -> bool:
        return self.scopes[self.position[first]] == self.scopes[self.position[second]]

    def _is_part_of_a_sum(self, part: Value) -> bool:
        """Of a product that is added one rounding instead of two is allowed, and a negative is subtracted. It is computed later then, so
        not of what may be assigned to.
        """
        total = self._only_user(part)
        if total is None or total.op is not Op.ADD or not part.dtype.is_float or not self._same_scope(part, total):
            return False
        if not self.flow.fused.isdisjoint(total.src) or any(_is_register(s) for s in part.src):
            return False
        for s in part.src:
            self.flow.last[s] = max(self.flow.last[s], self.position[total])
        return True

    def _arrays(self, total: Value) -> tuple[Value, ...]:
        """The arrays a sum is an address of; none where it is anything else too."""
        found: dict[Value, None] = {}
        for user in self.users.get(total, []):
            if user.op not in (Op.LOAD, Op.STORE):
                return ()
            parts = access(user)
            if parts.addresses != (total,) or total in parts.operands[2:]:
                return ()
            found[parts.array] = None
        return tuple(sorted(found, key=lambda array: (array.op is Op.SHARED, str(array.arg))))

    # ---- assignments -------------------------------------------------------------------------------------------------------

    def _computed_into(self, update: Value) -> None:
        register, value = update.src
        if value not in self.position or not self._is_for(value, update):
            return
        if value.op is Op.VECTOR:
            for lane, part in enumerate(value.src):
                if part in self.position and self._is_for(part, value) and self._is_free(register, lane, part, update):
                    self.flow.into[part] = register, lane
        elif all(self._is_free(register, lane, value, update) for lane in range(value.lanes)):
            self.flow.into[value] = register, 0

    def _is_for(self, value: Value, user: Value) -> bool:
        return self._only_user(value) is user and value.op not in (Op.ACC, Op.UPDATE, Op.EXTRACT) and self._same_scope(value, user)

    def _is_free(self, register: Value, lane: int, value: Value, update: Value) -> bool:
        """Whether nobody reads this lane of the register between the value and the assignment."""
        end, here = self.position[update], self.position[value]
        reads = [register]
        latest = -1
        while reads:
            read = reads.pop()
            for user in self.users.get(read, []):
                at = self.position[user]
                if user.op is Op.EXTRACT and integer(user) != lane and read is register:
                    continue
                if at < end and user is not update:
                    latest = max(latest, at)
                if user.op in _ALIASES:
                    reads.append(user)
        return latest <= here


_ALIASES = frozenset((Op.EXTRACT, Op.VECTOR, Op.BITCAST, Op.CAST, Op.INDEX_OF))  # what may stand for the register it is of


def _is_register(value: Value) -> bool:
    """Whether a value may be another name of a register that is assigned to."""
    while value.op in _ALIASES and len(value.src) == 1:
        value = value.src[0]
    return value.op in (Op.ACC, Op.UPDATE, Op.VECTOR)


def _scopes(body: tuple[Value, ...]) -> list[int]:
    """Per position the number of the innermost scope around it."""
    scopes, opened, count = [], [0], 0
    for value in body:
        if value.op is Op.END:
            opened.pop()
        scopes.append(opened[-1])
        if value.op in _SCOPES:
            count += 1
            opened.append(count)
    return scopes
