"""Whole graphs: simplified and not, they do the same."""

from __future__ import annotations

import time
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from core.dtypes import DTYPES, INDEX, VOID, Number, float_bits
from core.index import number
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make, sink
from core.ir.verify import verify
from core.ir.walk import Graph, ordered
from core.linear.interpret import run
from core.linear.listing import Listing
from core.linear.order import linearize
from core.passes import simplify as passes
from tests.core.ir.graphs import ELEMENTS, buffers, graph

INT32, FLOAT32 = DTYPES["int32"], DTYPES["float32"]


def simplify(root: Value, *, fast_math: bool = False) -> tuple[Value, Mapping[Value, Value]]:
    """The simpler root, and what became of each value."""
    simpler, mapping = passes.simplify(Graph.of(root), fast_math=fast_math)
    return simpler.root, mapping


def outcome(root: Value, seed: int) -> dict[int, list[int]]:
    """Every buffer's bits after the graph ran on random contents."""
    held = buffers(seed)
    run(Listing("k", (), (), linearize(Graph.of(root))), held, groups=(ELEMENTS, 1, 1))
    return {k: [_bits(x) for x in values] for k, values in held.items()}


def _bits(x: Number) -> int:
    return float_bits(x) if isinstance(x, float) else int(x)


@given(st.integers(0, 10**9))
def test_simplified_means_the_same(seed: int) -> None:
    """I 181."""
    root = graph(seed)
    simple, _ = simplify(root, fast_math=False)

    assert outcome(root, seed + 1) == outcome(simple, seed + 1)


def test_simplifying_twice_is_simplifying_once() -> None:
    """I 180."""
    for seed in range(1000):
        root = graph(seed, operations=12)
        once, _ = simplify(root, fast_math=seed % 4 == 0)

        assert once is simplify(once, fast_math=seed % 4 == 0)[0]


@given(st.integers(0, 10**9))
def test_simplified_is_well_formed_and_every_value_is_mapped(seed: int) -> None:
    root = graph(seed)
    verify(root, "raw", "made")
    simple, mapping = simplify(root, fast_math=False)

    verify(simple, "raw", "simplified")
    assert mapping[root] is simple
    left = set(ordered(simple))
    assert all(v in mapping for v in ordered(root) if v.dtype is not INDEX and not v.free)
    assert any(image in left for image in mapping.values())


def test_a_chain_of_twenty_thousand_values_takes_no_recursion() -> None:
    array = make(Op.PARAM, INT32, (), (0, "read", None, 4))
    value = make(Op.LOAD, INT32, (array, number(0)), (1, False))
    for k in range(20_000):
        value = alu(Op.ADD, value, make(Op.LOAD, INT32, (array, number(k)), (1, False)))

    simple, _ = simplify(value, fast_math=False)

    assert len(ordered(simple)) > 20_000


def test_a_chain_of_constants_collapses() -> None:
    array = make(Op.PARAM, INT32, (), (0, "read", None, 4))
    load = value = make(Op.LOAD, INT32, (array, number(0)), (1, False))
    for _ in range(20_000):
        value = alu(Op.ADD, value, constant(3, INT32))

    assert alu(Op.ADD, load, constant(60_000, INT32)) is simplify(value, fast_math=False)[0]


def test_the_cost_grows_with_the_graph() -> None:
    def seconds(count: int) -> float:
        out = make(Op.PARAM, FLOAT32, (), (0, "write", None, 4))
        array = make(Op.PARAM, FLOAT32, (), (1, "read", None, 4))
        stores = []
        for k in range(count):
            x, y = (make(Op.LOAD, FLOAT32, (array, constant(k + j, INDEX)), (1, False)) for j in (0, 1))
            value = alu(Op.MAX, alu(Op.ADD, alu(Op.MUL, x, y), alu(Op.MUL, x, x)), constant(0.0, FLOAT32))
            stores.append(make(Op.STORE, VOID, (out, constant(k, INDEX), value), (1, False)))
        root = sink(tuple(stores))
        start = time.process_time()
        simplify(root, fast_math=False)
        return time.process_time() - start

    small, large = min(seconds(250) for _ in range(3)), min(seconds(2_000) for _ in range(2))

    assert large < small * 8 * 3


def test_nothing_is_left_of_stores_that_never_happen() -> None:
    array = make(Op.PARAM, INT32, (), (0, "write", None, 4))
    store = make(Op.STORE, VOID, (array, number(0), constant(1, INT32), alu(Op.CMPNE, constant(1, INT32), constant(1, INT32))), (1, True))

    assert sink(()) is simplify(sink((store,)), fast_math=False)[0]
