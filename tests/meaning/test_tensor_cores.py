"""Matrix instructions mean what the kernel means, whatever is done beside them (acceptance H 153-164, L 229-230).

On the emulator, which runs a set of lanes' fragments for real. The texts themselves run in `test_gpus`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.fragments import LAYOUTS, Layout
from core.ir.op import Op
from core.ir.value import Value
from core.linear.listing import Listing
from core.request import Request
from tests.core.schedule.scheduling import options_of
from tests.core.schedule.test_tensor import convolution, of
from tests.meaning.build import Build
from tests.meaning.fuzz import compiled_with_listing
from tests.meaning.tiles import DEVICES, agrees, holds, listing_of, matmul, nest_for

Json = dict[str, Any]
CUDA: Json = {"target": "cuda"}
TF32: Json = {"target": "cuda", "fast_math": True}
each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.family} {layout}")


def device_of(layout: Layout) -> Json:
    return {**DEVICES[layout.family], "tensor_cores": [layout.core.to_json()]}


def listing(ast: Json, options: str, device: Json = CUDA) -> Listing:
    request, nest = nest_for(ast, options, device)
    return listing_of(request, nest)[0]


def of_op(program: Listing, op: Op) -> list[Value]:
    return [value for value in program.body if value.op is op]


@each_layout
def test_a_minimal_tile(layout: Layout) -> None:
    """H 153."""
    nest = holds(matmul(*layout.core.dims, layout.core.operand, layout.core.accumulator), "TC 0 0", device_of(layout))

    assert ["TC"] == [option.op for option in nest.applied]
    assert 1 == len(
        of_op(listing(matmul(*layout.core.dims, layout.core.operand, layout.core.accumulator), "TC 0 0", device_of(layout)), Op.MMA)
    )


@each_layout
def test_several_tiles_and_fragments(layout: Layout) -> None:
    m, n, k = layout.core.dims
    ast = matmul(2 * m, 2 * n, 2 * k, layout.core.operand, layout.core.accumulator)

    holds(ast, "TC 0 0", device_of(layout))
    holds(ast, "TC 0 0, UPCAST 0 2, UPCAST 0 2, UNROLL 0 2", device_of(layout))
    holds(ast, "TC 0 0, LOCAL 1 2, UNROLL 0 0", device_of(layout))


@each_layout
def test_a_tile_and_one_in_each_dimension(layout: Layout) -> None:
    """H 154: padded tiles have gated loads and stores, and whole instructions."""
    m, n, k = layout.core.dims

    holds(matmul(m + 1, n + 1, k + 1, layout.core.operand, layout.core.accumulator), "TC 0 2", device_of(layout))


@each_layout
def test_factors_the_other_way_round(layout: Layout) -> None:
    """H 160."""
    m, n, k = layout.core.dims

    holds(matmul(m, 2 * n, k, layout.core.operand, layout.core.accumulator, swapped=True), "TC 0 0", device_of(layout))


@each_layout
def test_the_same_axes_without_the_instruction(layout: Layout) -> None:
    """The cuts alone are a schedule like any other: plain arithmetic means the same."""
    m, n, k = layout.core.dims
    ast = matmul(m, 2 * n, 2 * k, layout.core.operand, layout.core.accumulator)
    request, nest = nest_for(ast, "TC 0 0, UPCAST 0 2", device_of(layout))
    shape_only = replace(nest, tile=None)

    assert not of_op(listing_of(request, shape_only)[0], Op.MMA)
    assert "" == agrees(request, shape_only)


FOLLOWED = (
    "UPCAST 0 4", "UPCAST 1 4", "UPCAST 0 2, UPCAST 1 4", "UNROLL 0 2", "UNROLL 0 4", "UNROLL 0 0", "LOCAL 0 2", "LOCAL 1 4",
    "LOCAL 1 2, UPCAST 0 4", "UNROLL 0 2, UPCAST 1 2, LOCAL 0 2", "LOCAL 0 4, LOCAL 0 4, UNROLL 0 0", "PADTO 0 3", "PADTO 1 8, UPCAST 1 8",
    "LOCAL 0 0, LOCAL 0 0",
)  # fmt: skip


@pytest.mark.parametrize("options", FOLLOWED)
def test_options_after_it(options: str) -> None:
    """H 157, 162."""
    holds(matmul(64, 32, 64), f"TC 0 0, {options}", CUDA)


def test_a_padded_reduce_axis_beside_the_instruction() -> None:
    """H 162, L 230: also where a factor does not move along it, and whatever it holds there."""
    k = Build()
    x = k.load("float16", [16, 1, 3, 16], [16, 0, 0, 1])
    y = k.load("float16", [1, 8, 3, 16], [0, 1, 128, 8])
    ast = k.store((x * y).cast("float32").sum(2, 3)).ast()

    nest = holds(ast, "TC 0 1, PADTO 2 4, UNROLL 0 2", CUDA)

    assert "l4 l8 r2 U16 u2 u2 U2" == nest.describe()


def test_instructions_of_one_fragment_are_a_chain() -> None:
    """H 158: each one's C is the one's before it; one assignment a turn, of the last."""
    program = listing(matmul(32, 8, 128), "TC 0 0, UNROLL 0 4")
    chain = of_op(program, Op.MMA)
    (update,) = of_op(program, Op.UPDATE)

    assert 4 == len(chain)
    assert [update.src[0], *chain[:-1]] == [value.src[2] for value in chain]
    assert chain[-1] is update.src[1]


def test_fragments_are_loaded_once_for_all_that_they_serve() -> None:
    program = listing(matmul(32, 16, 64), "TC 0 0, UPCAST 0 2, UPCAST 0 2")

    assert (4, 4, 4) == (len(of_op(program, Op.MMA)), len(of_op(program, Op.ACC)), len(of_op(program, Op.UPDATE)))
    assert [2] * 8 + [1] * 8 == sorted((load.lanes for load in of_op(program, Op.LOAD)), reverse=True)
    assert 4 == len({value for mma in of_op(program, Op.MMA) for value in mma.src[:2]})


def test_a_tail_stands_outside_the_loop() -> None:
    """H 159."""
    ast = matmul(32, 16, 32, rectified=True)
    body = listing(ast, "TC 0 0").body
    end = next(n for n, value in enumerate(body) if value.op is Op.END)

    holds(ast, "TC 0 0", CUDA)
    assert {Op.MMA} == {v.op for v in body[:end] if v.op in (Op.MMA, Op.MAX)}
    assert {Op.MAX} == {v.op for v in body[end:] if v.op in (Op.MMA, Op.MAX)}


@pytest.mark.parametrize(("choice", "sizes"), [(2, (2, 2, 16)), (5, (2, 16, 2)), (8, (16, 2, 2))])
def test_choices_of_a_convolution(choice: int, sizes: tuple[int, int, int]) -> None:
    """D 92, L 229: of the rows' axes, last first; each with the channels as depth."""
    holds(convolution(*sizes), f"TC {choice} 1", CUDA)


def test_a_convolution_padded_and_expanded() -> None:
    """L 229: what follows the instruction never leaves a buffer."""
    holds(convolution(2, 2, 14, 3), "TC 2 2, UPCAST 0 2, UNROLL 0 0, LOCAL 0 2", CUDA)


@pytest.mark.parametrize("ast", [of("converted"), of("widened")], ids=["converted", "widened"])
def test_converted_factors(ast: Json) -> None:
    holds(ast, "TC 0 1", CUDA)


def test_a_masked_factor() -> None:
    """A mask along a batch hides whole products."""
    k = Build()
    x = k.load("float16", [3, 16, 1, 16], [256, 16, 0, 1], mask=[[1, 3], [0, 16], [0, 1], [0, 16]])
    y = k.load("float16", [1, 1, 16, 16], [0, 0, 1, 16])

    holds(k.store((x * y).cast("float32").sum(3)).ast(), "TC 0 0", CUDA)


def test_a_factor_that_is_needed_after_the_reduce_too() -> None:
    k = Build()
    x = k.load("float16", [16, 1, 1], [1, 0, 0])
    y = k.load("float16", [1, 16, 16], [0, 1, 16])
    ast = k.store((x * y).cast("float32").sum(2) + x.cast("float32")).ast()

    holds(ast, "TC 0 0", CUDA)


def test_two_outputs_of_one_product() -> None:
    k = Build()
    x, y = k.load("float16", [16, 1, 32], [32, 0, 1]), k.load("float16", [1, 16, 32], [0, 1, 16])
    total = (x * y).cast("float32").sum(2)

    holds(k.store(total).store(total.exp2()).ast(), "TC 0 0", CUDA)


def test_a_loop_around_the_stores() -> None:
    """An axis the product is free of may be a loop after it."""
    k = Build()
    x, y = k.load("float16", [1, 16, 1, 32], [0, 32, 0, 1]), k.load("float16", [1, 1, 16, 32], [0, 0, 1, 16])
    z = k.load("float32", [3, 16, 16, 1], [256, 16, 1, 0])
    ast = k.store((x * y).cast("float32").sum(3) + z).ast()

    assert "o3" in holds(ast, "TC 0 0, LOOP 0 0", CUDA).describe()


def test_a_set_of_lanes_is_consecutive_beside_other_lanes() -> None:
    """H 164: x, then y, then z are the lowest bits first."""
    request, nest = nest_for(matmul(64, 32, 16), "TC 0 0, LOCAL 0 2, LOCAL 1 4", CUDA)
    program, _, local = listing_of(request, nest)

    assert (32, 2, 4) == local
    assert "" == agrees(request, nest)
    assert program.local_size == local


def test_what_an_instruction_counts_as() -> None:
    program, _ = compiled_with_listing({"ast": matmul(64, 64, 64), "device": CUDA, "optimize": options_of("TC 0 0")})

    assert 64 * 64 * 64 * 2 == program.flops
    assert {"bounds": "proved", "writes": "proved", "barriers": "proved", "open": []} == program.proofs


def test_asking_for_what_was_applied_gives_the_same_text() -> None:
    chosen, _ = compiled_with_listing({"ast": matmul(160, 80, 64), "device": CUDA, "optimize": "heuristic"})
    asked, _ = compiled_with_listing({"ast": matmul(160, 80, 64), "device": CUDA, "optimize": chosen.applied})

    assert ["TC 0 0", "UPCAST 0 5", "UPCAST 1 5", "LOCAL 1 2"] == [f"{o['op']} {o['axis']} {o['amount']}" for o in chosen.applied]
    assert chosen.source == asked.source


def test_the_heuristic_takes_instructions_where_the_device_has_them() -> None:
    def ops(device: Json) -> list[str]:
        request = Request.from_json({"ast": matmul(64, 64, 64), "device": device})
        program, _ = compiled_with_listing({"ast": matmul(64, 64, 64), "device": request.device.to_json()})
        return [str(o["op"]) for o in program.applied]

    assert "TC" == ops(CUDA)[0]
    assert "TC" == ops({**CUDA, "arch": "sm_75"})[0]
    assert "TC" not in ops({**CUDA, "arch": "sm_70"})
    assert "TC" not in ops({**CUDA, "tensor_cores": False})
    assert "TC" not in ops({"target": "opencl"})


def test_the_heuristic_takes_the_first_triple_that_fits_and_pads_little() -> None:
    def first(ast: Json) -> str:
        program, _ = compiled_with_listing({"ast": ast, "device": CUDA})
        return " ".join(map(str, program.applied[0].values()))

    assert "TC 2 1" == first(convolution(2, 2, 16))  # of the window's axes none is a multiple of 8, the channels are
    assert "TC 0 2" == first(matmul(30, 24, 32))
    assert "TC" not in first(matmul(6, 24, 32))  # more than half of it would be padding
