"""Buffers that are read and written: what is read is written by the same point, or by none."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from core.errors import KernelError
from core.index.enumerate import Points, own_bounds
from core.kernel.leaves import Leaves
from core.kernel.node import Load
from core.kernel.places import check_places, touched_sizes
from core.request import Request
from tests.core.kernel.placing import checked, facts, formula
from tests.kernels import Json, dense, kernel, load, node, request, store, variable


def in_place(index: Any, shape: list[Any], *valid: str, target: Any = None, target_valid: tuple[str, ...] = (), **more: Any) -> Json:
    """out[target] += out[index]."""
    target = target if target is not None else " + ".join(f"axis{k}*{s}" for k, s in enumerate(dense(shape)))
    read_back = formula("LOAD", 0, shape, index, *valid)
    return kernel(read_back, load(1, shape), node("ADD", 0, 1), formula("STORE", 0, shape, target, *target_valid, src=[2]), **more)


@pytest.mark.parametrize(
    ("index", "shape", "more"),
    [
        ("axis0", [10], {}),
        ("axis0*4 + axis1", [4, 4], {}),
        ("2*axis0 + 1", [10], {"target": "2*axis0"}),
        ("axis0 + 10", [10], {}),
        ("axis0*4 + axis1", [4, 4], {"target": "axis0*4 + axis1 + 16"}),
        ("n*16 + axis0", [16], {"target": "n*16 + axis0 + 16", "variables": [variable("n", 0, 9)]}),
        ("axis0*16 + axis1", ["n", 16], {"target": "axis0*16 + axis1", "variables": [variable("n", 0, 9)]}),
        ("axis0*16 + axis1", ["n", 16], {"target": "n*16 + axis0*16 + axis1", "variables": [variable("n", 1, 9)]}),
        ("3*axis0 + 3*axis1*axis1 + 1", [5, 5], {"target": "15*axis0 + 3*axis1"}),
    ],
)
def test_a_buffer_read_where_it_is_written_or_elsewhere_is_accepted(index: str, shape: list[Any], more: Json) -> None:
    """Acceptance 16."""
    assert () == checked(in_place(index, shape, **more)).open


def test_a_load_of_fewer_points_than_the_store_is_accepted() -> None:
    """Acceptance 16: row 1 only, whose index is then the store's."""
    assert () == checked(in_place("4 + axis1", [4, 4], "axis0 >= 1", "axis0 < 2")).open
    assert "/ast/nodes/0" == facts(in_place("4 + axis1", [4, 4]))[0]


def test_a_load_of_more_points_than_the_store_is_a_race() -> None:
    assert "/ast/nodes/0" == facts(in_place("axis0", [10], target="axis0", target_valid=("axis0 < 5",)))[0]
    assert () == checked(in_place("axis0", [10], "axis0 < 5", target="axis0", target_valid=("axis0 < 7",))).open


def test_elements_read_that_no_point_writes_are_accepted() -> None:
    """The upper half is read by its own points and written by none: disjoint where they are not the same."""
    assert () == checked(in_place("axis0", [10], "axis0 >= 5", target="axis0", target_valid=("axis0 < 5",))).open


@pytest.mark.parametrize(
    ("index", "shape"),
    [("9 - axis0", [10]), ("axis0 + 1", [10]), ("0", [10]), ("axis1*4 + axis0", [4, 4]), ("4 + axis1", [4, 4])],
)
def test_a_race_is_refused_at_the_load(index: str, shape: list[int]) -> None:
    """Acceptance 16."""
    pointer, expected, got = facts(in_place(index, shape))

    assert "/ast/nodes/0" == pointer
    assert "only by the point that writes it" in expected
    assert "not the store's" in got


def test_a_load_under_a_reduce_of_many_elements_is_refused() -> None:
    """Acceptance 16; one element is the element itself."""

    def reduced(shape: list[int], axes: list[int], out: list[int]) -> Json:
        return kernel(load(0, shape), node("REDUCE_MAX", 0, axes=axes), store(1, out))

    assert "/ast/nodes/0" == facts(reduced([4, 8], [1], [4, 1]))[0]
    assert "under a reduce over axis 1" in facts(reduced([4, 8], [1], [4, 1]))[2]
    assert () == checked(reduced([4, 1], [1], [4, 1])).open


def test_a_softmax_in_place_is_refused() -> None:
    ast = kernel(load(0, [4, 8]), node("REDUCE_MAX", 0, axes=[1]), node("NEG", 1), node("ADD", 0, 2), store(3, [4, 8]))

    assert "under a reduce" in facts(ast)[2]


def test_a_load_of_extent_one_under_a_reduce_over_others_is_accepted() -> None:
    """Its own extents on the reduced axes are 1: one element, the one its point writes."""
    ast = kernel(load(0, [4, 1]), load(1, [4, 8]), node("MUL", 0, 1), node("REDUCE_SUM", 2, axes=[1]), store(3, [4, 1]))

    assert () == checked(ast).open


def test_a_load_under_a_reduce_of_what_is_not_written_is_accepted() -> None:
    ast = kernel(load(0, [4, 8], offset=4), node("REDUCE_SUM", 0, axes=[1]), store(1, [4, 1]))

    assert () == checked(ast).open


def test_a_gather_of_a_buffer_that_is_written_is_refused_unless_confined() -> None:
    """Acceptance 271."""

    def gathered(*valid: str) -> Json:
        ids = {**load(1, [6]), "dtype": "int32"}
        return kernel(ids, formula("LOAD", 0, [6], "src0", *valid, src=[0]), store(1, [6]))

    assert "/ast/nodes/1" == facts(gathered())[0]
    assert "another buffer holds" in facts(gathered("src0 >= 0", "src0 < 10"))[2]
    assert () == checked(gathered("src0 >= 6", "src0 < 10")).open


def test_a_guard_on_data_follows_only_from_itself() -> None:
    def guarded(*valid: str) -> Json:
        ids = {**load(1, [6]), "dtype": "int32"}
        back = formula("LOAD", 0, [6], "axis0", *valid, src=[0]) if valid else formula("LOAD", 0, [6], "axis0")
        return kernel(ids, back, formula("STORE", 0, [6], "axis0", "src1 > 3", src=[1, 0]))

    assert () == checked(guarded("src0 > 3")).open
    assert () == checked(guarded("src0 > 3", "axis0 < 4")).open
    assert "/ast/nodes/1" == facts(guarded())[0]
    assert "/ast/nodes/1" == facts(guarded("src0 > 2"))[0]


# ---- against trying every point ------------------------------------------------------------------------------------------------


def index_text(random: Random) -> str:
    """Mostly the plain position of (4, 5), moved, widened, mirrored or cut up."""
    plain = random.choice(("axis0*5 + axis1", "axis0*5 + axis1", "axis1*4 + axis0", "axis0*10 + 2*axis1", "axis0*6 + axis1"))
    return random.choice(
        (plain, plain, f"{plain} + {random.randint(1, 30)}", f"40 - ({plain})", f"({plain})//2", f"({plain})*2 + 1", f"({plain})%7")
    )


def valid_text(random: Random) -> list[str]:
    texts = ("axis0 < 3", "axis1 >= 2", "axis0 >= 1", "axis0*5 + axis1 < 13", "axis0 <= axis1", "axis1 < 1", "axis0 < 1")
    return random.sample(texts, random.choice((0, 0, 1, 2)))


def touches(leaves: Leaves, row: int) -> list[tuple[int, int]]:
    """(element, point) of every valid point of a leaf."""
    access = leaves.access(row)
    box = Points({axis: own_bounds(axis) for axis in leaves.axes})
    held = np.flatnonzero(box.full(box.holds(access.valid)))
    return list(zip(box.full(box.value(access.index))[held].tolist(), held.tolist(), strict=True))


def test_what_is_accepted_never_races_nor_writes_twice() -> None:
    random = Random(17)
    accepted = 0
    for _ in range(700):
        target_valid = tuple(valid_text(random))
        ast = in_place(index_text(random), [4, 5], *valid_text(random), target=index_text(random), target_valid=target_valid)
        found = Request.from_json(request(ast))
        leaves = Leaves(found.kernel)
        (target,) = found.kernel.outputs
        read_back = next(row for row, n in enumerate(found.kernel.nodes) if isinstance(n, Load) and n.buffer == 0)
        reads, writes = touches(leaves, read_back), touches(leaves, target)
        writer = dict(writes)
        once = len(writer) == len(writes)
        races = any(writer.get(element, point) != point for element, point in reads)
        inside = all(element >= 0 for element, _ in (*reads, *writes))
        try:
            check_places(found.kernel, leaves, found.rows)
        except KernelError:
            continue
        accepted += 1
        assert once
        assert not races
        assert inside
        sizes_ = touched_sizes(found.kernel, leaves)
        assert sizes_[0].hi == max((element for element, _ in (*reads, *writes)), default=-1) + 1
    assert accepted > 100
