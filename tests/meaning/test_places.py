"""Where elements lie: views, stacks of views, masks and formulas (acceptance A 9-16, 19-23, F 113-131, M 235-244)."""

from __future__ import annotations

import numpy as np
import pytest

from core import KernelError
from tests.meaning.build import Build, Json, view
from tests.meaning.cases import Case, each, plain, symbolic
from tests.meaning.harness import TARGETS, assert_means, compiled, meaning, run, run_c, verdict


def copied(dtype: str = "float32", **place: object) -> Build:
    k = Build()
    return k.store(k.load(dtype, **place))  # type: ignore[arg-type]  # a table of places


def expression(shape: list[int | str], index: str, *valid: str, dtype: str = "float32") -> Build:
    k = Build()
    return k.store(k.index(dtype, shape, index, *valid))


def stacked(*views: Json) -> Build:
    return copied(shape=[], views=list(views))


VIEWS = {
    "transposed": copied(shape=[5, 7], strides=[1, 5]),
    "flipped": copied(shape=[9], strides=[-1], offset=8),
    "flipped-both": copied(shape=[3, 4], strides=[-4, -1], offset=11),
    "broadcast": copied(shape=[6, 5], strides=[0, 1]),
    "broadcast-scalar": copied(shape=[4, 4], strides=[0, 0], offset=3),
    "every-third": copied(shape=[5, 4], strides=[12, 3], offset=2),
    "extent-one-with-a-stride": copied(shape=[1, 6], strides=[7, 1]),
    "padded": copied(shape=[8, 6], strides=[4, 1], offset=-5, mask=[[1, 7], [1, 5]]),
    "padded-flipped": copied(shape=[8], strides=[-1], offset=6, mask=[[2, 7]]),
    "never-valid": copied(shape=[8], strides=[1], mask=[[3, 3]]),
    "mask-on-one-axis": copied(shape=[4, 8], strides=[6, 1], offset=-1, mask=[[0, 4], [1, 7]]),
    "reshaped-after-padding": stacked(view([4, 8], [6, 1], -1, [[0, 4], [1, 7]]), view([2, 16])),
    "padded-twice": stacked(view([6], [1], -1, [[1, 5]]), view([10], [1], -2, [[2, 8]])),
    "window": stacked(view([8], [1], -1, [[1, 7]]), view([6, 3], [1, 1])),
    "window-of-two-axes": stacked(view([6, 6], [4, 1], -5, [[1, 5], [1, 5]]), view([4, 4, 3, 3], [6, 1, 6, 1])),
    "reshape-of-a-transpose": stacked(view([4, 3], [1, 4]), view([6, 2])),
    "three-views": stacked(view([4, 3], [1, 4]), view([3, 4], [4, 1], 0, [[0, 3], [1, 3]]), view([6, 2], [-2, 1], 10)),
    "flip-of-a-reshape": stacked(view([2, 6], [6, 1]), view([12], [-1], 11)),
    "shrunk-from-far-away": stacked(view([100, 100], [100, 1]), view([3, 3], [100, 1], 9797)),
}


@each({name: plain(build, (0,)) for name, build in VIEWS.items()})
def test_a_view_reads_the_elements_it_names(case: Case, target: str) -> None:
    case.holds(target)


def padded(dtype: str) -> Case:
    return plain(copied(dtype, shape=[8, 6], strides=[4, 1], offset=-5, mask=[[1, 7], [1, 5]]), (0,))


@each({dtype: padded(dtype) for dtype in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64")})
def test_a_masked_off_load_is_zero_of_its_dtype(case: Case, target: str) -> None:
    case.holds(target)


FORMULAS = {
    "as-a-masked-view": expression([128, 128], "axis0*64 + axis1", "axis1 < 64"),  # M 236
    "an-axis-of-extent-1-is-0": expression([1, 8], "axis0*64 + axis1"),  # M 238
    "floor-of-a-shifted-axis": expression([6], "(axis0 - 2)//3", "axis0 > 1"),  # M 239
    "remainder-of-a-product": expression([9], "axis0*7%5"),  # M 240
    "backwards": expression([10], "-axis0 + 9"),
    "difference": expression([6, 5], "2*axis0 - axis1 + 4"),
    "product-of-axes": expression([5, 6], "axis0*axis1"),  # M 243
    "blocked": expression([8, 30], "(axis0*30 + axis1)//4*8 + (axis0*30 + axis1)%4"),  # M 242
    "nested-divisions": expression([90], "axis0//10//3*7 + axis0%12%4"),
    "floor-of-negatives": expression([12], "(axis0 - 20)//4 + 5 + (axis0 - 20)%3"),
    "two-conditions": expression([7, 7], "axis0*7 + axis1", "axis0 + axis1 >= 3", "axis0*2 - axis1 < 6"),
    "impossible": expression([5], "axis0", "axis0 > 7"),
    "constant-index": expression([5], "3"),
    "negative-where-invalid": expression([5], "axis0 - 3", "axis0 >= 3"),
}


@each({name: plain(build, (0,)) for name, build in FORMULAS.items()})
def test_a_formula_reads_the_elements_it_names(case: Case, target: str) -> None:
    case.holds(target)


def test_an_index_that_is_negative_where_valid_is_refused() -> None:
    """M 239."""
    with pytest.raises(KernelError):
        compiled(expression([6], "(axis0 - 2)//3").ast(), "c")


def with_n(shape: list[int | str], index: str, *valid: str, low: int = 1, high: int = 80) -> Build:
    k = Build(n=(low, high))
    return k.store(k.index("float32", shape, index, *valid))


def cache_rows() -> Build:
    """The pattern of a key-value cache: read up to where the variable says, from where it says (L 234)."""
    k = Build(start=(1, 80))
    k.store(k.load("float32", [4, "start"], [100, 1]).sum(1))
    return k


def cache_write() -> Build:
    k = Build(start=(0, 80))
    x = k.load("float32", [4, 8])
    return k.store(x, [4, 8], [100, 1], offset="start*2 + 3")


def clipped_mask() -> Build:
    """A symbolic mask means the range it comes to, within the extent (A 14)."""
    k = Build(n=(1, 80))
    return k.store(k.load("float32", [8], mask=[[0, "n + 1"]]))


def symbolic_stack() -> Build:
    k = Build(n=(1, 20))
    x = k.load("float32", [], views=[view(["n", 6], [6, 1], 0, [[0, "n"], [1, 5]]), view([6, "n"], [1, 6])])
    return k.store(x, [6, "n"], ["n", 1])


SYMBOLIC = {
    "rows": with_n(["n", 4], "axis0*4 + axis1"),
    "transposed": with_n([4, "n"], "axis1*4 + axis0"),
    "strides-of-the-variable": with_n([4, "n"], "axis0*n + axis1"),
    "offset-of-the-variable": with_n([6], "axis0 + n*3 - 3"),
    "negative-variable": with_n([6], "axis0 + n + 5", low=-5, high=5),
    "valid-of-the-variable": with_n([20], "axis0", "axis0 < n"),
    "remainder": with_n([12], "(axis0 + n)%7"),
    "nothing-at-zero": with_n(["n", 3], "axis0*3 + axis1", low=0),
    "cache-rows": cache_rows(),
    "cache-write": cache_write(),
    "clipped-mask": clipped_mask(),
    "stack": symbolic_stack(),
}


@each({name: symbolic(build) for name, build in SYMBOLIC.items()})
def test_variables_in_places_mean_their_values_at_launch(case: Case, target: str) -> None:
    """B 37, F 125, G 152, M 240."""
    case.holds(target)


def stored(shape: list[int | str], **place: object) -> Build:
    k = Build(n=(1, 30))
    return k.store(k.load("int32", shape), shape, **place)  # type: ignore[arg-type]  # a table of places


STORES = {
    "rows-backwards": stored([4, 8], strides=[-8, 1], offset=24),  # M 241
    "by-the-variable": stored([4, "n"], index="axis0*n + axis1"),
    "blocked": stored([8, 30], index="(axis0*30 + axis1)//4*8 + (axis0*30 + axis1)%4"),
    "triangle": stored([3, 3], index="axis0*2 + axis1", valid=["axis0 + axis1 < 2"]),
    "transposed": stored([5, 6], strides=[1, 5]),
    "with-gaps": stored([5, 6], strides=[20, 3], offset=7),
    "masked": stored([6, 6], strides=[6, 1], mask=[[1, 5], [2, 6]]),
    "one-off": stored([16], offset=1),  # F 120
    "never": stored([8], strides=[1], mask=[[4, 4]]),  # A 21
}


@each({name: symbolic(build) for name, build in STORES.items()})
def test_a_store_writes_its_elements_and_leaves_the_others(case: Case, target: str) -> None:
    case.holds(target)


@pytest.mark.parametrize("shape", [[0], [4, 0], [0, 3]])
@pytest.mark.parametrize("target", TARGETS)
def test_an_empty_output_launches_nothing(shape: list[int | str], target: str) -> None:
    """A 20."""
    k = Build()
    ast = k.store(k.load("float32", shape) + 1.0).ast()
    program, _ = compiled(ast, target)

    assert program.global_size is None or 0 in program.global_size
    assert_means(ast, target)


@pytest.mark.parametrize("target", TARGETS)
def test_negative_zero_is_stored_as_it_is(target: str) -> None:
    """A 17."""
    k = Build()
    program, _ = compiled(k.store(k.const(-0.0, "float32", [2])).ast(), target)

    ran = run(target, program.to_json(), {0: np.ones(2, np.float32)})

    assert [0x80000000] * 2 == ran.buffers[0].view(np.uint32).tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_a_chain_of_two_thousand_nodes_is_ordinary(target: str) -> None:
    """A 18, within the seconds a test has."""
    k = Build()
    x = k.load("int32", [4])
    y = k.load("int32", [4])
    for _ in range(2000):
        x = (x + y).op("XOR", y)

    assert_means(k.store(x).ast(), target, seeds=(0,))


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_are_what_the_kernel_touches(target: str) -> None:
    """A 15, M 236."""
    program, _ = compiled(FORMULAS["as-a-masked-view"].ast(), target)

    assert [16384, 8192] == [argument.to_json()["size"] for argument in program.arguments]


@pytest.mark.parametrize("target", TARGETS)
def test_a_view_and_the_formula_that_says_the_same_give_the_same_text(target: str) -> None:
    """M 236."""
    by_view = copied(shape=[128, 128], strides=[64, 1], mask=[[0, 128], [0, 64]])

    assert compiled(by_view.ast(), target)[0].source == compiled(FORMULAS["as-a-masked-view"].ast(), target)[0].source


def test_a_kernel_that_is_wrong_is_found_out() -> None:
    """The harness itself: what means one thing is not what means another."""
    k = Build()
    x = k.load("float32", [8])
    right, _ = compiled(k.store(x + 1.0).ast(), "c")
    kernel = Build()
    wrong = kernel.store(kernel.load("float32", [8]) + 2.0).ast()

    found = verdict(wrong, "c")
    values = meaning(wrong, {0: np.zeros(8, np.float32), 1: np.ones(8, np.float32)}, {})
    ran = run_c(right, {0: np.zeros(8, np.float32), 1: np.ones(8, np.float32)})

    assert "right" == found.verdict
    assert [3.0] * 8 == values[0].tolist()
    assert [2.0] * 8 == ran.buffers[0].tolist()
