"""What is known of a value without looking: intervals and residues hold every value it takes."""

from __future__ import annotations

from random import Random

from core.index import add, floordiv, mod, multiply, number, scale, subtract
from core.index.bounds import is_multiple, lower, residue, upper
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, points, sample, some_atoms, value, variable


def test_intervals_and_residues_hold_every_value() -> None:
    """Acceptance 43."""
    random = Random(5)
    for _ in range(1_000):
        atoms = some_atoms(random)
        made = sample(random, atoms, 4)
        g, r = residue(made.value)
        assert made.value.lo is not None
        assert made.value.hi is not None
        everywhere = list(points(*atoms))
        for point in random.sample(everywhere, min(20, len(everywhere))):
            n = made.plain(point)
            assert made.value.lo <= n <= made.value.hi
            assert n == r if g == 0 else n % g == r
            assert lower(made.value) <= n <= upper(made.value)


def test_one_value_is_a_constant() -> None:
    x = axis(0, 4)

    assert number(2) is floordiv(add(x, number(8)), 4)
    assert number(0) is subtract(x, x)


def test_a_residue_survives_sums_products_and_divisions() -> None:
    x = axis(0, 10)

    assert (4, 2) == residue(value("4*x + 2", x=x))
    assert (4, 2) == residue(mod(value("4*x + 2", x=x), 8))
    assert (2, 1) == residue(floordiv(value("8*x + 4", x=x), 4))
    assert (12, 0) == residue(multiply(scale(x, 4), scale(axis(1, 9), 3)))
    assert (0, 7) == residue(number(7))
    assert is_multiple(value("12*x + 8", x=x), 4)
    assert not is_multiple(value("12*x + 6", x=x), 4)


def test_a_symbolic_extent_bounds_its_index_exactly() -> None:
    n = variable("n", 1, 20)
    r, q = axis_value(0, n), axis_value(1, n)

    assert -1 == upper(subtract(r, n))
    assert 0 == lower(value("n - 1 - r", n=n, r=r))
    assert -1 == upper(value("4*r + 3 - 4*n", n=n, r=r))
    assert -2 == upper(value("r + q - 2*n", n=n, r=r, q=q))


def test_symbolic_bounds_hold_every_value() -> None:
    random = Random(6)
    n = variable("n", 0, 5)
    r, q = axis_value(0, n), axis_value(1, add(n, number(2)))
    for _ in range(250):
        made = sample(random, [r, q, n], 3, most=9)
        everywhere = list(points(n, r, q))
        for point in random.sample(everywhere, 25):
            assert lower(made.value) <= at(made.value, point) <= upper(made.value)


def test_a_narrower_axis_is_no_axis_with_an_extent() -> None:
    """What stands for an index under a condition keeps the bounds the condition gives it."""
    from core.index import at_least, conjuncts
    from core.index.given import Given

    i = axis(0, 64)
    narrow = Given(conjuncts(at_least(i, number(2)))).narrow(i)

    assert (2, 63) == (lower(narrow), upper(narrow))
