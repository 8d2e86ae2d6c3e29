"""Sums that run along an output loop: where they do, where they do not, and that each term is then read once."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import OptionRefused
from core.ir.op import Op
from core.schedule.running import runs_along
from tests.core.listings import listing_of, loops
from tests.core.schedule.scheduling import nest_of, options_of
from tests.kernels import kernel, node, store
from tests.meaning.harness import assert_means

Json = dict[str, Any]


def windows(rows: int, n: int, terms: int, first: int, *, op: str = "REDUCE_SUM", stride: int = 1, dtype: str = "float32") -> Json:
    """out[i, j] = Σ over r < terms of a[i, j + r - first], nothing before the row's begin."""
    a: Json = {"op": "LOAD", "buffer": 1, "dtype": dtype, "shape": [rows, n, terms]}
    a["index"] = f"axis0*{stride * n} + {stride}*(axis1 + axis2 - {first})"
    a["valid"] = [f"axis1 + axis2 >= {first}"]
    return kernel(a, node(op, 0, axes=[2]), store(1, [rows, n, 1], dtype=dtype, strides=[n, 1, 0]))


def cumulative(rows: int, n: int, **more: Any) -> Json:
    return windows(rows, n, n, n - 1, **more)


RUNS = {
    "as long as the axis": (cumulative(3, 8), True),
    "every other element": (cumulative(3, 8, stride=2), True),
    "a window shorter than the axis": (windows(3, 8, 4, 3), False),
    "a window that begins before the padding ends": (windows(3, 8, 8, 6), False),
    "a greatest element": (cumulative(3, 8, op="REDUCE_MAX"), False),
}


@pytest.mark.parametrize(("ast", "expected"), RUNS.values(), ids=RUNS)
def test_which_sums_run_along_an_axis(ast: Json, expected: bool) -> None:
    nest = nest_of(ast)

    assert expected == runs_along(nest, nest.axes[1])
    assert not runs_along(nest, nest.axes[0])


def test_the_whole_axis_becomes_a_loop_or_none_of_it() -> None:
    with pytest.raises(OptionRefused, match="no sum runs along it"):
        nest_of(windows(3, 8, 4, 3), "LOOP 1 0")
    with pytest.raises(OptionRefused, match="no sum runs along it"):
        nest_of(cumulative(3, 8), "LOOP 1 4")


@pytest.mark.parametrize("options", ["LOOP 1 0", "LOOP 1 0, UPCAST 1 4", "LOOP 1 0, UPCAST 0 3", "LOOP 1 0, UPCAST 1 2, UPCAST 1 2"])
def test_a_running_sum_reads_each_term_once(options: str) -> None:
    listing, _ = listing_of(cumulative(3, 8), "opencl", options_of(options), {"device_class": "cpu"})
    reads = sum(v.lanes for v in listing.body if v.op is Op.LOAD)
    elements = 1
    for option in options_of(options)[1:]:
        elements *= option["amount"]

    assert loops(listing) == 0
    assert elements == reads


@pytest.mark.parametrize("device", [{}, {"device_class": "cpu"}], ids=["gpu", "cpu"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize(
    "options",
    ["LOOP 1 0", "LOOP 1 0, UPCAST 1 4", "LOOP 1 0, UPCAST 0 3", "LOOP 1 0, UPCAST 1 2, UPCAST 1 2", "LOOP 1 0, UNROLL 0 4", "UNROLL 0 0"],
)
def test_running_sums_mean_what_their_windows_do(options: str, dtype: str, device: Json) -> None:
    assert_means(cumulative(3, 8, dtype=dtype), "opencl", options_of(options), device=device)


def test_a_running_sum_in_c() -> None:
    assert_means(cumulative(3, 8), "c", [{"op": "LOOP", "axis": 1, "amount": 0}])


def test_a_cpu_runs_along_by_itself() -> None:
    listing, made = listing_of(cumulative(64, 64), "opencl", "heuristic", {"device_class": "cpu"})

    assert ({"op": "LOOP", "axis": 1, "amount": 0},) == tuple(made.applied)
    assert loops(listing) == 0
