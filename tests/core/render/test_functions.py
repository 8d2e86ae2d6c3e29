"""EXP2, LOG2, SIN, SQRT and RECIP are within 4 ulp and exact at their special points, the sine of every finite argument included."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from core.ir.op import Op
from core.ir.value import alu
from core.targets import Target
from tests.core.render.building import EACH, load, param, point, program, store
from tests.core.render.meaning import Array, array, numbers
from tests.core.render.running import Run, run

OPS: dict[Op, Callable[[Array], Array]] = {
    Op.EXP2: np.exp2, Op.LOG2: np.log2, Op.SIN: np.sin, Op.SQRT: np.sqrt, Op.RECIP: lambda x: 1 / x,
}  # fmt: skip


def _arguments(dtype: DType) -> list[float]:
    rng = np.random.default_rng(6)
    top = dtype.exponent_max
    spread = np.exp2(rng.uniform(-top if dtype is not FLOAT16 else -24, top, 3000)) * rng.choice([-1, 1], 3000)
    near = rng.uniform(-30, 30, 2000)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 2.0, 1.0 + 2.0**-7, math.pi, 1e5, 3e4, -3.0]
    huge = [3e38, -2.5e38, 1.1e30, 123456789.0] if top > 15 else [65504.0, -60000.0]
    return [dtype.round(float(x)) for x in (*special, *huge, *spread, *near)]


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, FLOAT16, BFLOAT16], ids=str)
def test_functions_are_within_four_ulp(target: Target, dtype: DType) -> None:
    values = _arguments(dtype)
    outputs = [param(n, dtype, "write") for n in range(len(OPS))]
    a = param(len(OPS), dtype, "read")
    i = point(target, len(values))
    x = load(a, i)
    built = program(target, tuple(store(out, i, alu(op, x)) for out, op in zip(outputs, OPS, strict=True)), (*outputs, a))
    blank = array([0.0] * len(values), dtype)
    got = run([Run(built, (*(blank for _ in OPS), array([*values], dtype)), len(values))])[0]
    x_exact = np.array(values, np.longdouble)
    least_normal = math.ldexp(1.0, 1 - dtype.exponent_max)
    for (op, function), buffer in zip(OPS.items(), got, strict=False):
        with np.errstate(all="ignore"):
            exact = function(x_exact)
        for argument, true, result in zip(values, exact, numbers(buffer, dtype), strict=True):
            assert _near(true, float(result), dtype, least_normal), (op, argument, true, result)


def _near(true: np.longdouble, got: float, dtype: DType, least_normal: float) -> bool:
    if np.isnan(true):
        return got != got
    rounded = dtype.round(float(true)) if abs(true) < 1e300 or dtype is FLOAT64 else math.copysign(math.inf, float(true))
    if rounded == got:
        return True
    if not math.isfinite(rounded) or not math.isfinite(got):
        return abs(float(true)) > math.ldexp(1.0, dtype.exponent_max) * 1.99 and abs(got) > math.ldexp(1.0, dtype.exponent_max) * 1.99
    if abs(rounded) < least_normal and dtype is not FLOAT16:
        return abs(got) <= least_normal  # a subnormal may be a zero
    _, exponent = math.frexp(rounded)
    ulp = max(math.ldexp(1.0, exponent - dtype.significand), math.ldexp(1.0, 2 - dtype.exponent_max - dtype.significand))
    return bool(abs(np.longdouble(got) - true) <= 4 * ulp)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_special_points_are_exact(target: Target) -> None:
    cases = [
        (Op.EXP2, -math.inf, 0.0), (Op.EXP2, math.inf, math.inf), (Op.EXP2, 3.0, 8.0), (Op.LOG2, 0.0, -math.inf), (Op.LOG2, -1.0, math.nan),
        (Op.LOG2, 8.0, 3.0), (Op.SQRT, -1.0, math.nan), (Op.SQRT, 9.0, 3.0), (Op.RECIP, 0.0, math.inf), (Op.RECIP, -0.0, -math.inf),
        (Op.RECIP, 4.0, 0.25), (Op.SIN, 0.0, 0.0), (Op.SIN, math.inf, math.nan),
    ]  # fmt: skip
    outputs = [param(n, FLOAT32, "write") for n in range(len(cases))]
    a = param(len(cases), FLOAT32, "read")
    i = point(target, len(cases))
    built = program(
        target, tuple(store(out, i, alu(op, load(a, i))) for out, (op, _, _) in zip(outputs, cases, strict=True)), (*outputs, a)
    )
    blank = np.zeros(len(cases), np.float32)
    got = run([Run(built, (*(blank for _ in cases), np.array([x for _, x, _ in cases], np.float32)), len(cases))])[0]
    for k, (op, x, expected) in enumerate(cases):
        result = float(got[k][k])
        assert result == expected or (expected != expected and result != result), (op, x, expected, result)
