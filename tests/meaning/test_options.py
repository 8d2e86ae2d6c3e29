"""Programs mean the same under every legal schedule (acceptance C 50-83, E 105, G 140-152, L 214-228, N 252-276).

On the listing, every access watched (`emulated`), on the attached OpenCL device, and in C where no option needs lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from core.linear.listing import Listing
from core.request import Request
from tests.core.schedule.scheduling import options_of
from tests.core.schedule.test_options import bias_added, copy, image_sum, product, row_sum, transposed_sum, two_sums
from tests.meaning.batches import Attempt, try_all
from tests.meaning.build import Build
from tests.meaning.choices import Choices
from tests.meaning.fuzz import compiled_with_listing
from tests.meaning.option_kernels import (
    chained_before_sum,
    chosen_in_place,
    divided,
    kept_bool_in_place,
    kept_in_place,
    looked_up_at_padded_points,
    mean_of_masked,
    negated_bools,
    negative_maxima,
    nothing_beside_a_reduce,
    nothing_of_an_empty_window,
    of_functions,
    part_of_a_loop_is_hoisted,
    part_of_a_loop_needs_more,
    sums_over_one_class,
    total_in_place,
)
from tests.meaning.random_schedules import initial_nest, random_schedule
from tests.meaning.test_gathers import (
    argmax_then_lookup,
    gather_of_a_gather,
    pooled_embedding,
    ramp,
    ramp_under_a_reduce,
    switched,
    table,
    under_a_reduce,
)
from tests.meaning.test_reduces import (
    beside,
    convolved,
    crossed,
    empties,
    inner_over_the_lower_axis,
    kinds,
    matmul,
    nested,
    one_reduce_at_two_sites,
    pooled,
    pooled_any,
    reduce_of_a_constant,
    several_classes,
    three_levels,
    variance,
)
from tests.meaning.test_rows import attention, layernorm, minus_maximum, normalised, plain_with_a_tail, softmax
from tests.meaning.test_rows import two_outputs as two_rows
from tests.meaning.test_small_kernels import minus_maximum_in_place, scalar, shifted_sum

Json = dict[str, Any]
LANES = ("LOCAL", "GROUP", "GROUPTOP", "UPCASTMID", "NOLOCALS")


def attempt(ast: Json, target: str, lists: list[list[Json]], device: Json, seeds: tuple[tuple[int, bool], ...]) -> Attempt:
    bodies: list[Json] = []
    programs: list[Json] = []
    listings: list[Listing] = []
    for options in lists:
        body: Json = {"ast": ast, "device": {"target": "c" if target == "c" else "opencl", **device}, "optimize": options}
        program, listing = compiled_with_listing(body)
        bodies.append(body)
        programs.append(program.to_json())
        listings.append(listing)
    return Attempt(bodies, programs, listings if target == "emulated" else (), seeds)


def holds(ast: Json, target: str, *lists: list[Json], device: Json | None = None, special: bool = False) -> None:
    """The kernel under each of these schedules does what it means."""
    seeds = ((0, False), (1, special and target != "emulated"))
    tried = attempt(ast, target, list(lists), device or {}, seeds)
    outcome = try_all(target, [tried])
    for difference in outcome.differences[:1]:
        number = difference.program
        raise AssertionError(f"{difference.why}\n{tried.bodies[number]['optimize']}\n{tried.programs[number]['source']}")
    assert len(lists) == outcome.right


def each(rows: Mapping[str, tuple[Any, ...]]) -> pytest.MarkDecorator:
    """A test per row and target."""
    found: list[Any] = []
    for name, row in rows.items():
        lanes = any(op in row[1] for op in LANES)
        device = row[2] if len(row) > 2 else {}
        for target in ("emulated", "opencl") if lanes or "global_max" in device else ("c", "opencl"):
            found.append(pytest.param(row[0], row[1], device, target, id=f"{name}-{target}"))
    return pytest.mark.parametrize(("ast", "options", "device", "target"), found)


PLAIN: dict[str, tuple[Any, ...]] = {
    "16-in-place-by-values-padded": (chosen_in_place(), "PADTO 0 32"),
    "16-in-place-by-values-padded-lanes": (chosen_in_place(), "PADTO 0 32, UPCAST 0 4"),
    "16-in-place-by-a-bool-padded": (kept_in_place(), "PADTO 0 8, UPCAST 0 2"),
    "20-empty-beside-a-reduce": (nothing_beside_a_reduce(), "UNROLL 0 2"),
    "20-empty-beside-a-group": (nothing_beside_a_reduce(), "GROUP 0 4, PADTO 1 3"),
    "20-empty-window": (nothing_of_an_empty_window(), "PADTO 0 32, UPCAST 0 8"),
    "20-empty-in-a-shared-dimension": (copy(4, 0, 3, 2, strides=[1, 1, 4, 12]), "UPCAST 3 2", {"global_max": [8, 8, 8]}),
    "16-in-place-after-a-group": (total_in_place(), "GROUP 0 4, UPCAST 0 2"),
    "50-upcast": (copy(128), "UPCAST 0 4"),
    "52-upcast-by-16": (copy(128), "UPCAST 0 16", {"device_class": "cpu"}),
    "56-two-locals": (copy(128), "LOCAL 0 4, LOCAL 0 8"),
    "58-grouptop": (row_sum(6, 40), "GROUPTOP 0 8"),
    "58-group": (row_sum(6, 40), "GROUP 0 8"),
    "63-whole-reduce-unrolled": (product(24, 24, 24), "LOCAL 0 2, UNROLL 0 0"),
    "64-group-and-unroll": (product(6, 6, 24), "LOCAL 0 2, GROUP 0 0, UNROLL 0 2"),
    "65-group-in-registers": (product(6, 6, 24), "GROUP 0 2, UNROLL 0 0"),
    "66-no-locals": (transposed_sum(), "NOLOCALS, UPCAST 1 4"),
    "67-padded": (copy(17), "PADTO 0 32"),
    "67-padded-lanes": (copy(17), "PADTO 0 32, LOCAL 0 8, UPCAST 0 2"),
    "70-padded-sum": (row_sum(4, 13), "PADTO 1 8"),
    "71-padded-maximum": (negative_maxima(4, 13), "PADTO 1 8, UNROLL 0 4"),
    "71-padded-maximum-grouped": (negative_maxima(4, 13), "PADTO 1 8, GROUP 0 4"),
    "72-padded-functions": (of_functions(), "PADTO 1 8, UNROLL 0 4"),
    "72-padded-functions-grouped": (of_functions(), "PADTO 1 8, GROUPTOP 0 4"),
    "72-padded-division": (divided(), "PADTO 1 8, UNROLL 0 4"),
    "73-padded-not": (negated_bools(), "PADTO 1 16"),
    "73-padded-not-grouped": (negated_bools(), "PADTO 1 16, GROUP 0 8"),
    "74-padded-product": (product(19, 19, 19), "PADTO 0 32, PADTO 1 32, PADTO 2 32"),
    "74-padded-and-upcast": (product(19, 19, 19), "PADTO 0 32, PADTO 1 32, PADTO 2 32, UPCAST 0 2, UPCAST 1 2"),
    "75-padded-and-grouped": (row_sum(4, 13), "PADTO 1 4, GROUP 0 4"),
    "76-upcast-thrice": (negative_maxima(200, 5), "PADTO 0 32, UPCAST 0 4, UPCAST 0 7, UPCAST 0 0"),
    "77-padded-nested": (variance("float32").ast(), "PADTO 1 5, UNROLL 0 5"),
    "77-padded-nested-grouped": (variance("float32").ast(), "PADTO 1 5, GROUP 0 5"),
    "78-masked-nested": (mean_of_masked(8), "UNROLL 0 4"),
    "78-masked-nested-padded": (mean_of_masked(11), "PADTO 1 4, GROUP 0 4"),
    "82-a-whole-axis": (transposed_sum(), "LOCAL 0 0, UPCAST 0 4"),
    "105-a-prime-of-groups": (negative_maxima(37, 4), "GROUP 0 4", {"global_max": [16, 16, 16]}),
    "105-a-prime-of-items": (copy(37), "NOLOCALS", {"global_max": [16, 16, 16]}),
    "106-many-axes": (copy(2, 3, 4, 5, 6, strides=[1, 2, 6, 24, 120]), "", {"global_max": [16, 16, 16]}),
    "140-grouped-sum-of-48": (row_sum(1, 48), "GROUP 0 0"),
    "141-grouped-with-elements": (row_sum(8, 48), "UPCAST 0 4, GROUP 0 16"),
    "143-group-of-a-product": (product(8, 16, 32), "LOCAL 0 4, GROUP 0 8, UPCAST 0 2, UPCAST 1 4, UNROLL 1 4"),
    "144-two-group-axes": (row_sum(3, 256), "GROUP 0 4, GROUP 0 64"),
    "145-two-reduces-grouped": (two_sums(6, 32), "GROUP 0 8, UNROLL 1 2"),
    "146-variance-grouped": (variance("float32").ast(), "GROUP 0 4, UNROLL 1 2"),
    "147-unrolled-and-grouped": (two_sums(6, 64), "UNROLL 0 4, GROUP 0 8"),
    "149-two-outputs-grouped": (kinds("int32", [4, 32], (1,)).ast(), "GROUPTOP 0 8"),
    "151-no-work-groups": (row_sum(4, 8), "UPCAST 0 2", {"has_local": False, "has_shared": False}),
    "214-pooled": (pooled().ast(), "PADTO 0 8, PADTO 3 4, UNROLL 1 4"),
    "214-pooled-lanes": (pooled().ast(), "LOCAL 0 4, LOCAL 0 4, UNROLL 1 0"),
    "215-scalar": (row_sum(1, 24), "UNROLL 0 0"),
    "215-no-axis": (scalar().ast(), ""),
    "216-constants": (reduce_of_a_constant().ast(), "UPCAST 0 0, UNROLL 0 0"),
    "219-four-unrolls": (variance("float32").ast(), "UNROLL 0 4, UNROLL 0 4"),
    "220-normalised": (normalised().ast(), "LOOP 1 0, UPCAST 1 4, UNROLL 0 4"),
    "222-two-vector-axes": (copy(24, 40, strides=[1, 24]), "UPCAST 1 4, LOCAL 1 5, LOCAL 0 8, UPCAST 0 3"),
    "225-padded-chain-grouped": (chained_before_sum(), "PADTO 1 32, GROUP 0 4"),
    "227-one-axis-in-parts": (row_sum(3, 512), "GROUP 0 4, UNROLL 0 0, UNROLL 0 4, GROUP 0 8, UNROLL 1 2"),
    "228-bias-after-a-group": (bias_added(64, 256), "GROUPTOP 0 32, UPCAST 0 4, UPCAST 0 2, UPCAST 0 2"),
    "233-any": (pooled_any().ast(), "PADTO 1 8, GROUP 0 8"),
    "a-sum-padded-in-a-group-axis": (row_sum(4, 13), "PADTO 1 5, GROUP 0 5, PADTO 1 8"),
    "a-local-axis-padded": (copy(6, 8, strides=[1, 6]), "LOCAL 0 0, PADTO 1 16, PADTO 0 3"),
}  # fmt: skip


@each(PLAIN)
def test_a_kernel_means_the_same_under_options(ast: Json, options: str, device: Json, target: str) -> None:
    holds(ast, target, options_of(options), device=device)


@pytest.mark.parametrize("target", ["c", "opencl"])
def test_a_bool_that_is_kept_is_written_as_0_or_1(target: str) -> None:
    holds(kept_bool_in_place(), target, [], options_of("UPCAST 0 4"), special=True)


@pytest.mark.parametrize("target", ["c", "emulated"])
def test_sums_that_need_different_loops_around_them_share_none(target: str) -> None:
    holds(part_of_a_loop_needs_more(), target, options_of("UNROLL 1 2, PADTO 1 2, UPCAST 0 0, UNROLL 0 2"))
    holds(part_of_a_loop_is_hoisted(), target, options_of("UPCAST 1 0, LOOP 0 0, UNROLL 0 4"))


MASKED: list[list[int | str]] = [[0, 4], [2, 11]]

CLASSES: dict[str, tuple[Json, str]] = {
    "252-sum-of-maxima": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "UNROLL 0 2, LOCAL 0 3"),
    "252-maximum-of-sums": (nested("REDUCE_MAX", "REDUCE_SUM").ast(), "PADTO 1 8, PADTO 2 3, UPCAST 0 3"),
    "252-inner-over-the-lower-axis": (inner_over_the_lower_axis().ast(), "UNROLL 1 4"),
    "252-three-levels": (three_levels().ast(), "UNROLL 1 0, UNROLL 0 3, UPCAST 0 2"),
    "253-no-k": (empties(4, 0).ast(), "UNROLL 0 2"),
    "253-no-j": (empties(0, 4).ast(), "UNROLL 1 2"),
    "253-k-at-launch": (empties(4, "n").ast(), "UNROLL 0 0"),
    "254-outer-unrolled": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "UNROLL 0 2"),
    "254-inner-unrolled": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "UNROLL 1 0"),
    "254-both-unrolled": (nested("REDUCE_SUM", "REDUCE_MAX").ast(), "UNROLL 1 0, UNROLL 0 0"),
    "255-beside": (beside("float32").ast(), "UPCAST 0 2, UNROLL 0 4, UNROLL 0 3"),
    "255-crossed": (crossed().ast(), "UNROLL 0 0, UNROLL 0 2"),
    "256-several-classes": (several_classes().ast(), "UNROLL 1 2, PADTO 0 2"),
    "256-padded": (sums_over_one_class(), "PADTO 2 8, UNROLL 1 2, PADTO 1 6"),
    "256-padded-and-grouped": (sums_over_one_class(), "PADTO 2 8, GROUP 1 8, PADTO 2 6, GROUP 0 2"),
    "257-at-two-sites": (one_reduce_at_two_sites().ast(), "UPCAST 1 2, UNROLL 0 2"),
    "258-minus-maximum": (minus_maximum([5, 8], 1).ast(), "LOOP 1 0"),
    "258-minus-maximum-in-turns": (minus_maximum([5, 8], 1).ast(), "LOOP 1 2, UNROLL 0 4, LOCAL 1 2"),
    "259-softmax": (softmax([6, 16], 1).ast(), "LOOP 1 0, UPCAST 1 4, LOCAL 0 2, UNROLL 0 4"),
    "259-softmax-one-row": (softmax([13], 0).ast(), "LOOP 0 0, PADTO 0 16, UPCAST 0 4"),
    "259-softmax-half": (softmax([5, 8], 1, dtype="float16").ast(), "LOOP 1 0, UPCAST 1 4"),
    "259-softmax-first-axis": (softmax([6, 7], 0).ast(), "LOOP 0 0, UPCAST 0 7"),
    "259-softmax-both-axes": (softmax([4, 6], 0, 1).ast(), "LOOP 0 0, UPCAST 0 8, UNROLL 0 4"),
    "260-masked": (softmax([4, 13], 1, mask=MASKED).ast(), "PADTO 1 16, UPCAST 1 4"),
    "260-masked-reduce-padded": (softmax([4, 13], 1, mask=MASKED).ast(), "PADTO 2 16, UNROLL 0 4"),
    "260-masked-both-padded": (softmax([4, 13], 1, mask=MASKED).ast(), "LOOP 1 0, PADTO 2 16, PADTO 1 16, UPCAST 1 4, UNROLL 0 4"),
    "261-layernorm": (layernorm(4, 12).ast(), "LOOP 1 0, UPCAST 1 4, UNROLL 0 4"),
    "262-row-of-n": (minus_maximum([5, "n"], 1).ast(), "LOOP 1 0"),
    "263-loop-in-a-plain-kernel": (plain_with_a_tail().ast(), "LOOP 1 0, UPCAST 1 3, UNROLL 0 4"),
    "263-group-there": (plain_with_a_tail().ast(), "GROUP 0 4, LOCAL 1 3"),
    "266-two-outputs": (two_rows().ast(), "LOOP 1 0, PADTO 1 12, UPCAST 1 4"),
    "266-in-place": (minus_maximum_in_place().ast(), "LOOP 1 0"),
    "attention": (attention(4, 6, 5).ast(), "LOCAL 0 2, UPCAST 1 3, UNROLL 1 0"),
    "268-rows-by-index": (table().ast(), "UPCAST 1 4, UPCAST 0 2"),
    "270-argmax-then-lookup": (argmax_then_lookup().ast(), "UNROLL 0 3, UPCAST 0 2"),
    "270-gather-of-a-gather": (gather_of_a_gather().ast(), "UPCAST 0 2, LOCAL 0 3"),
    "270-gather-under-a-reduce": (under_a_reduce("float32").ast(), "PADTO 1 8, GROUP 0 4, UNROLL 1 2, LOCAL 0 5"),
    "270-looked-up-at-padded-points": (looked_up_at_padded_points(), "PADTO 1 8, PADTO 0 3"),
    "270-pooled-embedding": (pooled_embedding().ast(), "UPCAST 1 4, GROUP 0 3"),
    "272-switched": (switched([4, 8], "src1 < 3").ast(), "UPCAST 1 4, LOCAL 0 2"),
    "273-ramp": (ramp("uint8").ast(), "PADTO 0 5, UPCAST 0 5"),
    "273-ramp-under-a-reduce": (ramp_under_a_reduce().ast(), "UNROLL 0 2"),
}


@each(CLASSES)
def test_reduces_over_axes_of_their_own_mean_the_same_under_options(ast: Json, options: str, device: Json, target: str) -> None:
    holds(ast, target, options_of(options), special=True)


DTYPES = ("float32", "float16", "bfloat16", "int8", "uint32", "int64", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", ["PADTO 1 16, GROUP 0 4", "PADTO 1 8, UNROLL 0 8", "PADTO 1 8, GROUPTOP 0 4, UNROLL 1 2"])
def test_each_kind_of_reduce_is_padded_with_what_changes_nothing(dtype: str, options: str) -> None:
    """N 274, J 194: grouped and unrolled, each kind in one kernel."""
    holds(kinds(dtype, [6, 13], (1,)).ast(), "emulated", options_of(options))


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_kind_of_reduce_is_grouped_on_a_device(dtype: str) -> None:
    holds(kinds(dtype, [6, 13], (1,)).ast(), "opencl", options_of("PADTO 1 16, GROUP 0 4, UNROLL 1 2"), special=True)


def test_a_mid_axis_is_stored_a_texel_at_a_time() -> None:
    """C 81: lanes while the reduce runs, channels of one store afterwards."""
    options = options_of("GROUP 0 4, UPCASTMID 0 4")

    holds(image_sum(4, 16, 8), "emulated", options)
    holds(image_sum(4, 16, 8), "opencl", options, options_of("GROUP 0 4, UPCASTMID 0 4, UNROLL 2 0"))


DRAWN: dict[str, Build] = {
    "145": variance("float32"),
    "183": ramp_under_a_reduce(),
    "214": pooled(),
    "218": convolved(),
    "252": nested("REDUCE_SUM", "REDUCE_MAX"),
    "255": beside("float32"),
    "256": several_classes(),
    "257": one_reduce_at_two_sites(),
    "258": minus_maximum([6, 8], 1),
    "259": softmax([4, 12], 1),
    "260": softmax([4, 13], 1, mask=MASKED),
    "261": layernorm(4, 12),
    "262": softmax([3, "n"], 1),
    "263": plain_with_a_tail(),
    "266": two_rows(),
    "268": table(rows=20),
    "270": under_a_reduce("float32"),
    "272": switched([4, 8], "src1 < 3"),
    "273": ramp("float16"),
    "274": kinds("bfloat16", [4, 12], (1,)),
    "product": matmul(6, 8, 12, "float32", "float32"),
    "attention": attention(4, 6, 4),
    "109": shifted_sum(),
}


@pytest.mark.parametrize("target", ["c", "emulated"])
@pytest.mark.parametrize("name", DRAWN)
def test_every_combination_of_options_means_the_same(name: str, target: str) -> None:
    """N: "under options"; which combinations is drawn, the same ones in every run."""
    ast = DRAWN[name].ast()
    request = Request.from_json({"ast": ast, "device": {"target": "c" if target == "c" else "opencl"}, "optimize": "none"})
    nest, choices = initial_nest(request), Choices.random(name)
    lists = [random_schedule(choices, nest, request) for _ in range(16 if target == "c" else 6)]

    holds(ast, target, [], *lists)


@pytest.mark.parametrize("name", list(DRAWN)[::4])
def test_combinations_of_options_mean_the_same_on_a_device(name: str) -> None:
    ast = DRAWN[name].ast()
    request = Request.from_json({"ast": ast, "device": {"target": "opencl"}, "optimize": "none"})
    nest, choices = initial_nest(request), Choices.random(f"{name} on a device")

    holds(ast, "opencl", *[random_schedule(choices, nest, request) for _ in range(4)])
