"""Random expressions of all types mean what Python says: precedence, promotion and placement all at once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from core.dtypes import BOOL, DTYPES, DType
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant
from core.targets import Target
from tests.core.render.building import LLVM, OPENCL, C, load, param, point, program, store
from tests.core.render.meaning import array, converted, edges, numbers, result, same
from tests.core.render.running import Run, run

POINTS = 16
_EXACT = ("-O1", "-w", "-ffp-contract=off", "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all")
Known = tuple[Value, list[Any]]  # a value, and what it is at each point


class _Maker:
    """Grows a graph and its meaning side by side; never makes what the wire leaves open."""

    def __init__(self, seed: int, target: Target) -> None:
        self.random = random.Random(seed)
        self.point = point(target, POINTS)
        self.types = [*self.random.sample(list(DTYPES.values()), 4), BOOL]
        self.params: list[Value] = []
        self.memory: list[tuple[list[Any], DType]] = []
        self.known: dict[DType, list[Known]] = {d: [] for d in self.types}
        for number, dtype in enumerate(self.types):
            values = edges(dtype, np.random.default_rng(seed * 31 + number))
            numbers_ = [self.random.choice(values) for _ in range(POINTS)]
            self.params.append(param(number + 1, dtype, "read"))
            self.memory.append((numbers_, dtype))
            self.known[dtype].append((load(self.params[-1], self.point), numbers_))

    def pick(self, dtype: DType) -> Known:
        found = self.known[dtype]
        if self.random.random() < 0.15 and dtype is not BOOL:
            content = self.random.choice([1, 2, 3, 100]) if not dtype.is_float else self.random.choice([0.5, -1.0, 2.0, -0.0])
            return constant(content, dtype), [content] * POINTS
        return self.random.choice(found[-6:])

    def grow(self) -> None:
        dtype = self.random.choice(self.types)
        made = self.random.choice((self.converted, self.chosen, self.computed, self.computed, self.computed, self.compared))(dtype)
        self.known[made[0].dtype].append(made)

    def converted(self, dtype: DType) -> Known:
        source = self.random.choice(self.types)
        if source.is_float and dtype.is_integer:
            return self.computed(dtype)
        value, meant = self.pick(source)
        return cast(value, dtype), [converted(x, source, dtype) for x in meant]

    def chosen(self, dtype: DType) -> Known:
        (c, cs), (x, xs), (y, ys) = self.pick(BOOL), self.pick(dtype), self.pick(dtype)
        return alu(Op.WHERE, c, x, y), [a if t else b for t, a, b in zip(cs, xs, ys, strict=True)]

    def compared(self, dtype: DType) -> Known:
        op = self.random.choice((Op.CMPLT, Op.CMPNE))
        (x, xs), (y, ys) = self.pick(dtype), self.pick(dtype)
        return alu(op, x, y), [result(op, dtype, a, b) for a, b in zip(xs, ys, strict=True)]

    def computed(self, dtype: DType) -> Known:
        if dtype is BOOL:
            op = self.random.choice((Op.ADD, Op.MUL, Op.NEG, Op.XOR, Op.AND, Op.OR))
        elif dtype.is_float:
            op = self.random.choice((Op.ADD, Op.NEG, Op.MAX))
        else:
            op = self.random.choice((Op.ADD, Op.MUL, Op.NEG, Op.MAX, Op.XOR, Op.AND, Op.OR, Op.SHL, Op.SHR, Op.IDIV, Op.REM, Op.MULACC))
        x, xs = self.pick(dtype)
        if op is Op.NEG:
            return alu(op, x), [result(op, dtype, a) for a in xs]
        y, ys = self.pick(dtype)
        if op in (Op.SHL, Op.SHR):
            mask = dtype.bits - 1
            y, ys = alu(Op.AND, y, constant(mask, dtype)), [b & mask for b in ys]
        if op in (Op.IDIV, Op.REM):  # neither 0 nor -1
            y, ys = alu(Op.OR, alu(Op.AND, y, constant(6, dtype)), constant(1, dtype)), [b & 6 | 1 for b in ys]
        if op is Op.MULACC:
            z, zs = self.pick(dtype)
            return alu(op, x, y, z), [result(op, dtype, a, b, c) for a, b, c in zip(xs, ys, zs, strict=True)]
        return alu(op, x, y), [result(op, dtype, a, b) for a, b in zip(xs, ys, strict=True)]


def check(target: Target, seeds: range) -> None:
    runs, wanted = [], []
    for seed in seeds:
        made = _Maker(seed, target)
        for _ in range(40):
            made.grow()
        dtype = made.random.choice(made.types)
        value, meant = made.known[dtype][-1]
        out = param(0, dtype, "write")
        built = program(target, (store(out, made.point, value),), (out, *made.params), f"seed_{seed}")
        memory = (array([0] * POINTS, dtype), *(array(numbers_, d) for numbers_, d in made.memory))
        runs.append(Run(built, memory, POINTS))
        wanted.append((seed, dtype, meant))
    for (seed, dtype, meant), got in zip(wanted, run(runs, _EXACT), strict=True):
        for expected, x in zip(meant, numbers(got[0], dtype), strict=True):
            assert same(expected, x, signed_zeros=False), (seed, dtype, expected, x)


@pytest.mark.parametrize(
    ("target", "count"), [pytest.param(C, 60, id="c"), pytest.param(OPENCL, 25, id="opencl"), pytest.param(LLVM, 30, id="llvm")]
)
def test_random_expressions_mean_what_python_says(target: Target, count: int) -> None:
    check(target, range(count))
