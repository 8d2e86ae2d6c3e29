"""Axes onto three launch dimensions (acceptance E 101-108): the sizes, and that every point is launched once."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.device import Triple
from core.errors import LimitExceeded
from core.index import TRUE
from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value
from core.kernel.leaves import Extent, axis_value
from core.schedule.axis import OF_OUTPUT, Axis, AxisKind
from core.schedule.launch import Mapping3, map_axes
from core.schedule.nest import Nest
from tests.core.schedule.scheduling import nest_of
from tests.meaning.build import Build

NONE: Triple = (None, None, None)


def axes(*extents: Extent) -> tuple[Axis, ...]:
    return tuple(Axis(axis_value(k, e), e, AxisKind.GLOBAL, OF_OUTPUT, frozenset((k,))) for k, e in enumerate(extents))


def mapped(extents: tuple[Extent, ...], maxima: Triple, *, reverse: bool = False, may_guard: bool = True) -> Mapping3:
    return map_axes(axes(*extents), maxima, "group", reverse=reverse, may_guard=may_guard)


def sizes(mapping: Mapping3) -> tuple[int, ...]:
    return tuple(integer(size) for size in mapping.sizes)


def at(value: Value, hardware: tuple[int, ...]) -> int:
    """An index or condition for one work-item, in plain integers."""
    match value.op:
        case Op.CONST:
            return integer(value)
        case Op.SPECIAL:
            assert isinstance(value.arg, tuple)
            return hardware[value.arg[1]]
        case Op.SUM:
            part, factors = coefficients(value)
            return part + sum(c * at(s, hardware) for c, s in zip(factors, value.src, strict=True))
        case Op.DIV:
            return at(value.src[0], hardware) // at(value.src[1], hardware)
        case Op.MOD:
            return at(value.src[0], hardware) % at(value.src[1], hardware)
        case Op.LESS:
            return int(at(value.src[0], hardware) < integer(value))
        case Op.ALL:
            return int(all(at(s, hardware) for s in value.src))
        case _:
            raise AssertionError(f"{value!r} in a launch")


def points(mapping: Mapping3) -> list[tuple[int, ...]]:
    """The axes' values for each work-item the guard lets through."""
    return [
        tuple(at(value, hardware) for value in mapping.values)
        for hardware in product(*(range(n) for n in sizes(mapping)))
        if at(mapping.guard, hardware)
    ]


SIZES: dict[str, tuple[tuple[int, ...], Triple, bool, tuple[int, int, int]]] = {
    "101 one axis": ((6,), (32, 32, 32), False, (6, 1, 1)),
    "101 the last axis is x": ((6, 10), (32, 32, 32), True, (10, 6, 1)),
    "102 four axes": ((3, 5, 7, 2), (32, 32, 32), False, (15, 7, 2)),
    "102 a small first dimension": ((3, 5, 7, 2), (8, 64, 64), False, (3, 35, 2)),
    "102 reversed": ((3, 5, 7, 2), (32, 32, 32), True, (14, 5, 3)),
    "103 one axis is too long": ((96, 3, 4), (32, 32, 32), False, (32, 9, 4)),
    "105 a prime that is too long": ((37,), (16, 16, 16), False, (13, 3, 1)),
    "105 a prime in three parts": ((37,), (4, 4, 4), False, (4, 4, 3)),
    "105 two primes": ((37, 3), (16, 16, 16), False, (13, 3, 3)),
    # the first three stay where they are, as where neighbours are multiplied: 5 beside 3, 6 beside 2
    "106 any axes together where no neighbours fit": ((2, 3, 4, 5, 6), (16, 16, 16), False, (12, 15, 4)),
    "106 where the first three can't stay": ((2, 3, 4, 8), (6, 6, 8), False, (6, 4, 8)),
    "108 an axis of one point": ((1, 5), (32, 32, 32), False, (5, 1, 1)),
    "no axis": ((), (32, 32, 32), False, (1, 1, 1)),
    "no limits": ((4, 5, 6), NONE, False, (4, 5, 6)),
    "another dimension is larger": ((40, 3), (16, 64, 64), False, (3, 40, 1)),
}


@pytest.mark.parametrize(("extents", "maxima", "reverse", "expected"), SIZES.values(), ids=SIZES)
def test_launch_sizes_are_within_their_limits(
    extents: tuple[int, ...], maxima: Triple, reverse: bool, expected: tuple[int, int, int]
) -> None:
    mapping = mapped(extents, maxima, reverse=reverse)

    assert expected == sizes(mapping)
    assert all(limit is None or size <= limit for size, limit in zip(sizes(mapping), maxima, strict=True))


@pytest.mark.parametrize(("extents", "maxima", "reverse", "expected"), SIZES.values(), ids=SIZES)
def test_every_point_is_launched_once(extents: tuple[int, ...], maxima: Triple, reverse: bool, expected: tuple[int, int, int]) -> None:
    launched = points(mapped(extents, maxima, reverse=reverse))

    assert list(product(*(range(e) for e in extents))) == sorted(launched)


LISTS = st.lists(st.integers(1, 9), min_size=1, max_size=6).filter(lambda extents: prod(extents) <= 1500)
MAXIMA = st.sampled_from([NONE, (32, 32, 32), (16, 16, 16), (8, 64, 64), (64, 8, 3), (5, 7, 11), (4, 4, 4)])


@settings(max_examples=1000)
@given(LISTS, MAXIMA, st.booleans(), st.booleans())
def test_decoding_is_a_bijection(extents: list[int], maxima: Triple, reverse: bool, may_guard: bool) -> None:
    """E 104."""
    try:
        mapping = mapped(tuple(extents), maxima, reverse=reverse, may_guard=may_guard)
    except LimitExceeded:
        return
    launched = points(mapping)

    assert all(limit is None or size <= limit for size, limit in zip(sizes(mapping), maxima, strict=True))
    assert may_guard or mapping.guard is TRUE
    assert prod(extents) == len(launched) == len(set(launched))
    assert all(0 <= x < e for point in launched for x, e in zip(point, extents, strict=True))


def test_a_work_group_is_never_split_with_idle_lanes() -> None:
    """A guard in a work-group would keep lanes from its barriers."""
    with pytest.raises(LimitExceeded):
        mapped((37,), (16, 16, 16), may_guard=False)


def test_axes_that_fit_nowhere_are_a_limit_that_says_what_is_needed() -> None:
    """E 106."""
    with pytest.raises(LimitExceeded) as refused:
        mapped((17, 17, 17, 17), (16, 16, 16))

    assert ("group_max", [17, 17, 17, 17], [16, 16, 16]) == tuple(refused.value.facts()[name] for name in ("limit", "needed", "allowed"))


def nest_with_n(greatest: int, **device: Any) -> Nest:
    k = Build(n=(1, greatest))
    return nest_of(k.store(k.load("float32", ["n", 4], [8, 1])).ast(), **device)


def mapped_with_n(greatest: int, maxima: Triple) -> Mapping3:
    return map_axes(nest_with_n(greatest).axes, maxima, "group", reverse=True, may_guard=True)


def test_a_symbolic_axis_fits_by_its_greatest_value() -> None:
    """E 107."""
    assert "16" == str(mapped_with_n(16, (16, 16, 1)).sizes[1].hi)


def test_a_symbolic_axis_that_is_too_long_takes_another_dimension() -> None:
    mapping = mapped_with_n(17, (16, 16, 32))

    assert [4, 1, 17] == [size.hi for size in mapping.sizes]


def test_a_symbolic_axis_that_fits_nowhere_is_a_limit() -> None:
    with pytest.raises(LimitExceeded) as refused:
        mapped_with_n(17, (16, 16, 16))

    assert [17, 4] == refused.value.facts()["needed"]


def test_an_axis_of_one_point_has_no_hardware_index() -> None:
    """E 108."""
    mapping = mapped((1, 5, 1), (32, 32, 32))

    assert [Op.CONST, Op.SPECIAL, Op.CONST] == [value.op for value in mapping.values]


def test_an_empty_axis_launches_nothing() -> None:
    """A 20: also where it shares a dimension with others."""
    mapping = mapped((3, 0, 4, 5), (64, 64, 64))

    assert 0 == prod(sizes(mapping))
