"""Functions by arithmetic are within 4 units in the last place of the right value, and exact where the wire says so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from core.dtypes import FLOAT32, FLOAT64, DType, Number
from core.index import number
from core.ir.evaluate import evaluate
from core.ir.op import Op
from core.ir.value import Value, make
from core.ir.walk import Graph
from core.passes.elementary import elementary

INF, NAN = math.inf, math.nan
_CACHE: dict[tuple[Op, DType], tuple[Value, Value]] = {}


def value_of(op: Op, dtype: DType, x: float) -> float:
    """The function by arithmetic, by what the operations mean on plain numbers."""
    if (op, dtype) not in _CACHE:
        array = make(Op.PARAM, dtype, (), (1, "read", None, 16))
        operand = make(Op.LOAD, dtype, (array, number(0)), (1, False))
        root = make(op, dtype, (operand,))
        graph, changed = elementary(Graph.of(root), frozenset(((op, dtype),)))
        assert changed[root] is graph.root
        _CACHE[op, dtype] = operand, graph.root
    operand, root = _CACHE[op, dtype]
    found = evaluate(root, {operand: x})
    assert isinstance(found, float)
    return found


def units(found: float, right: float, dtype: DType) -> float:
    least = 2 - dtype.exponent_max - dtype.significand
    unit = math.ldexp(1.0, max(math.frexp(right)[1] - dtype.significand, least))
    return abs(found - right) / unit


SPECIAL: dict[Op, list[tuple[Number, Number]]] = {
    Op.EXP2: [
        (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1.0, 2.0), (-3.0, 0.125), (127.0, 2.0**127), (-126.0, 2.0**-126),
    ],
    Op.LOG2: [
        (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN), (1.0, 0.0), (2.0, 1.0), (2.0**-149, -149.0),
    ],
    Op.SIN: [
        (0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (2.0**-149, 2.0**-149), (-(2.0**-140), -(2.0**-140)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("op", SPECIAL, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_special_points(op: Op, dtype: DType) -> None:
    found = [(x, value_of(op, dtype, float(x))) for x, _ in SPECIAL[op]]

    assert [repr(float(right)) for _, right in SPECIAL[op]] == [repr(value) for _, value in found]


def test_ends_of_ranges() -> None:
    assert (2.0**-1074, INF, 0.0) == tuple(value_of(Op.EXP2, FLOAT64, x) for x in (-1074.0, 1024.0, -1076.0))
    assert (2.0**-149, INF, 0.0) == tuple(value_of(Op.EXP2, FLOAT32, x) for x in (-149.0, 128.0, -151.0))
    assert -1074.0 == value_of(Op.LOG2, FLOAT64, 5e-324)


DRAWN: dict[str, tuple[Op, Callable[[random.Random], float]]] = {
    "exp2 anywhere": (Op.EXP2, lambda r: r.uniform(-150, 127.99)),
    "exp2 near 0": (Op.EXP2, lambda r: r.uniform(-1, 1)),
    "log2 anywhere": (Op.LOG2, lambda r: math.ldexp(r.uniform(1, 2), r.randint(-148, 127))),
    "log2 near 1": (Op.LOG2, lambda r: 1 + math.ldexp(r.uniform(-1, 1), -r.randint(1, 22))),
    "sine of little": (Op.SIN, lambda r: r.uniform(-7, 7)),
    "sine of much": (Op.SIN, lambda r: math.ldexp(r.uniform(-1, 1), r.randint(3, 128))),
    "sine near a zero": (Op.SIN, lambda r: FLOAT32.round(r.randint(1, 100_000) * math.pi)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_float32_against_the_machines_float64(name: str) -> None:
    op, drawn = DRAWN[name]
    function = {Op.EXP2: math.exp2, Op.LOG2: math.log2, Op.SIN: math.sin}[op]
    chosen = random.Random(name)
    worst = 0.0
    for _ in range(300):
        x = FLOAT32.round(drawn(chosen))
        if math.isfinite(x):
            worst = max(worst, units(value_of(op, FLOAT32, x), function(x), FLOAT32))

    assert 0.0 < worst < 2.5


KNOWN: dict[Op, dict[float, float]] = {  # the right values rounded once, by arithmetic of 2400 bits
    Op.SIN: {
        1e22: -0.8522008497671888, 6381956970095103 * 2.0**797: 1.0, 3.141592653589793: 1.2246467991473532e-16,
        1.7976931348623157e308: 0.004961954789184062, 355.0: -3.014435335948845e-05, 2.0**-30: 9.313225746154785e-10,
        1e5: 0.03574879797201651, 0.7853981633974484: 0.7071067811865476, -11.0: 0.9999902065507035,
    },
    Op.EXP2: {
        0.1: 1.0717734625362931, -0.49999999999999994: 0.7071067811865476, 1023.9999999999999: 1.7976931348621742e308,
        -1050.25: 6.970229e-317, 3.3: 9.849155306759329, 1e-17: 1.0, -700.7: 1.1702591305506744e-211,
    },
    Op.LOG2: {
        3.0: 1.584962500721156, 0.7071067811865476: -0.4999999999999999, 1.4142135623730951: 0.5000000000000001,
        1.0000000000000002: 3.203426503814917e-16, 0.9999999999999999: -1.6017132519074588e-16, 1e-320: -1063.0170064253057,
        1.7976931348623157e308: 1024.0, 1.35: 0.43295940727610627,
    },
}  # fmt: skip


@pytest.mark.parametrize("op", KNOWN, ids=lambda op: op.name)
def test_float64_against_known_values(op: Op) -> None:
    off = {x: units(value_of(op, FLOAT64, x), right, FLOAT64) for x, right in KNOWN[op].items()}

    assert {} == {x: by for x, by in off.items() if by > 2.5}


def test_other_values_stay_as_they_are() -> None:
    x = make(Op.LOAD, FLOAT32, (make(Op.PARAM, FLOAT32, (), (1, "read", None, 16)), number(0)), (1, False))
    graph = Graph.of(make(Op.EXP2, FLOAT32, (x,)))

    assert (graph, {}) == elementary(graph, frozenset(((Op.EXP2, FLOAT64), (Op.SIN, FLOAT32))))
