"""Random index arithmetic and conditions, by their text: the same integers as by floor division in Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from core.dtypes import BOOL, INT64
from core.index import add, all_of, floordiv, less, mod, multiply, number, scale
from core.ir.op import Op
from core.ir.value import Value, alu, constant
from core.targets import Target
from tests.core.render.building import OPENCL, C, as_type, param, point, program, store, variable
from tests.core.render.running import Run, run

POINTS = 24
Meaning = Callable[[int, int], int]  # of the point and the variable
Term = tuple[Value, Meaning]


def _grown(maker: random.Random, terms: list[Term]) -> Term:
    (x, f), (y, g) = maker.choice(terms[-5:]), maker.choice(terms)
    c = maker.choice([2, 3, 4, 5, 8, 12])
    match maker.randrange(6):
        case 0:
            return add(x, y), lambda i, n: f(i, n) + g(i, n)
        case 1:
            k = maker.choice([-7, -3, -1, 2, 6, 100])
            return scale(x, k), lambda i, n: f(i, n) * k
        case 2:
            return add(x, number(c - 6)), lambda i, n: f(i, n) + c - 6
        case 3:
            return floordiv(x, c), lambda i, n: f(i, n) // c
        case 4:
            return mod(x, c), lambda i, n: f(i, n) % c
        case _:
            small = mod(y, c)
            return multiply(mod(x, 50), small), lambda i, n: f(i, n) % 50 * (g(i, n) % c)


@pytest.mark.parametrize("target", [C, OPENCL], ids=lambda t: t.name)
def test_random_indices_and_conditions(target: Target) -> None:
    runs, wanted = [], []
    for seed in range(40 if target is C else 10):
        maker = random.Random(seed)
        i, n = point(target, POINTS), variable("n", 0, 9)
        terms: list[Term] = [(i, lambda i, n: i), (n, lambda i, n: n)]
        for _ in range(7):
            terms.append(_grown(maker, terms))
        (x, f), (y, g) = terms[-1], maker.choice(terms)
        limit = maker.choice([0, 3, 10, -4])
        condition = all_of((less(x, add(y, number(limit))), less(number(limit - 3), add(i, scale(n, -1)))))
        out, holds, negated = param(0, INT64, "write"), param(1, BOOL, "write"), param(2, BOOL, "write")
        as_data = alu(Op.WHERE, condition, constant(True, BOOL), constant(False, BOOL))
        stores = (store(out, i, as_type(Op.CAST, x, INT64)), store(holds, i, as_data), store(negated, i, alu(Op.NOT, as_data)))
        built = program(target, stores, (out, holds, negated), f"index_{seed}", variables=(("n", 0, 9),))
        size = maker.randrange(10)
        blank = np.zeros(POINTS, np.uint8)
        runs.append(Run(built, (np.zeros(POINTS, np.int64), blank, blank), POINTS, (size,)))
        values = [f(p, size) for p in range(POINTS)]
        truths = [f(p, size) < g(p, size) + limit and limit - 3 < p - size for p in range(POINTS)]
        wanted.append((seed, values, truths))
    for (seed, values, truths), got in zip(wanted, run(runs), strict=True):
        assert values == got[0].tolist(), seed
        assert truths == [bool(b) for b in got[1]], seed
        assert truths == [not b for b in got[2]], seed
