"""Values of several lanes taken apart, for languages that have none.

Every vector becomes its lanes: loads and stores one access per element, registers one each, everything elementwise once per lane.
"""

from __future__ import annotations

from core.index import add, number
from core.ir.op import OPS, Op
from core.ir.parts import access, content, integer
from core.ir.value import Value, constant, make
from core.ir.walk import Graph, with_sources

Lanes = tuple[Value, ...]


def scalars(graph: Graph) -> Graph:
    """The same graph with one lane everywhere; itself where that is already so."""
    order = graph.order
    if all(v.lanes == 1 for v in order):
        return graph
    registers = max((integer(v) for v in order if v.op is Op.ACC), default=-1) + 1
    done: dict[Value, Lanes] = {}
    for value in order:
        if value.op is Op.ACC and value.lanes > 1:
            start = constant(content(value.src[0]), value.dtype)
            ranges = tuple(done[s][0] for s in value.src[1:])
            done[value] = tuple(make(Op.ACC, value.dtype, (start, *ranges), registers + lane) for lane in range(value.lanes))
            registers += value.lanes
        else:
            done[value] = _apart(value, done)
    return Graph.of(done[graph.root][0])


def _apart(value: Value, done: dict[Value, Lanes]) -> Lanes:
    match value.op:
        case Op.CONST:
            return (constant(content(value), value.dtype),) * value.lanes if value.lanes > 1 else (value,)
        case Op.VECTOR:
            return tuple(done[s][0] for s in value.src)
        case Op.EXTRACT:
            return (done[value.src[0]][integer(value)],)
        case Op.LOAD:
            return _loads(value, done)
        case Op.STORE:
            return _stores(value, done)
        case op if value.lanes > 1 and (OPS[op].elementwise or op is Op.UPDATE):
            return tuple(_lane(value, tuple(_at(done[s], lane) for s in value.src)) for lane in range(value.lanes))
        case _:
            src = _all(value.src, done)  # a store that became several is several here too
            return (value if src == value.src else with_sources(value, src),)


def _lane(value: Value, src: Lanes) -> Value:
    return make(value.op, value.dtype, src, value.arg, 1, (value.lo, value.hi))


def _at(lanes: Lanes, lane: int) -> Value:
    return lanes[lane] if len(lanes) > 1 else lanes[0]


def _loads(value: Value, done: dict[Value, Lanes]) -> Lanes:
    parts = access(value)
    array, address = done[parts.array][0], done[parts.addresses[0]][0]
    tokens = _all(parts.tokens, done)
    out = []
    for lane in range(value.lanes):
        gate: Lanes = ()
        if parts.gate is not None and parts.alternative is not None:
            gate = (done[parts.gate][0], _at(done[parts.alternative], lane))
        out.append(make(Op.LOAD, value.dtype, (array, _moved(address, lane), *gate, *tokens), value.arg, 1, (value.lo, value.hi)))
    return tuple(out)


def _stores(value: Value, done: dict[Value, Lanes]) -> Lanes:
    parts = access(value)
    assert parts.stored is not None
    array, address = done[parts.array][0], done[parts.addresses[0]][0]
    gate = () if parts.gate is None else done[parts.gate]
    tokens = _all(parts.tokens, done)
    return tuple(
        make(Op.STORE, value.dtype, (array, _moved(address, lane), part, *gate, *tokens), value.arg)
        for lane, part in enumerate(done[parts.stored])
    )


def _all(values: Lanes, done: dict[Value, Lanes]) -> Lanes:
    return tuple(part for v in values for part in done[v])


def _moved(address: Value, lane: int) -> Value:
    return add(address, number(lane)) if lane else address
