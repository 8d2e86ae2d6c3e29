"""What the compiler chooses by itself: properties of its lists, and the outcomes its page promises (acceptance 84-90, 259)."""

from __future__ import annotations

from itertools import product as points_of
from typing import Any

import pytest

from core import Program, Request, compile_kernel
from core.explanation import explain
from core.ir.op import Op
from core.ir.parts import access
from core.linear.listing import Listing
from tests.meaning.build import Build, Term
from tests.meaning.fuzz import compiled_with_listing

Json = dict[str, Any]
Option = tuple[str, int | None, int | None]


def program(ast: Json, target: str = "opencl", **device: Any) -> Program:
    return compile_kernel(Request.from_json({"ast": ast, "device": {"target": target, **device}}))


def applied(ast: Json, target: str = "opencl", **device: Any) -> list[Option]:
    return [(o["op"], o.get("axis"), o.get("amount")) for o in program(ast, target, **device).applied]  # type: ignore[misc]


def load(buffer: int, shape: list[int], index: str, **more: Any) -> Json:
    return {"op": "LOAD", "buffer": buffer, "dtype": "float32", "shape": shape, "index": index, **more}


def kernel(*nodes: Json, shape: list[int], index: str, src: int) -> Json:
    store = {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": shape, "index": index, "src": [src]}
    return {"version": 1, "variables": [], "nodes": [*nodes, store], "outputs": [len(nodes)]}


def product(m: int, n: int, k: int) -> Json:
    return kernel(
        load(1, [m, n, k], f"axis0*{k} + axis2"),
        load(2, [m, n, k], f"axis2*{n} + axis1"),
        {"op": "MUL", "src": [0, 1]},
        {"op": "REDUCE_SUM", "axes": [2], "src": [2]},
        shape=[m, n, 1],
        index=f"axis0*{n} + axis1",
        src=3,
    )


def row_sums(m: int, n: int) -> Json:
    return kernel(load(1, [m, n], f"axis0*{n} + axis1"), {"op": "REDUCE_SUM", "axes": [1], "src": [0]}, shape=[m, 1], index="axis0", src=1)


def softmax(m: int, n: int) -> Json:
    return kernel(
        load(1, [m, n], f"axis0*{n} + axis1"),
        {"op": "REDUCE_MAX", "axes": [1], "src": [0]},
        {"op": "NEG", "src": [1]},
        {"op": "ADD", "src": [0, 2]},
        {"op": "EXP2", "src": [3]},
        {"op": "REDUCE_SUM", "axes": [1], "src": [4]},
        {"op": "RECIP", "src": [5]},
        {"op": "MUL", "src": [4, 6]},
        shape=[m, n],
        index=f"axis0*{n} + axis1",
        src=7,
    )


def plus_transposed(n: int) -> Json:
    return kernel(
        load(1, [n, n], f"axis0*{n} + axis1"),
        load(1, [n, n], f"axis1*{n} + axis0"),
        {"op": "ADD", "src": [0, 1]},
        shape=[n, n],
        index=f"axis0*{n} + axis1",
        src=2,
    )


OUTCOMES: dict[str, tuple[Json, list[Option]]] = {
    "product-48-64-96": (product(48, 64, 96), [("UPCAST", 1, 4), ("UNROLL", 0, 4), ("LOCAL", 0, 8), ("LOCAL", 1, 16)]),
    "product-1024": (
        product(1024, 1024, 1024),
        [("UPCAST", 1, 4), ("UPCAST", 0, 4), ("UNROLL", 0, 4), ("LOCAL", 0, 8), ("LOCAL", 1, 16)],
    ),
    "vector-times-matrix": (product(1, 64, 256), [("GROUP", 0, 8), ("LOCAL", 0, 4), ("UPCAST", 0, 4)]),
    "row-sums-6-4096": (row_sums(6, 4096), [("GROUPTOP", 0, 256)]),
    "sum-of-4096": (row_sums(1, 4096), [("GROUPTOP", 0, 256)]),
    "plus-transposed": (plus_transposed(300), [("UPCAST", 1, 4), ("LOCAL", 0, 4), ("LOCAL", 1, 3)]),
}


@pytest.mark.parametrize(("ast", "expected"), OUTCOMES.values(), ids=OUTCOMES)
def test_reference_outcomes_for_a_gpu(ast: Json, expected: list[Option]) -> None:
    """D 84, 86."""
    assert expected == applied(ast)


@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_a_square_product_has_tiles_unrolled_terms_full_groups_and_vector_stores(n: int) -> None:
    """D 87."""
    made = program(product(n, n, n))
    upcast, unrolled, lanes = 1, 1, 1
    for option in made.applied:
        amount = option.get("amount")
        assert isinstance(amount, int)
        upcast *= amount if option["op"] == "UPCAST" else 1
        unrolled *= amount if option["op"] == "UNROLL" else 1
        lanes *= amount if option["op"] == "LOCAL" else 1

    assert upcast >= 4
    assert unrolled >= 4
    assert lanes >= 16
    stores = [line for line in made.source.splitlines() if "d0 +" in line or "d0[" in line]
    assert stores
    assert all("float4*" in line for line in stores)


@pytest.mark.parametrize(("rows", "width"), [(1024, 512), (5, 8), (8, 13)])
def test_a_softmax_begins_with_a_loop_over_its_row(rows: int, width: int) -> None:
    """N 259."""
    assert ("LOOP", 1, 0) == applied(softmax(rows, width))[0]


def test_one_row_is_a_loop_and_rows_of_one_element_are_none() -> None:
    """N 259."""
    assert ("LOOP", 0, 0) == applied(softmax(1, 512))[0]
    assert not any(op == "LOOP" for op, _, _ in applied(softmax(7, 1)))


@pytest.mark.parametrize("device", [{}, {"device_class": "cpu"}])
def test_a_cpu_takes_wide_unit_stride_tiles_and_no_lanes_that_only_copy(device: Json) -> None:
    options = applied(product(64, 64, 64), **device)
    lanes = [o for o in options if o[0] == "LOCAL"]

    assert (lanes == []) == bool(device)
    if device:
        assert ("UPCAST", 1, 16) in options
        assert any(op == "UPCAST" and axis == 0 for op, axis, _ in options)


def tile(options: list[Option]) -> dict[int | None, int]:
    """By axis the elements a work-item has along it, while no axis is taken whole."""
    found: dict[int | None, int] = {}
    for op, axis, amount in options:
        if op == "UPCAST":
            found[axis] = found.get(axis, 1) * (amount or 1)
    return found


@pytest.mark.parametrize("device", [{}, {"device_class": "cpu"}], ids=["gpu", "cpu"])
@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_a_square_product_is_tiled_by_four_at_least_in_both_directions(n: int, device: Json) -> None:
    assert all(tile(applied(product(n, n, n), **device)).get(axis, 1) >= 4 for axis in (0, 1))


@pytest.mark.parametrize("n", [64, 128, 512])
def test_a_cpu_keeps_the_rows_of_a_product_in_wide_vectors_and_work_for_every_core(n: int) -> None:
    made = program(product(n, n, n), device_class="cpu")
    x, y, z = (int(size) for size in made.global_size or ())

    assert "float16 a0" in made.source
    assert x * y * z >= 16
    assert made.shared_bytes == 0


@pytest.mark.parametrize("ast", [ast for ast, _ in OUTCOMES.values()], ids=OUTCOMES)
def test_a_gpu_keeps_within_its_work_groups_and_local_memory(ast: Json) -> None:
    made = program(ast, lanes_max=64, shared_max=256)
    x, y, z = (int(size) for size in made.local_size or ())

    assert x * y * z <= 64
    assert made.shared_bytes <= 256


@pytest.mark.parametrize("n", [64, 4096])
def test_neighbouring_work_items_of_a_gpu_store_neighbouring_vectors(n: int) -> None:
    """What is stored moves by the vector's width from one work-item of a group to the next."""
    source = program(plus_transposed(n)).source

    assert "float4*)(d0 + " in source
    assert ("LOCAL", 1, 16) in applied(plus_transposed(n))


@pytest.mark.parametrize("ast", [product(64, 64, 64), row_sums(4096, 512), softmax(1024, 512), plus_transposed(300)])
def test_a_cpu_groups_nothing_where_outputs_are_many(ast: Json) -> None:
    assert not any(op in ("GROUP", "GROUPTOP") for op, _, _ in applied(ast, device_class="cpu"))


def test_sums_of_rows_have_lanes_along_the_row_and_sums_of_columns_across_them() -> None:
    columns = kernel(
        load(1, [4096, 4096], "axis0*4096 + axis1"), {"op": "REDUCE_SUM", "axes": [0], "src": [0]}, shape=[1, 4096], index="axis1", src=1
    )

    assert any(op == "UNROLL" and (amount or 0) >= 8 for op, _, amount in applied(row_sums(4096, 4096), device_class="cpu"))
    assert ("UPCAST", 0, 16) in applied(columns, device_class="cpu")
    assert not any(op == "UNROLL" and (amount or 0) >= 8 for op, _, amount in applied(columns, device_class="cpu"))


@pytest.mark.parametrize(("n", "lanes"), [(64, 8), (48, 8), (40, 8), (50, 10), (60, 15)])
def test_lanes_along_a_row_are_what_divides_it(n: int, lanes: int) -> None:
    unrolled = [amount for op, _, amount in applied(row_sums(4096, n), device_class="cpu") if op == "UNROLL"]

    assert [lanes] == unrolled


def test_a_choice_by_cost_says_what_it_costs() -> None:
    told = explain(Request.from_json({"ast": product(256, 256, 256), "device": {"target": "opencl", "device_class": "cpu"}}))
    decisions = told["decisions"]
    assert isinstance(decisions, list)
    reasons = [d["reason"] for d in decisions if d["step"] == "tile"]

    assert reasons
    assert all("becomes" in reason and "of one core (arithmetic" in reason for reason in reasons)


def test_a_cpu_groups_neighbouring_elements() -> None:
    assert [("GROUP", 0, 16)] == applied(row_sums(6, 4096), device_class="cpu")


@pytest.mark.parametrize("ast", [ast for ast, _ in OUTCOMES.values()], ids=OUTCOMES)
def test_without_work_groups_there_are_no_lanes(ast: Json) -> None:
    """D 89."""
    assert not any(op in ("LOCAL", "GROUP", "GROUPTOP") for op, _, _ in applied(ast, "c"))


def test_symbolic_axes_are_never_cut() -> None:
    """D 90."""
    ast = row_sums(4, 8)
    ast["variables"] = [{"name": "n", "min": 1, "max": 64}]
    ast["nodes"][0] = load(1, [4, "n"], "axis0*n + axis1")  # type: ignore[list-item]

    assert all(op == "LOCAL" for op, _, _ in applied(ast))


@pytest.mark.parametrize("ast", [ast for ast, _ in OUTCOMES.values()], ids=OUTCOMES)
def test_asking_for_what_was_applied_gives_the_same_source(ast: Json) -> None:
    """C 83."""
    chosen = program(ast)
    replayed = compile_kernel(Request.from_json({"ast": ast, "device": {"target": "opencl"}, "optimize": chosen.applied}))

    assert chosen.source == replayed.source


def test_every_decision_gives_its_reason() -> None:
    """K 210."""
    told = explain(Request.from_json({"ast": product(48, 64, 96), "device": {"target": "opencl"}}))
    decisions, axes = told["decisions"], told["axes"]

    assert isinstance(decisions, list)
    assert isinstance(axes, list)
    assert all(d["reason"] for d in decisions)
    assert [o for d in decisions for o in d["options"]] == [a["option"] for a in axes[1:]]


def chosen(ast: Json) -> tuple[list[Option], Listing]:
    """What the compiler chose for a GPU, and what came of it."""
    program, listing = compiled_with_listing({"ast": ast, "device": {"target": "opencl"}, "optimize": "heuristic"})
    return [(o["op"], o["axis"], o["amount"]) for o in program.applied], listing  # type: ignore[misc]


def test_a_small_addition_is_vectors() -> None:
    """D 85."""
    k = Build()
    _, listing = chosen(k.store(k.load("float32", [2, 8]) + k.load("float32", [2, 8])).ast())
    accesses = [(v.op, access(v).stored or v) for v in listing.body if v.op in (Op.LOAD, Op.STORE)]

    assert [(Op.LOAD, 4), (Op.LOAD, 4), (Op.STORE, 4)] == [(op, value.lanes) for op, value in accesses]


def stacked(*counts: int) -> Json:
    """A row for each of so many, put together by masks; by two axes of masks where there are two counts."""
    k = Build()
    strides: list[int | str] = [*(0 for _ in counts), 1]
    rows: list[Term] = []
    for at in points_of(*(range(n) for n in counts)):
        mask: list[list[int | str]] = [[0, 64]]
        mask[:0] = [[i, i + 1] for i in at]
        rows.append(k.load("float32", [*counts, 64], strides, mask=mask))
    total = rows[0]
    for row in rows[1:]:
        total = total + row
    return k.store(total).ast()


WHOLE_TWO: list[Option] = [("UPCAST", 1, 0), ("UPCAST", 0, 0)]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((7,), [("UPCAST", 0, 0)]), ((8,), []), ((6, 6), WHOLE_TWO), ((7, 7), WHOLE_TWO), ((3, 4, 5), WHOLE_TWO)],
)
def test_short_axes_of_masks_are_expanded_within_49_elements(counts: tuple[int, ...], expected: list[Option]) -> None:
    """D 88: where all of them are, no element selects any more."""
    options, listing = chosen(stacked(*counts))

    assert expected == [o for o in options if o[0] == "UPCAST" and o[2] == 0]
    assert (len(counts) == len(expected)) == (not any(v.op is Op.WHERE or (v.op is Op.LOAD and access(v).gate) for v in listing.body))
