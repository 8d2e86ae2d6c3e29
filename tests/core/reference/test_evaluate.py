"""Whole kernels, worked out by hand; in pieces and in one; how much is too much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core import LimitExceeded, Request
from core.dtypes import FLOAT32, INT32
from core.kernel.node import Kernel
from core.reference import OutsideBuffer, compare, evaluate, work
from core.reference.boxes import pieces
from core.reference.compare import Agreement
from core.reference.evaluate import Result
from tests.meaning.build import Build, view


def kernel_of(build: Build) -> Kernel:
    return Request.from_json({"ast": build.ast(), "device": {"target": "opencl"}}).kernel


def outputs(build: Build, *buffers: Any, **variables: int) -> list[Any]:
    found = evaluate(kernel_of(build), dict(enumerate(buffers)), variables)
    return [result.values.tolist() for _, result in sorted(found.items())]


def test_a_transposed_sum() -> None:
    k = Build()
    k.store(k.load("int32", [2, 3], [1, 2]) + k.load("int32", [2, 3]))

    assert [[1, 4, 7, 5, 8, 11]] == outputs(k, np.zeros(6, np.int32), np.arange(6, dtype=np.int32), np.arange(1, 7, dtype=np.int32))


def test_masked_off_elements_are_zero_and_exist() -> None:
    k = Build()
    k.store(k.load("float32", [4], offset=-1, mask=[[1, 3]]).max(0))

    assert [[0.0]] == outputs(k, np.zeros(1, np.float32), np.array([-5, -6], np.float32))


def test_a_stack_of_views() -> None:
    """Padded to 4, windows of 2 moving by 1: sums of neighbours."""
    k = Build()
    k.store(k.load("int32", [], views=[view([4], [1], -1, [[1, 3]]), view([3, 2], [1, 1])]).sum(1))

    assert [[7, 15, 8]] == outputs(k, np.zeros(3, np.int32), np.array([7, 8], np.int32))


def test_a_gather_with_a_guard() -> None:
    k = Build()
    ids = k.load("int32", [4])
    k.store(k.index("float32", [4], "src0", "src0 >= 0", "src0 < 2", values=[ids]))

    assert [[11.0, 0.0, 10.0, 0.0]] == outputs(
        k, np.zeros(4, np.float32), np.array([1, -1, 0, 2**31 - 1], np.int32), np.array([10, 11], np.float32)
    )


def test_a_store_leaves_what_it_does_not_name() -> None:
    k = Build()
    x = k.load("int32", [3])
    k.store(x, index="axis0*2 + 1", valid=["src1 > 0"], values=[x])

    assert [[9, 5, 9, 9, 9, 7]] == outputs(k, np.full(6, 9, np.int32), np.array([5, -5, 7], np.int32))


def test_loads_see_the_buffer_as_it_was() -> None:
    k = Build()
    a, b = k.load("int32", [2], buffer="out0"), k.load("int32", [2], buffer="out1")
    k.store(b + 0).store(a + 0)

    assert [[3, 4], [1, 2]] == outputs(k, np.array([1, 2], np.int32), np.array([3, 4], np.int32))


def test_a_row_minus_its_maximum_and_a_mean_within_a_sum() -> None:
    k = Build()
    x = k.load("float32", [2, 2])
    centred = x - x.sum(1) * 0.5
    k.store(x - x.max(1)).store((centred * centred).sum(1), [2, 2])

    assert [[-2.0, 0.0, 0.0, -4.0], [2.0, 2.0, 8.0, 8.0]] == outputs(
        k, np.zeros(4, np.float32), np.zeros(4, np.float32), np.array([1, 3, 5, 1], np.float32)
    )


def test_bfloat16_and_bool_as_they_are_stored() -> None:
    k = Build()
    x = k.load("bfloat16", [2])
    k.store(x + x).store(x < 1.5)

    assert [[0x4000, 0x4040], [1, 0]] == outputs(k, np.zeros(2, np.uint16), np.zeros(2, np.uint8), np.array([0x3F80, 0x3FC0], np.uint16))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_extents_at_launch(n: int) -> None:
    k = Build(n=(0, 9))
    k.store(k.load("int32", [2, "n"]).sum(1))

    assert [[sum(range(n)), sum(range(n, 2 * n))]] == outputs(k, np.full(2, 7, np.int32), np.arange(2 * n, dtype=np.int32), n=n)


def test_a_ramp_and_a_formula_with_floors() -> None:
    k = Build()
    k.store(k.ramp("(axis0 - 3)//2", "int32", [5]))

    assert [[-2, -1, -1, 0, 0]] == outputs(k, np.zeros(5, np.int32))


def test_large_kernels_are_evaluated_in_pieces() -> None:
    """Two million points, outputs and reduces both in more than one piece; the sum of each row is known."""
    k = Build()
    x = k.index("int32", [40_000, 50], "axis1")
    k.store(x.sum(1), [40_000, 50]).store(x.sum(0), [40_000, 50])

    rows, columns = outputs(k, *(np.zeros(2_000_000, np.int32) for _ in range(2)), np.arange(50, dtype=np.int32))

    assert {1225} == set(rows)
    assert [40_000 * c for c in range(50)] == columns[:50]


def test_work_is_known_before_it_is_done() -> None:
    k = Build()
    k.store((k.load("float32", [8, 8, 8]) * k.load("float32", [8, 8, 8])).sum(2))
    kernel = kernel_of(k)
    buffers = {n: np.ones(512, np.float32) for n in range(3)}

    assert 3 * 512 + 64 == work(kernel, {})
    with pytest.raises(LimitExceeded, match="points"):
        evaluate(kernel, buffers, {}, budget=1000)


def test_inputs_that_lead_outside_of_a_buffer_are_refused() -> None:
    k = Build()
    k.store(k.index("float32", [1], "src0", values=[k.load("int32", [1])]))

    with pytest.raises(OutsideBuffer):
        outputs(k, np.zeros(1, np.float32), np.array([5], np.int32), np.zeros(3, np.float32))


def test_deep_tables_need_no_stack() -> None:
    k = Build()
    x = k.load("int32", [1])
    for _ in range(3000):
        x = x + 1
    k.store(x)

    assert [[3000]] == outputs(k, np.zeros(1, np.int32), np.zeros(1, np.int32))


def test_pieces_cover_a_box_once() -> None:
    box = ((0, 3), (2, 9), (0, 5))
    found = list(pieces(box, (0, 1, 2), 8))
    points = [(i, j, k) for p in found for i in range(*p[0]) for j in range(*p[1]) for k in range(*p[2])]

    assert 3 * 7 * 5 == len(points) == len(set(points))
    assert all((p[0][1] - p[0][0]) * (p[1][1] - p[1][0]) * (p[2][1] - p[2][0]) <= 8 for p in found)


def result(values: list[float], tolerance: list[float]) -> Result:
    return Result(np.array(values, np.float32), np.array(tolerance))


def test_a_comparison_counts_what_is_wrong() -> None:
    expected = result([1.0, 2.0, np.nan, 0.0, 5.0], [0.0, 0.5, 5e-324, 5e-324, np.inf])
    good = compare(np.array([1.0, 2.25, np.nan, -0.0, -7.0], np.float32), expected, FLOAT32)
    bad = compare(np.array([np.nextafter(np.float32(1), np.float32(2)), 3.0, 1.0, 1.0, 5.0], np.float32), expected, FLOAT32)

    assert (4, 0, None) == (good.compared, good.wrong, good.first_wrong)
    assert (4, 4, 0) == (bad.compared, bad.wrong, bad.first_wrong)
    assert 0.5 == good.worst_share


def test_exact_elements_compare_bit_for_bit() -> None:
    zero = result([0.0], [0.0])

    assert 1 == compare(np.array([-0.0], np.float32), zero, FLOAT32).wrong
    assert 0 == compare(np.array([0.0], np.float32), zero, FLOAT32).wrong


def test_integers_compare_exactly_but_for_what_is_open() -> None:
    expected = Result(np.array([3, 4], np.int32), np.array([0.0, np.inf]))

    assert Agreement(1, 1, 0, 2.0, 0.0) == compare(np.array([5, 9], np.int32), expected, INT32)
