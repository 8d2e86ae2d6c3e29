"""The oracle: what listings do, and what it refuses to watch in silence."""

from __future__ import annotations

import math
from collections.abc import MutableSequence

import numpy as np
import pytest

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INDEX, INT8, INT32, VOID, DType
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant, make
from core.linear.interpret import Fault, run
from core.linear.listing import Listing


def index(n: int) -> Value:
    return constant(n, INDEX)


def buffer(number: int, dtype: DType = INT32, access: str = "readwrite") -> Value:
    return make(Op.PARAM, dtype, (), (number, access, None, 4))


def shared(elements: int = 4, dtype: DType = INT32) -> Value:
    return make(Op.SHARED, dtype, (), (0, elements))


def launch(kind: str, extent: int = 4, dimension: int = 0) -> Value:
    return make(Op.SPECIAL, INDEX, (index(extent),), (kind, dimension), 1, (0, extent - 1))


def load(array: Value, at: Value, *rest: Value, gated: bool = False, lanes: int = 1) -> Value:
    return make(Op.LOAD, array.dtype, (array, at, *rest), (1, gated), lanes)


def store(array: Value, at: Value, value: Value, *rest: Value, gated: bool = False) -> Value:
    return make(Op.STORE, VOID, (array, at, value, *rest), (1, gated))


def end(opener: Value) -> Value:
    return make(Op.END, VOID, (opener,))


def listing(*body: Value, local: tuple[int, int, int] | None = None) -> Listing:
    return Listing("k", (), (("n", 0, 9),), body, local)


def total(loop: Value, term: Value, start: int = 0) -> tuple[Value, Value, Value]:
    """(register, sum, update) of adding a term each turn."""
    register = make(Op.ACC, INT32, (constant(start, INT32), loop), 0)
    added = alu(Op.ADD, register, term)
    return register, added, make(Op.UPDATE, INT32, (register, added))


def test_every_work_item_runs() -> None:
    at = launch("global", 8)
    value = load(buffer(1), at)
    doubled = alu(Op.MUL, value, constant(2, INT32))
    held: dict[int, list[int]] = {0: [0] * 8, 1: list(range(8))}

    run(listing(at, value, doubled, store(buffer(0), at, doubled), local=(4, 1, 1)), held, groups=(2, 1, 1))

    assert [0, 2, 4, 6, 8, 10, 12, 14] == held[0]


@pytest.mark.parametrize(("turns", "expected"), [(4, 6), (1, 0), (0, 0)])
def test_a_register_is_carried_by_its_loop_and_holds_its_start_where_there_is_no_turn(turns: int, expected: int) -> None:
    loop = make(Op.RANGE, INDEX, (make(Op.VARIABLE, INDEX, (), ("n", 0, 9), 1, (0, 9)),), (0, "reduce"))
    value = load(buffer(1), loop)
    register, added, update = total(loop, value)
    held = {0: [99], 1: [0, 1, 2, 3]}

    run(listing(register, loop, value, added, update, end(loop), store(buffer(0), index(0), update)), held, {"n": turns})

    assert [expected] == held[0]


def test_an_inner_register_starts_anew_in_each_turn_of_the_outer_loop() -> None:
    outer = make(Op.RANGE, INDEX, (index(3),), (0, "output"), 1, (0, 2))
    inner = make(Op.RANGE, INDEX, (index(2),), (1, "reduce"), 1, (0, 1))
    register, added, update = total(inner, constant(1, INT32), start=10)
    held = {0: [0, 0, 0]}

    run(listing(outer, register, inner, added, update, end(inner), store(buffer(0), outer, update), end(outer)), held)

    assert [12, 12, 12] == held[0]


def test_a_gated_access_does_not_happen_where_its_gate_is_false() -> None:
    at = launch("global", 4)
    inside = make(Op.LESS, BOOL, (at,), 2)
    value = load(buffer(1), at, inside, constant(-1, INT32), gated=True)
    held = {0: [7, 7], 1: [1, 2]}

    run(listing(at, inside, value, store(buffer(0), at, value, inside, gated=True)), held, groups=(4, 1, 1))

    assert [1, 2] == held[0]


def test_a_region_is_entered_where_its_condition_holds() -> None:
    at = launch("global", 4)
    condition = make(Op.LESS, BOOL, (at,), 2)
    region = make(Op.IF, VOID, (condition,))
    held = {0: [0, 0, 0, 0]}

    run(listing(at, condition, region, store(buffer(0), at, constant(5, INT32)), end(region)), held, groups=(4, 1, 1))

    assert [5, 5, 0, 0] == held[0]


def test_vectors_go_lane_by_lane() -> None:
    pair = load(buffer(1, FLOAT32), index(2), lanes=2)
    swapped = make(Op.VECTOR, FLOAT32, tuple(make(Op.EXTRACT, FLOAT32, (pair,), k) for k in (1, 0)), None, 2)
    added = alu(Op.ADD, pair, swapped)
    held = {0: [0.0] * 4, 1: [1.0, 2.0, 4.0, 8.0]}

    run(listing(pair, *swapped.src, swapped, added, store(buffer(0, FLOAT32), index(0), added)), held)

    assert [12.0, 12.0, 0.0, 0.0] == held[0]


def test_texels_are_read_and_written_whole() -> None:
    image = make(Op.PARAM, FLOAT16, (), (1, "readwrite", (2, 3, 4), 8))
    texel = make(Op.LOAD, FLOAT32, (image, index(2), index(1)), (2, False), 4)
    third = make(Op.LOAD, FLOAT32, (image, index(3), index(0)), (2, False), 4)
    written = make(Op.STORE, VOID, (image, index(0), index(0), texel), (2, False))
    held = {1: [float(k) for k in range(24)]}

    run(listing(texel, written), held)

    assert [20.0, 21.0, 22.0, 23.0, 4.0] == held[1][:5]
    with pytest.raises(Fault, match="texel"):
        run(listing(third, written), held)


def test_numpy_arrays_are_buffers_too() -> None:
    at = launch("global", 2)
    value = load(buffer(1, BFLOAT16), at)
    added = alu(Op.ADD, value, constant(1.0, BFLOAT16))
    small = load(buffer(2, INT8), at)
    wide = cast(small, INT32)
    result, numbers = np.zeros(2, np.uint16), np.array([0x3F80, 0x7F80], np.uint16)
    held: dict[int, MutableSequence[int]] = {0: result, 1: numbers, 2: np.array([1, -1], np.int8)}  # type: ignore[dict-item]  # near enough

    run(listing(at, value, added, store(buffer(0, BFLOAT16), at, added), small, wide), held, groups=(2, 1, 1))

    assert [0x4000, 0x7F80] == result.tolist()


def reversed_in_shared(*, barrier: bool) -> Listing:
    """Each lane writes its place in a shared array and reads the opposite one."""
    lane = launch("local")
    number = cast(lane, INT32)
    first = store(shared(), lane, number)
    between = [make(Op.BARRIER, VOID, (first,))] if barrier else []
    opposite = make(Op.SUM, INDEX, (lane,), (3, (-1,)), 1, (0, 3))
    value = load(shared(), opposite, *between)
    return listing(lane, number, first, *between, opposite, value, store(buffer(0), lane, value), local=(4, 1, 1))


def test_a_barrier_is_where_lanes_meet() -> None:
    held = {0: [0] * 4}

    run(reversed_in_shared(barrier=True), held)

    assert [3, 2, 1, 0] == held[0]


def test_shared_memory_without_a_barrier_is_a_fault() -> None:
    with pytest.raises(Fault, match=r"nobody has written|by another"):
        run(reversed_in_shared(barrier=False), {0: [0] * 4})


def test_a_barrier_only_some_lanes_arrive_at_is_a_fault() -> None:
    lane = launch("local")
    condition = make(Op.LESS, BOOL, (lane,), 2)
    region = make(Op.IF, VOID, (condition,))
    first = store(shared(), lane, constant(1, INT32))
    body = (lane, condition, region, first, make(Op.BARRIER, VOID, (first,)), end(region))

    with pytest.raises(Fault, match="arrives"):
        run(listing(*body, local=(4, 1, 1)), {})


@pytest.mark.parametrize("at", [-1, 4])
def test_an_access_outside_its_array_is_a_fault(at: int) -> None:
    value = load(buffer(1), index(at))

    with pytest.raises(Fault, match="is read; it has 4"):
        run(listing(value), {1: [0] * 4})
    with pytest.raises(Fault, match="is written; it has 4"):
        run(listing(store(buffer(1), index(at), constant(1, INT32))), {1: [0] * 4})


def test_two_work_items_at_one_element_are_a_fault_if_one_writes() -> None:
    at = launch("global", 2)
    written = store(buffer(0), index(0), constant(1, INT32))
    read = load(buffer(0), index(0))

    with pytest.raises(Fault, match="touched by another"):
        run(listing(written), {0: [0]}, groups=(2, 1, 1))
    with pytest.raises(Fault, match="by another"):
        run(listing(at, read, store(buffer(0), at, read)), {0: [0, 0]}, groups=(2, 1, 1))


def test_an_index_that_leaves_its_type_is_a_fault() -> None:
    at = launch("global", 4)
    far = make(Op.SUM, INDEX, (at,), (0, (1 << 31,)), 1, (0, 3 << 31))

    run(listing(at, far), {}, groups=(1, 1, 1))
    with pytest.raises(Fault, match="is 2147483648"):
        run(listing(at, far), {}, groups=(3, 1, 1))


def test_floats_round_to_their_type() -> None:
    value = load(buffer(1, FLOAT16), index(0))
    added = alu(Op.ADD, value, constant(2.0**-12, FLOAT16))
    larger = alu(Op.MAX, added, constant(math.nan, FLOAT16))
    held = {0: [0.0, 0.0], 1: [1.0]}

    stores = (store(buffer(0, FLOAT16), index(0), added), store(buffer(0, FLOAT16), index(1), larger))
    run(listing(value, added, larger, *stores), held)

    assert ["1.0", "nan"] == [repr(x) for x in held[0]]
