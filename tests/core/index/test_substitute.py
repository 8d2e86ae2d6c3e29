"""Parts of a value replaced: the same as computing with the replacements."""

from __future__ import annotations

from random import Random

from core.index import add, conjuncts, floordiv, mod, number, scale, substitute
from core.index.substitute import Substitution
from core.ir.value import Value
from tests.core.index.plain import at, axis, conditions, points, sample, sample_condition, some_atoms, value, variable


def test_substitution_is_evaluation_at_the_replacements() -> None:
    random = Random(8)
    for _ in range(500):
        atoms = some_atoms(random)
        made, held = sample(random, atoms, 3), sample_condition(random, atoms, 2)
        others = [axis(10, 5), variable("m", -3, 3)]
        wanted: dict[Value, Value] = {}
        for atom in random.sample(atoms, random.randint(1, len(atoms))):
            inner = mod(sample(random, others, 2).value, (atom.hi or 0) - (atom.lo or 0) + 1)
            wanted[atom] = add(inner, number(atom.lo or 0))  # within the atom's bounds: what is known of it stays true
        replaced, condition = substitute(made.value, wanted), substitute(held.value, wanted)
        rest = [a for a in atoms if a not in wanted]
        everywhere = list(points(*rest, *others))
        for point in random.sample(everywhere, min(8, len(everywhere))):
            inside = {**point, **{a: at(r, point) for a, r in wanted.items()}}
            assert made.plain(inside) == at(replaced, point)
            assert held.plain(inside) == at(condition, point)


def test_a_split_axis_gives_back_its_digits() -> None:
    i, outer, inner = axis(0, 32), axis(1, 8), axis(2, 4)
    cut = Substitution({i: add(scale(outer, 4), inner)})

    assert outer is cut(floordiv(i, 4))
    assert inner is cut(mod(i, 4))
    assert conditions("o < 3", o=outer) is cut(conditions("i < 12", i=i))


def test_replacements_happen_all_at_once() -> None:
    i, j = axis(0, 8), axis(1, 8)

    assert value("8*j + i", i=i, j=j) is substitute(value("8*i + j", i=i, j=j), {i: j, j: i})


def test_what_does_not_hold_an_atom_is_untouched() -> None:
    i, j = axis(0, 8), axis(1, 8)
    x = value("(8*i + 3)%5", i=i)

    assert x is substitute(x, {j: number(0)})


def test_values_that_share_much_are_rebuilt_once() -> None:
    """A tower in which each level uses the one below twice: its tree has 2**60 leaves."""
    x: Value = variable("x", -5, 5)
    top = x
    for level in range(60):
        top = add(floordiv(top, 2), mod(scale(top, 3), 7 + level))

    assert all(at_once(top, x, n) == at_once(substitute(top, {x: add(x, number(0))}), x, n) for n in (-5, 0, 5))
    assert conjuncts(substitute(conditions("x < 3", x=x), {x: number(2)})) == ()


def at_once(root: Value, x: Value, n: int) -> int:
    from core.index.enumerate import Points

    return int(Points({x: (n, n)}).value(root))
