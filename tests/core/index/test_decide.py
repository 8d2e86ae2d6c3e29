"""Whether a value is negative where a condition holds: verdicts against trying every point, within a budget."""

from __future__ import annotations

from collections import Counter
from random import Random

from core.dtypes import INDEX
from core.index import TRUE, add, all_of, multiply, number, scale, subtract
from core.index.decide import Decider, Outcome, without_data
from core.ir.op import Op
from core.ir.value import make
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, condition, conditions, points, sample, sample_condition, some_atoms, value, variable


def test_verdicts_agree_with_trying_every_point() -> None:
    random = Random(11)
    outcomes: Counter[Outcome] = Counter()
    for _ in range(900):
        atoms = some_atoms(random)
        made = sample(random, atoms, 3, most=9)
        held = [sample_condition(random, atoms, 1) for _ in range(random.randint(0, 3))]
        low, high = made.value.lo or 0, made.value.hi or 0
        x = add(made.value, number(-random.randint(min(low, 0), max(high, 1)) // random.choice((1, 4, 20))))
        shift = at(subtract(x, made.value), dict.fromkeys(atoms, 0))
        valid = all_of(h.value for h in held) if held else TRUE
        decision = Decider().nonnegative(x, valid)
        negative = [p for p in points(*atoms) if all(h.plain(p) for h in held) and made.plain(p) + shift < 0]
        outcomes[decision.outcome] += 1
        assert decision.outcome is (Outcome.REFUTED if negative else Outcome.PROVED), (x, valid)
        if decision.point is not None:
            point = {**{a: a.lo or 0 for a in atoms}, **decision.point}
            assert at(x, point) < 0
            assert at(valid, point)
    assert min(outcomes[Outcome.PROVED], outcomes[Outcome.REFUTED]) > 120


def test_bounds_hold_every_value_that_is_valid() -> None:
    random = Random(12)
    for _ in range(300):
        atoms = some_atoms(random)
        made, held = sample(random, atoms, 3), sample_condition(random, atoms, 2)
        decider = Decider()
        low, high = decider.least(made.value, held.value), decider.most(made.value, held.value)
        exact = decider.greatest_of_few(made.value, held.value)
        values = [made.plain(p) for p in points(*atoms) if held.plain(p)]
        assert all(low <= n <= high for n in values)
        assert max(values, default=-1) == exact


def test_a_large_box_is_refuted_in_its_corner() -> None:
    i, j = axis(0, 100_000), axis(1, 100_000)
    decision = Decider().nonnegative(value("100000 - i - j", i=i, j=j), TRUE)

    assert Outcome.REFUTED is decision.outcome
    assert {i: 99_999, j: 99_999} == decision.point


def test_a_large_box_without_counterexample_is_asked_of_the_solver() -> None:
    """The square of a difference is proved; that no two cubes make a cube is more than it finds."""
    i, j, k = axis(0, 100_000), axis(1, 100_000), axis(2, 100_000)
    cubes = value("i*i*i + 3*i*i + 3*i + j*j*j + 3*j*j + 3*j - k*k*k - 3*k*k - 3*k + 1", i=i, j=j, k=k)

    assert Outcome.PROVED is Decider().nonnegative(value("i*i - 2*i*j + j*j", i=i, j=j), TRUE).outcome
    decision = Decider().nonnegative(add(multiply(cubes, cubes), number(-1)), TRUE)
    assert Outcome.UNKNOWN is decision.outcome
    assert "more than 1048576" in decision.why


def test_a_spent_budget_says_unknown_and_not_otherwise() -> None:
    """Acceptance 247: steps are counted, and all questions about a kernel share them."""
    i, j = axis(0, 40), axis(1, 40)
    x = value("i*i - 2*i*j + j*j", i=i, j=j)
    decider = Decider(budget=2_000, steps=0)

    assert Outcome.PROVED is decider.nonnegative(x, TRUE).outcome
    assert Outcome.UNKNOWN is decider.nonnegative(add(x, number(1)), TRUE).outcome
    assert Outcome.PROVED is Decider().nonnegative(add(x, number(1)), TRUE).outcome


def test_axes_that_only_add_are_not_tried() -> None:
    i, j, k = axis(0, 1000), axis(1, 1000), axis(2, 1000)
    x = value("i*i - 2*i + 1 + 1000*j + k", i=i, j=j, k=k)

    assert Outcome.PROVED is Decider().nonnegative(x, TRUE).outcome


def test_of_several_conditions_on_one_sum_each_is_tried() -> None:
    """Where one bounds a part of what another bounds, either may be the one that decides."""
    a, b, c = axis(0, 400), axis(1, 256), axis(2, 256)
    valid = conditions("b + c > 254", "256*a + b + c > 429", a=a, b=b, c=c)

    assert 0 == Decider().least(value("256*a + b + c - 430", a=a, b=b, c=c), valid)
    assert 0 == Decider().least(value("256*a + b + c - 255", a=axis(3, 400), b=b, c=c), valid)


def test_a_symbolic_extent_counts() -> None:
    n = variable("n", 0, 1000)
    i = axis_value(0, n)

    assert Outcome.PROVED is Decider().nonnegative(value("n - 1 - i", n=n, i=i), TRUE).outcome
    assert Outcome.REFUTED is Decider().nonnegative(value("n - 2 - i", n=n, i=i), TRUE).outcome


def test_a_variable_of_many_values_is_no_reason_to_try_them() -> None:
    n, i = variable("n", 0, 2**31 - 1), axis(0, 8)
    g = axis_value(1, add(n, number(1)))

    assert Outcome.PROVED is Decider().nonnegative(value("8*n + 7 - g - i - i*n", n=n, g=g, i=i), TRUE).outcome
    assert Outcome.REFUTED is Decider().nonnegative(value("8*n + 6 - g - i - i*n", n=n, g=g, i=i), TRUE).outcome


def test_values_of_other_nodes_are_refuted_only_for_every_value() -> None:
    i = axis(0, 8)
    gathered = make(Op.OPAQUE, INDEX, (i,), (3, -128, 127), 1, (-128, 127))
    bounded = conditions("v >= 0", "v < 100", v=gathered)
    decider = Decider()

    assert Outcome.PROVED is decider.nonnegative(add(scale(gathered, 64), i), bounded).outcome
    assert Outcome.UNKNOWN is decider.nonnegative(add(scale(gathered, 64), i), TRUE).outcome
    assert Outcome.UNKNOWN is decider.nonnegative(subtract(gathered, number(50)), bounded).outcome
    assert Outcome.REFUTED is decider.nonnegative(subtract(gathered, number(200)), TRUE).outcome
    assert Outcome.PROVED is decider.nonnegative(value("v*v - v", v=gathered), TRUE).outcome
    assert Outcome.UNKNOWN is decider.nonnegative(value("i - 1", i=i), condition("v > 0", v=gathered)).outcome


def test_a_condition_is_weaker_without_its_data() -> None:
    i = axis(0, 8)
    gathered = make(Op.OPAQUE, INDEX, (i,), (3, 0, 255), 1, (0, 255))

    assert condition("i < 4", i=i) is without_data(conditions("i < 4", "v < 9", "v + i < 11", i=i, v=gathered))
    assert TRUE is without_data(condition("v < 9", v=gathered))
