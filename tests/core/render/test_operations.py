"""Every operation on every type gives what the wire promises, on every target, and nothing in C is undefined on the way."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from core.dtypes import BOOL, DTYPES, UINT8, DType
from core.index import scale
from core.ir.op import Op
from core.ir.value import Value, alu, constant
from core.targets import Target
from tests.core.render.building import EACH, LLVM, OPENCL, C, load, param, point, program, store
from tests.core.render.meaning import array, edges, numbers, result, rounded, same
from tests.core.render.running import CHECKED, FAST, Run, run

_BOOL_OPS = (Op.ADD, Op.MUL, Op.MAX, Op.XOR, Op.AND, Op.OR, Op.CMPLT, Op.CMPNE, Op.NEG, Op.NOT, Op.MULACC)
_INTEGER_OPS = (
    Op.ADD, Op.MUL, Op.MAX, Op.XOR, Op.AND, Op.OR, Op.CMPLT, Op.CMPNE, Op.IDIV, Op.REM, Op.SHL, Op.SHR, Op.NEG, Op.MULACC,
)  # fmt: skip
_FLOAT_OPS = (Op.ADD, Op.MUL, Op.MAX, Op.CMPLT, Op.CMPNE, Op.NEG, Op.MULACC)


def _ops(dtype: DType) -> tuple[Op, ...]:
    return _BOOL_OPS if dtype is BOOL else _FLOAT_OPS if dtype.is_float else _INTEGER_OPS


def _operands(op: Op, x: Value, y: Value) -> tuple[Value, ...]:
    return (x,) if op in (Op.NEG, Op.NOT) else (x, y, x) if op is Op.MULACC else (x, y)


CASES = [pytest.param(C, CHECKED, 1, id="c-checked"), pytest.param(C, FAST, 1, id="c-fast"), pytest.param(C, CHECKED, 4, id="c-4-lanes")]
CASES += [pytest.param(OPENCL, CHECKED, n, id=f"opencl-{n}") for n in (1, 2, 4, 8, 16)]
CASES += [
    pytest.param(LLVM, flags, n, id=f"llvm-{word}-{n}")
    for flags, word, n in ((CHECKED, "plain", 1), (CHECKED, "plain", 16), (FAST, "passes", 4))
]


@pytest.mark.parametrize(("target", "flags", "lanes"), CASES)
def test_operations_mean_what_the_wire_says(target: Target, flags: tuple[str, ...], lanes: int) -> None:
    runs, expected = [], []
    for dtype in DTYPES.values():
        values = edges(dtype, np.random.default_rng(7))
        pairs = list(itertools.product(values, values))
        pairs += list(itertools.islice(itertools.cycle(pairs), -len(pairs) % lanes))
        ops = _ops(dtype)
        results = [BOOL if op in (Op.CMPLT, Op.CMPNE) else dtype for op in ops]
        outputs = [param(n, d, "write") for n, d in enumerate(results)]
        a, b = param(len(ops), dtype, "read"), param(len(ops) + 1, dtype, "read")
        i = scale(point(target, len(pairs) // lanes), lanes)
        x, y = load(a, i, lanes=lanes), load(b, i, lanes=lanes)
        stores = tuple(store(out, i, alu(op, *_operands(op, x, y))) for out, op in zip(outputs, ops, strict=True))
        built = program(target, stores, (*outputs, a, b), f"ops_{dtype.name}")
        arrays = [array([0] * len(pairs), d) for d in results]
        arrays += [array([p[0] for p in pairs], dtype), array([p[1] for p in pairs], dtype)]
        runs.append(Run(built, tuple(arrays), len(pairs) // lanes))
        expected.append((dtype, ops, results, pairs))
    for (dtype, ops, results, pairs), buffers in zip(expected, run(runs, flags), strict=True):
        for op, out_type, buffer in zip(ops, results, buffers, strict=False):
            for (p, q), got in zip(pairs, numbers(buffer, out_type), strict=True):
                wanted = result(op, dtype, *((p,) if op in (Op.NEG, Op.NOT) else (p, q, p) if op is Op.MULACC else (p, q)))
                ok = same(wanted, got, signed_zeros=op not in (Op.MAX, Op.MULACC))
                if op is Op.MULACC and dtype.is_float:  # fused or not
                    ok = ok or same(_fused(dtype, float(p), float(q)), got, signed_zeros=False)
                assert ok, (target.name, dtype, op, p, q, wanted, got)


def _fused(dtype: DType, p: float, q: float) -> float:
    if not (math.isfinite(p) and math.isfinite(q)):
        return p * q + p
    return rounded(Fraction(p) * Fraction(q) + Fraction(p), dtype)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_constant_divisors_and_amounts_are_harmless(target: Target) -> None:
    runs, wanted = [], []
    for dtype in DTYPES.values():
        if not dtype.is_integer:
            continue
        values = edges(dtype, np.random.default_rng(3))
        contents = [c for c in (0, 1, -1, 3, -7, dtype.bits - 1, dtype.bits, -2) if dtype.least <= c <= dtype.greatest]
        cases = [(op, c) for op in (Op.IDIV, Op.REM, Op.SHL, Op.SHR) for c in contents]
        outputs = [param(n, dtype, "write") for n in range(len(cases))]
        a = param(len(cases), dtype, "read")
        i = point(target, len(values))
        x = load(a, i)
        stores = tuple(store(out, i, alu(op, x, constant(c, dtype))) for out, (op, c) in zip(outputs, cases, strict=True))
        built = program(target, stores, (*outputs, a), f"by_{dtype.name}")
        runs.append(Run(built, (*(array([0] * len(values), dtype) for _ in cases), array(values, dtype)), len(values)))
        wanted.append((dtype, cases, values))
    for (dtype, cases, values), buffers in zip(wanted, run(runs), strict=True):
        for (op, c), buffer in zip(cases, buffers, strict=False):
            for x_, got in zip(values, numbers(buffer, dtype), strict=True):
                assert same(result(op, dtype, x_, c), got), (dtype, op, x_, c, got)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_a_shift_amount_may_have_any_integer_type(target: Target) -> None:
    runs, wanted = [], []
    for dtype in (DTYPES["int8"], DTYPES["uint16"], DTYPES["int32"], DTYPES["uint64"], DTYPES["int64"]):
        for amount_type in (DTYPES["int8"], DTYPES["uint8"], DTYPES["int32"], DTYPES["uint64"]):
            amounts = [n for n in (-1, 0, 1, 5, 7, 8, 31, 33, 63, 64, 100) if amount_type.least <= n <= amount_type.greatest]
            pairs = list(itertools.product(edges(dtype, np.random.default_rng(5), 2), amounts))
            out, out2 = param(0, dtype, "write"), param(1, dtype, "write")
            a, b = param(2, dtype, "read"), param(3, amount_type, "read")
            i = point(target, len(pairs))
            x, y = load(a, i), load(b, i)
            stores = (store(out, i, alu(Op.SHL, x, y)), store(out2, i, alu(Op.SHR, x, y)))
            built = program(target, stores, (out, out2, a, b), f"shift_{dtype.name}_{amount_type.name}")
            blank = array([0] * len(pairs), dtype)
            runs.append(
                Run(built, (blank, blank, array([p for p, _ in pairs], dtype), array([n for _, n in pairs], amount_type)), len(pairs))
            )
            wanted.append((dtype, pairs))
    for (dtype, pairs), buffers in zip(wanted, run(runs), strict=True):
        for op, buffer in zip((Op.SHL, Op.SHR), buffers, strict=False):
            for (p, n), got in zip(pairs, numbers(buffer, dtype), strict=True):
                assert same(result(op, dtype, p, n), got), (dtype, op, p, n, got)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_where_takes_either_side(target: Target) -> None:
    runs, wanted = [], []
    for dtype in DTYPES.values():
        values = edges(dtype, np.random.default_rng(9))
        out, c, a, b = param(0, dtype, "write"), param(1, BOOL, "read"), param(2, dtype, "read"), param(3, dtype, "read")
        i = point(target, len(values))
        chosen = alu(Op.WHERE, load(c, i), load(a, i), load(b, i))
        built = program(target, (store(out, i, chosen),), (out, c, a, b), f"where_{dtype.name}")
        conditions = [n % 3 * 5 for n in range(len(values))]  # any byte that is not 0 is true
        backwards = values[::-1]
        runs.append(
            Run(
                built,
                (array([0] * len(values), dtype), array(conditions, UINT8), array(values, dtype), array(backwards, dtype)),
                len(values),
            )
        )
        wanted.append((dtype, [x if t else y for t, x, y in zip(conditions, values, backwards, strict=True)]))
    for (dtype, expected), buffers in zip(wanted, run(runs), strict=True):
        for want, got in zip(expected, numbers(buffers[0], dtype), strict=True):
            assert same(want, got, signed_zeros=False), (dtype, want, got)
