"""TC: which kernels and axes it takes, how it cuts them, and why it refuses the others (acceptance C 41, 57, H 154-164)."""

from __future__ import annotations

from typing import Any

import pytest

from core.fragments import LAYOUTS, Layout
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from tests.core.schedule.scheduling import axes_of, nest_of, refusal
from tests.meaning.build import Build
from tests.meaning.test_reduces import variance
from tests.meaning.test_rows import minus_maximum
from tests.meaning.tiles import DEVICES, matmul, nest_for

Json = dict[str, Any]
CUDA: Json = {"target": "cuda"}


def axes(ast: Json, options: str, **device: Any) -> str:
    return axes_of(ast, options, **{**CUDA, **device})


def why(ast: Json, options: str, **device: Any) -> str:
    return str(refusal(ast, options, **{**CUDA, **device})["reason"])


def convolution(batch: int, height: int, width: int, channels: int = 16) -> Json:
    """out[b, co, y, x] = Σ over ci, dy, dx of in[b, ci, y + dy, x + dx]·w[co, ci, dy, dx], a window of 3 by 3 and 8 results."""
    k = Build()
    wide = width + 2
    plane = wide * (height + 2)
    x = k.load("float16", [batch, 1, height, width, channels, 3, 3], [channels * plane, 0, wide, 1, plane, wide, 1])
    w = k.load("float16", [1, 8, 1, 1, channels, 3, 3], [0, channels * 9, 0, 0, 9, 3, 1])
    return k.store((x * w).cast("float32").sum(4, 5, 6)).ast()


def test_the_axes_are_cut_into_the_digits_of_the_result() -> None:
    assert "g2 g2 l4 l8 r3 U16 u2 u2" == axes(matmul(32, 16, 48), "TC 0 0")


@pytest.mark.parametrize(
    ("family", "cut"),
    [
        ("nvidia", "g2 g2 l4 l8 r2 U16 u2 u2"), ("rdna3", "g2 g2 l16 l2 r2 U16 u8"), ("cdna", "g2 g2 l16 l4 r2 U16 u4"),
        ("apple", "g2 g2 l2 l4 l2 l2 r2 U8 u2"),
    ],
)  # fmt: skip
def test_each_family_has_its_own_cuts(family: str, cut: str) -> None:
    layout = next(layout for layout in LAYOUTS if layout.family == family)
    m, n, k = layout.core.dims

    _, nest = nest_for(matmul(2 * m, 2 * n, 2 * k, layout.core.operand, layout.core.accumulator), "TC 0 0", DEVICES[family])

    assert cut == nest.describe()


def test_a_minimal_tile_leaves_lanes_and_elements_alone() -> None:
    assert "l4 l8 U16 u2 u2" == axes(matmul(16, 8, 16), "TC 0 0")
    assert (ScheduleOption("TC", 0, 0),) == nest_of(matmul(16, 8, 16), "TC 0 0", **CUDA).applied


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.family} {layout}")
def test_a_tile_and_one_is_padded_at_level_2_alone(layout: Layout) -> None:
    """H 154."""
    m, n, k = layout.core.dims
    device = {**DEVICES[layout.family], "tensor_cores": [layout.core.to_json()]}
    for sizes in ((m + 1, n, k), (m, n + 1, k), (m, n, k + 1)):
        ast = matmul(*sizes, layout.core.operand, layout.core.accumulator)
        for level in (0, 1):
            with pytest.raises(Exception, match="no multiple of"):
                nest_for(ast, f"TC 0 {level}", device)
        assert (ScheduleOption("TC", 0, 2),) == nest_for(ast, "TC 0 2", device)[1].applied


def test_a_quarter_of_a_tile_is_too_little_to_pad() -> None:
    """H 155."""
    assert "more than quadruple" in why(
        matmul(16, 2, 16), "TC 0 2", tensor_cores=[{"dims": [16, 8, 16], "in": "float16", "acc": "float32"}]
    )
    assert "more than quadruple" in why(matmul(16, 8, 2), "TC 0 2")
    assert "l4 l8 U16 u2 u2" == axes(matmul(16, 3, 16), "TC 0 2").replace("g1 ", "")


def test_the_first_core_that_fits_is_taken() -> None:
    assert "g2 l4 l8 r3 U8 u2 u2" == axes(matmul(16, 16, 24), "TC 0 0")  # 24 is no multiple of 16, but of 8


def test_factors_may_stand_the_other_way_round() -> None:
    """H 160: the roles are chosen so that the tile fits, then so that the result lies along its rows."""
    assert "l4 l8 U16 u2 u2" == axes(matmul(16, 8, 16, swapped=True), "TC 0 0")
    nest = nest_of(matmul(32, 32, 32, swapped=True), "TC 0 0", **CUDA)
    assert nest.tile is not None
    assert [1] == [sorted(p.axis.wires)[0] - 1 for p in nest.tile.elements if p.run.dim == "n"]


def test_a_batch_along_which_both_factors_move_is_neither_row_nor_column() -> None:
    """H 161."""
    k = Build()
    x, y = k.load("float16", [16, 16, 1, 16], [256, 16, 0, 1]), k.load("float16", [16, 1, 16, 16], [256, 0, 1, 16])
    ast = k.store((x * y).cast("float32").sum(3)).ast()

    assert "g16 g2 l4 l8 U16 u2 u2" == axes(ast, "TC 0 0")
    assert "choice 1 of 1" in why(ast, "TC 1 0")


def test_an_axis_along_which_neither_factor_moves_is_no_candidate() -> None:
    """H 160."""
    k = Build()
    x, y = k.load("float16", [16, 1, 1, 16], [16, 0, 0, 1]), k.load("float16", [1, 1, 16, 16], [0, 0, 1, 16])
    z = k.load("float32", [16, 16, 16, 1], [256, 16, 1, 0])
    ast = k.store((x * y).cast("float32").sum(3) + z).ast()

    assert "choice 1 of 1" in why(ast, "TC 1 0")
    assert axes(ast, "TC 0 0").startswith("g16 g2 l4 l8")


def test_choices_count_backwards_from_the_last_triple() -> None:
    """D 92: one axis of columns, three of rows, three reduced: nine choices."""
    ast = convolution(16, 16, 16)
    reached = []
    for choice in range(9):
        try:
            nest = nest_of(ast, f"TC {choice} 1", **CUDA)
        except Exception as error:
            reached.append("multiple" if "no multiple of" in str(error) else str(error))
        else:
            assert nest.tile is not None
            rows = next(p.axis.wires for p in nest.tile.parts if p.run.dim == "m")
            reached.append(f"{sorted(rows)}{sorted(nest.tile.depth.wires)}")

    assert ["multiple", "multiple", "[3][4]", "multiple", "multiple", "[2][4]", "multiple", "multiple", "[0][4]"] == reached
    assert "choice 9 of 9" in why(ast, "TC 9 1")


def two_products() -> Json:
    k = Build()
    total = []
    for _ in range(2):
        x, y = k.load("float16", [16, 1, 16], [16, 0, 1]), k.load("float16", [1, 16, 16], [0, 1, 16])
        total.append((x * y).cast("float32").sum(2))
    return k.store(total[0] + total[1]).ast()


def of(change: str) -> Json:
    """A product of 16x16x16 with something else in it."""
    k = Build()
    loaded = "float32" if change == "converted" else "float16"
    x = k.load(loaded, [16, 1, 16], [16, 0, 1], mask=[[0, 12], [0, 1], [0, 16]] if change == "masked" else None)
    if change == "square":
        return k.store((x * x).cast("float32").sum(2)).ast()
    y = k.load("float16", [1, 16, 16], [0, 1, 16])
    match change:
        case "maximum":
            return k.store((x * y).cast("float32").max(2)).ast()
        case "sum":
            return k.store((x + y).cast("float32").sum(2)).ast()
        case "comparison":
            return k.store(((x < 0.0).cast("float16") * y).cast("float32").sum(2)).ast()
        case "converted":
            return k.store((x.cast("float16") * y).cast("float32").sum(2)).ast()
        case "widened":
            return k.store((x.cast("float32") * y.cast("float32")).sum(2)).ast()
        case "double":
            return k.store((x * y).cast("float64").sum(2)).ast()
        case _:
            return k.store((x * y).cast("float32").sum(2)).ast()


REFUSED: dict[str, tuple[Json, str, Json, str]] = {
    "156 not the first option": (matmul(32, 16, 32), "UPCAST 0 2, TC 0 0", {}, "must be the first option"),
    "156 twice": (matmul(32, 16, 32), "TC 0 0, TC 0 0", {}, "must be the first option"),
    "156 choice too large": (matmul(32, 16, 32), "TC 1 0", {}, "choice 1 of 1"),
    "156 no tensor cores asked for": (matmul(32, 16, 32), "TC 0 0", {"tensor_cores": False}, "no tensor cores"),
    "156 an architecture without": (matmul(32, 16, 32), "TC 0 0", {"arch": "sm_70"}, "no tensor cores"),
    "156 a target without": (matmul(32, 16, 32), "TC 0 0", {"target": "opencl", "arch": "sm_80"}, "no tensor cores"),
    "156 no work-groups": (matmul(32, 16, 32), "TC 0 0", {"has_local": False, "has_shared": False}, "no work-groups"),
    "156 two products": (two_products(), "TC 0 0", {}, "2 reduces"),
    "156 a comparison": (of("comparison"), "TC 0 1", {}, "not loaded"),
    "a maximum": (of("maximum"), "TC 0 0", {}, "not a sum"),
    "no product": (of("sum"), "TC 0 0", {}, "no product"),
    "a square": (of("square"), "TC 0 0", {}, "no output axis"),
    "a sum of another type": (of("double"), "TC 0 0", {}, "the sum is float64"),
    "factors of another type": (matmul(16, 16, 16, "int8", "int32"), "TC 0 0", {}, "the sum is int32"),
    "a factor that is converted, at level 0": (of("converted"), "TC 0 0", {}, "level 1"),
    "several reduced axes at level 0": (convolution(2, 2, 16), "TC 0 0", {}, "level 0 takes one"),
    "41 a masked axis": (of("masked"), "TC 0 0", {}, "no output axis"),
    "tf32 without fast_math": (matmul(16, 16, 16, "float32", "float32"), "TC 0 0", {}, "factors are float32"),
    "not plain": (minus_maximum([16, 16], 1).ast(), "TC 0 0", {}, "the outputs are full on axis"),
    "no sum of products": (variance("float32").ast(), "TC 0 0", {}, "2 reduces"),
    "57 GROUP": (matmul(32, 16, 32), "TC 0 0, GROUP 0 2", {}, "tensor core"),
    "57 GROUPTOP": (matmul(32, 16, 32), "TC 0 0, GROUPTOP 0 2", {}, "tensor core"),
    "157 UPCAST of the lanes": (matmul(32, 16, 32), "TC 0 0, UPCAST 2 2", {}, "tensor core's lanes"),
    "157 LOCAL of the lanes": (matmul(32, 16, 32), "TC 0 0, LOCAL 3 2", {}, "is local, not global"),
    "PADTO of the lanes": (matmul(32, 16, 32), "TC 0 0, PADTO 2 3", {}, "tensor core's lanes"),
    "NOLOCALS": (matmul(32, 16, 32), "TC 0 0, NOLOCALS", {}, "lanes of a work-group already"),
    "164 lanes moved out of the way": (matmul(2048, 8, 16), "TC 0 0, LOCAL 0 128", {"lanes_max": 4096, "local_max": [4, 128, 8]}, "lowest"),
}  # fmt: skip


@pytest.mark.parametrize(("ast", "options", "device", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_by_name(ast: Json, options: str, device: Json, reason: str) -> None:
    assert reason in why(ast, options, **device)


def test_factors_that_are_widened_before_they_are_multiplied_fit() -> None:
    """Just what the instruction does."""
    assert "g2 l4 l8 U16 u2 u2" == axes(of("widened"), "TC 0 0")


def test_converted_factors_fit_at_level_1() -> None:
    assert "g2 l4 l8 U16 u2 u2" == axes(of("converted"), "TC 0 1")


def test_a_list_takes_only_the_cores_it_names() -> None:
    small = [{"dims": [16, 8, 8], "in": "float16", "acc": "float32"}]

    assert "l4 l8 r2 U8 u2 u2" == axes(matmul(16, 8, 16), "TC 0 0", tensor_cores=small)


def test_fragments_count_as_what_a_lane_holds_of_them() -> None:
    """16 fragments of 8 elements are far fewer than 16 times all of the axes' extents."""
    assert "u4 u4" == axes(matmul(128, 64, 32), "TC 0 0, UPCAST 0 4, UPCAST 1 4")[-5:]
    assert "expanded elements would be 1280" in why(matmul(512, 512, 320), "TC 0 0, UPCAST 0 8, UPCAST 1 4, UNROLL 0 5")


def lanes(nest: Nest) -> list[int]:
    assert nest.tile is not None
    return [part.axis.size for part in nest.tile.lanes]


def test_lanes_are_known_whatever_is_done_to_other_axes() -> None:
    assert [4, 8] == lanes(nest_of(matmul(64, 64, 64), "TC 0 0, UPCAST 0 2, LOCAL 1 4, UPCAST 0 0, UNROLL 0 0", **CUDA))
