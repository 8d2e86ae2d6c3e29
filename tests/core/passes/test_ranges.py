"""Ranges of data integers."""

from __future__ import annotations

from random import Random

from core.dtypes import BOOL, DTYPES, INT8, INT32, UINT8, DType, Number
from core.ir.evaluate import Content, evaluate
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant
from core.passes.ranges import interval, product_fits
from tests.core.passes.samples import number, unknown

INTEGERS = [d for d in DTYPES.values() if d.is_integer]
OPERATIONS = (Op.ADD, Op.MUL, Op.MAX, Op.AND, Op.SHR, Op.REM, Op.IDIV, Op.SHL, Op.XOR)


def grown(random: Random, dtype: DType, depth: int, leaves: list[Value]) -> Value:
    """A random expression of this type."""
    if depth == 0 or random.random() < 0.2:
        if random.random() < 0.4:
            return constant(dtype.wrap(random.choice((0, 1, 2, 3, 5, 8, 15, -1, -4, 100))), dtype)
        source = random.choice((dtype, BOOL, UINT8))
        leaves.append(unknown(len(leaves), source))
        return cast(leaves[-1], dtype)
    x = grown(random, dtype, depth - 1, leaves)
    match random.randrange(10):
        case 0:
            return alu(Op.NEG, x)
        case 1:
            leaves.append(unknown(len(leaves), BOOL))
            return alu(Op.WHERE, leaves[-1], x, grown(random, dtype, depth - 1, leaves))
        case 2:
            return cast(grown(random, random.choice(INTEGERS), depth - 1, leaves), dtype)
        case _:
            return alu(random.choice(OPERATIONS), x, grown(random, dtype, depth - 1, leaves))


def test_a_range_holds_every_value() -> None:
    narrower = 0
    for seed in range(1_500):
        random = Random(seed)
        leaves: list[Value] = []
        value = grown(random, random.choice(INTEGERS), 4, leaves)
        low, high = interval(value)
        narrower += (low, high) != (value.dtype.least, value.dtype.greatest)
        for _ in range(10):
            known: dict[Value, Content] = {leaf: number(random, leaf.dtype) for leaf in leaves}
            result = evaluate(value, known)
            assert isinstance(result, int)
            assert low <= result <= high
    assert narrower > 300


def test_what_may_wrap_has_its_whole_type() -> None:
    byte = unknown(0, UINT8)

    assert (0, 255) == interval(alu(Op.ADD, byte, constant(1, UINT8)))
    assert (1, 256) == interval(alu(Op.ADD, cast(byte, INT32), constant(1, INT32)))


def test_whether_a_product_stays_within_its_type() -> None:
    def fits(most: int, factor: Number) -> bool:
        return product_fits(alu(Op.AND, unknown(0, INT8), constant(most, INT8)), int(factor))

    assert [True, False, True, True] == [fits(7, 18), fits(7, 19), fits(1, 127), fits(7, -18)]
