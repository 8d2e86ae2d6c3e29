"""What follows from conditions: bounds and simpler forms, right wherever the conditions hold."""

from __future__ import annotations

from random import Random

from core.index import all_of, conjuncts, less, mod, number
from core.index.access import NOWHERE, simplified
from core.index.given import Given
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, condition, conditions, points, sample, sample_condition, some_atoms, value, variable


def test_under_conditions_a_value_is_what_it_was_and_within_its_bounds() -> None:
    random = Random(7)
    for _ in range(800):
        atoms = some_atoms(random)
        assumed = [sample_condition(random, atoms, random.randint(0, 2)) for _ in range(random.randint(1, 3))]
        given = Given(conjuncts(all_of(c.value for c in assumed)))
        made = sample(random, atoms, 3)
        held = [p for p in points(*atoms) if all(c.plain(p) for c in assumed)]
        if given.impossible:
            assert not held
            continue
        simple, (low, high) = given.simplify(made.value), given.bounds(made.value)
        for point in random.sample(held, min(12, len(held))):
            assert made.plain(point) == at(simple, point)
            assert low <= made.plain(point) <= high


def test_an_index_below_its_divisor_needs_no_remainder() -> None:
    """Acceptance 45."""
    i = axis(0, 100)

    assert i is simplified(mod(i, 8), less(i, number(8))).index
    assert i is simplified(value("i%4", i=axis(0, 100)), less(i, number(4))).index


def test_a_quotient_is_never_negative_where_its_numerator_is_not() -> None:
    i = axis(0, 6)
    given = Given(conjuncts(condition("i > 1", i=i)))

    assert (0, 1) == given.bounds(value("(i - 2)//3", i=i))


def test_a_bounded_sum_narrows_where_it_stands_in_another() -> None:
    i, j = axis(0, 2), axis(1, 4)
    given = Given(conjuncts(conditions("4*i + j >= 1", "4*i + j < 7", i=i, j=j)))

    assert (0, 5) == given.bounds(value("4*i + j - 1", i=i, j=j))
    assert (-12, -2) == given.bounds(value("-8*i - 2*j", i=i, j=j))
    assert value("4*i + j", i=i, j=j) is given.simplify(value("(4*i + j)%7", i=i, j=j))


def test_one_possible_value_takes_the_place_of_an_axis() -> None:
    i, j = axis(0, 4), axis(1, 4)

    assert value("4 + j", j=j) is simplified(value("4*i + j", i=i, j=j), conditions("i >= 1", "i < 2", i=i)).index


def test_bounds_reach_through_a_variable() -> None:
    a, n = axis(0, 64), variable("n", 1, 40)
    given = Given(conjuncts(condition("a < n", a=a, n=n)))

    assert (0, 39) == given.bounds(a)
    assert -1 == given.bounds(value("a - n", a=a, n=n))[1]


def test_contradicting_conditions_are_impossible() -> None:
    a, b = axis(0, 64), axis(1, 64)

    assert Given((condition("a + b < 3", a=a, b=b), condition("a >= 9", a=a))).impossible
    assert NOWHERE == simplified(a, conditions("a + b < 3", "a >= 9", a=a, b=b))


def test_without_conditions_nothing_changes() -> None:
    x = axis_value(0, variable("n", 1, 9))

    assert x is Given(()).simplify(x)
    assert (0, 8) == Given(()).bounds(x)
