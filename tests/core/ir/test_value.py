"""Interning: equal means identical, nobody's values stay, and the canonical order is the same in every process."""

from __future__ import annotations

import gc

from core import Request, compile_kernel
from core.dtypes import FLOAT32, INT32
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make, table_size
from tests.core.linear.test_order import NESTED, ROW_MINUS_MAXIMUM


def test_equal_operations_are_one_value() -> None:
    assert constant(1.5, FLOAT32) is constant(1.5, FLOAT32)
    x, y = (make(Op.ACC, INT32, (constant(0, INT32),), n) for n in (7, 8))
    assert alu(Op.ADD, x, y) is alu(Op.ADD, y, x)
    assert alu(Op.IDIV, x, y) is not alu(Op.IDIV, y, x)


def test_constants_differ_by_bits_and_type() -> None:
    assert constant(0.0, FLOAT32) is not constant(-0.0, FLOAT32)
    assert constant(1, INT32) is not constant(1.0, FLOAT32)
    assert constant(float("nan"), FLOAT32) is constant(-float("nan"), FLOAT32)


def test_a_long_chain_that_nobody_holds_is_gone() -> None:
    """Once a sweep let go of one link of a chain at a time."""
    gc.collect()
    before = table_size()
    chain: Value = constant(1, INT32)
    for n in range(5_000):
        chain = make(Op.XOR, INT32, (chain, constant(n % 7, INT32)))
    assert table_size() >= before + 5_000

    del chain
    assert table_size() <= before + 16


def test_compiling_leaves_nothing_behind() -> None:
    def compiled() -> int:
        for ast in (NESTED, ROW_MINUS_MAXIMUM):
            for target in ("opencl", "c"):
                compile_kernel(Request.from_json({"ast": ast, "device": {"target": target}}))
        gc.collect()
        return table_size()

    first = compiled()
    for _ in range(3):
        assert compiled() <= first  # less, where something older was let go of in between
