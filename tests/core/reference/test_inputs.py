"""Inputs and sizes made up for a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from core import Request
from core.kernel.node import Kernel
from core.reference import buffer_sizes, evaluate, sample_inputs, sample_variables, sampled_sizes
from core.reference.inputs import UNWRITTEN
from tests.meaning.build import Build, Term, view


def kernel_of(build: Build) -> Kernel:
    return Request.from_json({"ast": build.ast(), "device": {"target": "opencl"}}).kernel


def test_the_same_seed_gives_the_same_inputs_and_another_others() -> None:
    k = Build()
    kernel = kernel_of(k.store(k.load("float32", [64]) + k.load("float32", [64])))
    first, again, other = (sample_inputs(kernel, {}, seed) for seed in (0, 0, 2))

    assert all(np.array_equal(first[n], again[n]) for n in first)
    assert not np.array_equal(first[1], other[1])
    assert not np.array_equal(first[1], first[2])


def test_outputs_hold_a_pattern_before_the_kernel() -> None:
    k = Build()
    buffers = sample_inputs(kernel_of(k.store(k.load("int32", [4]))), {}, 0)

    assert {UNWRITTEN} == set(buffers[0].view(np.uint8).tolist())


def test_even_seeds_give_numbers_whose_sums_are_exact() -> None:
    k = Build()
    kernel = kernel_of(k.store((k.load("float32", [4, 100]) * k.load("float32", [4, 100])).sum(1)))

    assert not evaluate(kernel, sample_inputs(kernel, {}, 0), {})[0].tolerance.any()
    assert evaluate(kernel, sample_inputs(kernel, {}, 1), {})[0].tolerance.all()


@pytest.mark.parametrize("op", ["LOG2", "SQRT", "RECIP"])
def test_what_has_a_logarithm_is_positive(op: str) -> None:
    k = Build()
    x = k.load("float32", [200])
    buffers = sample_inputs(kernel_of(k.store((x + x).op(op) + k.load("float32", [200]))), {}, 1)

    assert (buffers[1] > 0).all()
    assert (buffers[2] < 0).any()


def test_divisors_are_not_zero_and_shifts_fit() -> None:
    k = Build()
    a, b, c = k.load("int8", [200]), k.load("int8", [200]), k.load("int8", [200])
    buffers = sample_inputs(kernel_of(k.store(a.op("IDIV", b).op("SHL", c))), {}, 0)

    assert (buffers[2] != 0).all()
    assert ((buffers[3] >= 0) & (buffers[3] < 8)).all()


def test_special_inputs_hold_what_is_special() -> None:
    k = Build()
    kernel = kernel_of(k.store(k.load("float32", [300])).store(k.load("int16", [300])))
    buffers = sample_inputs(kernel, {}, 0, special=True)

    assert np.isnan(buffers[2]).any()
    assert np.isinf(buffers[2]).any()
    assert {-32768, 32767} <= set(buffers[3].tolist())


def test_guarded_indices_go_beyond_the_guard_and_others_never() -> None:
    k = Build()
    guarded, bare = k.load("int32", [300]), k.load("int32", [300])
    x = k.index("float32", [300], "src0", "src0 >= 0", "src0 < 50", values=[guarded])
    y = k.index("float32", [300], "src0*2 + 1", values=[bare])
    kernel = kernel_of(k.store(x + y))
    buffers = sample_inputs(kernel, {}, 0)

    assert {-1, 50, -(2**31), 2**31 - 1} <= set(buffers[1].tolist())
    assert set(range(8)) >= set(buffers[2].tolist())
    assert [300, 300, 300, 50, 16] == [len(b) for b in buffers.values()]
    assert evaluate(kernel, buffers, {})


def test_variables_are_within_their_bounds_and_the_least_is_among_them() -> None:
    k = Build(n=(2, 9), m=(-4, 4))
    kernel = kernel_of(k.store(k.load("float32", ["n"])))
    drawn = [sample_variables(kernel, seed) for seed in range(8)]

    assert all(2 <= v["n"] <= 9 and -4 <= v["m"] <= 4 for v in drawn)
    assert 2 in {v["n"] for v in drawn}
    assert len({v["m"] for v in drawn}) > 1


SIZES: dict[str, tuple[Callable[[Build], Term], int]] = {
    "plain": (lambda k: k.load("float32", [4, 6]), 24),
    "strided": (lambda k: k.load("float32", [4, 6], [10, 2], offset=3), 3 + 30 + 10 + 1),
    "flipped": (lambda k: k.load("float32", [4, 6], [-6, 1], offset=18), 24),
    "masked": (lambda k: k.load("float32", [8, 6], [4, 1], offset=-5, mask=[[1, 7], [1, 5]]), 24),
    "never": (lambda k: k.load("float32", [4, 6], mask=[[0, 4], [2, 2]]), 0),
    "stack": (lambda k: k.load("float32", [], views=[view([4, 3], [1, 4]), view([4, 6], [1, 0], 2)]), 10),
    "formula": (lambda k: k.index("float32", [4, 6], "(axis0*6 + axis1)//5", "axis0 < 3"), 4),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_largest_valid_index_and_one(name: str) -> None:
    make, expected = SIZES[name]
    k = Build()
    kernel = kernel_of(k.store(make(k), [4, 6] if name != "masked" else [8, 6]))

    assert expected == buffer_sizes(kernel, {})[1] == sampled_sizes(kernel, {})[1]
