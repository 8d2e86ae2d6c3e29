"""Values of several lanes: conversions, choices, accesses and registers of 2, 4, 8 and 16 lanes, and the same taken apart on C."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, INT32, UINT8, DType, Number
from core.index import add, number, scale
from core.ir.op import Op
from core.ir.value import alu, constant
from core.targets import Target
from tests.core.render.building import (
    LLVM,
    OPENCL,
    C,
    as_type,
    below,
    lane,
    load,
    loop,
    param,
    point,
    program,
    register,
    store,
    updated,
    vector,
)  # fmt: skip
from tests.core.render.meaning import Array, array, converted, edges, numbers, same
from tests.core.render.running import Run, run

WIDTHS = (2, 4, 8, 16)
CASES = [pytest.param(OPENCL, n, id=f"opencl-{n}") for n in WIDTHS] + [pytest.param(C, 4, id="c-4")]
CASES += [pytest.param(LLVM, n, id=f"llvm-{n}") for n in (2, 16)]


def _blank(count: int, dtype: DType) -> Array:
    blank: list[Number] = [0] * count
    return array(blank, dtype)


def _data(dtype: DType, lanes: int, seed: int = 8) -> list[Number]:
    values = edges(dtype, np.random.default_rng(seed))
    return values + list(itertools.islice(itertools.cycle(values), -len(values) % lanes))


@pytest.mark.parametrize(("target", "lanes"), CASES)
def test_lanes_convert_each_for_itself(target: Target, lanes: int) -> None:
    runs, wanted = [], []
    types = list(DTYPES.values())
    for source in types:
        values = _data(source, lanes)
        outputs = [param(n, d, "write") for n, d in enumerate(types)]
        a = param(len(types), source, "read")
        i = scale(point(target, len(values) // lanes), lanes)
        x = load(a, i, lanes=lanes)
        built = program(
            target,
            tuple(store(o, i, as_type(Op.CAST, x, d)) for o, d in zip(outputs, types, strict=True)),
            (*outputs, a),
            f"from_{source.name}",
        )
        runs.append(Run(built, (*(_blank(len(values), d) for d in types), array(values, source)), len(values) // lanes))
        wanted.append((source, values))
    for (source, values), buffers in zip(wanted, run(runs), strict=True):
        for dtype, buffer in zip(types, buffers, strict=False):
            for x_, got in zip(values, numbers(buffer, dtype), strict=True):
                assert same(converted(x_, source, dtype), got), (source, dtype, x_, got)


@pytest.mark.parametrize(("target", "lanes"), CASES)
def test_lanes_choose_each_for_itself(target: Target, lanes: int) -> None:
    """WHERE under a vector of bools, under one bool for all; a bool chosen by a bool."""
    runs, wanted = [], []
    for dtype in DTYPES.values():
        values = _data(dtype, lanes)
        out, all_or_none = param(0, dtype, "write"), param(1, dtype, "write")
        c, a = param(2, BOOL, "read"), param(3, dtype, "read")
        p = point(target, len(values) // lanes)
        i = scale(p, lanes)
        x = load(a, i, lanes=lanes)
        other = constant(True if dtype is BOOL else 1, dtype, lanes)
        stores = (
            store(out, i, alu(Op.WHERE, load(c, i, lanes=lanes), x, other)),
            store(all_or_none, i, alu(Op.WHERE, below(p, 2), x, other)),
        )
        built = program(target, stores, (out, all_or_none, c, a), f"where_{dtype.name}")
        bits = [(n * 7 % 3) * 128 % 255 for n in range(len(values))]
        blank = _blank(len(values), dtype)
        runs.append(Run(built, (blank, blank, array([*bits], UINT8), array(values, dtype)), len(values) // lanes))
        wanted.append(
            (dtype, [v if b else 1 for v, b in zip(values, bits, strict=True)], [v if n < 2 * lanes else 1 for n, v in enumerate(values)])
        )
    for (dtype, first, second), got in zip(wanted, run(runs), strict=True):
        assert all(same(w, g) for w, g in zip(first, numbers(got[0], dtype), strict=True)), dtype
        assert all(same(w, g) for w, g in zip(second, numbers(got[1], dtype), strict=True)), dtype


@pytest.mark.parametrize(("target", "lanes"), CASES)
@pytest.mark.parametrize("alignment", [128, 1], ids=["aligned", "unaligned"])
def test_lanes_are_loaded_and_stored_together(target: Target, lanes: int, alignment: int) -> None:
    """Gated loads and stores, lanes taken and put together again, backwards; a masked-off load is not made."""
    runs, wanted = [], []
    for dtype in DTYPES.values():
        values = _data(dtype, 4 * lanes)[: 4 * lanes]
        out, gated, a = (
            param(0, dtype, "write", None, alignment),
            param(1, dtype, "write", None, alignment),
            param(2, dtype, "read", None, alignment),
        )
        p = point(target, 4)
        i = scale(p, lanes)
        x = load(a, i, lanes=lanes, gate=below(p, 3), other=True if dtype is BOOL else 1)
        backwards = vector(*(lane(x, k) for k in reversed(range(lanes))))
        built = program(target, (store(out, i, backwards), store(gated, i, x, gate=below(p, 2))), (out, gated, a), f"lanes_{dtype.name}")
        blank = _blank(4 * lanes, dtype)
        runs.append(Run(built, (blank, blank, array(values[: 3 * lanes], dtype)), 4))
        read = [*values[: 3 * lanes], *([1] * lanes)]
        turned = [read[n // lanes * lanes + lanes - 1 - n % lanes] for n in range(4 * lanes)]
        wanted.append((dtype, turned, [v if n < 2 * lanes else 0 for n, v in enumerate(read)]))
    for (dtype, first, second), got in zip(wanted, run(runs), strict=True):
        assert all(same(w, g) for w, g in zip(first, numbers(got[0], dtype), strict=True)), dtype
        assert all(same(w, g) for w, g in zip(second, numbers(got[1], dtype), strict=True)), dtype


@pytest.mark.parametrize(("target", "lanes"), CASES)
def test_registers_have_lanes_too(target: Target, lanes: int) -> None:
    runs, wanted = [], []
    for dtype in (FLOAT32, INT32, UINT8, FLOAT16, BFLOAT16):
        values = [dtype.round(n % 13) if dtype.is_float else n % 13 for n in range(6 * lanes)]
        out, most, a = param(0, dtype, "write"), param(1, dtype, "write"), param(2, dtype, "read")
        p, r = point(target, 2), loop(3)
        x = load(a, add(scale(p, 3 * lanes), scale(r, lanes)), lanes=lanes)
        total, greatest = register(dtype, 0, r, lanes=lanes), register(dtype, dtype.least, r, number_=1, lanes=lanes)
        i = scale(p, lanes)
        stores = (
            store(out, i, updated(total, alu(Op.ADD, x, total))),
            store(most, i, updated(greatest, alu(Op.MAX, x, greatest))),
        )
        built = program(target, stores, (out, most, a), f"sum_{dtype.name}")
        runs.append(Run(built, (_blank(2 * lanes, dtype), _blank(2 * lanes, dtype), array([*values], dtype)), 2))
        rows = [[values[q * 3 * lanes + s * lanes + k] for s in range(3)] for q in range(2) for k in range(lanes)]
        wanted.append((dtype, [sum(row) for row in rows], [max(row) for row in rows]))
    for (dtype, sums, maxima), got in zip(wanted, run(runs), strict=True):
        assert sums == numbers(got[0], dtype)
        assert maxima == numbers(got[1], dtype)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_lanes_of_functions_are_near_the_scalars(lanes: int) -> None:
    values = [0.0, 0.5, 1.0, 2.0, 3.75, 100.0, 3e38, 1e-20, 7.0, 0.1, 0.2, 9.5, 11.0, 0.7, 20.0, 1.25]
    values = [FLOAT32.round(v) for v in values]
    ops = (Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT, Op.RECIP)
    outputs = [param(n, FLOAT32, "write") for n in range(5)]
    a = param(5, FLOAT32, "read")
    i = scale(point(OPENCL, 16 // lanes), lanes)
    stores = tuple(store(o, i, alu(op, load(a, i, lanes=lanes))) for o, op in zip(outputs, ops, strict=True))
    built = program(OPENCL, stores, (*outputs, a))
    got = run([Run(built, (*(np.zeros(16, np.float32) for _ in ops), array([*values], FLOAT32)), 16 // lanes)])[0]
    x = np.array(values, np.longdouble)
    with np.errstate(all="ignore"):
        exact = (np.exp2(x), np.log2(x), np.sin(x), np.sqrt(x), 1 / x)
    for expected, buffer in zip(exact, got, strict=False):
        assert np.allclose(expected.astype(np.float64), buffer, rtol=4 * 2.0**-23, atol=1e-38)


def test_one_access_is_made_of_lanes_side_by_side() -> None:
    out, a = param(0, FLOAT32, "write"), param(1, FLOAT32, "read")
    i = scale(point(OPENCL, 4), 4)
    text = program(OPENCL, (store(out, add(i, number(4)), load(a, i, lanes=4)),), (out, a)).source

    assert "*((__global float4*)(d0 + (g0*4 + 4))) = *((__global const float4*)(d1 + g0*4));" in text
