"""What each option makes of the axes, and when it is refused: with its place in the list, its reason, and the axes as they are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from core.errors import KernelError
from core.limits import Limits
from tests.core.schedule.scheduling import BIG, axes_of, nest_of, refusal
from tests.meaning.build import Build, Extent
from tests.meaning.test_reduces import beside, matmul, nested, variance
from tests.meaning.test_rows import merged_axes, minus_maximum, plain_with_a_tail, softmax

Json = dict[str, Any]


def copy(*shape: Extent, **place: Any) -> Json:
    k = Build(n=(1, 40))
    return k.store(k.load("float32", [*shape], **place)).ast()


def row_sum(rows: Extent, width: Extent, dtype: str = "float32") -> Json:
    k = Build(n=(1, 40))
    return k.store(k.load(dtype, [rows, width]).sum(1)).ast()


def two_sums(rows: int, width: int) -> Json:
    k = Build()
    x = k.load("float32", [rows, width])
    return k.store(x.sum(1) * x.max(1)).ast()


def product(m: int, n: int, k: int) -> Json:
    return matmul(m, n, k, "float32", "float32").ast()


def image_copy() -> Json:
    k = Build()
    return k.store(k.load("float32", [8, 8, 4], image=[8, 8, 4]), image=[8, 8, 4]).ast()


def image_sum(rows: int, width: int, depth: int) -> Json:
    k = Build()
    x = k.load("float32", [rows, width, depth], [width, 1, rows * width])
    return k.store(x.sum(2), [rows, width, 1], image=[rows, width // 4, 4]).ast()


def transposed_sum() -> Json:
    k = Build()
    return k.store(k.load("float32", [5, 8]) + k.load("float32", [5, 8], [1, 5])).ast()


def bias_added(rows: int, width: int) -> Json:
    k = Build()
    return k.store(k.load("float32", [rows, width]).sum(1) + k.load("float32", [rows, 1])).ast()


INITIAL: dict[str, tuple[Json, str]] = {
    "46 a contiguous copy is one axis": (copy(3, 5, 8), "g120"),
    "46 a transposed operand keeps both": (transposed_sum(), "g5 g8"),
    "46 where one axis runs on alone": (copy(3, 5, 8, strides=[40, 1, 5]), "g3 g5 g8"),
    "47 no merge of an output's axis and a reduce's": (row_sum(8, 8), "g8 r8"),
    "48 a mask on the inner axis": (copy(4, 8, mask=[[0, 4], [1, 7]]), "g4 g8"),
    "48 a mask on one axis keeps the others mergeable": (copy(3, 4, 8, strides=[32, 8, 1], mask=[[1, 3], [0, 4], [0, 8]]), "g3 g32"),
    "252 a sum of maxima": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "g3 r4 r8"),
    "255 a row's maximum beside a column's": (beside("float32").ast(), "g4 g6 r4 r6"),
    "258 a row less its maximum": (minus_maximum([5, 8], 1).ast(), "g5 g8 r8"),
    "264 several reduces over the same axes": (variance("float32").ast(), "g6 r16"),
    "267 a class merges with itself only": (merged_axes().ast(), "g5 g32 r32"),
    "19 a scalar": (copy(), "none"),
    "20 an empty axis": (copy(4, 0), "g4 g0"),
    "a symbolic axis": (copy("n", 4, strides=[8, 1]), "gn g4"),
}


@pytest.mark.parametrize(("ast", "axes"), INITIAL.values(), ids=INITIAL)
def test_axes_before_any_option_follow_from_the_strides(ast: Json, axes: str) -> None:
    assert axes == axes_of(ast)


def test_an_image_is_not_merged_across_its_channels() -> None:
    """C 49, 80: and the option that an image makes mandatory is in force."""
    nest = nest_of(image_copy())

    assert "g8 g8 u4" == nest.describe()
    assert [{"op": "UPCAST", "axis": 2, "amount": 4}] == [o.to_json() for o in nest.applied]


APPLIED: dict[str, tuple[Json, str, str]] = {
    "50 UPCAST": (copy(128), "UPCAST 0 4", "g32 u4"),
    "50 UPCAST of the whole": (copy(8), "UPCAST 0 0", "u8"),
    "53 whole by its extent": (copy(4), "UPCAST 0 4", "u4"),
    "56 two LOCALs of one axis": (copy(128), "LOCAL 0 4, LOCAL 0 8", "g4 l4 l8"),
    "58 GROUPTOP": (row_sum(6, 40), "GROUPTOP 0 8", "g6 G8 r5"),
    "58 GROUP": (row_sum(6, 40), "GROUP 0 8", "g6 G8 r5"),
    "63 LOCAL, then UNROLL whole": (product(24, 24, 24), "LOCAL 0 2, UNROLL 0 0", "g12 g24 l2 U24"),
    "63 UNROLL whole, then LOCAL": (product(24, 24, 24), "UNROLL 0 0, LOCAL 0 2", "g12 g24 l2 U24"),
    "64 GROUP whole, then part of it in registers": (product(24, 24, 24), "LOCAL 0 2, GROUP 0 0, UNROLL 0 2", "g12 g24 l2 G12 U2"),
    "64 GROUP whole, then all of it in registers": (product(24, 24, 24), "LOCAL 0 2, GROUP 0 0, UNROLL 0 0", "g12 g24 l2 U24"),
    "65 a small group in registers": (product(24, 24, 24), "GROUP 0 2, UNROLL 0 0", "g24 g24 r12 U2"),
    "67 PADTO": (copy(17), "PADTO 0 32", "g32"),
    "70 PADTO of a reduce axis": (row_sum(4, 13), "PADTO 1 8", "g4 r16"),
    "74 PADTO on each axis of a product": (product(19, 19, 19), "PADTO 0 32, PADTO 1 32, PADTO 2 32", "g32 g32 r32"),
    "75 PADTO, then GROUP": (row_sum(4, 13), "PADTO 1 4, GROUP 0 4", "g4 G4 r4"),
    "76 PADTO, then UPCASTs": (row_sum(200, 5), "PADTO 0 32, UPCAST 0 4, UPCAST 0 7, UPCAST 0 0", "r5 u4 u7 u8"),
    "82 a whole axis is gone": (transposed_sum(), "LOCAL 0 0, UPCAST 0 4", "g2 l5 u4"),
    "224 PADTO after UPCAST of another axis": (transposed_sum(), "UPCAST 1 4, PADTO 0 4", "g8 g2 u4"),
    "258 LOOP": (minus_maximum([5, 8], 1).ast(), "LOOP 1 0", "g5 o8 r8"),
    "262 LOOP of a symbolic axis": (minus_maximum([5, "n"], 1).ast(), "LOOP 1 0", "g5 on rn"),
    "263 LOOP in a plain kernel": (plain_with_a_tail().ast(), "LOOP 1 0", "g4 o6 r8"),
    "263 GROUP there": (plain_with_a_tail().ast(), "GROUP 0 4", "g4 g6 G4 r2"),
    "LOOP in part": (softmax([1024, 512], 1).ast(), "LOOP 1 8", "g1024 g64 o8 r512"),
    "UPCAST of a local axis": (copy(128), "LOCAL 0 8, UPCAST 1 4", "g16 l2 u4"),
    "NOLOCALS": (copy(128), "NOLOCALS", "g128"),
    "PADTO of a local axis": (copy(6, 8, strides=[1, 6]), "LOCAL 0 0, PADTO 1 4", "g8 l8"),
}


@pytest.mark.parametrize(("ast", "options", "axes"), APPLIED.values(), ids=APPLIED)
def test_an_option_moves_a_part_of_an_axis(ast: Json, options: str, axes: str) -> None:
    assert axes == axes_of(ast, options)


SEQUENCES: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "a product": (
        product(48, 64, 96),
        [
            ("LOCAL 1 16", "g48 g4 l16 r96"), ("UPCAST 0 4", "g12 g4 l16 r96 u4"), ("GROUPTOP 0 8", "g12 g4 l16 G8 r12 u4"),
            ("UNROLL 1 4", "g12 g4 l16 G8 r3 u4 U4"), ("UNROLL 0 0", "g12 g4 l16 r3 u4 U4 U8"),
        ],
    ),
    "softmax": (
        softmax([1024, 512], 1).ast(),
        [
            ("LOOP 1 0", "g1024 o512 r512"), ("UPCAST 1 4", "g1024 o128 r512 u4"), ("LOCAL 0 16", "g64 l16 o128 r512 u4"),
            ("UNROLL 0 4", "g64 l16 o128 r128 u4 U4"),
        ],
    ),
    "227 one axis in many parts": (
        row_sum(3, 2048),
        [
            ("GROUP 0 4", "g3 G4 r512"), ("UNROLL 0 0", "g3 r512 U4"), ("UNROLL 0 4", "g3 r128 U4 U4"), ("GROUP 0 8", "g3 G8 r16 U4 U4"),
            ("UNROLL 1 4", "g3 G8 r4 U4 U4 U4"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ast", "steps"), SEQUENCES.values(), ids=SEQUENCES)
def test_axis_numbers_are_those_of_the_state_an_option_is_applied_in(ast: Json, steps: list[tuple[str, str]]) -> None:
    for n, (_, axes) in enumerate(steps, 1):
        assert axes == axes_of(ast, ", ".join(option for option, _ in steps[:n]))


def test_the_parts_of_an_axis_add_up_to_its_index() -> None:
    """The index of A after the worked sequence, by its strides."""
    nest = nest_of(product(48, 64, 96), "LOCAL 1 16, UPCAST 0 4, GROUPTOP 0 8, UNROLL 1 4, UNROLL 0 0")
    a = next(n for n in nest.loads() if nest.accesses[n].depends_on(nest.axes[0].var))

    strides = [nest.accesses[a].stride(axis.var) for axis in nest.axes]
    assert [384, 0, 0, 4, 96, 1, 12] == [s.lo if s is not None else None for s in strides]


def test_upcast_before_or_after_loop_gives_the_same_axes() -> None:
    ast = softmax([1024, 512], 1).ast()

    assert axes_of(ast, "LOOP 1 0, UPCAST 1 4") == axes_of(ast, "UPCAST 1 4, LOOP 1 0")


def test_padding_keeps_what_was_inside_apart_from_the_leaves() -> None:
    """C 77: the condition of a reduce axis is its class's, through later cuts."""
    nest = nest_of(row_sum(4, 13), "PADTO 1 16, UNROLL 0 4, PADTO 0 8")

    assert "g8 r4 U4" == nest.describe()
    assert {a.var for a in nest.axes if a.is_reduced} == nest.inside[0].free


# ---- refusals ------------------------------------------------------------------------------------------------------------------

NO_SHARED: Json = {"has_shared": False}
NO_LOCAL: Json = {"has_local": False, "has_shared": False}

REFUSED: dict[str, tuple[Json, str, Json, str]] = {
    "50 UPCAST by what does not divide": (copy(128), "UPCAST 0 3", {}, "3 does not divide the extent 128"),
    "50 UPCAST by 16": (copy(128), "UPCAST 0 16", {}, "16 is more than 8"),
    "50 UPCAST of axis 9": (copy(128), "UPCAST 9 4", {}, "axis 9 is not one of the 1 output axes"),
    "50 UPCAST whole by more than 8": (copy(12), "UPCAST 0 0", {}, "12 is more than 8"),
    "51 UPCAST of a reduce axis": (row_sum(4, 8), "UPCAST 1 4", {}, "axis 1 is not one of the 1 output axes"),
    "51 UNROLL beyond the reduce axes": (row_sum(4, 8), "UNROLL 1 4", {}, "axis 1 is not one of the 1 group and reduce axes"),
    "51 UNROLL without a reduce": (copy(8), "UNROLL 0 4", {}, "axis 0 is not one of the 0 group and reduce axes"),
    "UNROLL after all is unrolled": (row_sum(4, 8), "UNROLL 0 0, UNROLL 0 2", {}, "axis 0 is not one of the 0 group and reduce axes"),
    "52 UNROLL by 64": (row_sum(4, 128), "UNROLL 0 64", {}, "64 is more than 32"),
    "52 UPCAST by 32 on a cpu": (copy(128), "UPCAST 0 32", {"device_class": "cpu"}, "32 is more than 16"),
    "54 whole of a symbolic axis": (copy("n"), "UPCAST 0 0", {}, "symbolic extent"),
    "a symbolic axis by 4": (copy("n"), "LOCAL 0 4", {}, "symbolic extent"),
    "UNROLL of a symbolic reduce axis": (row_sum(4, "n"), "UNROLL 0 4", {}, "symbolic extent"),
    "an empty axis": (copy(4, 0), "UPCAST 1 2", {}, "empty"),
    "PADTO of an empty axis": (copy(4, 0), "PADTO 1 2", {}, "empty"),
    "55 LOCAL without work-groups": (copy(128), "LOCAL 0 4", NO_LOCAL, "has no work-groups"),
    "55 LOCAL of a local axis": (copy(128), "LOCAL 0 4, LOCAL 1 2", {}, "the axis is local, not global"),
    "57 GROUP without shared memory": (row_sum(4, 8), "GROUP 0 4", NO_SHARED, "has no local memory"),
    "57 GROUPTOP without work-groups": (row_sum(4, 8), "GROUPTOP 0 4", NO_LOCAL, "has no work-groups"),
    "57 GROUP of what is no reduce axis": (row_sum(4, 8), "GROUP 1 4", {}, "axis 1 is not one of the 1 remaining reduce axes"),
    "57 GROUP where nothing is reduced": (copy(8), "GROUP 0 4", {}, "axis 0 is not one of the 0 remaining reduce axes"),
    "57 GROUP of a group axis": (row_sum(4, 8), "GROUP 0 0, GROUP 0 2", {}, "axis 0 is not one of the 0 remaining reduce axes"),
    "66 LOCAL after NOLOCALS": (copy(8), "NOLOCALS, LOCAL 0 4", {}, "NOLOCALS was applied before"),
    "66 GROUP after NOLOCALS": (row_sum(4, 8), "NOLOCALS, GROUP 0 4", {}, "NOLOCALS was applied before"),
    "66 NOLOCALS after LOCAL": (copy(8), "LOCAL 0 4, NOLOCALS", {}, "1 axes are lanes"),
    "66 NOLOCALS after GROUP": (row_sum(4, 8), "GROUP 0 4, NOLOCALS", {}, "1 axes are lanes"),
    "66 NOLOCALS twice": (copy(8), "NOLOCALS, NOLOCALS", {}, "NOLOCALS was applied before"),
    "NOLOCALS without work-groups": (copy(8), "NOLOCALS", NO_LOCAL, "has no work-groups"),
    "68 nothing is padded": (copy(32), "PADTO 0 32", {}, "nothing was padded"),
    "68 more than quadruple": (copy(7), "PADTO 0 32", {}, "more than quadruple"),
    "68 quadruple exactly": (copy(8), "PADTO 0 32", {}, "more than quadruple"),
    "PADTO by 0": (copy(7), "PADTO 0 0", {}, "nothing was padded"),
    "PADTO by 1": (copy(7), "PADTO 0 1", {}, "nothing was padded"),
    "69 PADTO of an expanded axis": (copy(7), "UPCAST 0 0, PADTO 0 8", {}, "the axis is upcast"),
    "69 PADTO of a symbolic axis": (copy("n"), "PADTO 0 8", {}, "symbolic extent"),
    "PADTO beyond the axes": (copy(7), "PADTO 1 8", {}, "axis 1 is not one of the 1 axes"),
    "156 TC without tensor cores": (product(16, 16, 16), "TC 0 0", {}, "TC"),
    "263 GROUP over several classes": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "GROUP 0 2", {}, r"over different axes, \[1\] and \[2\]"),
    "263 GROUPTOP beside another class": (beside("float32").ast(), "GROUPTOP 0 2", {}, r"\[0\] and \[1\]"),
    "263 GROUP of a row that is stored": (minus_maximum([5, 8], 1).ast(), "GROUP 0 2", {}, "full on axis 1"),
    "263 UPCASTMID over several classes": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "UPCASTMID 0 4", {}, "over different axes"),
    "263 LOOP of a plain row sum": (row_sum(4, 8), "LOOP 0 0", {}, "no reduce is free of the axis"),
    "263 LOOP of a product's axis": (product(8, 8, 8), "LOOP 1 0", {}, "no reduce is free of the axis"),
    "263 LOOP without a reduce": (copy(8), "LOOP 0 0", {}, "no reduce is free of the axis"),
    "263 LOOP of a local axis": (minus_maximum([5, 8], 1).ast(), "LOCAL 1 4, LOOP 2 0", {}, "the axis is local, not global"),
    "263 LOOP twice whole": (minus_maximum([5, 8], 1).ast(), "LOOP 1 0, LOOP 1 0", {}, "the axis is loop, not global"),
    "263 LOOP of an expanded axis": (minus_maximum([5, 8], 1).ast(), "UPCAST 1 0, LOOP 2 0", {}, "the axis is upcast, not global"),
    "263 LOOP of a reduce axis": (minus_maximum([5, 8], 1).ast(), "LOOP 2 0", {}, "the axis is reduce, not global"),
    "263 LOOP, then GROUP": (plain_with_a_tail().ast(), "LOOP 1 0, GROUP 0 4", {}, "an output axis is a loop"),
    "263 GROUP, then LOOP": (plain_with_a_tail().ast(), "GROUP 0 4, LOOP 1 0", {}, "a reduce is grouped"),
    "262 LOOP in part of a symbolic axis": (minus_maximum([5, "n"], 1).ast(), "LOOP 1 4", {}, "symbolic extent"),
    "LOCAL of a loop axis": (minus_maximum([5, 8], 1).ast(), "LOOP 1 0, LOCAL 1 4", {}, "the axis is loop, not global"),
    "81 UPCASTMID without a group": (image_sum(4, 16, 8), "UPCAST 0 4, UPCASTMID 0 4", {}, "no reduce is grouped"),
    "81 UPCASTMID without an image": (row_sum(4, 8), "GROUP 0 4, UPCASTMID 0 4", {}, "output 0 is no image"),
}


@pytest.mark.parametrize(("ast", "options", "device", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_option_that_does_not_fit_is_refused_with_its_place_and_reason(ast: Json, options: str, device: Json, reason: str) -> None:
    """C 79, 211: the axes in the refusal are those the other options left."""
    before = ", ".join(options.split(", ")[:-1])

    facts = refusal(ast, options, **device)

    assert re.search(reason, facts["reason"])
    assert axes_of(ast, before, **device) == facts["axes"]


def test_a_wider_upcast_is_for_a_cpu() -> None:
    """C 52."""
    assert "g8 u16" == axes_of(copy(128), "UPCAST 0 16", device_class="cpu")


# ---- limits ------------------------------------------------------------------------------------------------------------------


def test_local_memory_is_what_the_schedule_really_takes() -> None:
    """C 59: 4 bytes for each of 16 · 256 lanes and 4 elements, refused at the option that passes the limit."""
    facts = refusal(row_sum(256, 1024), "UPCAST 0 4, LOCAL 0 16, GROUP 0 256", lanes_max=None, shared_max=32768)

    assert {"bytes of local memory": 65536} == facts["needed"]
    assert {"bytes of local memory": 32768} == facts["allowed"]
    assert "g4 l16 r1024 u4" == facts["axes"]


def test_local_memory_is_looked_at_when_a_grouped_kernel_is_upcast() -> None:
    facts = refusal(row_sum(256, 1024), "GROUP 0 256, UPCAST 0 4, UPCAST 0 8", shared_max=8192)

    assert {"bytes of local memory": 32768} == facts["needed"]


def test_unrolling_takes_no_local_memory() -> None:
    """C 60: also where the limit is reached."""
    assert "g64 G256 U4" == axes_of(row_sum(64, 1024), "GROUP 0 256, UNROLL 1 4", shared_max=1024)


def test_every_grouped_reduce_has_an_array_of_its_own() -> None:
    """C 61."""
    assert "g8 G64 r4" == axes_of(two_sums(8, 256), "GROUP 0 64", shared_max=512)
    assert {"bytes of local memory": 512} == refusal(two_sums(8, 256), "GROUP 0 64", shared_max=511)["needed"]


def test_16_bit_floats_are_kept_in_32_bits_in_local_memory() -> None:
    assert {"bytes of local memory": 256} == refusal(row_sum(8, 256, "float16"), "GROUP 0 64", shared_max=255)["needed"]


def test_a_work_group_has_its_greatest_size() -> None:
    """C 62."""
    facts = refusal(copy(4096), "LOCAL 0 32, LOCAL 0 64", lanes_max=1024)

    assert {"work-items of a group": 2048} == facts["needed"]
    assert {"work-items of a group": 1024} == facts["allowed"]


def test_a_work_group_has_its_greatest_shape() -> None:
    facts = refusal(copy(64), "LOCAL 0 32", local_max=[16, 1, 1])

    assert "the work-group does not fit" in facts["reason"]
    assert [32] == facts["needed"]


def test_an_option_that_passes_several_limits_is_refused_with_all_of_them() -> None:
    facts = refusal(row_sum(64, 1024), "UPCAST 0 4, GROUP 0 512", lanes_max=256, shared_max=4096)

    assert {"work-items of a group": 512, "bytes of local memory": 8192} == facts["needed"]
    assert {"work-items of a group": 256, "bytes of local memory": 4096} == facts["allowed"]


def test_what_one_point_stands_for_is_limited() -> None:
    facts = refusal(copy(4096), "UPCAST 0 8, UPCAST 0 8, UPCAST 0 8, UPCAST 0 4")

    assert {"expanded elements": 2048} == facts["needed"]
    assert {"expanded elements": 1024} == facts["allowed"]


def test_unrolled_elements_count_too_and_the_limit_is_a_setting() -> None:
    assert {"expanded elements": 32} == refusal(row_sum(64, 64), "UPCAST 0 4, UNROLL 0 8", limits=Limits(expanded=16))["needed"]


# ---- images --------------------------------------------------------------------------------------------------------------------


def test_a_list_that_starts_with_the_mandatory_option_is_taken_as_it_is() -> None:
    """C 83."""
    asked = nest_of(image_copy(), "UPCAST 2 4, LOCAL 0 4")
    added = nest_of(image_copy(), "LOCAL 0 4")

    assert asked.applied == added.applied
    assert "g2 g8 l4 u4" == asked.describe() == added.describe()


def test_an_image_without_four_channels_side_by_side_is_no_kernel() -> None:
    """C 80."""
    k = Build()
    ast = k.store(k.load("float32", [8, 8]), [8, 8], [1, 8], mask=[[0, 6], [0, 8]], image=[2, 8, 4]).ast()

    with pytest.raises(KernelError):
        nest_of(ast, "")


def test_upcastmid_is_refused_where_the_channels_are_expanded_already() -> None:
    """C 81"""
    facts = refusal(image_sum(4, 16, 8), "UPCAST 0 4, GROUP 0 4, UPCASTMID 0 4", **BIG)

    assert "an expanded axis already runs along the channels" in facts["reason"]


def test_upcastmid_makes_lanes_of_the_channels_of_a_grouped_kernel() -> None:
    """C 81."""
    assert "g16 G4 m4 r2" == axes_of(image_sum(4, 16, 8), "GROUP 0 4, UPCASTMID 0 4")
    assert "g16 m4 r2 U4" == axes_of(image_sum(4, 16, 8), "GROUP 0 4, UPCASTMID 0 4, UNROLL 0 0")
    assert "not one of the 1 output axes" in refusal(image_sum(4, 16, 8), "GROUP 0 4, UPCASTMID 1 4")["reason"]


def test_a_mid_axis_is_neither_unrolled_nor_padded() -> None:
    assert "mid" in refusal(image_sum(4, 16, 8), "GROUP 0 4, UPCASTMID 0 4, UNROLL 1 0")["reason"]
    assert "mid" in refusal(image_sum(4, 16, 8), "GROUP 0 4, UPCASTMID 0 4, PADTO 2 8")["reason"]
