"""Stores no two points of which write one element are accepted, and others refused with two points."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kernel.placing import checked, facts, formula, sizes, written
from tests.kernels import Json, kernel, load, store, variable

F = "(axis0*30 + axis1)"


@pytest.mark.parametrize(
    ("index", "shape", "valid"),
    [
        ("7 - axis0*8 + axis1 + 24", [4, 8], ()),
        ("axis0*n + axis1", [4, "n"], ()),
        (f"{F}//4*8 + {F}%4", [8, 30], ()),
        ("axis0*2 + axis1", [3, 3], ("axis0 + axis1 < 2",)),
        ("axis0", [4, 8], ("axis1 <= axis0", "axis1 >= axis0")),
        ("(n + axis1*128 + axis0*512)%1024", [2, 4], ()),
    ],
)
def test_a_store_no_two_points_of_which_meet_is_accepted(index: str, shape: list[Any], valid: tuple[str, ...]) -> None:
    """Acceptance 241."""
    places = checked(written(index, shape, *valid, variables=[variable("n", 1, 20)]))

    assert () == places.open


@pytest.mark.parametrize(
    ("index", "shape", "points"),
    [
        ("axis0*2 + axis1", [3, 3], "index 2 at axis0 = 0, axis1 = 2 and at axis0 = 1, axis1 = 0"),
        (f"{F}//4*3 + {F}%4", [8, 30], "index 3 at axis0 = 0, axis1 = 3 and at axis0 = 0, axis1 = 4"),
        ("axis0//2", [8], "index 0 at axis0 = 0 and at axis0 = 1"),
        ("axis0", [4, 8], "index 0 at axis0 = 0, axis1 = 0 and at axis0 = 0, axis1 = 1"),
        ("axis0*axis1", [4, 8], "index 0 at "),
        ("axis0*axis1", [4000, 8000], "index 0 at "),
    ],
)
def test_a_store_two_points_of_which_meet_is_refused_with_both(index: str, shape: list[Any], points: str) -> None:
    """Acceptance 16, 241 and 243."""
    pointer, expected, got = facts(written(index, shape))

    assert "/ast/nodes/1" == pointer
    assert "no two points" in expected
    assert points in got


def test_a_broadcast_store_is_refused() -> None:
    """Acceptance 16: stride 0 on an axis of more than one point; on an axis of one it means nothing."""
    assert "/ast/nodes/1" == facts(kernel(load(1, [4, 8]), store(0, [4, 8], strides=[1, 0])))[0]
    assert () == checked(kernel(load(1, [4, 1]), store(0, [4, 1], strides=[1, 0]))).open


def test_what_is_not_shown_is_refused_too() -> None:
    assert "more than 1048576" in facts(written("axis0*4999 + axis1", [5000, 5000]))[2]


def test_a_guard_on_data_does_not_keep_points_apart() -> None:
    """Acceptance 272."""

    def guarded(index: str) -> Json:
        switch = {**load(1, [4, 8]), "dtype": "int32"}
        one = {"op": "CONST", "value": 1.0, "dtype": "float32", "shape": [4, 8]}
        return kernel(switch, one, formula("STORE", 0, [4, 8], index, "src1 > 0", src=[1, 0]))

    assert () == checked(guarded("axis0*8 + axis1")).open
    assert "/ast/nodes/2" == facts(guarded("axis0"))[0]


def test_nothing_stored_is_stored_once() -> None:
    """Acceptance 21."""
    ast = kernel(load(1, [4, 8]), store(0, [4, 8], strides=[0, 0]))
    ast["nodes"][1]["views"][0]["mask"] = [[2, 2], [0, 8]]

    assert () == checked(ast).open
    assert "0" == sizes(ast)[0]
