"""Comparisons and conjunctions in canonical form: what folds, what is dropped, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from core.index import FALSE, TRUE, all_of, at_least, conjuncts, floordiv, less, number, scale
from core.ir.op import Op
from core.ir.value import Value
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, condition, conditions, points, sample_condition, some_atoms, variable


def test_random_comparisons_hold_where_python_says() -> None:
    random = Random(2)
    for _ in range(800):
        atoms = some_atoms(random)
        made = sample_condition(random, atoms, 3)
        everywhere = list(points(*atoms))
        for point in random.sample(everywhere, min(10, len(everywhere))):
            assert made.plain(point) == at(made.value, point)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 30])
def test_comparisons_of_a_quotient_and_a_multiple_hold_on_all_small_integers(divisor: int) -> None:
    """Acceptance 35: L2, L3, L5, L6 on [-30, 30]."""
    x = variable("x", -30, 30)
    laws: list[tuple[Callable[[int], Value], Callable[[int, int], bool]]] = [
        (lambda t: less(floordiv(x, divisor), number(t)), lambda v, t: v // divisor < t),
        (lambda t: less(number(t), floordiv(x, divisor)), lambda v, t: t < v // divisor),
        (lambda t: less(scale(x, divisor), number(t)), lambda v, t: divisor * v < t),
        (lambda t: less(scale(x, -divisor), number(t)), lambda v, t: -divisor * v < t),
        (lambda t: at_least(scale(x, divisor), number(t)), lambda v, t: divisor * v >= t),
    ]
    for made, plain in laws:
        for t in range(-31, 32):
            comparison = made(t)
            assert all(plain(v, t) == at(comparison, {x: v}) for v in range(-30, 31)), (comparison, t)


def test_conjunctions_hold_where_all_their_parts_do() -> None:
    random = Random(3)
    for _ in range(600):
        atoms = some_atoms(random)
        made = [sample_condition(random, atoms, random.randint(0, 2)) for _ in range(random.randint(2, 5))]
        whole = all_of(m.value for m in made)
        for point in points(*atoms):
            assert all(m.plain(point) for m in made) == bool(at(whole, point))


def test_a_small_rest_leaves_a_comparison() -> None:
    """Acceptance 31 and 32."""
    a, b, u = axis(0, 100), axis(1, 4), axis(1, 3)

    assert less(a, number(4)) is condition("4*a + b < 16", a=a, b=b)
    assert less(a, number(4)) is not condition("4*a + b < 16", a=a, b=axis(1, 5))
    assert less(a, number(9)) is condition("12*a + u < 99", a=a, u=u)


def test_every_way_to_write_a_bound_is_one_condition() -> None:
    x = variable("x", -20, 20)

    assert condition("x < 5", x=x) is condition("x <= 4", x=x)
    assert condition("x >= 5", x=x) is condition("4 < x", x=x)
    assert condition("x > 4", x=x) is condition("-2*x < -8", x=x)
    assert condition("4*x < 13", x=x) is condition("x < 4", x=x)
    assert condition("x//4 < 3", x=x) is condition("x < 12", x=x)


def test_what_bounds_decide_is_no_condition() -> None:
    x = axis(0, 9)

    assert TRUE is condition("x < 9", x=x)
    assert FALSE is condition("x < 0", x=x)


def test_an_index_is_below_its_symbolic_extent() -> None:
    """Acceptance 44, L7."""
    n = variable("n", 1, 20)
    r = axis_value(0, n)

    assert TRUE is less(r, n)
    assert TRUE is condition("r*4 + 3 < 4*n", r=r, n=n)
    assert less(r, number(7)) is not TRUE


def test_weaker_and_equal_conditions_are_dropped() -> None:
    x, y = axis(0, 50), axis(1, 50)

    assert condition("x < 5", x=x) is conditions("x < 9", "x < 5", "x < 5", x=x)
    assert condition("x < 5", x=x) is conditions("x < 5", "x + y < 200", x=x, y=y)
    assert conditions("x < 3", "y < 4", x=x, y=y) is conditions("x < 3", "y < 4", "x + y < 8", x=x, y=y)


def test_a_contradiction_is_false() -> None:
    x, y = axis(0, 50), axis(1, 50)

    assert FALSE is conditions("x < 5", "x >= 5", x=x)
    assert FALSE is conditions("x < 5", "y < 5", "x + y > 20", x=x, y=y)
    assert FALSE is all_of((TRUE, FALSE, condition("x < 5", x=x)))


def test_the_order_of_conditions_does_not_matter() -> None:
    atoms = {"x": axis(0, 50), "y": axis(1, 50), "n": variable("n", 0, 40)}
    texts = ["x < 30", "y >= 2", "x + n < 60", "y - n < 9", "x%4 < 2"]
    random = Random(4)

    expected = conditions(*texts, **atoms)
    for _ in range(20):
        random.shuffle(texts)
        assert expected is conditions(*texts, **atoms)


def test_conjuncts_are_what_all_of_was_made_of() -> None:
    x, y = axis(0, 50), axis(1, 50)
    parts: list[Value] = [condition("x < 5", x=x), condition("y < 7", y=y)]

    assert set(parts) == set(conjuncts(all_of(parts)))
    assert () == conjuncts(TRUE)
    assert (FALSE,) == conjuncts(FALSE)
    assert all_of(parts).op is Op.ALL


def test_numpy_agrees_with_the_plain_evaluator_on_the_quotient_law() -> None:
    """L4 as it is written: g·y + z < t for 0 <= z < g."""
    y, z = np.arange(-30, 31)[:, None], np.arange(0, 7)[None, :]
    for t in range(-30, 31):
        q, rho = divmod(t, 7)
        upper_case, lower_case = z < rho, z >= rho
        assert np.array_equal((7 * y + z < t)[:, upper_case[0]], np.broadcast_to(y < q + 1, (61, 7))[:, upper_case[0]])
        assert np.array_equal((7 * y + z < t)[:, lower_case[0]], np.broadcast_to(y < q, (61, 7))[:, lower_case[0]])
