"""What kernels are refused for where they read, and what stays open: inside views and images; whole texels stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kernel.placing import checked, facts, formula, read, refused, sizes
from tests.kernels import Json, kernel, load, node, store, variable, view


def test_an_index_negative_at_a_valid_point_is_refused_with_the_point() -> None:
    """Acceptance 15 and 239."""
    pointer, expected, got = facts(read("(axis0 - 2)//3", [6]))

    assert "/ast/nodes/0" == pointer
    assert "never negative" in expected
    assert "index -1 at axis0 = 0" == got


def test_an_index_negative_only_where_nothing_is_valid_is_accepted() -> None:
    """Acceptance 15 and 239."""
    ast = read("(axis0 - 2)//3", [6], "axis0 > 1")

    assert () == checked(ast).open
    assert {0: "6", 1: "2"} == sizes(ast)


@pytest.mark.parametrize(
    ("offset", "mask", "accepted"),
    [(0, None, True), (-1, None, False), (-1, [[1, 8]], True), (-2, [[1, 8]], False), (-1, [[3, 3]], True)],
)
def test_a_view_with_a_negative_address_is_refused_where_it_is_valid(offset: int, mask: Any, *, accepted: bool) -> None:
    """Acceptance 15."""
    ast = kernel(load(1, [8], offset=offset, mask=mask), store(0, [8]))
    if accepted:
        assert () == checked(ast).open
    else:
        assert "/ast/nodes/0" == facts(ast)[0]


def test_a_flipped_view_needs_its_offset() -> None:
    assert () == checked(kernel(load(1, [8], strides=[-1], offset=7), store(0, [8]))).open
    assert "index -1 at axis0 = 7" == facts(kernel(load(1, [8], strides=[-1], offset=6), store(0, [8])))[2]


def stacked(*views: Json, shape: list[int]) -> Json:
    return kernel({"op": "LOAD", "buffer": 1, "dtype": "float32", "views": list(views)}, store(0, shape))


def test_a_later_view_that_leaves_the_one_before_is_refused() -> None:
    """Acceptance 15."""
    pointer, expected, got = facts(stacked(view([3, 4]), view([13], [1]), shape=[13]))

    assert "/ast/nodes/0" == pointer
    assert "inside the view before it" in expected
    assert "position 12 at axis0 = 12" == got
    assert "position -2" in facts(stacked(view([3, 4]), view([5], [1], offset=-2), shape=[5]))[2]


def test_a_later_view_may_leave_the_one_before_where_a_mask_fails() -> None:
    """Acceptance 15: its own mask, or that of the view before."""
    own = view([16], [1], offset=-2, mask=[[2, 14]])

    assert () == checked(stacked(view([3, 4]), own, shape=[16])).open
    assert () == checked(stacked(view([3, 4], mask=[[0, 2], [0, 4]]), view([12], [1]), shape=[12])).open
    assert "/ast/nodes/0" == facts(stacked(view([3, 4]), view([16], [1], offset=-2, mask=[[2, 15]]), shape=[16]))[0]


def test_the_pointer_is_the_row_of_the_request() -> None:
    """The canonical table has other rows: an unreachable node stands before, a doubled one between."""
    ast = kernel(load(1, [8]), load(1, [8]), formula("LOAD", 1, [8], "axis0 - 1"), node("ADD", 1, 2), store(3, [8]))

    assert "/ast/nodes/2" == facts(ast)[0]
    assert 2 == refused(ast).facts()["node"]


def test_a_negative_index_of_a_large_box_is_found() -> None:
    assert "axis0 = 99999, axis1 = 99999" in facts(read("199997 - axis0 - axis1", [100_000, 100_000]))[2]


def test_an_index_that_nothing_decides_stays_open() -> None:
    """Acceptance 247: named with argument and node, and the kernel is accepted."""
    cubes = (
        " + ".join(f"{sign}(axis{k}*axis{k}*axis{k} + 3*axis{k}*axis{k} + 3*axis{k})" for k, sign in enumerate(("", "", "-1*"))) + " + 1"
    )
    (unknown,) = checked(read(f"({cubes})*({cubes}) - 1", [300, 300, 300])).open

    assert ("bounds", 1, 0) == (unknown.of, unknown.argument, unknown.node)
    assert "1048576" in unknown.why
    assert () == checked(read("axis0*axis0 - 2*axis0*axis1 + axis1*axis1", [5000, 5000])).open


def test_a_symbolic_index_is_judged_for_every_value() -> None:
    n = variable("n", 0, 20)

    assert () == checked(read("n - 1 - axis0", ["n"], variables=[n])).open
    assert "n = " in facts(read("n - 2 - axis0", ["n"], variables=[n]))[2]
    assert () == checked(read("low + axis0", [8], "low + axis0 >= 0", variables=[variable("low", -5, 5)])).open
    assert "low = -5" in facts(read("low + axis0", [8], variables=[variable("low", -5, 5)]))[2]


def test_an_empty_axis_has_no_index() -> None:
    """Acceptance 20."""
    ast = read("axis0 - 5", [0])

    assert () == checked(ast).open
    assert {0: "0", 1: "0"} == sizes(ast)


def test_an_image_index_stays_inside_the_image() -> None:
    def ast(shape: list[int]) -> Json:
        return kernel(load(1, shape, image=[2, 3, 4]), store(0, shape))

    def imaged(shape: list[int]) -> Json:
        return kernel({**load(1, shape), "image": [2, 3, 4]}, store(0, shape))

    assert () == checked(imaged([24])).open
    assert {0: "24", 1: "24"} == sizes(imaged([24]))
    assert {0: "8", 1: "24"} == sizes(imaged([8]))
    pointer, expected, got = facts(imaged([25]))
    assert ("/ast/nodes/0", "index 24 at axis0 = 24") == (pointer, got)
    assert "24 channels" in expected


# ---- output images ---------------------------------------------------------------------------------------------------------


def image_store(shape: list[int], strides: list[int] | None = None, **more: Any) -> Json:
    one = {"op": "CONST", "value": 1.0, "dtype": "float32", "shape": [1] * len(shape)}
    target = {**store(0, shape, strides=strides), "image": [4, 8, 4]}
    target["views"][0].update(more)
    return kernel(one, target)


@pytest.mark.parametrize(
    ("shape", "strides", "more"),
    [
        ([4, 8, 4], None, {}),
        ([128], None, {}),
        ([4, 32, 1], [32, 1, 0], {}),
        ([4, 8, 2, 2], None, {}),
        ([4, 4, 8], [1, 32, 4], {}),
        ([4, 8, 4], None, {"mask": [[0, 4], [1, 5], [0, 4]]}),
        ([128], None, {"mask": [[4, 120]]}),
        ([64], None, {"offset": 8}),
    ],
)
def test_an_output_image_of_whole_texels_is_accepted(shape: list[int], strides: list[int] | None, more: Json) -> None:
    checked(image_store(shape, strides, **more))


@pytest.mark.parametrize(
    ("shape", "strides", "more"),
    [
        ([4, 8, 3], [32, 4, 1], {}),
        ([42], [3], {}),
        ([4, 8, 4], None, {"mask": [[0, 4], [0, 8], [0, 3]]}),
        ([128], None, {"mask": [[2, 120]]}),
        ([64], None, {"offset": 2}),
        ([2, 8], [64, 4], {}),
    ],
)
def test_an_output_image_that_would_write_part_of_a_texel_is_refused(shape: list[int], strides: list[int] | None, more: Json) -> None:
    pointer, expected, _ = facts(image_store(shape, strides, **more))

    assert "/ast/nodes/1" == pointer
    assert "texel" in expected
