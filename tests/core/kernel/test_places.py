"""What kernels are refused for where they read and write, and what stays open: inside views and images, once per element, no race."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from core.errors import KernelError
from core.index.enumerate import Points, own_bounds
from core.ir.size_text import expression_text
from core.kernel.leaves import Leaves
from core.kernel.node import Load
from core.kernel.places import Places, check_places, touched_sizes
from core.request import Request
from tests.kernels import Json, dense, kernel, load, node, request, store, variable, view


def formula(op: str, buffer: int, shape: list[Any], index: Any, *valid: str, src: list[int] | None = None, **more: Any) -> Json:
    leaf: Json = {"op": op, "buffer": buffer, "dtype": "float32", "shape": shape, "index": index, "valid": list(valid), **more}
    return leaf if src is None else {**leaf, "src": src}


def read(index: Any, shape: list[Any], *valid: str, **more: Any) -> Json:
    """A kernel that reads by this index and stores where it is."""
    return kernel(formula("LOAD", 1, shape, index, *valid), store_at(0, shape), **more)


def store_at(src: int, shape: list[Any]) -> Json:
    texts = [str(e) for e in shape]
    strides = ["*".join(texts[k + 1 :]) or 1 for k in range(len(texts))]
    return {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [view(shape, strides)], "src": [src]}


def written(index: Any, shape: list[Any], *valid: str, variables: list[Json] | None = None, **more: Any) -> Json:
    """A kernel that stores ones by this index."""
    one = {"op": "CONST", "value": 1.0, "dtype": "float32", "shape": [1] * len(shape)}
    return kernel(one, formula("STORE", 0, shape, index, *valid, src=[0], **more), variables=variables)


def checked(ast: Json) -> Places:
    found = Request.from_json(request(ast))
    return check_places(found.kernel, Leaves(found.kernel), found.rows)


def sizes(ast: Json) -> dict[int, str]:
    found = Request.from_json(request(ast))
    return {buffer: expression_text(size) for buffer, size in touched_sizes(found.kernel, Leaves(found.kernel)).items()}


def refused(ast: Json) -> KernelError:
    with pytest.raises(KernelError) as caught:
        checked(ast)
    return caught.value


def facts(ast: Json) -> tuple[str, str, str]:
    """Pointer, what was expected, what came."""
    error = refused(ast).facts()
    return str(error["pointer"]), str(error["expected"]), str(error["got"])


# ---- inside ----------------------------------------------------------------------------------------------------------------


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


# ---- written once ----------------------------------------------------------------------------------------------------------

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


# ---- in place --------------------------------------------------------------------------------------------------------------


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


# ---- gathers ---------------------------------------------------------------------------------------------------------------


def gather(dtype: str, *valid: str, index: str = "src0*64 + axis1") -> Json:
    ids: Json = {"op": "LOAD", "buffer": 2, "dtype": dtype, "shape": [6, 1], "index": "axis0"}
    return kernel(ids, formula("LOAD", 1, [6, 64], index, *valid, src=[0]), store(1, [6, 64]))


def test_a_bounded_gather_has_a_size_and_nothing_open() -> None:
    """Acceptance 268."""
    ast = gather("int32", "src0 >= 0", "src0 < 100")

    assert () == checked(ast).open
    assert {0: "384", 1: "6400", 2: "6"} == sizes(ast)


@pytest.mark.parametrize(
    ("dtype", "valid", "size"),
    [
        ("uint16", ("src0 < 100",), "6400"),
        ("int16", ("src0 < 100",), "1"),
        ("int16", ("src0 >= 0",), "1"),
        ("int32", (), "1"),
        ("uint8", (), "1"),
        ("int64", ("src0 >= 0", "src0 < 7"), "448"),
        ("uint64", ("src0 < 7",), "448"),
    ],
)
def test_a_gather_counts_as_one_element_unless_its_values_are_bounded(dtype: str, valid: tuple[str, ...], size: str) -> None:
    """Acceptance 268 and 269: an unsigned value's own lower bound counts, its upper does not."""
    assert size == sizes(gather(dtype, *valid))[1]


def test_an_unbounded_gather_is_named() -> None:
    """Acceptance 269."""
    (unknown,) = checked(gather("int32")).open

    assert ("bounds", 1, 1) == (unknown.of, unknown.argument, unknown.node)
    assert "`valid`" in unknown.why


def test_a_gather_negative_for_every_value_is_refused() -> None:
    assert "/ast/nodes/1" == facts(gather("int32", "src0 < 0", "src0 > -9"))[0]
    assert 1 == len(checked(gather("int32", "src0 < 3", "src0 > -9")).open)


def test_a_remainder_of_a_value_is_bounded() -> None:
    ast = gather("int32", index="src0%16*64 + axis1")

    assert () == checked(ast).open
    assert "1024" == sizes(ast)[1]
    assert "1" == sizes(gather("int32", index="src0%16 + src0"))[1]


# ---- sizes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "shape", "valid", "size"),
    [
        ("axis0*64 + axis1", [128, 128], ("axis1 < 64",), "8192"),
        ("axis0*64 + axis1", ["n", 64], (), "n*64"),
        ("n*64 + axis1", [1, 64], (), "n*64+64"),
        ("axis0*8 + 7 - axis1", [4, 8], (), "32"),
        ("axis0*8 + axis1", [4, 8], ("axis0 > 9",), "0"),
        ("(axis0 + 4)%6", [4], (), "6"),
        ("5", [4], (), "6"),
    ],
)
def test_a_size_is_the_greatest_valid_index_and_one(index: str, shape: list[Any], valid: tuple[str, ...], size: str) -> None:
    """Acceptance 15 and 236."""
    assert size == sizes(read(index, shape, *valid, variables=[variable("n", 1, 20)]))[1]


def test_a_size_holds_every_leaf_of_its_buffer() -> None:
    ast = kernel(load(1, [8]), load(1, [8], offset=20), node("ADD", 0, 1), store(2, [8]))

    assert {0: "8", 1: "28"} == sizes(ast)


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
