"""What programs are made of: loads, stores, loops, accumulators, barriers (acceptance C 53-83, F 109-131, G 134-149, L 215-223, M 242)."""

from __future__ import annotations

from typing import Any

import pytest

from core.dtypes import FLOAT32, INT32, DType
from core.ir.op import Op
from core.ir.parts import access
from core.ir.value import Value
from core.linear.listing import Listing
from core.program import Program
from tests.core.schedule.scheduling import options_of
from tests.core.schedule.test_options import copy, image_copy, product, row_sum, two_sums
from tests.meaning.build import Build
from tests.meaning.fuzz import compiled_with_listing
from tests.meaning.test_reduces import invariant_load, kinds, squared_sum
from tests.meaning.test_rows import minus_maximum, softmax
from tests.meaning.test_small_kernels import (
    conditional_in_place,
    one_element_twice,
    shifted_sum,
    two_outputs,
    unchanged_in_place,
    where_both_sides_load,
)

Json = dict[str, Any]


def made(ast: Json, options: str = "", *, target: str = "opencl", **device: Any) -> tuple[Program, Listing]:
    return compiled_with_listing({"ast": ast, "device": {"target": target, **device}, "optimize": options_of(options)})


def listing(ast: Json, options: str = "", **device: Any) -> Listing:
    return made(ast, options, **device)[1]


def source(ast: Json, options: str = "", **device: Any) -> str:
    return made(ast, options, **device)[0].source


def count(program: Listing, *ops: Op) -> int:
    return sum(v.op in ops for v in program.body)


def loads(program: Listing, array: Op = Op.PARAM) -> list[int]:
    """Lanes of each load."""
    return [v.lanes for v in program.body if v.op is Op.LOAD and v.src[0].op is array]


def stores(program: Listing, array: Op = Op.PARAM) -> list[int]:
    """Lanes of each store."""
    return [s.lanes for v in program.body if v.op is Op.STORE and v.src[0].op is array and (s := access(v).stored) is not None]


def of_type(program: Listing, op: Op, dtype: DType) -> list[Value]:
    return [v for v in program.body if v.op is op and v.dtype is dtype]


def is_in_order(program: Listing, *ops: Op) -> bool:
    """Whether the body's values of these kinds come in this order."""
    return [v.op for v in program.body if v.op in ops] == list(ops)


# ---- accesses ------------------------------------------------------------------------------------------------------------------


def test_neighbours_share_their_loads() -> None:
    """F 109."""
    assert [1, 1, 1, 1] == loads(listing(shifted_sum().ast(), "UPCAST 0 3"))


def test_what_is_broadcast_is_computed_once() -> None:
    """F 110."""
    k = Build()
    program = listing(k.store(k.load("float32", [6, 2], [1, 0]) + k.load("float32", [6, 2], [1, 0])).ast(), "UPCAST 1 2")

    assert 1 == len(of_type(program, Op.ADD, FLOAT32))


def test_the_side_a_constant_condition_rules_out_is_not_loaded() -> None:
    """F 111."""
    assert 1 == len(loads(listing(where_both_sides_load().ast())))


def test_an_expanded_stack_takes_no_arithmetic() -> None:
    """F 112, 122."""
    k = Build()
    a = k.load("float32", [2, 6], [0, 1], mask=[[0, 1], [0, 6]])
    b = k.load("float32", [2, 6], [0, 1], mask=[[1, 2], [0, 6]])
    program = listing(k.store(a.cast("int32") + b.cast("int32")).ast(), "UPCAST 0 2")

    assert 0 == count(program, Op.WHERE)
    assert [] == of_type(program, Op.ADD, INT32)


VECTORS: dict[str, tuple[list[int], Json, list[int], list[int]]] = {
    "aligned": ([64], {}, [4], [4]),
    "114 one element off": ([64], {"offset": 1}, [1, 1, 1, 1], [4]),
    "115 two elements off": ([64], {"offset": 2}, [2, 2], [4]),
    "117 stride 4": ([64], {"strides": [4]}, [1, 1, 1, 1], [4]),
    "118 a mask along the axis": ([62], {"mask": [[1, 62]]}, [1, 1], [2]),
}


@pytest.mark.parametrize(("shape", "place", "loaded", "stored"), VECTORS.values(), ids=VECTORS)
def test_loads_side_by_side_are_vectors_where_alignment_allows(shape: list[int], place: Json, loaded: list[int], stored: list[int]) -> None:
    k = Build()
    program = listing(k.store(k.load("float32", [*shape], **place)).ast(), f"UPCAST 0 {sum(stored)}")

    assert (loaded, stored) == (loads(program), stores(program))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "int64", "bfloat16"])
def test_an_extent_of_8_is_two_vectors_of_4(dtype: str) -> None:
    """F 115, 121: of every dtype."""
    k = Build()
    x = k.load(dtype, [64])

    assert [4, 4] == loads(listing(k.store(x.op("MAX", x)).ast(), "UPCAST 0 8"))


def test_one_operand_may_be_a_vector_and_the_other_not() -> None:
    """F 116."""
    k = Build()
    ast = k.store(k.load("int32", [64]) + k.load("int32", [64], offset=1)).ast()

    assert [1, 1, 1, 1, 4] == sorted(loads(listing(ast, "UPCAST 0 4")))


def test_two_expanded_axes_are_vectors_along_one() -> None:
    """F 119."""
    k = Build()
    x, y = k.load("float32", [8, 16], [16, 1]), k.load("float32", [8, 16], [17, 1], offset=3)
    ast = k.store(x * x + y.maximum(y)).ast()
    program = listing(ast, "UPCAST 0 2, UPCAST 1 4")

    assert [4, 4] == [lanes for lanes in loads(program) if lanes > 1]
    assert [4, 4] == stores(program)


def test_a_store_off_by_one_element_is_scalars() -> None:
    """F 120."""
    k = Build()

    assert [1, 1, 1, 1] == stores(listing(k.store(k.load("float32", [64]), offset=1).ast(), "UPCAST 0 4"))


def test_a_masked_constant_is_selected_and_expanded_is_not() -> None:
    """F 122."""
    k = Build()
    ast = k.store(k.const(3, "int32", [8], mask=[[0, 4]]) + k.load("int32", [8])).ast()

    assert 1 == len(of_type(listing(ast), Op.WHERE, INT32))
    assert [] == of_type(listing(ast, "UPCAST 0 8"), Op.WHERE, INT32)


def test_a_leaf_that_is_never_valid_is_not_loaded() -> None:
    """F 124."""
    k = Build()
    program = listing(k.store(k.load("float32", [8]) + k.load("float32", [8], mask=[[3, 3]])).ast())

    assert 1 == len(loads(program))


def test_one_element_spelt_twice_is_one_load() -> None:
    """A 23, L 232."""
    assert 1 == len(loads(listing(one_element_twice().ast())))


def test_two_outputs_share_their_loads() -> None:
    """F 126."""
    program = listing(two_outputs().ast())

    assert ([1, 1], [1, 1]) == (loads(program), stores(program))


def test_a_texel_is_read_and_written_once() -> None:
    """F 127."""
    program = listing(image_copy())

    assert ([4], [4]) == (loads(program), stores(program))


def test_a_selection_of_what_is_there_is_a_store_with_a_gate() -> None:
    """F 130: the buffer itself is not loaded."""
    assert "if (d1[g0] != 0) d0[g0] = 2.0f;" in source(conditional_in_place().ast())


def test_what_is_unchanged_is_not_stored() -> None:
    """F 131."""
    assert [] == stores(listing(unchanged_in_place().ast()))


def test_blocks_are_vectors_where_they_divide() -> None:
    """M 242."""
    k = Build()
    ast = k.store(k.index("float32", [8, 30], "(axis0*30 + axis1)//4*8 + (axis0*30 + axis1)%4")).ast()

    assert [2] == loads(listing(ast, "UPCAST 1 2"))
    assert [1, 1, 1] == loads(listing(ast, "UPCAST 1 3"))
    assert [1] * 8 == loads(listing(ast, "UPCAST 0 8"))


def test_blocks_of_4_are_one_vector_and_of_8_two() -> None:
    """M 242."""
    k = Build()
    ast = k.store(k.index("float32", [64], "axis0//4*8 + axis0%4")).ast()

    assert [4] == loads(listing(ast, "UPCAST 0 4"))
    assert [4, 4] == loads(listing(ast, "UPCAST 0 8"))


def test_an_outer_product_in_one_item_is_a_few_vectors() -> None:
    """L 223."""
    k = Build()
    ast = k.store(k.load("float32", [4, 4], [1, 0]) * k.load("float32", [4, 4], [0, 1])).ast()
    program = listing(ast, "UPCAST 0 4, UPCAST 0 4")

    assert len(loads(program)) <= 8
    assert [4, 4, 4, 4] == stores(program)
    assert 0 == count(program, Op.RANGE, Op.SPECIAL)


# ---- reduces -------------------------------------------------------------------------------------------------------------------


def test_a_value_that_depends_on_no_loop_stands_before_it() -> None:
    """G 134, 135."""
    body = listing(invariant_load().ast(), target="c").body
    depth, depths = 0, []
    for v in body:
        depth += {Op.RANGE: 1, Op.IF: 1, Op.END: -1}.get(v.op, 0)
        if v.op is Op.LOAD:
            depths.append(depth)

    assert [1, 2, 3] == sorted(depths)


def test_a_reduce_used_twice_is_one_loop() -> None:
    """G 136."""
    program = listing(squared_sum().ast())

    assert is_in_order(program, Op.ACC, Op.RANGE, Op.UPDATE, Op.END, Op.MUL)


def test_a_reduce_unrolled_whole_has_no_loop() -> None:
    """G 137, L 215."""
    program = listing(row_sum(1, 24), "UNROLL 0 0")

    assert 0 == count(program, Op.RANGE, Op.ACC, Op.SPECIAL)


def test_each_element_has_one_accumulator_and_one_update_a_turn() -> None:
    """G 138."""
    program = listing(product(8, 8, 16), "UPCAST 1 4, UNROLL 0 4")
    updates = [v for v in program.body if v.op is Op.UPDATE]

    assert (4, 4, 1) == (count(program, Op.ACC), len(updates), count(program, Op.RANGE))
    assert len({u.src[0] for u in updates}) == 4


def convolution() -> Json:
    k = Build()
    x, w = k.load("float32", [4, 2, 2], [1, 1, 5]), k.load("float32", [4, 2, 2], [0, 1, 2])
    return k.store((x * w).sum(1, 2)).ast()


def test_a_small_convolution_in_one_item_is_straight() -> None:
    """G 139."""
    program = listing(convolution(), "UPCAST 0 0, UNROLL 0 0, UNROLL 0 0")

    assert 0 == count(program, Op.ACC, Op.RANGE)
    assert [4] == stores(program)


# ---- groups --------------------------------------------------------------------------------------------------------------------


def test_a_grouped_sum_is_published_then_added_up_by_one_lane() -> None:
    """G 140."""
    program = listing(row_sum(1, 48), "GROUP 0 0")

    assert is_in_order(program, Op.STORE, Op.BARRIER, Op.IF, Op.ACC, Op.RANGE, Op.UPDATE, Op.END, Op.STORE, Op.END)


def test_elements_of_a_grouped_sum_are_vectors_in_local_memory() -> None:
    """G 141."""
    program = listing(row_sum(8, 48), "UPCAST 0 4, GROUP 0 16")

    assert ([4], [4], [4]) == (stores(program, Op.SHARED), loads(program, Op.SHARED), stores(program))
    assert 8 == count(program, Op.ACC)


def test_a_group_has_one_barrier_for_all_its_elements() -> None:
    """G 143."""
    program = listing(product(16, 16, 64), "LOCAL 0 4, GROUP 0 8, UPCAST 0 4, UPCAST 1 2, UNROLL 1 4")

    assert (1, 1) == (count(program, Op.BARRIER), count(program, Op.IF))


def test_two_group_axes_are_added_up_together() -> None:
    """G 144."""
    program, body = made(row_sum(3, 512), "GROUP 0 4, GROUP 0 64")

    assert 4 * 64 * 4 == program.shared_bytes
    assert [4, 64, 1] == program.local_size
    assert is_in_order(body, Op.BARRIER, Op.IF)


def test_grouped_reduces_share_their_barriers() -> None:
    """G 146, 149: each has an array of its own, and the combining is one region."""
    for ast, options, sums in ((two_sums(6, 64), "GROUP 0 8", 2), (kinds("int32", [4, 32], (1,)).ast(), "GROUPTOP 0 8", 3)):
        program = listing(ast, options)

        assert sums == len({v.src[0] for v in program.body if v.op is Op.STORE and v.src[0].op is Op.SHARED})
        assert 1 == count(program, Op.IF)
        assert count(program, Op.BARRIER) <= sums


def test_a_group_in_registers_needs_no_local_memory() -> None:
    """C 64, 65."""
    for options in ("LOCAL 0 2, GROUP 0 0, UNROLL 0 0", "GROUP 0 2, UNROLL 0 0"):
        program, body = made(product(24, 24, 24), options)

        assert 0 == program.shared_bytes
        assert 0 == count(body, Op.BARRIER, Op.IF)


# ---- texts ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ast", "one", "other"),
    [
        pytest.param(copy(4), "UPCAST 0 0", "UPCAST 0 4", id="53"),
        pytest.param(product(24, 24, 24), "LOCAL 0 2, UNROLL 0 0", "UNROLL 0 0, LOCAL 0 2", id="63"),
        pytest.param(image_copy(), "", "UPCAST 2 4", id="83"),
        pytest.param(image_copy(), "LOCAL 0 4", "UPCAST 2 4, LOCAL 0 4", id="83 with more"),
        pytest.param(softmax([16, 12], 1).ast(), "LOOP 1 0, UPCAST 1 4", "UPCAST 1 4, LOOP 1 0", id="worked"),
    ],
)
def test_two_ways_to_one_schedule_give_one_text(ast: Json, one: str, other: str) -> None:
    assert source(ast, one) == source(ast, other)


def test_without_locals_the_runtime_chooses_the_group() -> None:
    """C 66, A 200."""
    program, body = made(row_sum(64, 8), "NOLOCALS")

    assert (None, [64, 1, 1]) == (program.local_size, program.global_size)
    assert "get_global_id" in program.source
    assert "reqd_work_group_size" not in program.source
    assert body.local_size is None


def test_a_launch_without_work_groups_is_one_item() -> None:
    """A 200, G 151."""
    program, _ = made(row_sum(64, 8), has_local=False, has_shared=False)

    assert ([1, 1, 1], [1, 1, 1]) == (program.global_size, program.local_size)


def test_lanes_are_the_size_of_the_group() -> None:
    """C 56."""
    program, _ = made(copy(128), "LOCAL 0 4, LOCAL 0 8")

    assert ([4, 1, 1], [4, 8, 1]) == (program.global_size, program.local_size)


def test_padded_points_store_nothing() -> None:
    """C 67, L 217."""
    (store,) = [v for v in listing(copy(17), "PADTO 0 32").body if v.op is Op.STORE]

    assert access(store).gate is not None


def test_an_output_loop_keeps_a_row_in_one_item() -> None:
    """N 258: one launch axis, and the loop after the reduce."""
    program, body = made(minus_maximum([5, 8], 1).ast(), "LOOP 1 0")

    assert [5, 1, 1] == program.global_size
    assert is_in_order(body, Op.SPECIAL, Op.ACC, Op.RANGE, Op.UPDATE, Op.END, Op.RANGE, Op.STORE, Op.END)


def test_softmax_in_one_item_is_three_loops_side_by_side() -> None:
    """N 259."""
    program, body = made(softmax([5, 8], 1).ast(), "LOOP 1 0")

    loops = (Op.RANGE, Op.UPDATE, Op.END)
    assert is_in_order(body, *loops, *loops, Op.RANGE, Op.STORE, Op.END)
    assert [5, 1, 1] == program.global_size
