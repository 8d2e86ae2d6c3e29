"""Values in an index, stores that depend on data, and ramps (acceptance N 268-274)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.meaning.build import Build
from tests.meaning.cases import Case, each, plain, special, symbolic
from tests.meaning.harness import TARGETS, compiled, run

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def table(ids: str = "int32", rows: int = 100, dtype: str = "float32", *, guarded: bool = True) -> Build:
    k = Build()
    index = k.load(ids, [6, 1])
    valid = [f"src0 < {rows}", "src0 >= 0"] if guarded else []
    return k.store(k.index(dtype, [6, 64], "src0*64 + axis1", *valid, values=[index]))


def of_bool() -> Build:
    k = Build()
    return k.store(k.index("int32", [6, 5], "src0*5 + axis1", values=[k.load("bool", [6, 1])]))


def two_values() -> Build:
    k = Build()
    a, b = k.load("int32", [6]), k.load("uint8", [6])
    return k.store(k.index("float32", [6], "src0*8 + src1", "src0 >= 0", "src0 < 9", "src1 < 8", values=[a, b]))


def divided_value() -> Build:
    k = Build()
    a = k.load("int32", [12])
    return k.store(k.index("float32", [12], "src0//3*4 + src0%3", "src0 >= 0", "src0 < 40", values=[a]))


def value_under_a_mask() -> Build:
    """A masked-off value is 0 and looks up row 0."""
    k = Build()
    a = k.load("int32", [8, 1], mask=[[2, 6], [0, 1]])
    return k.store(k.index("float32", [8, 4], "src0*4 + axis1", values=[a]))


def wrapped_negative() -> Build:
    """A value computed by nodes: negative indices count from the end."""
    k = Build()
    a = k.load("int32", [8])
    value = (a < 0).where(a + 7, a)
    return k.store(k.index("float32", [8], "src0", "src0 >= 0", "src0 < 7", values=[value]))


def argmax_then_lookup() -> Build:
    k = Build()
    x = k.load("float32", [4, 9])
    at = x.differs(x.max(1)).where(k.const(-1, "int32", [4, 9]), k.ramp("axis1", "int32", [4, 9])).max(1)
    return k.store(k.index("int32", [4, 1], "src0", "src0 >= 0", "src0 < 9", values=[at]))


def gather_of_a_gather() -> Build:
    k = Build()
    first = k.load("int32", [6])
    second = k.index("int32", [6], "src0", "src0 >= 0", "src0 < 8", values=[first])
    return k.store(k.index("float32", [6], "src0", "src0 >= 0", "src0 < 8", values=[second]))


def under_a_reduce(dtype: str) -> Build:
    k = Build()
    ids = k.load("int32", [5, 7])
    return k.store(k.index(dtype, [5, 7], "src0*3 + 1", "src0 >= 0", "src0 < 11", values=[ids]).sum(1))


def pooled_embedding() -> Build:
    k = Build()
    ids = k.load("int64", [3, 1, 6])
    return k.store(k.index("float16", [3, 8, 6], "src0*8 + axis1", "src0 >= 0", "src0 < 50", values=[ids]).cast("float32").sum(2))


GATHERS = {
    "half-table": table(dtype="float16"),
    "bool-table": table(dtype="bool"),
    "of-bool": of_bool(),
    "two-values": two_values(),
    "divided-value": divided_value(),
    "value-under-a-mask": value_under_a_mask(),
    "wrapped-negative": wrapped_negative(),
    "argmax-then-lookup": argmax_then_lookup(),
    "gather-of-a-gather": gather_of_a_gather(),
    "under-a-reduce": under_a_reduce("float32"),
    "under-a-reduce-int8": under_a_reduce("int8"),
    "pooled-embedding": pooled_embedding(),
}
GATHERS |= {ids: table(ids) for ids in INTEGERS}
GATHERS |= {f"unguarded-{ids}": table(ids, guarded=False) for ids in ("int32", "uint8", "uint16")}


@each({name: plain(build) for name, build in GATHERS.items()})
def test_a_table_is_looked_up_by_what_another_buffer_holds(case: Case, target: str) -> None:
    """N 268-270; what a condition rules out is among the inputs."""
    case.holds(target)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_out_of_range_are_zero_and_nothing_is_read_for_them(target: str) -> None:
    """N 268: the least and greatest int32 among the indices; a read there would end the process."""
    program, _ = compiled(table().ast(), target)
    ids = np.array([-1, 0, 99, 100, -(2**31), 2**31 - 1], np.int32)
    rows = np.arange(6400, dtype=np.float32)

    ran = run(target, program.to_json(), {0: np.full(384, 7, np.float32), 1: ids, 2: rows})

    expected = np.zeros((6, 64), np.float32)
    expected[1], expected[2] = rows[:64], rows[99 * 64 :]
    assert np.array_equal(expected.reshape(-1), ran.buffers[0])


def test_the_size_of_a_guarded_table_is_known_and_its_bounds_are_proved() -> None:
    """N 268, 269, 275."""
    guarded, _ = compiled(table().ast(), "c")
    open_, _ = compiled(table(guarded=False).ast(), "c")

    assert 6400 == guarded.arguments[2].to_json()["size"]
    assert "proved" == guarded.proofs["bounds"]
    assert "unknown" == open_.proofs["bounds"]


def switched(shape: list[int | str], *valid: str, mask: bool = False) -> Build:
    k = Build()
    x, switch = k.load("float32", shape), k.load("int32", shape)
    more = ["axis0 < 3"] if mask else []
    return k.store(x, shape, index="axis0*16 + axis1", valid=[*valid, *more], values=[switch])


def switched_by_bool() -> Build:
    k = Build()
    x, switch = k.load("int16", [20]), k.load("bool", [20])
    return k.store(x, index="axis0*2 + 1", valid=["src1 > 0"], values=[switch])


def switched_by_a_reduce() -> Build:
    k = Build()
    x = k.load("int32", [5, 9])
    return k.store(x, index="axis0*9 + axis1", valid=["src1 < 4"], values=[x.max(1)])


@each(
    {
        "by-value": plain(switched([4, 8], "src1 < 3")), "by-two": plain(switched([4, 8], "src1 < 3", "src1 >= -4")),
        "and-a-mask": plain(switched([4, 8], "src1 >= 0", mask=True)), "by-bool": plain(switched_by_bool()),
        "by-a-reduce": plain(switched_by_a_reduce()),
    }
)  # fmt: skip
def test_a_store_switched_off_leaves_what_was_there(case: Case, target: str) -> None:
    """N 272."""
    case.holds(target)


def ramp(dtype: str) -> Build:
    k = Build(n=(1, 300))
    shape: list[int | str] = [8, 4]
    k.store(k.ramp("axis0*4 + axis1", dtype, shape))
    k.store(k.ramp("axis0*n - axis1*3", dtype, shape, "axis0 + axis1 < 7"))
    k.store(k.ramp("(axis0*5 + axis1)//3%4", dtype, shape))
    return k


def ramp_of_extent_one() -> Build:
    k = Build()
    return k.store(k.ramp("axis0*10 + axis1", "int32", [1, 4]), [8, 4])


def ramp_beyond_32_bits() -> Build:
    k = Build()
    k.store(k.ramp("axis0*4000000000 + 3", "int32", [5]))
    k.store(k.ramp("axis0*4000000000 + 3", "int64", [5]))
    return k.store(k.ramp("axis0*4000000000000003", "float32", [5]))


def ramp_under_a_reduce() -> Build:
    k = Build(n=(1, 50))
    below = k.ramp("axis1", "int32", [6, 20]) < k.const(9, "int32", [6, 20])
    k.store(below.cast("int32").sum(1))
    return k.store(k.ramp("axis0 + axis1*n", "int32", [6, 20]).sum(1))


def one_hot() -> Build:
    k = Build()
    ids = k.load("int32", [7, 1])
    return k.store(ids.differs(k.ramp("axis1", "int32", [7, 9])).where(k.const(0.0, "float32", [7, 9]), k.const(1.0, "float32", [7, 9])))


@each(
    {dtype: symbolic(ramp(dtype)) for dtype in ("bool", *INTEGERS, "float16", "bfloat16", "float32", "float64")}
    | {
        "extent-one": plain(ramp_of_extent_one(), (0,)), "beyond-32-bits": plain(ramp_beyond_32_bits(), (0,)),
        "under-a-reduce": symbolic(ramp_under_a_reduce()), "one-hot": special(one_hot()),
    }
)  # fmt: skip
def test_a_ramp_is_its_expression_at_each_point(case: Case, target: str) -> None:
    """N 273."""
    case.holds(target)
