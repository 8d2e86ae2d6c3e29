"""The cost model of a CPU: what makes a plan dear, one cause at a time, by pairs of plans that differ in nothing else."""

from __future__ import annotations

from typing import Any

from core import Request, compile_kernel
from core.schedule.cost import Cost, Plan, Work, cost_of, work_of
from core.schedule.nest import Nest

Json = dict[str, Any]


def work(ast: Json) -> Work:
    seen: dict[str, object] = {}
    body = {"ast": ast, "device": {"target": "opencl", "device_class": "cpu"}, "optimize": "none"}
    compile_kernel(Request.from_json(body), watch=seen.__setitem__)
    nest = seen["build"]
    assert isinstance(nest, Nest)
    return work_of(nest)


def cost(of: Work, expanded: dict[int, int], lanes: dict[int, int] | None = None) -> Cost:
    return cost_of(of, Plan(expanded, lanes or {}))


def windows(channels: int, n: int, step: int, border: bool) -> Json:
    """out[c, y, x] = Σ over u, v < 3 of a[c, step·y + u, step·x + v]·b[c, u, v], rows n + 2 apart; axes: c, y, x, u, v."""
    m, pitch = n // step, n + 2
    x: Json = {
        "op": "LOAD",
        "buffer": 1,
        "dtype": "float32",
        "shape": [channels, m, m, 3, 3],
        "index": f"axis0*{pitch * pitch} + (axis1*{step} + axis3)*{pitch} + axis2*{step} + axis4",
    }
    if border:
        x["valid"] = [f"axis1*{step} + axis3 < {n}", f"axis2*{step} + axis4 < {n}"]
    nodes: list[Json] = [
        x,
        {"op": "LOAD", "buffer": 2, "dtype": "float32", "shape": [channels, 1, 1, 3, 3], "index": "axis0*9 + axis3*3 + axis4"},
        {"op": "MUL", "src": [0, 1]},
        {"op": "REDUCE_SUM", "axes": [3, 4], "src": [2]},
        {
            "op": "STORE",
            "buffer": 0,
            "dtype": "float32",
            "shape": [channels, m, m, 1, 1],
            "index": f"axis0*{m * m} + axis1*{m} + axis2",
            "src": [3],
        },
    ]
    return {"version": 1, "variables": [], "nodes": nodes, "outputs": [4]}


def convolution(channels: int, depth: int) -> Json:
    """8×8, 3×3 with a border; axes: channel, y, x, depth, u, v."""
    shape = [channels, 8, 8, depth, 3, 3]
    nodes: list[Json] = [
        {
            "op": "LOAD",
            "buffer": 1,
            "dtype": "float32",
            "shape": shape,
            "index": "axis3*64 + (axis1 + axis4 - 1)*8 + axis2 + axis5 - 1",
            "valid": ["axis1 + axis4 >= 1", "axis1 + axis4 < 9", "axis2 + axis5 >= 1", "axis2 + axis5 < 9"],
        },
        {"op": "LOAD", "buffer": 2, "dtype": "float32", "shape": shape, "index": f"axis0*{9 * depth} + axis3*9 + axis4*3 + axis5"},
        {"op": "MUL", "src": [0, 1]},
        {"op": "REDUCE_SUM", "axes": [3, 4, 5], "src": [2]},
        {
            "op": "STORE",
            "buffer": 0,
            "dtype": "float32",
            "shape": [channels, 8, 8, 1, 1, 1],
            "index": "axis0*64 + axis1*8 + axis2",
            "src": [3],
        },
    ]
    return {"version": 1, "variables": [], "nodes": nodes, "outputs": [4]}


def product(m: int, n: int, k: int) -> Json:
    nodes: list[Json] = [
        {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [m, n, k], "index": f"axis0*{k} + axis2"},
        {"op": "LOAD", "buffer": 2, "dtype": "float32", "shape": [m, n, k], "index": f"axis2*{n} + axis1"},
        {"op": "MUL", "src": [0, 1]},
        {"op": "REDUCE_SUM", "axes": [2], "src": [2]},
        {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": [m, n, 1], "index": f"axis0*{n} + axis1", "src": [3]},
    ]
    return {"version": 1, "variables": [], "nodes": nodes, "outputs": [4]}


def test_gates_cost_until_all_they_name_is_taken_apart() -> None:
    masked, free = work(windows(64, 4, 1, border=True)), work(windows(64, 4, 1, border=False))
    whole = {1: 4, 2: 4, 3: 3, 4: 3}

    assert cost(masked, {1: 4, 2: 4}).arithmetic > cost(free, {1: 4, 2: 4}).arithmetic
    assert cost(masked, whole).arithmetic == cost(free, whole).arithmetic


def test_elements_that_windows_share_are_read_once() -> None:
    """16 windows of 3, two apart, touch 33 elements of 48."""
    of = work(windows(64, 64, 2, border=False))

    apart = cost(of, {4: 3}).arithmetic
    shared = cost(of, {2: 16, 4: 3}).arithmetic

    assert shared < apart


def test_a_row_read_whole_is_one_stretch_also_by_windows_two_apart() -> None:
    """The buffer stays in no cache; a work-item that reads a whole row of it begins one stretch, not one for each window."""
    of = work(windows(512, 64, 2, border=False))

    assert cost(of, {2: 32, 4: 3}).memory < cost(of, {1: 32, 4: 3}).memory


def test_rows_far_apart_are_stretches_of_their_own() -> None:
    """Of a product's second factor, 4 MiB: 8 columns side by side begin an eighth of the stretches that 8 rows of the first do."""
    of = work(product(1024, 1024, 1024))

    assert cost(of, {1: 16}, {1: 16}).memory < cost(of, {0: 16}).memory


def test_operands_of_several_sums_take_registers_where_terms_are_side_by_side() -> None:
    """16 registers of sums fit, whichever axis they lie along; with two rows of three shifts and three terms of 8 channels they do not."""
    of = work(convolution(16, 16))
    alone, shared = {0: 16, 2: 8, 5: 3}, {0: 8, 1: 2, 2: 8, 5: 3}

    assert cost(of, {0: 16, 2: 8}, {2: 8}).waiting == cost(of, {0: 8, 1: 2, 2: 8}, {2: 8}).waiting
    assert cost(of, alone, {2: 8}).waiting < cost(of, shared, {2: 8}).waiting
