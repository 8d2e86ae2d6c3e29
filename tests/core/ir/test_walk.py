"""Ways through a graph."""

from __future__ import annotations

from core.dtypes import INT32
from core.index import number
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make
from core.ir.walk import Graph, ordered, substitute, substituted, users


def leaf(number_of: int) -> Value:
    array = make(Op.PARAM, INT32, (), (number_of, "read", None, 4))
    return make(Op.LOAD, INT32, (array, number(0)), (1, False))


def test_operands_come_first_left_to_right_depth_first() -> None:
    x, y = leaf(0), leaf(1)
    product = alu(Op.MUL, y, x)
    total = alu(Op.ADD, product, y)

    assert [y.src[0], y.src[1], y, x.src[0], x, product, total] == ordered(total)


def test_several_roots_share_what_they_have_in_common() -> None:
    x, y = leaf(0), leaf(1)
    first, second = alu(Op.NEG, x), alu(Op.ADD, x, y)

    order = ordered(first, second, first)

    assert len(order) == len(set(order))
    assert order.index(first) < order.index(y) < order.index(second)


def test_a_chain_of_any_length_is_walked() -> None:
    value = leaf(0)
    for k in range(20_000):
        value = alu(Op.ADD, value, constant(k, INT32))

    assert value is ordered(value)[-1]
    assert value is substitute(value, {})


def test_a_graph_that_became_nothing_else_is_the_same() -> None:
    a, b = number(2000), number(3000)
    graph = Graph.of(a)

    assert graph is graph.became(a)
    assert Graph(b, [b]) == graph.became(b)


def test_users_are_operand_places() -> None:
    x = leaf(0)
    square = alu(Op.MUL, x, x)

    count = users(ordered(square))

    assert (2, 1, 0) == (count[x], count[x.src[0]], count[square])


def test_substitution_keeps_what_is_shared() -> None:
    x, y = leaf(0), leaf(1)
    shared = alu(Op.NEG, x)
    root = alu(Op.MUL, shared, alu(Op.ADD, shared, y))

    result = substitute(root, {x: y})

    assert alu(Op.MUL, alu(Op.NEG, y), alu(Op.ADD, alu(Op.NEG, y), y)) is result
    assert not set(result.src).isdisjoint(s for operand in result.src for s in operand.src)


def test_images_are_not_looked_into() -> None:
    x = leaf(0)
    grown = alu(Op.NEG, x)

    assert [alu(Op.NEG, grown), grown] == substituted((grown, x), {x: grown})
