"""Reduces: kinds and dtypes, empty and masked rows, nested and side by side, each over axes of its own.

Acceptance G 132-152, N 252-258, 274.
"""

from __future__ import annotations

import pytest

from tests.meaning.build import Build, Term
from tests.meaning.cases import Case, each, plain, special, symbolic
from tests.meaning.harness import TARGETS, assert_means

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
KINDS = ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MUL")


def kinds(dtype: str, shape: list[int | str], axes: tuple[int, ...], **place: object) -> Build:
    """One reduce of each kind in one kernel."""
    k = Build(n=(0, 40))
    x = k.load(dtype, shape, **place)  # type: ignore[arg-type]  # a table of places
    for kind in KINDS:
        k.store(x.reduce(kind, *axes))
    return k


@each({dtype: special(kinds(dtype, [6, 33], (1,)), (0, 1)) for dtype in DTYPES})
def test_each_kind_of_reduce_on_each_dtype(case: Case, target: str) -> None:
    """G 132, 133, J 194, N 274."""
    case.holds(target)


@each({f"{dtype}-rows-of-nothing": plain(kinds(dtype, [4, 0], (1,)), (0,)) for dtype in DTYPES})
def test_a_reduce_over_nothing_gives_its_identity(case: Case, target: str) -> None:
    """A 20."""
    case.holds(target)


@each({f"{dtype}": plain(kinds(dtype, [4, 9], (1,), strides=[9, 1], mask=[[1, 3], [0, 7]]), (0,)) for dtype in DTYPES})
def test_masked_off_elements_are_zeros_that_take_part(case: Case, target: str) -> None:
    """A row that is all masked off gives 0, whatever the kind; L 233 for bool."""
    case.holds(target)


@each({dtype: symbolic(kinds(dtype, [3, "n"], (1,))) for dtype in ("bool", "int32", "float32", "float16")})
def test_a_reduce_over_an_extent_known_at_launch(case: Case, target: str) -> None:
    """G 152: n = 0 and the greatest too."""
    case.holds(target)


AXES = {
    "first": kinds("float32", [7, 6], (0,)),
    "both": kinds("float32", [7, 6], (0, 1)),
    "middle": kinds("int32", [3, 5, 4], (1,)),
    "outer-and-inner": kinds("int32", [3, 5, 4], (0, 2)),
    "all-of-three": kinds("float32", [3, 5, 4], (0, 1, 2)),
    "transposed": kinds("float32", [7, 6], (1,), strides=[1, 7]),
    "broadcast": kinds("int32", [7, 6], (1,), strides=[1, 0]),
    "backwards": kinds("int32", [7, 6], (0,), strides=[-6, 1], offset=36),
    "extent-one": kinds("float32", [7, 1], (1,)),
    "large": kinds("float32", [2, 4096], (1,)),
}


@each({name: plain(build) for name, build in AXES.items()})
def test_a_reduce_runs_over_its_axes(case: Case, target: str) -> None:
    case.holds(target)


def matmul(m: int | str, n: int, k_: int | str, dtype: str, to: str) -> Build:
    k = Build(n=(1, 40))
    a = k.index(dtype, [m, n, k_], f"axis0*{k_} + axis2")
    b = k.index(dtype, [m, n, k_], f"axis2*{n} + axis1")
    return k.store((a * b).cast(to).sum(2))


def variance(dtype: str) -> Build:
    k = Build()
    x = k.load(dtype, [6, 16])
    centred = x - x.sum(1) * 0.0625
    return k.store((centred * centred).sum(1) * 0.0625)


def nested(outer: str, inner: str, dtype: str = "float32") -> Build:
    """N 252."""
    k = Build()
    return k.store(k.load(dtype, [3, 4, 8]).reduce(inner, 2).reduce(outer, 1))


def inner_over_the_lower_axis() -> Build:
    k = Build()
    return k.store(k.load("float32", [3, 4, 8]).max(1).sum(2))


def three_levels() -> Build:
    k = Build()
    return k.store(k.load("int32", [2, 3, 4, 5]).sum(3).max(2).sum(1))


def negative_everywhere() -> Build:
    """N 253."""
    k = Build()
    x = k.load("float32", [3, 4, 8])
    return k.store((-(x * x) + -1.0).max(2).sum(1))


def empties(j: int | str, inner: int | str) -> Build:
    k = Build(n=(0, 20))
    return k.store(k.load("float32", [3, j, inner]).max(2).sum(1))


def beside(dtype: str) -> Build:
    """N 255: a row's maximum beside a column's."""
    k = Build()
    x = k.load(dtype, [4, 6])
    return k.store(x - x.max(1) - x.max(0))


def crossed() -> Build:
    k = Build()
    x = k.load("int32", [4, 6])
    return k.store(x.max(1).sum(0) + x.max(0).sum(1))


def several_classes() -> Build:
    """N 256."""
    k = Build()
    x, row = k.load("int32", [3, 4, 5]), k.load("int32", [3, 4, 1])
    return k.store(x.sum(1).max(2) + x.sum(1, 2) + x.sum(2).max(1) + row.sum(1, 2))


def one_reduce_at_two_sites() -> Build:
    """N 257."""
    k = Build()
    m = k.load("float32", [3, 4, 5]).max(2)
    return k.store(m * (m * m + 1.0).sum(1).recip())


def squared_sum() -> Build:
    """G 136."""
    k = Build()
    s = k.load("float32", [4, 8]).sum(1)
    return k.store(s * s)


def invariant_load() -> Build:
    """G 134, 135: what does not depend on a loop."""
    k = Build()
    x, bias, scale = k.load("float32", [3, 4, 8]), k.load("float32", [3, 4, 1]), k.load("float32", [3, 1, 1])
    return k.store(((x + bias).sum(2) * scale).sum(1) + scale)


def shared_subtree() -> Build:
    k = Build()
    x = k.load("float32", [5, 9])
    y = x * x + 1.0
    return k.store(y.sum(1) + y.max(1)).store(y.sum(1) * 2.0)


def reduce_of_a_constant() -> Build:
    k = Build()
    return k.store(k.const(2.5, "float32", [4, 7]).sum(1) + k.const(3.0, "float32", [4, 7], mask=[[0, 4], [2, 5]]).sum(1))


def pooled() -> Build:
    """L 214: windows of 3 by 3 over a padded image."""
    k = Build()
    padded = {"shape": [10, 10], "strides": [8, 1], "offset": -9, "mask": [[1, 9], [1, 9]]}
    x = k.load("float32", [], views=[padded, {"shape": [4, 4, 3, 3], "strides": [20, 2, 10, 1], "offset": 0}])
    return k.store(x.max(2, 3))


def convolved() -> Build:
    k = Build()
    padded = {"shape": [2, 6, 6], "strides": [16, 4, 1], "offset": -5, "mask": [[0, 2], [1, 5], [1, 5]]}
    x = k.load("float32", [], views=[padded, {"shape": [3, 4, 4, 2, 3, 3], "strides": [0, 6, 1, 36, 6, 1], "offset": 0}])
    w = k.load("float32", [3, 4, 4, 2, 3, 3], [18, 0, 0, 9, 3, 1])
    return k.store((x * w).sum(3, 4, 5))


def argmax() -> Build:
    k = Build()
    x = k.load("float32", [5, 12])
    backwards = k.ramp("11 - axis1", "int32", [5, 12])
    found = x.differs(x.max(1)).where(k.const(0, "int32", [5, 12]), backwards).max(1)
    return k.store(k.const(11, "int32", [5, 1]) + -found)


def pooled_any() -> Build:
    """Bool reduces as the condition of a select (J 191)."""
    k = Build()
    x = k.load("bool", [6, 5])
    return k.store(x.sum(1).where(k.load("int8", [6, 1]), k.const(-3, "int8", [6, 1]))).store(x.prod(1))


def many_terms(count: int) -> Build:
    """G 150."""
    k = Build()
    x = k.load("int32", [2, 4])
    total: Term = x
    for _ in range(count):
        total = total + x
    return k.store(total.sum(1))


SHAPES = {
    "matmul-float32": matmul(8, 9, 10, "float32", "float32"),
    "matmul-half-into-float": matmul(4, 5, 33, "float16", "float32"),
    "matmul-bfloat16": matmul(4, 5, 33, "bfloat16", "bfloat16"),
    "matmul-int8-into-int32": matmul(4, 5, 40, "int8", "int32"),
    "variance-float32": variance("float32"),
    "variance-float16": variance("float16"),
    "sum-of-max": nested("REDUCE_SUM", "REDUCE_MAX"),
    "max-of-sum": nested("REDUCE_MAX", "REDUCE_SUM"),
    "product-of-sums": nested("REDUCE_MUL", "REDUCE_SUM", "int32"),
    "inner-over-the-lower-axis": inner_over_the_lower_axis(),
    "three-levels": three_levels(),
    "negative-everywhere": negative_everywhere(),
    "no-k": empties(4, 0),
    "no-j": empties(0, 4),
    "one-k": empties(4, 1),
    "one-j": empties(1, 4),
    "beside-float32": beside("float32"),
    "beside-int16": beside("int16"),
    "crossed": crossed(),
    "several-classes": several_classes(),
    "one-reduce-at-two-sites": one_reduce_at_two_sites(),
    "squared-sum": squared_sum(),
    "invariant-load": invariant_load(),
    "shared-subtree": shared_subtree(),
    "reduce-of-a-constant": reduce_of_a_constant(),
    "pooled": pooled(),
    "convolved": convolved(),
    "argmax": argmax(),
    "pooled-any": pooled_any(),
    "many-terms": many_terms(300),
}


@each({name: plain(build) for name, build in SHAPES.items()})
def test_reduces_within_and_beside_each_other(case: Case, target: str) -> None:
    """G 145, 148, 151."""
    case.holds(target)


@each({f"{dtype}": special(beside(dtype)) for dtype in FLOATS} | {"sum-of-max": special(nested("REDUCE_SUM", "REDUCE_MAX"), (0, 1))})
def test_nan_in_one_row_stays_in_it(case: Case, target: str) -> None:
    """N 253, J 194."""
    case.holds(target)


@each(
    {
        "no-k-at-launch": symbolic(empties(4, "n")), "no-j-at-launch": symbolic(empties("n", 4)),
        "matmul-by-the-variable": symbolic(matmul("n", 3, 4, "float32", "float32")),
        "matmul-over-the-variable": symbolic(matmul(3, 4, "n", "float32", "float32")),
    }
)  # fmt: skip
def test_extents_known_at_launch_may_be_nothing_or_one(case: Case, target: str) -> None:
    case.holds(target)


@pytest.mark.parametrize("target", TARGETS)
def test_another_operand_of_extent_one_does_not_keep_an_empty_row_alive(target: str) -> None:
    """A 20: the reduce runs over its operand's extent, 0 here."""
    k = Build()
    ast = k.store((k.load("float32", [4, 0]) + k.load("float32", [4, 1])).sum(1)).ast()

    assert_means(ast, target)
