"""Whether two points share an index: each rule by its examples, and all of them against trying every point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import pytest

from core.dtypes import INDEX
from core.index import TRUE, add, all_of, at_least, less, number, scale
from core.index.access import Access, simplified
from core.index.decide import Outcome
from core.index.injective import Injective, injective
from core.ir.op import Op
from core.ir.value import Value, make
from core.kernel.leaves import axis_value
from tests.core.index.plain import Point, at, axis, conditions, points, sample, sample_condition, value, variable

Extents = Sequence[int | str]


def asked(extents: Extents, index: str, *valid: str, **variables: tuple[int, int]) -> Injective:
    names = {name: variable(name, *bounds) for name, bounds in variables.items()}
    axes = [axis_value(k, e if isinstance(e, int) else value(e, **names)) for k, e in enumerate(extents)]
    names |= {f"axis{k}": a for k, a in enumerate(axes)}
    return injective(simplified(value(index, **names), conditions(*valid, **names)), axes)


F = "(axis0*30 + axis1)"


@pytest.mark.parametrize(
    ("rule", "extents", "index", "valid", "variables"),
    [
        ("J1", (4, 8), "7 + axis1 - axis0*8", (), {}),
        ("J1", (4, 8), "axis0*8 + axis1", (), {}),
        ("J1", (4, "n"), "axis0*n + axis1", (), {"n": (1, 20)}),
        ("J1", (4, "n"), "axis0*n + axis1", (), {"n": (0, 20)}),
        ("J1", ("n", "m"), "axis0*m + axis1", (), {"n": (0, 9), "m": (1, 7)}),
        ("J1", (3, "n", "m"), "(axis0*n + axis1)*m + axis2", (), {"n": (0, 9), "m": (0, 7)}),
        ("J1", (4, 8), "axis0*4 + axis1", ("axis1 < 4",), {}),
        ("J1", (8, 64), "axis0*n + axis1", ("axis1 < n",), {"n": (1, 200)}),
        ("J1", (4, 8), "axis0", ("axis1 >= 3", "axis1 < 4"), {}),
        ("J2", (8, 30), f"{F}//4*8 + {F}%4", (), {}),
        ("J2", (8, 30), f"{F}//20*100 + {F}//4%5*10 + {F}%4", (), {}),
        ("J2", (8, 30), f"{F}%4*60 + {F}//4", (), {}),
        ("J2", (8, 30), f"1000 - {F}//4*8 - {F}%4", (), {}),
        ("J2", (8, "n"), "(axis0*n + axis1)//4*8 + (axis0*n + axis1)%4", (), {"n": (1, 50)}),
        ("J2", (1000, 1000), "(axis0*1000 + axis1)//6*7 + (axis0*1000 + axis1)%6", (), {}),
        ("J2", (2, 4), "(start + axis1*128 + axis0*512)%1024", (), {"start": (0, 128)}),
        ("J3", (6, 5), "10*(axis0//2 + 3*(axis0%2)) + axis1", (), {}),
        ("J3", (2, 2, "t", 16), "axis3 + (start + axis2 + axis1*128 + axis0*256)%512*16", (), {"start": (0, 127), "t": (1, 32)}),
        ("J4", (3, 4), "(axis0 - axis1)*(axis0 - axis1) + 20*axis0 + 50*axis1", (), {}),
        ("J4", (4, 8), "axis0", ("axis1 <= axis0", "axis1 >= axis0"), {}),
    ],
)
def test_no_two_points_meet(rule: str, extents: Extents, index: str, valid: Sequence[str], variables: dict[str, tuple[int, int]]) -> None:
    """Acceptance 241, and the examples of each rule."""
    found = asked(extents, index, *valid, **variables)

    assert (Outcome.PROVED, rule) == (found.outcome, found.rule)


def test_nearly_nested_strides_are_accepted_where_the_validity_keeps_points_apart() -> None:
    """Acceptance 241."""
    assert Outcome.PROVED is asked((3, 3), "axis0*2 + axis1", "axis0 + axis1 < 2").outcome


@pytest.mark.parametrize(
    ("extents", "index", "valid"),
    [
        ((4, 8), "axis0", ()),
        ((4, 8), "axis1", ("axis1 < 5",)),
        ((3, 3), "axis0*2 + axis1", ()),
        ((8, 30), f"{F}//4*3 + {F}%4", ()),
        ((8, 30), "axis0//2*30 + axis1", ()),
        ((8, 30), "axis0//2", ()),
        ((5, 7), "axis0*axis1", ()),
        ((5000, 5000), "axis0*axis1", ()),
        ((6, 5), "4*(axis0//2 + 3*(axis0%2)) + axis1", ()),
        ((1, 2, 3), "axis1*2 + axis2", ()),
        ((2, 5), "(axis0*4 + axis1)%9", ()),
    ],
)
def test_two_points_that_meet_are_named(extents: Extents, index: str, valid: Sequence[str]) -> None:
    """Acceptance 241 and 243."""
    found = asked(extents, index, *valid)
    axes = [axis_value(k, int(e)) for k, e in enumerate(extents)]
    names = {f"axis{k}": a for k, a in enumerate(axes)}
    assert found.outcome is Outcome.REFUTED
    assert found.points is not None
    first, second = found.points

    assert at(value(index, **names), whole(first)) == at(value(index, **names), whole(second))
    assert any(first.get(a) != second.get(a) for a in axes)
    for point in found.points:
        assert at(conditions(*valid, **names), whole(point))


def whole(point: Point) -> Point:
    return {**{axis_value(k, 1): 0 for k in range(4)}, **point}


def test_a_box_too_large_to_try_is_not_shown() -> None:
    found = asked((5000, 5000), "axis0*4999 + axis1")

    assert Outcome.UNKNOWN is found.outcome
    assert "more than 1048576" in found.why


def test_conditions_on_values_of_other_nodes_take_no_points_away() -> None:
    """Acceptance 272: without them a column is written by each row."""
    i, j = axis(0, 4), axis(1, 8)
    switch = make(Op.OPAQUE, INDEX, (i, j), (3, -128, 127), 1, (-128, 127))
    on = at_least(switch, number(1))

    assert Outcome.PROVED is injective(Access(add(scale(i, 8), j), on), (i, j)).outcome
    assert Outcome.REFUTED is injective(Access(i, on), (i, j)).outcome
    assert Outcome.REFUTED is injective(Access(i, all_of((on, less(switch, number(2))))), (i, j)).outcome


def test_nothing_valid_never_meets() -> None:
    i, j = axis(0, 4), axis(1, 8)

    assert Outcome.PROVED is injective(simplified(i, conditions("i < 2", "i >= 2", i=i)), (i, j)).outcome


def test_verdicts_agree_with_trying_every_point() -> None:
    random = Random(10)
    outcomes: dict[tuple[str, str], int] = defaultdict(int)
    for _ in range(1_200):
        axes = [axis(k, random.randint(1, 5)) for k in range(random.randint(1, 3))]
        live = [a for a in axes if a.op is Op.AXIS]
        if not live:
            continue
        index = position(random, live)
        held = [sample_condition(random, live, 1) for _ in range(random.randint(0, 2))] if random.random() < 0.5 else []
        access = simplified(index, all_of(h.value for h in held) if held else TRUE)
        seen: dict[int, int] = defaultdict(int)
        for point in points(*live):
            if all(h.plain(point) for h in held):
                seen[at(index, point)] += 1
        meets = any(count > 1 for count in seen.values())
        found = injective(access, axes)
        outcomes[found.rule, found.outcome.value] += 1
        if found.outcome is Outcome.PROVED:
            assert not meets, (index, access.valid)
        else:
            assert found.outcome is Outcome.REFUTED
            assert meets or found.rule == "J0", (index, access.valid)
    assert {"J0", "J1", "J2", "J3", "J4"} <= {rule for rule, _ in outcomes}, outcomes


def position(random: Random, axes: list[Value]) -> Value:
    """Strides that often nest, or digits of such a position, or anything."""
    total, stride = number(random.randint(-5, 5)), random.choice((1, 2, 3))
    for a in random.sample(axes, len(axes)):
        total = add(total, scale(a, stride * random.choice((1, 1, -1))))
        stride *= (a.hi or 0) + random.choice((1, 1, 1, 2, 0))
    kind = random.random()
    if kind < 0.4:
        return total
    if kind < 0.8:
        c = random.randint(2, 6)
        names = {"f": total}
        return value(f"(f//{c})*{random.choice((c, c + 1, c + 3, 1))} + (f%{c})*{random.choice((1, 1, 20))}", **names)
    return sample(random, axes, 3, most=9).value


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    """Acceptance 247: counted in points, so the same in every process."""
    first = asked((8, 30), f"{F}//4*3 + {F}%4")
    for n in range(3, 9):
        asked((n, 30), f"{F}//4*3 + {F}%4")

    assert first == asked((8, 30), f"{F}//4*3 + {F}%4")


def test_digits_of_an_index_space_larger_than_any_box_are_shown() -> None:
    f = "(axis0*1000000 + axis1*1000 + axis2)"

    assert Outcome.PROVED is asked((1000, 1000, 1000), f"{f}//6*7 + {f}%6").outcome


def test_an_extent_of_one_is_no_axis() -> None:
    assert number(0) is axis_value(0, 1)
    assert Outcome.PROVED is asked((1, 8), "axis1").outcome
