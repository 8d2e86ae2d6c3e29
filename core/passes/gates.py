"""Conditions: selections, and loads and stores that happen only where a gate holds.

WHERE guards nothing, a gate does: a gated access does not happen where its gate is false. Rows here turn selections into gates where the
access is this value's alone, drop what can't happen, and never make a second load of one. A store that can't happen becomes NOTHING, which
leaves every list it stood in.
"""

from __future__ import annotations

from core.dtypes import BOOL, VOID
from core.index import FALSE, TRUE, all_of
from core.ir.op import Op
from core.ir.parts import Access, access, content
from core.ir.value import Value, alu, make
from core.rewrite import BOOLS, INTEGERS, RuleSet, any_value, apply, rule, where

x, y = any_value("x", INTEGERS), any_value("y", INTEGERS)
p, q = any_value("p", BOOLS), any_value("q", BOOLS)
s, t, u = any_value("s"), any_value("t"), any_value("u")

_COMPARISONS = frozenset((Op.LESS, Op.ALL, Op.CONST))
NOTHING = make(Op.SINK, VOID, ())


def _same_lanes(root: Value, p: Value) -> bool:
    return p.lanes == root.lanes


SELECTIONS = RuleSet(
    rule(where(True, s, t), s),
    rule(where(False, s, t), t),
    rule(where(p, s, s), s),
    rule(where(p, True, False), p, when=_same_lanes),
    rule(where(p, False, True), ~p, when=_same_lanes),
    rule(where(p, True, q), p | q, when=_same_lanes),
    rule(where(p, q, False), p & q, when=_same_lanes),
    rule(where(~p, s, t), where(p, t, s)),
    rule(where(p, where(p, s, t), u), where(p, s, u)),
    rule(where(p, s, where(p, t, u)), where(p, s, u)),
    rule(where(p, x, 0) + where(p, y, 0), where(p, x + y, 0)),
    rule(where(p, 0, x) + where(p, 0, y), where(p, 0, x + y)),
)


def both(gate: Value, condition: Value) -> Value:
    """A conjunction: of comparisons of indices an ALL, which says most of them; with a condition on data an AND."""
    if gate.op in _COMPARISONS and condition.op in _COMPARISONS:
        return all_of((gate, condition))
    return alu(Op.AND, gate, condition)


def rebuilt(root: Value, parts: Access) -> Value:
    """The access `root` with other parts."""
    optional = tuple(v for v in (parts.stored, parts.gate, parts.alternative) if v is not None)
    src = (parts.array, *parts.addresses, *optional, *parts.tokens)
    return make(root.op, root.dtype, src, (len(parts.addresses), parts.gate is not None), root.lanes)


def without_nothing(root: Value) -> Value | None:
    """Order tokens and stores that became nothing leave the list."""
    if NOTHING not in root.src:
        return None
    src = tuple(v for v in root.src if v is not NOTHING)
    return NOTHING if root.op is Op.BARRIER and not src else make(root.op, root.dtype, src, root.arg, root.lanes)


def decided(root: Value) -> Value | None:
    """An access whose gate is a constant: always made, or never."""
    if FALSE not in root.src and TRUE not in root.src:  # a look that costs little, before the access is taken apart
        return None
    parts = access(root)
    if parts.gate is None or parts.gate.op is not Op.CONST:
        return None
    if content(parts.gate):
        return rebuilt(root, parts._replace(gate=None, alternative=None))
    return parts.alternative or NOTHING


def unchanged(store: Access, value: Value) -> bool:
    """Whether `value` is what the stored element holds, wherever the store happens.

    It is a load of the element by the work-item that stores it; a kernel's own buffers are written once per element, shared arrays are not.
    A bool need not be: it is read as "is not zero" and written as 0 or 1.
    """
    if value.op is not Op.LOAD or value.src[0] is not store.array or store.array.op is not Op.PARAM or value.dtype is BOOL:
        return False
    load = access(value)
    if load.addresses != store.addresses or load.tokens:
        return False
    return load.gate is None or load.gate is store.gate


def stored_back(root: Value) -> Value | None:
    """Storing what is there already stores nothing, or, of a selection, only where it is something else."""
    if not any(s.op is Op.LOAD or s.op is Op.WHERE for s in root.src):
        return None
    store = access(root)
    value = store.stored
    if value is None:
        return None
    if value.op is Op.LOAD:
        return NOTHING if unchanged(store, value) else None
    if value.op is not Op.WHERE or value.lanes > 1 or value.src[0].lanes > 1:
        return None
    condition, first, second = value.src
    if unchanged(store, second):
        kept = first
    elif unchanged(store, first):
        condition, kept = alu(Op.NOT, condition), second
    else:
        return None
    gate = condition if store.gate is None else both(store.gate, condition)
    return rebuilt(root, store._replace(gate=gate, stored=kept))


MEMORY = RuleSet(
    rule(apply(Op.LOAD), without_nothing),
    rule(apply(Op.STORE), without_nothing),
    rule(apply(Op.BARRIER), without_nothing),
    rule(apply(Op.SINK), without_nothing),
    rule(apply(Op.LOAD), decided),
    rule(apply(Op.STORE), decided),
    rule(apply(Op.STORE), stored_back),
)

GATES = RuleSet(SELECTIONS, MEMORY)


def absorbed(root: Value, count: dict[Value, int]) -> Value | None:
    """where(g, load gated g else z, w) as load gated g else w, w a constant: the load must have no other user, or it would be two.

    Likewise where(g, w, load gated not g else z).
    """
    if root.op is not Op.WHERE or root.src[0].lanes > 1:
        return None
    condition, first, second = root.src
    for load, other, negated in ((first, second, False), (second, first, True)):
        if load.op is not Op.LOAD or other.op is not Op.CONST or count[load] > 1:
            continue
        parts = access(load)
        if parts.gate is None:
            continue
        same = parts.gate.op is Op.NOT and parts.gate.src[0] is condition if negated else parts.gate is condition
        if same:
            return rebuilt(load, parts._replace(alternative=other))
    return None
