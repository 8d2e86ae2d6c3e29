"""Kernels whose schedules are tried in `test_options`: each was hard for some compiler once."""

from __future__ import annotations

from typing import Any

from tests.meaning.build import Build

Json = dict[str, Any]


def mean_of_masked(pad: int) -> Json:
    """C 78: masked points of the operand count as 0 and contribute the negated mean."""
    k = Build()
    x = k.load("float32", [3, pad], mask=[[0, 3], [2, pad - 1]])
    centred = x - x.sum(1) * (1 / pad)
    return k.store((centred * centred).sum(1)).ast()


def sums_over_one_class() -> Json:
    """N 256: of the class's two axes one reduce runs over the first only."""
    k = Build()
    return k.store(k.load("float32", [3, 4, 5]).sum(1, 2) + k.load("float32", [3, 4, 1]).sum(1, 2)).ast()


def of_functions() -> Json:
    """C 72: f(0) is not 0."""
    k = Build()
    x = k.load("float32", [4, 13])
    total = x.exp2().sum(1) + x.recip().sum(1) + x.op("LOG2").sum(1)
    return k.store(total).ast()


def divided() -> Json:
    k = Build()
    x, y = k.load("int32", [4, 13]), k.load("int32", [4, 13])
    return k.store(x.op("IDIV", y).sum(1)).store(x.op("MOD", y).max(1)).ast()


def negated_bools() -> Json:
    """C 73."""
    k = Build()
    x = k.load("bool", [4, 13])
    return k.store((-x).sum(1)).store((-x).cast("int32").sum(1)).ast()


def negative_maxima(rows: int, width: int) -> Json:
    """C 71."""
    k = Build()
    x = k.load("float32", [rows, width])
    return k.store((-(x * x) + -1.0).max(1)).ast()


def chained_before_sum() -> Json:
    """L 225."""
    k = Build()
    x = k.load("float32", [4, 28])
    return k.store(((x * 2.0 + 1.0).maximum(0.5)).sum(1)).ast()


def total_in_place() -> Json:
    k = Build()
    return k.store(k.load("int32", [6, 8]).sum(1) + k.load("int32", [6, 1], buffer="out0")).ast()


def kept_bool_in_place() -> Json:
    """J 191: a bool in memory that is neither 0 nor 1 is written as 1."""
    k = Build()
    x = k.load("bool", [8], buffer="out0")
    return k.store(x.maximum(False)).ast()


def nothing_beside_a_reduce() -> Json:
    """A 20: no output has an element, whatever is reduced before."""
    k = Build()
    return k.store(k.load("float32", [16, 1], offset=4).max(0) + k.load("float32", [1, 0], offset=1)).ast()


def nothing_of_an_empty_window() -> Json:
    k = Build()
    padded = {"shape": [15, 3], "strides": [0, 1], "offset": -1, "mask": [[1, 13], [1, 1]]}
    x = k.load("int16", [], views=[padded, {"shape": [12, 0], "strides": [3, 1], "offset": 1}])
    return k.store(x + k.load("int16", [12, 1], [1, 0], offset=1)).ast()


def looked_up_at_padded_points() -> Json:
    """N 270: what an index is looked up by has its own gate, whatever the gate of the look-up says."""
    k = Build()
    ids = k.load("bool", [2, 10], [10, 1])
    return k.store(k.index("int32", [2, 10], "src0*2 + axis1", values=[ids])).ast()


def part_of_a_loop_needs_more() -> Json:
    """Of two sums in one loop, made by unrolling what is around them, only one depends on the loop around it."""
    k = Build(n=(-2, 9))
    total = k.ramp("(axis0*2 + axis1)%4 + n + 2", "float32", [5, 2], "axis1 < 2").sum(1)
    return k.store((total + total + k.load("float32", [5, 2], mask=[[1, 5], [0, 2]])).max(0, 1), [1, 2], [0, 1]).ast()


def part_of_a_loop_is_hoisted() -> Json:
    """Of the sums in one loop, some are free of the loop around it and leave it once their terms are folded."""
    k = Build(n=(0, 9))
    x = k.ramp("(axis1*5 + axis2)*2%4 + n + 2", "bfloat16", [8, "n", 5], "axis0 < 6", "axis2 < 3").max(1)
    return k.store(x.max(0), [1, "n", 5], [0, 5, 1]).ast()


def chosen_in_place() -> Json:
    """What some values of another buffer choose is kept: the store happens where they do not, and within the padding never."""
    k = Build()
    x, which = k.load("int32", [7, 6]), k.load("int32", [7, 6])
    kept = (which < 0).op("OR", which.differs(3) < (x < 5))
    return k.store(kept.where(k.load("int32", [7, 6], buffer="out0"), x)).ast()


def kept_in_place() -> Json:
    """The same, chosen by a value that is a bool already."""
    k = Build()
    which = k.load("bool", [6, 7])
    return k.store(which.where(k.load("float32", [6, 7]), k.load("float32", [6, 7], buffer="out0"))).ast()
