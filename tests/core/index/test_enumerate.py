"""Values over a box at once: what they are point by point, in 64 bits or exact integers."""

from __future__ import annotations

from random import Random

import numpy as np

from core.dtypes import INDEX
from core.index import add, less, number, scale
from core.index.enumerate import MAX_POINTS, Points, atoms_of, box_points, first_point, own_bounds
from core.ir.op import Op
from core.ir.value import make
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, points, sample, sample_condition, some_atoms, value, variable


def test_a_box_holds_what_each_point_is() -> None:
    random = Random(9)
    for _ in range(300):
        atoms = some_atoms(random)
        made, held = sample(random, atoms, 4), sample_condition(random, atoms, 2)
        box = Points({a: own_bounds(a) for a in atoms})
        values, holds = box.full(box.value(made.value)), box.full(box.holds(held.value))
        for n in random.sample(range(box.count), min(10, box.count)):
            point = box.point(n)
            assert made.plain(point) == values[n]
            assert held.plain(point) == holds[n]


def test_points_are_counted_with_the_last_atom_fastest() -> None:
    i, j = axis(0, 3), axis(1, 2)
    box = Points({i: (0, 2), j: (0, 1)})

    assert 6 == box.count
    assert [0, 1, 10, 11, 20, 21] == list(box.full(box.value(value("10*i + j", i=i, j=j))))
    assert {i: 2, j: 0} == box.point(4)


def test_slices_are_the_box_in_its_order() -> None:
    i, j, k = axis(0, 5), axis(1, 7), axis(2, 11)
    x = value("100*i + 10*j + k", i=i, j=j, k=k)
    box = Points({i: (0, 4), j: (2, 6), k: (0, 10)})

    for most in (1, 3, 11, 40, 60, 1000):
        parts = list(box.slices(most))
        assert all(part.count <= most for part in parts)
        assert list(box.full(box.value(x))) == [n for part in parts for n in part.full(part.value(x))]
    assert {i: 1, j: 2, k: 0} == first_point(box, lambda part: part.value(x) >= 100)
    assert first_point(box, lambda part: part.value(x) < 0) is None


def test_numbers_beyond_64_bits_are_exact() -> None:
    x = variable("x", 0, 3)
    large = add(scale(x, 2**61), scale(value("x*x*x", x=x), 2**60 + 1))

    assert [at(large, {x: n}) for n in range(4)] == list(Points({x: (0, 3)}).value(large))
    assert [at(value("(y + 7)//3", y=scale(x, 2**70)), {x: n}) for n in range(4)] == list(
        Points({x: (0, 3)}).value(value("(y + 7)//3", y=scale(x, 2**70)))
    )


def test_a_single_point_beyond_64_bits_is_a_box_too() -> None:
    """Where numpy's arithmetic gives plain integers instead of arrays."""
    x = variable("x", 0, 3)
    large = add(scale(value("x*x*x", x=x), 2**60 + 1), value("(y + 7)//3*y", y=scale(x, 2**70)))
    box = Points({x: (2, 2)})

    assert at(large, {x: 2}) == box.value(large)
    assert bool(box.holds(less(number(2**140), large)))
    assert {x: 2} == first_point(box, lambda part: part.value(large) > 2**70)


def test_ranges_beyond_64_bits_are_exact() -> None:
    x = make(Op.OPAQUE, INDEX, (), (3, 0, 2**64 - 1), 1, (0, 2**64 - 1))
    box = Points({x: (2**64 - 2, 2**64 - 1)})

    assert [2**65 - 4, 2**65 - 2] == list(box.value(scale(x, 2)))
    assert [True, False] == list(box.holds(less(x, number(2**64 - 1))))


def test_a_symbolic_extent_takes_points_away() -> None:
    n = variable("n", 0, 3)
    i = axis_value(0, n)
    box = box_points(atoms_of(i))
    assert box is not None

    assert len(list(points(n, i))) == int(np.count_nonzero(box.full(box.within_extents())))


def test_an_empty_range_has_no_points() -> None:
    i, j = axis(0, 3), axis(1, 5)
    box = Points({i: (2, 1), j: (0, 4)})

    assert 0 == box.count
    assert [] == list(box.full(box.value(value("i + 2*j", i=i, j=j))))


def test_more_points_than_allowed_are_no_box() -> None:
    i, j = axis(0, 1024), axis(1, 1025)

    assert box_points((i, j)) is None
    assert box_points((i, axis(2, 1024))) is not None
    assert MAX_POINTS == 2**20
    assert box_points((i, j), {j: (3, 3)}) is not None


def test_sixty_axes_of_one_value_are_one_point() -> None:
    atoms = [axis(k, 5) for k in range(70)]
    box = Points(dict.fromkeys(atoms, (3, 3)))

    assert 1 == box.count
    assert 210 == int(box.value(value("+".join(f"a{k}" for k in range(70)), **{f"a{k}": a for k, a in enumerate(atoms)})))


def test_where_an_opaque_value_stands_is_no_atom_of_it() -> None:
    i, j = axis(0, 4), axis(1, 4)
    opaque = make(Op.OPAQUE, INDEX, (i,), (3, 0, 255), 1, (0, 255))

    assert {opaque, j} == set(atoms_of(add(opaque, j)))
    assert {opaque, i} == set(atoms_of(add(opaque, i)))
