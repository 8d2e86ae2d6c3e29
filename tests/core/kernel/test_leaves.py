"""Places as accesses: stacks of views and expressions against plain enumeration of their points."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from core.index import TRUE, add, conjuncts, number, scale
from core.index.access import Access, simplified
from core.index.enumerate import Points
from core.ir.op import Op
from core.ir.value import Value
from core.kernel.expression import Size, parse_expression
from core.kernel.leaves import Leaves, axis_value, stack_access
from core.kernel.node import Variable, View
from core.kernel.symbolic import size_value, variable_values
from core.request import Request
from tests.core.index.plain import condition, conditions, value, variable
from tests.kernels import Json, const, dense, kernel, load, node, request, store
from tests.kernels import variable as declared

Array = NDArray[np.int64]


def contiguous(*shape: int) -> View:
    return View(shape, tuple(dense(list(shape))))


def plain(views: tuple[View, ...], shape: tuple[int, ...], n: int = 0) -> tuple[Array, NDArray[np.bool_]]:
    """Index and validity at every point of the last view, by the definition of a stack; n: what the variable is."""
    at = [np.asarray(a, np.int64).reshape(-1) for a in np.indices(shape)] if shape else []
    valid = np.ones(int(np.prod(shape)) if shape else 1, np.bool_)
    flat = np.zeros(valid.shape, np.int64)
    for k, view in enumerate(reversed(views)):
        extents = [number_of(e, n) for e in view.shape]
        if k:
            inside = (flat >= 0) & (flat < int(np.prod(extents)))
            assert inside[valid].all()
            at = list(np.unravel_index(np.where(inside, flat, 0), extents)) if extents else []
        flat = np.full(valid.shape, number_of(view.offset, n))
        for axis, (i, s) in enumerate(zip(at, view.strides, strict=True)):
            flat = flat + i * number_of(s, n)
            if view.mask is not None:
                begin, end = (number_of(b, n) for b in view.mask[axis])
                valid = valid & (i >= begin) & (i < end)
    return flat, valid


def number_of(size: Size, n: int) -> int:
    return size if isinstance(size, int) else int(eval(size.text, {"n": n}))


def access_of(views: tuple[View, ...], variables: tuple[Variable, ...] = ()) -> tuple[Access, list[Value]]:
    names = variable_values(variables)
    axes = [axis_value(k, size_value(e, names)) for k, e in enumerate(views[-1].shape)]
    return simplified(*stack_access(views, tuple(axes), names)), axes


def agrees(views: tuple[View, ...], shape: tuple[int, ...], access: Access, axes: list[Value], n: int | None = None) -> bool:
    """Whether the access is what the plain enumeration says, at every point."""
    ranges = {a: (0, e - 1) for a, e in zip(axes, shape, strict=True) if a.op is Op.AXIS}
    for atom in access.index.free | access.valid.free:
        if atom.op is Op.VARIABLE:
            assert n is not None
            ranges[atom] = (n, n)
    box = Points(ranges)
    index, valid = plain(views, shape, n or 0)
    held = box.full(box.holds(access.valid))
    return bool(np.array_equal(held, valid) and np.array_equal(box.full(box.value(access.index))[held], index[valid]))


def in_bounds(random: Random, size: int) -> View:
    """A view that stays inside `size` elements wherever its mask holds."""
    shape, strides, low, high = [], [], 0, 0
    for _ in range(random.randint(0, 3)):
        extent = random.choice((1, 2, 2, 3, 3, 4, 5))
        stride = random.choice((0, 1, 1, 2, 3, -1, -2, 4, 6, -5))
        reach = stride * (extent - 1)
        if high + max(reach, 0) - (low + min(reach, 0)) < size:
            low, high = low + min(reach, 0), high + max(reach, 0)
            shape.append(extent)
            strides.append(stride)
    offset = random.randint(-low, size - 1 - high)
    if random.random() < 0.3 and size <= 30:
        shape, strides, offset = [size], [random.choice((1, -1))], 0
        offset = 0 if strides[0] == 1 else size - 1
    mask = [(0, e) for e in shape]
    masked = False
    for k in range(len(shape)):
        if random.random() < 0.35:  # padded: the mask says where data is
            left, right = random.randint(0, 2), random.randint(0, 2)
            offset -= left * strides[k]
            mask[k] = (left, left + shape[k])
            shape[k] += left + right
            masked = True
        elif random.random() < 0.15:
            begin = random.randint(0, shape[k])
            mask[k] = (begin, random.randint(begin, shape[k]))
            masked = True
    return View(tuple(shape), tuple(strides), offset, tuple(mask) if masked else None)


def test_random_stacks_are_what_their_points_say() -> None:
    """Acceptance 28: 10,000 stacks of up to 4 views, with masks, flips, broadcasts and paddings."""
    random = Random(14)
    masked = several = 0
    for _ in range(10_000):
        views = [in_bounds(random, 60)]
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            size = int(np.prod([number_of(extent, 0) for extent in views[-1].shape]))
            if not 1 < size <= 120:
                break
            views.append(in_bounds(random, size))
        stack = tuple(views)
        access, axes = access_of(stack)
        masked += access.valid is not TRUE
        several += len(stack) > 1
        assert agrees(stack, tuple(map(int, stack[-1].shape)), access, axes), stack  # type: ignore[arg-type]
    assert masked > 3_000
    assert several > 4_000


def e(text: str) -> Size:
    return parse_expression(text)


SYMBOLIC = [
    (View((e("n"), 4), (4, 1)),),
    (View((e("n"), 4), (-4, 1), e("4*n - 4")),),
    (View((4, e("n")), (e("n"), 1)),),
    (View((4, e("n")), (1, 4)),),
    (View((8,), (1,), e("n*8")),),
    (View((e("n"), 6), (6, 1), 0, ((0, e("n")), (1, 5))),),
    (View((8, 6), (6, 1), 0, ((0, e("n+1")), (0, 6))),),
    (View((8, 6), (6, 1), e("-6*n"), ((e("n"), 8), (0, 6))),),
    (View((e("n"), 4), (4, 1)), View((4, e("n")), (1, 4))),
    (View((e("n"), 4), (4, 1)), View((e("4*n"),), (1,))),
    (View((4, e("n")), (e("n"), 1)), View((e("n"), 4), (4, 1))),
    (View((e("n+2"), 4), (4, 1), -4, ((1, e("n+1")), (0, 4))), View((e("4*n+8"),), (1,))),
]


@pytest.mark.parametrize("views", SYMBOLIC)
def test_symbolic_stacks_are_what_their_points_say_for_every_value(views: tuple[View, ...]) -> None:
    """Acceptance 28, and 37 for a variable that may be 0."""
    access, axes = access_of(views, (Variable("n", 0, 6),))
    for n in range(7):
        shape = tuple(number_of(extent, n) for extent in views[-1].shape)
        assert agrees(views, shape, access, axes, n)


def test_a_pad_shrunk_away_leaves_no_mask() -> None:
    """Acceptance 24 and 25."""
    padded = View((12, 12), (10, 1), 0, ((0, 10), (0, 10)))
    back, _ = access_of((padded, View((10, 10), (12, 1))))
    wider, (i, j) = access_of((padded, View((10, 11), (12, 1))))

    assert TRUE is back.valid
    assert condition("j < 10", j=j) is wider.valid
    assert value("10*i + j", i=i, j=j) is wider.index


def test_a_row_mask_survives_flattening_as_one_interval() -> None:
    """Acceptance 26."""
    rows = (View((4, 6), (6, 1), 0, ((1, 3), (0, 6))), contiguous(24))
    columns = (View((4, 6), (6, 1), 0, ((0, 4), (2, 5))), contiguous(24))
    access, (i,) = access_of(rows)

    assert access == Access(i, conditions("i >= 6", "i < 18", i=i))
    for views in (rows, columns):
        made, axes = access_of(views)
        assert agrees(views, (24,), made, axes)


def test_two_views_that_compose_are_one_index() -> None:
    """Acceptance 27."""
    access, (i, j) = access_of((View((15, 3), (9, 1), 6), View((4, 3), (12, 4))))

    assert Access(value("36*i + 10*j + 6", i=i, j=j)) == access


def test_a_flip_mirrors_the_mask() -> None:
    """Acceptance 29: 8 elements, valid from 2 to 6, backwards by steps of one, then of two."""
    for view in (View((8,), (-1,), 5, ((1, 6),)), View((4,), (-2,), 5, ((1, 3),))):
        access, axes = access_of((view,))
        assert agrees((view,), tuple(map(int, view.shape)), access, axes)  # type: ignore[arg-type]


def test_an_extent_of_one_has_no_stride() -> None:
    """Acceptance 42."""
    one, _ = access_of((View((4, 1), (1, 7)),))
    other, _ = access_of((View((4, 1), (1, 0)),))

    assert one == other


def test_a_mask_nowhere_is_never() -> None:
    access, _ = access_of((View((8,), (1,), 0, ((3, 3),)),))

    assert access.never


def test_a_view_and_the_same_by_expression_are_one_access() -> None:
    """Acceptance 236: identical, not only equal."""
    by_view = load(1, [128, 128], strides=[64, 1], mask=[[0, 128], [0, 64]])
    by_text = {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [128, 128], "index": "axis0*64 + axis1", "valid": ["axis1 < 64"]}
    first, second = (leaves(kernel(leaf, store(0, [128, 128]))).access(0) for leaf in (by_view, by_text))

    assert first == second
    assert (first.index.lo, first.index.hi) == (0, 127 * 64 + 127)


def test_an_expression_where_the_leaf_has_extent_one_is_of_its_own_axes() -> None:
    """Acceptance 238: axis0 is 0 there."""
    row: Json = {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [1, 8], "index": "axis0*64 + axis1"}
    found = leaves(kernel(row, load(2, [4, 8]), node("ADD", 0, 1), store(2, [4, 8])))

    assert found.access(0).index is found.axes[1]


def test_floor_division_under_a_condition_is_never_negative() -> None:
    """Acceptance 239."""
    leaf: Json = {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [6], "index": "(axis0 - 2)//3", "valid": ["axis0 > 1"]}
    found = leaves(kernel(leaf, store(0, [6])))
    access = found.access(0)
    box = Points({found.axes[0]: (0, 5)})

    assert [i > 1 for i in range(6)] == list(box.holds(access.valid))
    assert [(i - 2) // 3 for i in range(2, 6)] == list(box.value(access.index))[2:]


@pytest.mark.parametrize("text", ["axis0*7%5", "-axis0 + 9", "2*axis0 - axis1", "axis0*axis1", "axis0//3*3 + axis1%2", "(low - 3)//2"])
def test_an_index_by_expression_is_what_python_says(text: str) -> None:
    """Acceptance 240 and 243."""
    check_expression(text)


def test_random_expressions_are_what_python_says() -> None:
    """Acceptance 240: over two axes and a variable with negative bounds."""
    random = Random(15)
    for _ in range(800):
        check_expression(written(random, 3))


def check_expression(text: str) -> None:
    names = {"axis0": axis_value(0, 5), "axis1": axis_value(1, 4), "low": variable("low", -3, 4)}
    found = value(text, **names)
    box = Points({names["axis0"]: (0, 4), names["axis1"]: (0, 3), names["low"]: (-3, 4)})
    code = compile(text, "", "eval")
    expected = [eval(code, {"axis0": i, "axis1": j, "low": n}) for i, j, n in product(range(5), range(4), range(-3, 5))]

    assert expected == list(box.full(box.value(found))), text


def written(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.1:
        return random.choice(("axis0", "axis1", "low", str(random.randint(0, 20))))
    kind = random.choice(("+", "-", "*", "//", "%", "~"))
    left = written(random, depth - 1)
    if kind == "~":
        return f"-({left})"
    if kind in ("//", "%"):
        return f"({left}){kind}{random.randint(1, 12)}"
    return f"({left}) {kind} ({written(random, depth - 1)})"


def test_a_gather_names_the_node_and_where_it_stands() -> None:
    ids: Json = {"op": "LOAD", "buffer": 2, "dtype": "int16", "shape": [6, 1], "index": "axis0"}
    row: Json = {"op": "LOAD", "buffer": 1, "dtype": "float32", "src": [0], "shape": [6, 64], "index": "src0*64 + axis1"}
    row["valid"] = ["src0 >= 0"]
    found = leaves(kernel(ids, row, store(1, [6, 64])))
    access = found.access(1)
    opaque = found.opaque(0)

    assert access.index is add(scale(opaque, 64), found.axes[1])
    assert (found.axes[0],) == opaque.src
    assert (-(2**15), 2**15 - 1) == (opaque.lo, opaque.hi)
    assert access.stride(found.axes[0]) is None
    assert number(1) is access.stride(found.axes[1])
    assert 1 == len(conjuncts(access.valid))


def test_a_constant_has_masks_and_no_index() -> None:
    body = const(2.0, [4, 8])
    body["views"][0]["mask"] = [[0, 4], [2, 5]]
    found = leaves(kernel(body, store(0, [4, 8]))).access(0)

    assert number(0) is found.index
    assert 2 == len(conjuncts(found.valid))


def test_a_ramp_is_its_expression() -> None:
    ramp: Json = {"op": "CONST", "expr": "axis0*4 + axis1 + n", "dtype": "int32", "shape": [8, 4]}
    found = leaves(kernel(ramp, store(0, [8, 4], dtype="int32"), variables=[declared("n", -3, 3)]))

    assert value("4*i + j + n", i=found.axes[0], j=found.axes[1], n=variable("n", -3, 3)) is found.access(0).index


def test_positions_between_views_are_kept() -> None:
    padded = {"shape": [8], "strides": [1], "offset": -1, "mask": [[1, 7]]}
    leaf: Json = {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [padded, {"shape": [2, 4], "strides": [4, 1]}]}
    found = leaves(kernel(leaf, store(0, [2, 4])))
    (step,) = found.between(0)

    assert value("4*i + j", i=found.axes[0], j=found.axes[1]) is step.position
    assert number(8) is step.size
    assert [] == found.between(1)


def test_an_axis_of_many_kernels_is_told_apart_by_its_extent() -> None:
    assert axis_value(0, 4) is axis_value(0, 4)
    assert axis_value(0, 4) is not axis_value(0, 5)


def leaves(ast: Json) -> Leaves:
    return Leaves(Request.from_json(request(ast)).kernel)
