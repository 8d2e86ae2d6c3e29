"""What is well formed, and what each rule says of what isn't."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INDEX, INT8, INT32, UINT8, VOID, DType
from core.errors import CompilerBug
from core.index import less, number
from core.index.linear import shifted
from core.ir.form import RULES
from core.ir.op import OPS, Op
from core.ir.value import Value, alu, constant, make, sink
from core.ir.verify import verify
from tests.core.ir.graphs import graph


def array(dtype: DType = FLOAT32) -> Value:
    return make(Op.PARAM, dtype, (), (0, "readwrite", None, 4))


def x(dtype: DType = FLOAT32, lanes: int = 1) -> Value:
    return make(Op.LOAD, dtype, (array(dtype), number(0)), (1, False), lanes)


def one(dtype: DType = FLOAT32) -> Value:
    return constant(1, dtype)


def image() -> Value:
    return make(Op.PARAM, FLOAT16, (), (0, "read", (2, 3, 4), 8))


def shared() -> Value:
    return make(Op.SHARED, FLOAT32, (), (0, 4))


def loop() -> Value:
    return make(Op.RANGE, INDEX, (number(4),), (0, "reduce"), 1, (0, 3))


ILL_FORMED: dict[str, tuple[str, Callable[[], Value]]] = {
    "a constant out of range": ("is no int8", lambda: make(Op.CONST, INT8, (), 200)),
    "an integer where a bool belongs": ("a bool", lambda: make(Op.CONST, BOOL, (), 2)),
    "an integer where a float belongs": ("a float", lambda: make(Op.CONST, FLOAT32, (), 2)),
    "a float not rounded": ("is no float16", lambda: make(Op.CONST, FLOAT16, (), 0.1)),
    "operands of two types": ("operands of float32", lambda: make(Op.ADD, FLOAT32, (x(), one(INT32)))),
    "operands of other lanes": ("2 lanes", lambda: make(Op.ADD, FLOAT32, (x(lanes=2), x()), None, 2)),
    "too few operands": ("2 operands", lambda: make(Op.ADD, FLOAT32, (x(),))),
    "an arg where none belongs": ("no arg", lambda: make(Op.ADD, FLOAT32, (x(), x()), 5)),
    "a sine of integers": ("of floats", lambda: alu(Op.SIN, one(INT32))),
    "a truncating quotient of floats": ("of integers", lambda: alu(Op.IDIV, x(), x())),
    "bits of floats": ("of integers or bools", lambda: alu(Op.AND, x(), x())),
    "a shift of a float": ("an integer shifted", lambda: alu(Op.SHL, x(), one(INT32))),
    "a shift by a float": ("shifted by an integer", lambda: alu(Op.SHL, x(INT32), one())),
    "a comparison of two types": ("one type", lambda: alu(Op.CMPLT, x(), x(INT32))),
    "a comparison that gives a number": ("a bool", lambda: make(Op.CMPLT, INT32, (x(), x()))),
    "a number decides": ("a bool decides", lambda: alu(Op.WHERE, x(INT32), x(), x())),
    "branches of two types": ("both values", lambda: make(Op.WHERE, FLOAT32, (x(BOOL), x(), x(INT32)))),
    "bits of other width": ("bits", lambda: make(Op.BITCAST, INT8, (x(INT32),))),
    "a conversion that changes lanes": ("as many lanes", lambda: make(Op.CAST, INT32, (x(lanes=2),))),
    "rounding a narrow float": ("a wide float", lambda: make(Op.ROUND, FLOAT16, (x(FLOAT16),), BFLOAT16)),
    "a vector of one": ("lanes", lambda: make(Op.VECTOR, FLOAT32, (x(),))),
    "a vector of several types": ("scalars of float32", lambda: make(Op.VECTOR, FLOAT32, (x(), x(INT32)), None, 2)),
    "a lane that isn't there": ("lane 2 of 2", lambda: make(Op.EXTRACT, FLOAT32, (x(lanes=2),), 2)),
    "an address that is a float": ("an address", lambda: make(Op.LOAD, FLOAT32, (array(), x()), (1, False))),
    "a gate that is an integer": ("a gate is one bool", lambda: make(Op.LOAD, FLOAT32, (array(), number(0), one(INT32), one()), (1, True))),
    "a gate without its alternative": (
        "at least",
        lambda: make(Op.LOAD, FLOAT32, (array(), number(0), less(loop(), number(2))), (1, True)),
    ),
    "an alternative of another type": (
        "the alternative",
        lambda: make(Op.LOAD, FLOAT32, (array(), number(0), less(loop(), number(2)), one(INT32)), (1, True)),
    ),
    "a load of another type": ("an element is float32", lambda: make(Op.LOAD, INT32, (array(), number(0)), (1, False))),
    "a store of another type": ("an element is float32", lambda: make(Op.STORE, VOID, (array(), number(0), one(INT32)), (1, False))),
    "a store with a value": ("gives nothing", lambda: make(Op.STORE, FLOAT32, (array(), number(0), one()), (1, False))),
    "a load of no array": ("an array first", lambda: make(Op.LOAD, FLOAT32, (x(), number(0)), (1, False))),
    "an image with one address": ("two addresses", lambda: make(Op.LOAD, FLOAT32, (image(), number(0)), (1, False), 4)),
    "one channel of a texel": ("an element is", lambda: make(Op.LOAD, FLOAT32, (image(), number(0), number(0)), (2, False))),
    "a load behind a number": ("comes after", lambda: make(Op.LOAD, FLOAT32, (array(), number(0), one()), (1, False))),
    "a barrier behind a store to a buffer": (
        "shared arrays",
        lambda: make(Op.BARRIER, VOID, (make(Op.STORE, VOID, (array(), number(0), one()), (1, False)),)),
    ),
    "a register with a computed start": ("from a constant", lambda: make(Op.ACC, FLOAT32, (x(), loop()), 0)),
    "a register carried twice": ("each once", lambda: make(Op.ACC, FLOAT32, (one(), loop(), loop()), 0)),
    "an update of no register": ("to a register", lambda: make(Op.UPDATE, FLOAT32, (x(), x()))),
    "an update of an update": (
        "to a register",
        lambda: make(Op.UPDATE, FLOAT32, (make(Op.UPDATE, FLOAT32, (make(Op.ACC, FLOAT32, (one(), loop()), 0), x())), x())),
    ),
    "a region with a number for a condition": ("one bool", lambda: make(Op.IF, VOID, (one(),))),
    "an end of nothing": ("closes", lambda: make(Op.END, VOID, (x(),))),
    "a sink of values": ("in stores", lambda: sink((x(),))),
    "a sum without its coefficients": ("coefficient", lambda: make(Op.SUM, INDEX, (loop(),), (1, ()))),
    "an index of a float": ("an integer or bool", lambda: make(Op.INDEX_OF, INDEX, (x(),))),
    "a launch id of a fourth dimension": ("dimension", lambda: make(Op.SPECIAL, INDEX, (number(4),), ("global", 3))),
    "a condition of a float": ("an index or an integer", lambda: make(Op.LESS, BOOL, (x(),), 3)),
    "a conjunction of numbers": ("bools", lambda: make(Op.ALL, BOOL, (x(), x()))),
    "a conjunction with data": ("comparisons", lambda: make(Op.ALL, BOOL, (x(BOOL), less(loop(), number(3))))),
    "a quotient of data": ("gives one index", lambda: make(Op.DIV, UINT8, (x(UINT8), one(UINT8)))),
    "a loop to a float": ("operands of index", lambda: make(Op.RANGE, INDEX, (x(),), (0, "reduce"))),
}


@pytest.mark.parametrize("name", ILL_FORMED)
def test_what_is_ill_formed_is_refused_with_the_rule_and_the_text(name: str) -> None:
    said, build = ILL_FORMED[name]
    with pytest.raises(CompilerBug, match=said) as caught:
        verify(build(), "raw", "here")

    assert str(caught.value).startswith("here: ")
    assert caught.value.facts()["listing"]


def test_every_operation_has_a_rule() -> None:
    assert set(OPS) == set(RULES)


def test_graphs_as_they_are_lowered_are_well_formed() -> None:
    for seed in range(20):
        verify(graph(seed), "raw", "made")


def test_an_index_of_the_machine_fits_32_bits_and_divides_nothing_negative() -> None:
    lane = make(Op.SPECIAL, INDEX, (number(8),), ("local", 0), 1, (0, 7))
    quotient = make(Op.DIV, INDEX, (lane, number(2)), None, 1, (0, 3))
    verify(make(Op.LOAD, FLOAT32, (array(), quotient), (1, False)), "machine", "narrowed")

    for wrong in (number(1 << 31), number(-1 - (1 << 31)), make(Op.DIV, INDEX, (shifted(lane, -1), number(2)), None, 1, (-1, 3))):
        with pytest.raises(CompilerBug, match="machine integers"):
            verify(make(Op.LOAD, FLOAT32, (array(), wrong), (1, False)), "machine", "narrowed")


def test_one_launch_id_of_a_kind_and_dimension() -> None:
    ids = [make(Op.SPECIAL, INDEX, (number(n),), ("local", 0), 1, (0, n - 1)) for n in (4, 8)]

    with pytest.raises(CompilerBug, match="another launch id"):
        verify(make(Op.SUM, INDEX, tuple(ids), (0, (1, 1))), "raw", "here")
