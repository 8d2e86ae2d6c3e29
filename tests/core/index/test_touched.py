"""How many elements an access needs: tight where points can be counted, an expression where a launch decides."""

from __future__ import annotations

from random import Random

import pytest

from core.index import TRUE, add, all_of, number
from core.index.decide import Decider
from core.index.touched import greatest_index, larger
from core.ir.size_text import expression_text
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, conditions, points, sample, sample_condition, some_atoms, value, variable

VARIABLES = {"n": (1, 100), "m": (0, 9), "start": (0, 127), "low": (-5, 5)}


@pytest.mark.parametrize(
    ("size", "extents", "index", "valid"),
    [
        ("n*64", ("n", 64), "axis0*64 + axis1", ()),
        ("n*4", (4, "n"), "axis0*n + axis1", ()),
        ("n*4", (4, "n"), "4*n - 1 - axis0*n - axis1", ()),
        ("n*4", ("n", 4), "(n - 1 - axis0)*4 + 3 - axis1", ()),
        ("n*4+start", ("n", 4), "axis0*4 + axis1 + start", ()),
        ("start*64+64", (1, 64), "start*64 + axis1", ()),
        ("8192", (128, 128), "axis0*64 + axis1", ("axis1 < 64",)),
        ("n", (64,), "axis0", ("axis0 < n",)),
        ("n+3", (64,), "axis0 + 3", ("axis0 < n",)),
        ("n", ("n",), "axis0", ("axis0 < 500",)),
        ("(n + 3)//4 + 1", ("n",), "(axis0 + 4)//4", ()),
        ("n*m", ("n", "m"), "axis0*m + axis1", ()),
        ("7", ("n",), "axis0%7", ()),
        ("start*96+288", (2, 3, 128), "(start + axis1)%1024*96 + axis2%96", ()),
        ("6144", (2, 3, 128), "(start + axis1)%64*96 + axis2%96", ()),
        ("100", ("n",), "axis0 + low", ("axis0 + low >= 0", "axis0 + low < 100")),
        ("low+6", (1,), "low + 5", ()),
        ("4915", (64,), "141*axis0 - axis0*axis0", ("axis0 < n",)),
    ],
)
def test_the_size_is_what_the_greatest_index_needs(size: str, extents: tuple[int | str, ...], index: str, valid: tuple[str, ...]) -> None:
    names = {name: variable(name, *bounds) for name, bounds in VARIABLES.items()}
    axes = [axis_value(k, e if isinstance(e, int) else value(e, **names)) for k, e in enumerate(extents)]
    names |= {f"axis{k}": a for k, a in enumerate(axes)}
    found = add(greatest_index(value(index, **names), conditions(*valid, **names), Decider()), number(1))

    assert value(size, **names) is found, expression_text(found)


def test_no_valid_index_is_beyond_the_size() -> None:
    random = Random(13)
    for _ in range(400):
        atoms = some_atoms(random)
        n = atoms[-1]
        extent = add(n, number(2 - min(n.lo or 0, 0)))
        atoms = [*atoms[:1], axis_value(1, extent), n]
        made = sample(random, atoms, 3, most=9)
        held = [sample_condition(random, atoms, 1) for _ in range(random.randint(0, 2))]
        most = greatest_index(made.value, all_of(h.value for h in held) if held else TRUE, Decider())
        for point in points(atoms[2], *atoms[:2]):
            if all(h.plain(point) for h in held):
                assert made.plain(point) <= max(at(most, {n: point[n]}), -1), (made.value, most)


def test_an_axis_in_two_terms_is_counted_exactly() -> None:
    i = axis(0, 24)
    x = value("3 - i + 4*(i%6) + 12*(i//12%2) + i//6%2", i=i)
    exact = max(at(x, p) for p in points(i))

    assert exact < (x.hi or 0)
    assert number(exact) is greatest_index(x, TRUE, Decider())


def test_of_two_sizes_that_depend_on_the_launch_a_number_holds_both() -> None:
    n, m = variable("n", 1, 9), variable("m", 1, 20)

    assert number(20) is larger(n, m)
    assert add(n, number(2)) is larger(n, add(n, number(2)))
    assert number(50) is larger(n, number(50))
