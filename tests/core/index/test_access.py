"""Where a leaf lies: strides are differences, whatever the index looks like; a masked axis has none."""

from __future__ import annotations

from random import Random

from core.dtypes import INDEX
from core.index import TRUE, all_of, number, scale
from core.index.access import NOWHERE, Access, simplified
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.value import make
from core.kernel.leaves import axis_value
from tests.core.index.plain import at, axis, condition, conditions, points, sample, sample_condition, some_atoms, value, variable


def test_a_known_stride_is_the_difference_at_every_point() -> None:
    random = Random(16)
    known = 0
    for _ in range(500):
        atoms = some_atoms(random)
        made = sample(random, atoms, random.randint(1, 3))
        held = [sample_condition(random, atoms, 1)] if random.random() < 0.4 else []
        access = simplified(made.value, all_of(h.value for h in held))
        i, n = atoms[0], atoms[-1]
        stride = access.stride(i)
        ignoring = access.stride(i, ignoring_validity=True)
        if stride is not None:
            known += 1
            assert stride is ignoring
            assert i not in access.valid.free
        if ignoring is None:
            continue
        for point in points(*atoms):
            after = {**point, i: point[i] + 1}
            if point[i] < (i.hi or 0) and all(h.plain(p) for h in held for p in (point, after)):
                assert at(access.index, after) - at(access.index, point) == at(ignoring, {n: point[n]})
    assert known > 120


def test_a_masked_axis_has_no_stride_but_when_asked_to_ignore_that() -> None:
    """Acceptance 41: index 10a + 2b + c, valid a < 2."""
    a, b, c = axis(0, 6), axis(1, 5), axis(2, 2)
    access = simplified(value("10*a + 2*b + c", a=a, b=b, c=c), condition("10*a + 2*b + c < 20", a=a, b=b, c=c))

    assert condition("a < 2", a=a) is access.valid
    assert [None, number(2), number(1)] == [access.stride(x) for x in (a, b, c)]
    assert number(10) is access.stride(a, ignoring_validity=True)


def test_a_repeated_element_has_no_stride() -> None:
    """Acceptance 41: the middle axis moves every second step."""
    a, b, c = axis(0, 4), axis(1, 4), axis(2, 5)
    access = Access(value("10*a + b//2*5 + c", a=a, b=b, c=c))

    assert [number(10), None, number(1)] == [access.stride(x) for x in (a, b, c)]


def test_a_stride_may_be_an_expression_of_variables() -> None:
    n = variable("n", 1, 9)
    i, j = axis(0, 4), axis_value(1, n)
    access = Access(value("i*n + j", i=i, j=j, n=n))

    assert n is access.stride(i)
    assert number(1) is access.stride(j)
    assert number(0) is access.stride(axis(2, 3))


def test_an_axis_on_which_a_value_stands_has_no_stride() -> None:
    """Acceptance 41, for gathers."""
    i, j = axis(0, 4), axis(1, 4)
    gathered = make(Op.OPAQUE, INDEX, (i,), (3, 0, 255), 1, (0, 255))
    access = Access(value("64*v + j", v=gathered, j=j))

    assert access.stride(i) is None
    assert number(1) is access.stride(j)
    assert access.depends_on(i)


def test_an_index_is_aligned_as_far_as_its_residue_says() -> None:
    i, j = axis(0, 4), axis(1, 8)

    assert Access(value("8*i + 4", i=i)).is_multiple(4)
    assert not Access(value("8*i + j", i=i, j=j)).is_multiple(4)
    assert simplified(value("8*i + j", i=i, j=j), conditions("j >= 4", "j < 5", j=j)).is_multiple(4)


def test_nothing_valid_is_nowhere() -> None:
    i = axis(0, 4)

    assert NOWHERE == simplified(i, conditions("i < 2", "i > 2", i=i))
    assert NOWHERE.never
    assert not Access(i, TRUE).never


def test_an_access_moves_as_a_whole() -> None:
    i, outer, inner = axis(0, 32), axis(1, 8), axis(2, 4)
    access = simplified(scale(i, 2), condition("i < 12", i=i))

    moved = access.substituted(Substitution({i: value("4*o + k", o=outer, k=inner)}))
    assert value("8*o + 2*k", o=outer, k=inner) is moved.index
    assert condition("o < 3", o=outer) is moved.valid
