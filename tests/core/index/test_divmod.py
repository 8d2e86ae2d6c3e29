"""Floor division and its remainder: every rule against Python's own, the worked examples of the catalogue, negative numbers throughout."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from core.index import add, floordiv, mod, multiply, number, scale, subtract
from core.index.divmod import DIV_RULES, MOD_RULES, Rule
from core.index.enumerate import Points
from core.ir import parts
from core.ir.op import Op
from core.ir.value import Value
from core.kernel.leaves import axis_value
from tests.core.index.plain import Point, at, axis, points, sample, some_atoms, value, variable

NAMES = [*((rule, "//") for rule in DIV_RULES), *((rule, "%") for rule in MOD_RULES)]
FIRINGS = 80


def numerators(random: Random, c: int) -> tuple[Value, list[Value]]:
    """Sums as rules look for them: few terms, quotients and remainders among them, also by multiples of the divisor c."""
    atoms = some_atoms(random)
    quotient = floordiv(sample(random, atoms, 1).value, random.randint(1, 12))
    remainder = mod(sample(random, atoms, 1).value, random.choice((c * random.randint(1, 4), random.randint(1, 36))))
    terms = [*atoms, quotient, remainder]
    x = number(random.randint(-30, 30))
    for t in random.sample(terms, random.randint(1, 3)):
        x = add(x, scale(t, random.choice((1, 1, -1, 2, 3, 4, 6, 8, 12, -2, -4, random.randint(-30, 30)))))
    return (random.choice(terms) if random.random() < 0.4 else x), atoms


@pytest.mark.parametrize(("rule", "sign"), NAMES, ids=[r.__name__ for r, _ in NAMES])
def test_a_rule_that_speaks_is_right_at_every_point(rule: Rule, sign: str) -> None:
    """Acceptance 35."""
    random = Random(rule.__name__)
    fired = 0
    for _ in range(40_000):
        if fired == FIRINGS:
            break
        c = random.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, random.randint(1, 30)))
        x, atoms = numerators(random, c)
        found = rule(x, c)
        if found is None:
            continue
        fired += 1
        for point in random.sample(list(points(*atoms)), 8):
            plain = at(x, point)
            assert (plain // c if sign == "//" else plain % c) == at(found, point), (x, c, point)
    assert fired == FIRINGS


@pytest.mark.parametrize("constant", range(-30, 31, 6))
def test_quotient_and_remainder_of_one_variable_are_floored(constant: int) -> None:
    """Acceptance 35: x in [-30, 30], every coefficient, every divisor."""
    x = variable("x", -30, 30)
    box = Points({x: (-30, 30)})
    numbers = np.arange(-30, 31)
    for a in range(-30, 31):
        y = add(scale(x, a), number(constant))
        for c in range(1, 31, 1 if a % 3 == 0 else 4):
            assert np.array_equal(np.broadcast_to(box.value(floordiv(y, c)), numbers.shape), (a * numbers + constant) // c), (a, c)
            assert np.array_equal(np.broadcast_to(box.value(mod(y, c)), numbers.shape), (a * numbers + constant) % c), (a, c)


def test_random_expressions_are_what_python_says() -> None:
    random = Random(1)
    for _ in range(1_500):
        atoms = some_atoms(random)
        made = sample(random, atoms, 4)
        everywhere = list(points(*atoms))
        for point in random.sample(everywhere, min(12, len(everywhere))):
            assert made.plain(point) == at(made.value, point)


def test_the_catalogue_identities_hold_for_all_integers() -> None:
    """Acceptance 35: each identity as it is written, without any code of ours, on [-30, 30] and divisors to 30."""
    x = np.arange(-30, 31)[:, None, None]
    c = np.arange(1, 31)[None, :, None]
    d = np.arange(1, 31)[None, None, :]
    z = np.arange(-30, 31)[None, None, :]
    laws = {
        "S4": (c * (x // c) + x % c, x + 0 * c),
        "S5": (c * ((x // c) % d) + x % c, x % (c * d)),
        "D2": ((x // c) // d, x // (c * d)),
        "D3": ((c * x + z) // c, x + z // c),
        "D5": ((c * x + z) // (c * 7), (x + z // c) // 7),
        "D6": ((x % (c * d)) // c, (x // c) % d),
        "D7": (-x // c, x // -c),
        "M2": ((c * x + z) % c, z % c + 0 * x),
        "M4": ((x % (c * d)) % c, x % c + 0 * d),
        "M5": ((c * x + z) % (c * 7), c * ((x + z // c) % 7) + z % c),
        "M6": ((d * x) % c, ((d % c - c) * x) % c),
        "L3": (c * x < z, x < -(-z // c)),
        "L5": (x // c < z, x < c * z),
    }
    for name, (left, right) in laws.items():
        assert bool(np.all(np.equal(left, right))), name


def test_nested_quotients_and_remainders_become_one() -> None:
    """Acceptance 30."""
    x, i = variable("x", -1000, 1000), variable("i", -1000, 1000)

    assert floordiv(x, 90) is floordiv(floordiv(x, 10), 9)
    assert mod(i, 4) is mod(mod(i, 12), 4)
    assert number(0) is mod(mod(scale(i, 4), 12), 4)
    assert mod(i, 2) is floordiv(mod(scale(i, 4), 8), 4)


def test_a_small_rest_is_taken_apart_and_a_larger_one_is_not() -> None:
    """Acceptance 31."""
    a, b, wide = variable("a", -50, 50), axis(0, 4), axis(0, 5)
    x, y = add(scale(a, 4), b), add(scale(a, 4), wide)

    assert a is floordiv(x, 4)
    assert b is mod(x, 4)
    assert floordiv(y, 4) is not a
    assert mod(y, 4) is not wide


def test_a_remainder_with_one_quotient_is_the_number_less_it() -> None:
    """Acceptance 33."""
    x = axis(0, 2)

    assert x is mod(add(x, number(2)), 2)


def test_bounds_of_a_quotient_of_a_shifted_sum_are_tight() -> None:
    """Acceptance 34."""
    a, b = axis(0, 11), axis(1, 11)
    x = floordiv(value("40*b + 2*a - 37", a=a, b=b), 40)

    assert (-1, 9) == (x.lo, x.hi)
    assert all((40 * p[b] + 2 * p[a] - 37) // 40 == at(x, p) for p in points(a, b))


def test_constants_that_cancel_leave_no_large_number() -> None:
    """Acceptance 38: the constant is cut by the divisor before it is multiplied."""
    low = axis(0, 10)
    x = subtract(scale(floordiv(add(low, number(70001)), 10), 500_000), number(3_499_000_000))

    assert add(scale(floordiv(add(low, number(1)), 10), 500_000), number(1_000_000)) is x
    assert 0 <= (x.lo or 0) <= (x.hi or 0) < 2**31
    assert all(abs(n) < 2**31 for n in numbers_in(x))


def numbers_in(x: Value) -> list[int]:
    if x.op is Op.CONST:
        return [parts.integer(x)]
    constant, coefficients = parts.coefficients(x) if x.op is Op.SUM else (0, ())
    return [constant, *coefficients] + [n for s in x.src for n in numbers_in(s)]


def test_an_index_below_its_symbolic_extent_divides_to_nothing() -> None:
    """Acceptance 44."""
    n = variable("n", 1, 20)
    r = axis_value(0, n)

    assert number(0) is floordiv(r, n)
    assert r is mod(r, n)
    assert number(1) is floordiv(n, n)
    assert variable("m", 0, 9) is floordiv(multiply(variable("m", 0, 9), n), n)


def test_quotients_by_a_variable_are_right_where_it_is_positive() -> None:
    n, x = variable("n", 1, 6), variable("x", -9, 9)
    laws: list[tuple[Value, Callable[[Point], int]]] = [
        (floordiv(x, n), lambda p: p[x] // p[n]),
        (mod(x, n), lambda p: p[x] % p[n]),
        (floordiv(add(multiply(x, n), x), n), lambda p: p[x] + p[x] // p[n]),
        (mod(add(multiply(x, n), number(3)), n), lambda p: 3 % p[n]),
        (mod(add(scale(n, 2), x), n), lambda p: p[x] % p[n]),
    ]
    for made, plain in laws:
        assert all(plain(p) == at(made, p) for p in points(n, x)), made


def test_a_quotient_and_its_remainder_are_the_whole_again() -> None:
    i = variable("i", -100, 100)

    assert scale(i, 4) is add(scale(floordiv(i, 3), 12), scale(mod(i, 3), 4))
    assert mod(i, 20) is add(scale(mod(floordiv(i, 4), 5), 4), mod(i, 4))


def test_only_positive_divisors_are_taken() -> None:
    for make_it in (floordiv, mod):
        for c in (0, -2):
            with pytest.raises(ValueError, match="divisors are positive"):
                make_it(variable("x", 0, 5), c)


def test_digits_of_a_position_never_overlap() -> None:
    """A position cut at 4 and at 20 is its three digits again."""
    f = value("30*i + j", i=axis(0, 8), j=axis(1, 30))
    weights = (1, 4, 20, 240)
    digits = [mod(floordiv(f, a), b // a) for a, b in pairwise(weights)]
    total = add(add(digits[0], scale(digits[1], 4)), scale(digits[2], 20))

    assert all(at(f, p) == at(total, p) for p in points(axis(0, 8), axis(1, 30)))
