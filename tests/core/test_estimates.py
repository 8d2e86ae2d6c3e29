"""What a program says of its cost, its name, and sizes that depend on variables."""

from __future__ import annotations

import keyword
import re
from typing import Any

import pytest

from core.kernel.expression import parse_expression
from core.program import Program
from core.reference import size_at
from tests.core.schedule.test_options import copy, product, row_sum
from tests.meaning.build import Build
from tests.meaning.harness import compiled
from tests.meaning.test_reduces import one_reduce_at_two_sites
from tests.meaning.test_rows import softmax

SCHEDULES = ("none", "heuristic")


def program(build: Build, optimize: object = "none", target: str = "opencl") -> Program:
    return compiled(build.ast(), target, optimize)[0]


def added(*shape: int) -> Build:
    k = Build()
    return k.store(k.load("float32", [*shape]) + k.load("float32", [*shape]))


def symbolic() -> Build:
    """Rows of n elements, and m of them from where the variable says."""
    k = Build(m=(1, 5), n=(0, 40))
    x = k.load("float32", ["m", "n"], ["n", 1], offset="m*3")
    return k.store((x * x).sum(1) + k.load("float32", ["m", 1]))


# ---- estimates ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimize", SCHEDULES)
def test_an_addition_moves_its_three_buffers_once(optimize: str) -> None:
    """K 201."""
    found = program(added(120, 90), optimize)

    assert 3 * 43_200 == found.memory_bytes
    assert 10_800 <= int(found.flops) <= 21_600


@pytest.mark.parametrize("optimize", SCHEDULES)
def test_what_is_used_twice_is_counted_once(optimize: str) -> None:
    """K 202."""
    k = Build()
    total = k.load("float32", [120, 90]) + k.load("float32", [120, 90])

    assert 21_600 <= int(program(k.store(total * total), optimize).flops) <= 43_200


@pytest.mark.parametrize("optimize", SCHEDULES)
def test_a_product_of_matrices_is_twice_its_points(optimize: str) -> None:
    """K 203."""
    found, _ = compiled(product(512, 512, 512), "opencl", optimize)

    assert 2 * 512**3 <= int(found.flops) <= 1.2 * 2 * 512**3
    assert int(found.memory_bytes) >= 3 * 4 * 512**2


def test_a_multiplication_and_addition_in_one_are_two() -> None:
    """K 204: and all outputs count, and each reduce the elements of its operand."""
    k = Build()
    assert 128 == program(k.store(k.load("float32", [64]).op("MULACC", k.load("float32", [64]), k.load("float32", [64])))).flops
    k = Build()
    x = k.load("float32", [64])
    assert 128 == program(k.store(x + x).store(x * x)).flops
    assert 6 * 48 == compiled(row_sum(6, 48), "opencl")[0].flops


def test_a_reduce_is_counted_once_however_many_sites_it_has() -> None:
    """N 276: of (3, 4, 5) the maxima of 5, their squares and one, the sums of 4, a reciprocal each, and a product."""
    assert 60 + 12 + 12 + 12 + 3 + 12 == program(one_reduce_at_two_sites()).flops


# ---- names -------------------------------------------------------------------------------------------------------------------


def test_names_say_what_a_kernel_does_and_its_axes() -> None:
    """K 205, N 276."""
    k = Build()
    x = k.load("float32", [2, 8])
    pair = k.store(x + x, [2, 8], [8, 1]).store(x * x, [2, 8], [1, 2])

    assert "r_6_8_5" == compiled(product(6, 8, 5), "opencl")[0].name
    assert "E2_2_8" == program(pair).name
    assert "C_60" == compiled(copy(60), "opencl")[0].name
    assert "r_5_8_8" == program(softmax([5, 8], 1)).name


def test_a_name_of_symbolic_extents_is_an_identifier() -> None:
    """K 205: of C and of every language that took its names from it."""
    for variables in ({"n": (1, 40)}, {"while": (1, 40)}, {"_2": (1, 40)}):
        (name,) = variables
        k = Build(**variables)
        x = k.load("float32", [f"{name}*3 + 1", 4], [8, 1])
        found = program(k.store(x + x)).name
        assert re.fullmatch("[A-Za-z][A-Za-z0-9_]*", found)
        assert not keyword.iskeyword(found)


# ---- sizes -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["opencl", "c"])
@pytest.mark.parametrize("optimize", SCHEDULES)
def test_sizes_and_estimates_are_what_they_are_for_each_value_of_the_variables(optimize: str, target: str) -> None:
    """K 206, M 248: expressions of the wire's grammar, exact for launches, at least what is touched for buffers."""
    found = program(symbolic(), optimize, target)
    sizes: list[Any] = [a.members["size"] for a in found.arguments if a.members["kind"] == "buffer"]
    launch = [*(found.global_size or ()), *(found.local_size or ())]
    for text in (*sizes, *launch, found.flops, found.memory_bytes):
        parse_expression(str(text))

    for m, n in ((1, 0), (1, 40), (5, 0), (5, 40), (3, 7)):
        values = {"m": m, "n": n}
        output, rows, biases = (size_at(size, values) for size in sizes)
        assert (output, biases) == (m, m)
        assert rows >= (m * 3 + (m - 1) * n + n if n else 0)
        if launch:
            items = 1
            for size in launch:
                items *= size_at(size, values)
            assert items >= m
        assert m * n <= size_at(found.flops, values) <= 3 * m * n + 2 * m
        assert 4 * m <= size_at(found.memory_bytes, values)
