"""Listings: what stands where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.dtypes import BOOL, FLOAT32, INDEX, INT32, VOID
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant, make
from core.linear.listing import Listing
from core.linear.verify import verify
from tests.core.linear.test_interpret import buffer, end, index, launch, load, reversed_in_shared, shared, store, total


def listing(*body: Value) -> Listing:
    return Listing("k", (buffer(0), buffer(1)), (("n", 0, 9),), body)


def loop(number: int = 0, role: str = "reduce") -> Value:
    return make(Op.RANGE, INDEX, (index(4),), (number, role), 1, (0, 3))


def kept(value: Value, at: int = 0) -> Value:
    return store(buffer(0), index(at), value)


def reduce_loop() -> tuple[Value, ...]:
    turn = loop()
    value = load(buffer(1), turn)
    register, added, update = total(turn, value)
    return register, turn, value, added, update, end(turn), kept(update)


def test_a_loop_with_its_register_is_in_order() -> None:
    verify(listing(*reduce_loop()))


def test_an_inner_loop_with_a_register_of_the_outer_one_is_too() -> None:
    outer, inner = loop(0), loop(1)
    register = make(Op.ACC, INT32, (constant(0, INT32), outer, inner), 0)
    value = load(buffer(1), inner)
    added = alu(Op.ADD, register, value)
    update = make(Op.UPDATE, INT32, (register, added))

    verify(listing(register, outer, inner, value, added, update, end(inner), end(outer), kept(update)))


def test_a_loop_over_shared_memory_with_a_barrier_at_its_end_too() -> None:
    found = shared_written_again_too_soon().body
    turn_end = found[-1]
    again = make(Op.BARRIER, VOID, (found[2], found[3]))

    verify(listing(*found[:-1], again, turn_end))


def test_barriers_between_lanes_are_in_order() -> None:
    found = reversed_in_shared(barrier=True)

    verify(Listing("k", (buffer(0),), (), found.body))


def swapped(body: tuple[Value, ...], i: int, j: int) -> Listing:
    rows = list(body)
    rows[i], rows[j] = rows[j], rows[i]
    return listing(*rows)


def used_before() -> Listing:
    return swapped(reduce_loop(), 2, 3)


def used_after_its_scope() -> Listing:
    *rest, update_end, _ = reduce_loop()
    return listing(*rest, update_end, kept(rest[3]))


def never_closed() -> Listing:
    return listing(*reduce_loop()[:5], kept(reduce_loop()[2]))


def closed_crosswise() -> Listing:
    a, b = loop(0, "output"), loop(1, "output")
    value = load(buffer(1), b)
    return listing(a, b, value, kept(value), end(a), end(b))


def twice() -> Listing:
    value = load(buffer(1), index(0))
    return listing(value, value, kept(value))


def register_in_its_loop() -> Listing:
    return swapped(reduce_loop(), 0, 1)


def read_after_it_was_assigned() -> Listing:
    turn = loop()
    register, added, update = total(turn, constant(1, INT32))
    late = alu(Op.MUL, register, register)
    return listing(register, turn, added, update, late, store(buffer(0), turn, late), end(turn), kept(update))


def update_read_within_its_turn() -> Listing:
    turn = loop()
    register, added, update = total(turn, constant(1, INT32))
    late = alu(Op.MUL, update, update)
    return listing(register, turn, added, update, late, store(buffer(0), turn, late), end(turn))


def assigned_twice() -> Listing:
    turn = loop()
    register, added, update = total(turn, constant(1, INT32))
    again = make(Op.UPDATE, INT32, (register, constant(1, INT32)))
    return listing(register, turn, added, update, again, end(turn), kept(update))


def update_of_update() -> Listing:
    turn = loop()
    register, added, update = total(turn, constant(1, INT32))
    other = make(Op.ACC, INT32, (constant(0, INT32), turn), 1)
    second = make(Op.UPDATE, INT32, (other, update))
    return listing(register, other, turn, added, update, second, end(turn), kept(second), kept(update, 1))


def assigned_in_other_loops() -> Listing:
    turn, inner = loop(0), loop(1)
    register, added, update = total(turn, constant(1, INT32))
    return listing(register, turn, inner, added, update, end(inner), end(turn), kept(update))


def divergent_barrier() -> Listing:
    lane = launch("local")
    condition = make(Op.LESS, BOOL, (lane,), 2)
    region = make(Op.IF, VOID, (condition,))
    first = store(shared(), lane, constant(1, INT32))
    return listing(lane, condition, first, region, make(Op.BARRIER, VOID, (first,)), end(region))


def barrier_in_a_loop_in_a_divergent_region() -> Listing:
    lane, turn = launch("local"), loop(0, "output")
    condition = make(Op.LESS, BOOL, (lane,), 2)
    region = make(Op.IF, VOID, (condition,))
    first = store(shared(), lane, constant(1, INT32))
    return listing(lane, condition, region, turn, first, make(Op.BARRIER, VOID, (first,)), end(turn), end(region))


def barrier_for_nothing() -> Listing:
    return listing(make(Op.BARRIER, VOID, ()))


def shared_read_too_soon() -> Listing:
    found = reversed_in_shared(barrier=False)
    return Listing("k", (buffer(0),), (), found.body)


def shared_written_again_too_soon() -> Listing:
    """A loop over what a barrier orders: its next turn writes while lanes may still read."""
    lane, turn = launch("local"), loop(0, "output")
    first = store(shared(), lane, constant(1, INT32))
    barrier = make(Op.BARRIER, VOID, (first,))
    value = load(shared(), index(0), barrier)
    return listing(lane, turn, first, barrier, value, store(buffer(0), turn, value), end(turn))


def computed_for_nobody() -> Listing:
    value = load(buffer(1), index(0))
    return listing(value, alu(Op.NEG, value), kept(value))


def no_argument_of_this_kernel() -> Listing:
    value = load(buffer(7), index(0))
    return listing(value, kept(value))


def no_variable_of_this_kernel() -> Listing:
    unknown = make(Op.VARIABLE, INDEX, (), ("m", 0, 9), 1, (0, 9))
    value = load(buffer(1), unknown)
    return listing(value, kept(value))


def constant_in_the_body() -> Listing:
    return listing(constant(1, INT32), kept(constant(1, INT32)))


def store_of_another_type() -> Listing:
    return listing(kept(constant(1.0, FLOAT32)))


def vector_of_several_types() -> Listing:
    value = load(buffer(1), index(0))
    other = cast(value, FLOAT32)
    return listing(value, other, make(Op.VECTOR, INT32, (value, other), None, 2))


REFUSED: dict[str, Callable[[], Listing]] = {
    "before it is computed": used_before,
    "after its scope is closed": used_after_its_scope,
    "is never closed": never_closed,
    "is open": closed_crosswise,
    "twice": twice,
    "in or after a loop that carries it": register_in_its_loop,
    "reads a register after it was assigned": read_after_it_was_assigned,
    "reads an update within the turn": update_read_within_its_turn,
    "assigned once a turn": assigned_twice,
    "within the turn that made it": update_of_update,
    "in other loops": assigned_in_other_loops,
    "may part": divergent_barrier,
    "items of a group may part": barrier_in_a_loop_in_a_divergent_region,
    "no access to shared memory": barrier_for_nothing,
    "no barrier behind the accesses": shared_read_too_soon,
    "the next turn": shared_written_again_too_soon,
    "for nobody": computed_for_nobody,
    "none of the listing's arguments": no_argument_of_this_kernel,
    "none of the listing's variables": no_variable_of_this_kernel,
    "there from the start": constant_in_the_body,
    "an element is int32": store_of_another_type,
    "scalars of int32": vector_of_several_types,
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_out_of_place_is_refused_with_the_listing(said: str) -> None:
    """I 177."""
    with pytest.raises(CompilerBug, match=said) as caught:
        verify(REFUSED[said]())

    assert caught.value.facts()["listing"]
