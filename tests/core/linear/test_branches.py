"""Stores behind one gate share a branch (acceptance I 179), and nothing else changes."""

from __future__ import annotations

from random import Random

import pytest

from core.dtypes import INDEX, INT32, VOID
from core.index import less, number, scale, total
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make, sink
from core.ir.walk import Graph
from core.linear.branches import branched
from core.linear.interpret import run
from core.linear.listing import Listing
from core.linear.order import linearize
from core.linear.verify import verify
from core.passes.narrow import narrow

A, B, C = (make(Op.PARAM, INT32, (), (k, "readwrite", None, 4)) for k in range(3))
G0 = make(Op.SPECIAL, INDEX, (number(4),), ("group", 0), 1, (0, 3))
NEAR, FAR = less(G0, number(2)), less(G0, number(3))


def place(at: int) -> Value:
    """Element `at` of a group's own twenty."""
    return total((scale(G0, 20), number(at)))


def load(array: Value, at: int, gate: Value | None = None) -> Value:
    more = () if gate is None else (gate, constant(0, INT32))
    return make(Op.LOAD, INT32, (array, place(at), *more), (1, gate is not None))


def store(array: Value, at: int, value: Value, gate: Value | None, *after: Value) -> Value:
    return make(Op.STORE, VOID, (array, place(at), value, *(() if gate is None else (gate,)), *after), (1, gate is not None))


def bodies(*stores: Value) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """The order without branches, and with them."""
    graph, _ = narrow(Graph.of(sink(stores)), index64=True)
    body = linearize(graph)
    return body, branched(body)


def shape(body: tuple[Value, ...]) -> list[str]:
    """Scopes and accesses: where memory is touched."""
    return [f"{v.op.name} {v.src[0].arg[0]}" if v.op in (Op.LOAD, Op.STORE) else v.op.name for v in body if v.op in _SHOWN]  # type: ignore[index]


_SHOWN = (Op.IF, Op.END, Op.LOAD, Op.STORE)


def test_stores_of_one_gate_share_a_branch_with_what_only_they_need() -> None:
    plain = load(B, 3)
    stores = [store(A, k, load(B, k, NEAR), NEAR) for k in range(2)]
    _, body = bodies(*stores, store(A, 2, plain, None))

    assert ["IF", "LOAD 1", "STORE 0", "LOAD 1", "STORE 0", "END", "LOAD 1", "STORE 0"] == shape(body)


def test_what_others_need_too_stays_before_the_branch() -> None:
    both = load(B, 0)
    _, body = bodies(store(A, 0, both, NEAR), store(A, 1, load(B, 1), NEAR), store(C, 0, both, None))

    assert ["LOAD 1", "IF", "STORE 0", "LOAD 1", "STORE 0", "END", "STORE 2"] == shape(body)


def test_a_condition_asked_once_needs_no_branch() -> None:
    before, body = bodies(store(A, 0, load(B, 0), NEAR), store(A, 1, load(B, 1), FAR))

    assert before == body


def test_a_load_does_not_pass_a_store_to_its_array() -> None:
    old = load(A, 0)
    overwrites = store(A, 0, constant(7, INT32), None, old)
    _, body = bodies(overwrites, store(B, 0, old, NEAR), store(B, 1, load(C, 0), NEAR))

    assert ["LOAD 0", "STORE 0", "IF", "STORE 1", "LOAD 2", "STORE 1", "END"] == shape(body)


def test_a_store_that_something_comes_after_stays_out() -> None:
    first = store(A, 0, constant(1, INT32), NEAR)
    reads = make(Op.LOAD, INT32, (A, place(1), first), (1, False))
    before, body = bodies(first, store(A, 2, constant(2, INT32), NEAR), store(B, 0, reads, None))

    assert before == body


@pytest.mark.parametrize("seed", range(200))
def test_programs_do_the_same_with_branches(seed: int) -> None:
    """Random stores, gated and not, of random sums of random loads, some of them of arrays that are written."""
    rng = Random(seed)
    gates = (None, NEAR, FAR)
    loads = [load(rng.choice((A, B, C)), k, rng.choice(gates)) for k in range(6)]
    stores = []
    for k in range(rng.randint(2, 6)):
        x, y = rng.choices(loads, k=2)
        at = k if rng.random() < 0.5 else 10 + k
        stores.append(store(rng.choice((A, B)), at, alu(Op.ADD, x, y), rng.choice(gates), *loads))
    before, body = bodies(*stores)
    found = []
    for one in (before, body):
        listing = Listing("k", (A, B, C), (), one, (1, 1, 1))
        verify(listing)
        memory = {k: [100 * k + n for n in range(80)] for k in range(3)}
        run(listing, memory, groups=(4, 1, 1))
        found.append(memory)

    assert found[0] == found[1]
    assert [v for v in before if v.op is Op.STORE] == [v for v in body if v.op is Op.STORE]
