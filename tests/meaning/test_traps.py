"""Undefined operations, infinities and NaN: any value where one is allowed, and nothing else disturbed.

Acceptance I 171-173, J 194, 208, 212, 213.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.meaning.build import Build
from tests.meaning.cases import Case, each, plain, special
from tests.meaning.harness import TARGETS, compiled, run

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def divided(dtype: str, op: str) -> Build:
    """By what is loaded, by a masked-off load, by a constant 0, and in the side of a WHERE that is not taken."""
    k = Build()
    a, b = k.load(dtype, [40]), k.load(dtype, [40])
    hidden = k.load(dtype, [40], mask=[[8, 40]])
    k.store(a.op(op, b))
    k.store(a.op(op, hidden))
    k.store(a.op(op, 0))
    k.store(b.differs(0).where(a.op(op, b), a))
    return k


@each({f"{op}-{dtype}": special(divided(dtype, op)) for op in ("IDIV", "MOD") for dtype in INTEGERS})
def test_a_division_by_zero_disturbs_nothing_else(case: Case, target: str) -> None:
    case.holds(target)


def shifted(dtype: str, amount: str) -> Build:
    k = Build()
    a, b = k.load(dtype, [40]), k.load(amount, [40])
    k.store(a.op("SHL", b))
    k.store(a.op("SHR", b))
    k.store(a.op("SHL", 40) if dtype.endswith("64") else a.op("SHL", 7))
    return k


@each({f"{dtype}-by-{amount}": special(shifted(dtype, amount)) for dtype in INTEGERS for amount in ("int8", "uint64")})
def test_a_shift_by_too_much_disturbs_nothing_else(case: Case, target: str) -> None:
    case.holds(target)


def least_by_minus_one() -> Build:
    k = Build()
    a = k.ramp("axis0 - 128", "int8", [256])
    k.store(a.op("IDIV", -1))
    k.store(a.op("MOD", -1))
    k.store(a.op("IDIV", 3))
    k.store(a.op("MOD", -5))
    return k


def self_inverse(dtype: str) -> Build:
    """x - x, x / x, x * 0, x + 0 keep what IEEE says for infinities, NaN and zeros."""
    k = Build()
    x = k.load(dtype, [64])
    k.store(x - x)
    k.store(x * x.recip())
    k.store(x * 0.0)
    k.store(x + 0.0)
    k.store(x + -0.0)
    k.store(x * 1.0)
    return k


def hidden_nan(dtype: str) -> Build:
    k = Build()
    x, y = k.load(dtype, [32]), k.load(dtype, [32])
    k.store(x.maximum(y))
    k.store(y.maximum(x))
    k.store(x < y)
    k.store(x.differs(x))
    k.store((x < y).where(x, y))
    k.store(x.maximum(1.0).maximum(y))
    return k


def edges(dtype: str) -> Build:
    """Functions where they are hardest: great arguments of sin, logarithms near 1, powers near the ends of the range."""
    k = Build()
    n = k.ramp("axis0", dtype, [64])
    k.store((n * 15625.0 + 1.0e6).op("SIN") if dtype != "float16" else (n * 1000.0).op("SIN"))
    k.store((n * 9.5367431640625e-07 + 1.0).op("LOG2"))
    k.store((n * 4.0 + -128.0).exp2())
    k.store((n * 0.001953125 + -0.0625).exp2())
    k.store((n + 1.0).sqrt().recip())
    return k


@each(
    {"least-by-minus-one": plain(least_by_minus_one(), (0,))}
    | {f"self-inverse-{dtype}": special(self_inverse(dtype)) for dtype in ("float16", "bfloat16", "float32", "float64")}
    | {f"nan-{dtype}": special(hidden_nan(dtype), (0, 1)) for dtype in ("float16", "bfloat16", "float32", "float64")}
    | {f"functions-{dtype}": plain(edges(dtype), (0,)) for dtype in ("float16", "bfloat16", "float32", "float64")}
)
def test_special_values_keep_their_meaning(case: Case, target: str) -> None:
    """I 171, 172."""
    case.holds(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "values"), [("float32", (1e6, 3e38, 1e22, 123456.789)), ("float64", (1e6, 1e300, 1e22, 5e15))])
def test_sin_is_accurate_for_every_finite_argument(target: str, dtype: str, values: tuple[float, ...]) -> None:
    k = Build()
    ast = k.store(k.load(dtype, [len(values)]).op("SIN")).ast()
    program, _ = compiled(ast, target)
    arguments = np.array(values, dtype)

    ran = run(target, program.to_json(), {0: np.zeros_like(arguments), 1: arguments})

    exact = np.sin(arguments.astype(np.longdouble))
    distance = np.abs(ran.buffers[0].astype(np.longdouble) - exact) / np.spacing(np.abs(exact.astype(dtype)))
    assert (distance <= 4.5).all(), (ran.buffers[0], exact, distance)


@pytest.mark.parametrize("target", TARGETS)
def test_unsigned_sums_wrap_before_they_are_compared(target: str) -> None:
    """I 173: x + 3 < 5 with x = 2**32 - 1."""
    k = Build()
    x = k.load("uint32", [3])
    program, _ = compiled(k.store((x + 3) < k.const(5, "uint32", [3])).ast(), target)

    ran = run(target, program.to_json(), {0: np.zeros(3, np.uint8), 1: np.array([2**32 - 1, 1, 2], np.uint32)})

    assert [1, 1, 0] == ran.buffers[0].tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_a_bool_in_memory_is_read_as_not_zero_and_written_as_one(target: str) -> None:
    """M 250."""
    k = Build()
    program, _ = compiled(k.store(k.load("bool", [4])).ast(), target)

    ran = run(target, program.to_json(), {0: np.full(4, 9, np.uint8), 1: np.array([0, 1, 7, 255], np.uint8)})

    assert [0, 1, 1, 1] == ran.buffers[0].tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_bfloat16_stores_round_to_nearest_even_and_keep_nan(target: str) -> None:
    """J 192."""
    k = Build()
    program, _ = compiled(k.store(k.load("float32", [4]).cast("bfloat16")).ast(), target)
    values = np.array([1.00390625, 1.01171875, 1.0039063692092896, np.nan], np.float32)

    ran = run(target, program.to_json(), {0: np.zeros(4, np.uint16), 1: values})

    assert [0x3F80, 0x3F82, 0x3F81] == ran.buffers[0][:3].tolist()
    assert np.isnan((ran.buffers[0][3:].astype(np.uint32) << 16).view(np.float32)).all()
