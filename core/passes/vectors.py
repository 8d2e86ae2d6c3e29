"""Lanes, and registers no loop carries: vectors of what was taken out of one, parts of what was just put together."""

from __future__ import annotations

from core.ir.op import Op
from core.ir.parts import content, integer
from core.ir.value import Value, constant
from core.rewrite import RuleSet, any_value, apply, literal, rule, update

s = any_value("s")
u = literal("u")


def part(root: Value) -> Value | None:
    """One lane of a vector that was put together from scalars, or of a constant."""
    vector = root.src[0]
    if vector.op is Op.VECTOR:
        return vector.src[integer(root)]
    if vector.op is Op.CONST:
        return constant(content(vector), vector.dtype)
    return vector if vector.lanes == 1 else None


def whole(root: Value) -> Value | None:
    """A vector of one, of equal constants, or of every lane of another in order."""
    first = root.src[0]
    if len(root.src) == 1:
        return first
    if first.op is Op.CONST:
        if any(lane is not first for lane in root.src):
            return None
        return constant(content(first), first.dtype, len(root.src))
    if first.op is not Op.EXTRACT or first.src[0].lanes != len(root.src):
        return None
    vector = first.src[0]
    in_place = all(lane.op is Op.EXTRACT and lane.src[0] is vector and lane.arg == k for k, lane in enumerate(root.src))
    return vector if in_place else None


def initial(root: Value) -> Value | None:
    """A register that no loop carries is what it starts as."""
    return root.src[0] if len(root.src) == 1 else None


def never_changed(root: Value, s: Value) -> Value | None:
    """A register assigned to itself keeps what it started as."""
    return s.src[0] if s.op is Op.ACC else None


LANES = RuleSet(
    rule(apply(Op.EXTRACT), part),
    rule(apply(Op.VECTOR), whole),
)

REGISTERS = RuleSet(
    rule(apply(Op.ACC), initial),
    rule(update(s, s), never_changed),
    rule(update(u, s), s),  # its register became its initial constant
)

VECTORS = RuleSet(LANES, REGISTERS)
