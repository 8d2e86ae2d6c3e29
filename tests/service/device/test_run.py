"""Launches, and what is checked before one."""

from __future__ import annotations

from typing import Any

import pytest

from service.device.run import BadLaunch, Launch, bound, launch_of

N = {"kind": "variable", "name": "n", "dtype": "int32", "min": 1, "max": 8}


def program(**members: Any) -> dict[str, Any]:
    return {"global_size": [4, 2, 1], "local_size": [16, 1, 1], "arguments": [N]} | members


def test_group_counts_become_work_items() -> None:
    assert Launch((64, 2, 1), (16, 1, 1)) == launch_of(program(), {})


def test_without_a_local_size_the_runtime_chooses_the_groups() -> None:
    assert Launch((4, 2, 1), None) == launch_of(program(local_size=None), {})


def test_sizes_are_expressions_of_the_variables() -> None:
    assert Launch((24, 0, 1), (4, 1, 1)) == launch_of(program(global_size=["n*2", "n//4", 1], local_size=["n + 1", 1, 1]), {"n": 3})


@pytest.mark.parametrize(
    "sizes", [{"global_size": ["n - 9", 1, 1]}, {"local_size": [0, 1, 1]}, {"global_size": [1, 1]}, {"global_size": None}]
)
def test_sizes_that_are_none_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(BadLaunch):
        launch_of(program(**sizes), {"n": 3})


@pytest.mark.parametrize("values", [{}, {"n": 0}, {"n": 9}])
def test_a_variable_outside_of_its_bounds_is_refused_before_the_launch(values: dict[str, int]) -> None:
    """K 207."""
    with pytest.raises(BadLaunch, match="n"):
        bound([N], values)


def test_only_declared_variables_are_bound() -> None:
    assert {"n": 8} == bound([N, {"kind": "buffer", "index": 0}], {"n": 8, "m": 3})
