"""Stores behind one gate as one branch: the condition is asked once, and what only they need is read and computed inside.

The accesses keep their gates. Whoever prints a listing knows that a gate is open inside the branch it is the condition of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from core.dtypes import VOID
from core.ir.op import Op
from core.ir.parts import access
from core.ir.value import Value, make

_FENCES = frozenset((Op.RANGE, Op.IF, Op.END, Op.BARRIER, Op.UPDATE, Op.ACC, Op.MMA))  # nothing moves across these
_STAY = frozenset((Op.SPECIAL, Op.IF, Op.END))
_ACCESSES = frozenset((Op.LOAD, Op.STORE))
_FEWEST = 2  # accesses with the same gate for which a branch is worth its lines


def branched(body: Sequence[Value]) -> tuple[Value, ...]:
    """The body with an IF around stores of one gate that follow each other in one scope, where that saves asking for it again.

    A branch ends at a store of another gate and at whatever opens, closes or waits. Loads move into it only past stores to other arrays.
    """
    if all(v.op is not Op.STORE or access(v).gate is None for v in body):
        return tuple(body)
    users: defaultdict[Value, set[Value]] = defaultdict(set)
    for v in body:
        for s in v.src:
            users[s].add(v)
    written: list[Value] = []
    for straight in _straight(body):
        written += _branched(straight, users, set(written))
    return tuple(written)


def _straight(body: Sequence[Value]) -> Iterator[list[Value]]:
    """The body in parts, each without a fence, or a fence alone."""
    part: list[Value] = []
    for v in body:
        if v.op in _FENCES:
            yield part
            yield [v]
            part = []
        else:
            part.append(v)
    yield part


def _branched(part: list[Value], users: dict[Value, set[Value]], before: set[Value]) -> list[Value]:
    """A part with branches. before: what has been written; a condition opens one branch, as any value stands in a listing once."""
    opened = set(before)
    for gate, stores in _runs(part):
        region = make(Op.IF, VOID, (gate,))
        inside = _only_for(part, gate, stores, users)
        asking = [v for v in inside if v.op in _ACCESSES and access(v).gate is gate]
        if len(asking) < _FEWEST or region in opened or any(users[store] for store in stores):
            continue
        opened.add(region)
        end = part.index(stores[-1]) + 1
        outer, inner = [v for v in part[:end] if v not in inside], [v for v in part[:end] if v in inside]
        part = [*outer, region, *inner, make(Op.END, VOID, (region,)), *part[end:]]
    return part


def _runs(part: list[Value]) -> list[tuple[Value, list[Value]]]:
    """Gates, each with its stores that no other store stands between."""
    runs: list[tuple[Value, list[Value]]] = []
    last: Value | None = None
    for store in (v for v in part if v.op is Op.STORE):
        gate = access(store).gate
        if gate is not None:
            if gate is not last:
                runs.append((gate, []))
            runs[-1][1].append(store)
        last = gate
    return runs


def _only_for(part: list[Value], gate: Value, stores: list[Value], users: dict[Value, set[Value]]) -> set[Value]:
    """The stores and what is used by nothing else: of loads only those that pass no store to their array on the way."""
    inside = set(stores)
    passed: set[Value] = set()  # arrays stored to between here and the branch
    for v in reversed(part[: part.index(stores[-1])]):
        if v.op is Op.STORE:
            if v not in inside:
                passed.add(v.src[0])
        elif v is not gate and v.op not in _STAY and users[v] and users[v] <= inside and not (v.op is Op.LOAD and v.src[0] in passed):
            inside.add(v)
    return inside
