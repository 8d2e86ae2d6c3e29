"""Kernels of few nodes: broadcasts, constants, several outputs, buffers read and written (acceptance A 9-12, 16, 19, 22, 23)."""

from __future__ import annotations

from tests.meaning.build import Build, view
from tests.meaning.cases import Case, each, plain


def scalar() -> Build:
    k = Build()
    return k.store(k.load("float32", []) + k.load("float32", []))


def untouched() -> Build:
    """A 22: an argument nothing is read from and a variable no node names keep their places."""
    k = Build(unused=(0, 5))
    x, hidden, y = k.load("float32", [4]), k.load("float32", [4], mask=[[2, 2]]), k.load("float32", [4])
    return k.store(x + hidden + y)


def broadcast_back(shape: list[int | str]) -> Build:
    k = Build()
    return k.store(k.load("float32", [32, 4]).sum(0), shape)


def two_views_of_one_buffer() -> Build:
    k = Build()
    x = k.load("float32", [4, 4])
    return k.store(x + k.load("float32", [4, 4], [1, 4], buffer="in0"))


def one_element_twice() -> Build:
    """A 23: spelt by views and by expression."""
    k = Build()
    x = k.load("float32", [4, 4])
    return k.store(x * k.index("float32", [4, 4], "axis0*4 + axis1", buffer="in0"))


def sum_over_one() -> Build:
    """A 9: a leaf of extent 1 on a reduced axis is one element, whatever the kernel's extent."""
    k = Build()
    x, y = k.load("float32", [4, 32]), k.load("float32", [4, 1])
    return k.store(x.sum(1) + y.sum(1))


def value_broadcast() -> Build:
    k = Build()
    return k.store(k.load("float32", [4, 1]), [4, 32])


def load_and_two_constants() -> Build:
    """F 113."""
    k = Build()
    x = k.load("float32", [8])
    return k.store(x + k.const(1.0, "float32", [8]) + k.const(2.0, "float32", [8]))


def masked_constants() -> Build:
    """F 122, and a stack of two arrays (F 112)."""
    k = Build()
    one = k.const(3.5, "float32", [2, 6], mask=[[0, 1], [0, 6]])
    a = k.load("float32", [2, 6], [0, 1], mask=[[0, 1], [0, 6]])
    b = k.load("float32", [2, 6], [0, 1], mask=[[1, 2], [0, 6]])
    return k.store(a + b + one)


def expr_of_variable() -> Build:
    """F 125."""
    k = Build(start_pos=(1, 80))
    c = k.node({"op": "CONST", "expr": "start_pos*64 + 3", "dtype": "int32", "views": [view([4], [0])]}, "int32", [4])
    return k.store(c + k.load("int32", [4]))


def two_outputs() -> Build:
    """F 126."""
    k = Build()
    a, b = k.load("float32", [8]), k.load("float32", [8])
    return k.store(a + b).store(a * b)


def mixed_outputs() -> Build:
    k = Build()
    a = k.load("int16", [6, 5])
    return k.store(a.cast("float32").sum(1), [6, 5]).store(a < a.max(1)).store(a + a.sum(0), [6, 5], [1, 6])


def where_both_sides_load() -> Build:
    """F 111, 130."""
    k = Build()
    a = k.load("float32", [8])
    return k.store(k.const(True, "bool", [8]).where(a, k.load("float32", [8])))


def shifted_sum() -> Build:
    """F 109."""
    k = Build()
    return k.store(k.load("float32", [3]) + k.load("float32", [3], offset=1, buffer="in0"))


PIPELINE = {
    "scalar": scalar(),
    "untouched": untouched(),
    "broadcast-back-to-32-rows": broadcast_back([32, 4]),
    "column-sums": broadcast_back([1, 4]),
    "two-views-of-one-buffer": two_views_of_one_buffer(),
    "one-element-twice": one_element_twice(),
    "sum-over-one": sum_over_one(),
    "value-broadcast": value_broadcast(),
    "load-and-two-constants": load_and_two_constants(),
    "masked-constants": masked_constants(),
    "expr-of-variable": expr_of_variable(),
    "two-outputs": two_outputs(),
    "mixed-outputs": mixed_outputs(),
    "where-both-sides": where_both_sides_load(),
    "shifted-sum": shifted_sum(),
}


@each({name: plain(build) for name, build in PIPELINE.items()})
def test_a_kernel_of_few_nodes_means_what_the_page_says(case: Case, target: str) -> None:
    case.holds(target)


def added_in_place() -> Build:
    k = Build()
    return k.store(k.load("float32", [10], buffer="out0") + k.load("float32", [10]))


def row_in_place() -> Build:
    k = Build()
    a = k.index("float32", [4, 4], "4 + axis1", "axis0 >= 1", "axis0 < 2", buffer="out0")
    return k.store(a + k.load("float32", [4, 4]), [4, 4])


def odd_to_even() -> Build:
    k = Build()
    return k.store(k.load("float32", [6], [2], offset=1, buffer="out0") * 2.0, [6], [2])


def conditional_in_place() -> Build:
    """F 130."""
    k = Build()
    mask = k.load("bool", [8])
    return k.store(mask.where(k.const(2.0, "float32", [8]), k.load("float32", [8], buffer="out0")))


def unchanged_in_place() -> Build:
    """F 131."""
    k = Build()
    return k.store(k.load("int32", [8], buffer="out0"))


def minus_maximum_in_place() -> Build:
    """N 266: y - max(x) over y."""
    k = Build()
    x = k.load("float32", [4, 6])
    return k.store(k.load("float32", [4, 6], buffer="out0") - x.max(1))


def swapped() -> Build:
    """Two outputs, each made of the other's old elements at the same point."""
    k = Build()
    a, b = k.load("int32", [9], buffer="out0"), k.load("int32", [9], buffer="out1")
    return k.store(b + 0).store(a + 1)


@each(
    {
        "added": plain(added_in_place()), "row": plain(row_in_place()), "odd-to-even": plain(odd_to_even()),
        "conditional": plain(conditional_in_place()), "unchanged": plain(unchanged_in_place()),
        "minus-maximum": plain(minus_maximum_in_place()), "swapped": plain(swapped()),
    }
)  # fmt: skip
def test_loads_see_what_a_buffer_held_before_the_kernel(case: Case, target: str) -> None:
    """A 16."""
    case.holds(target)
