"""Text of graphs, and back."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dtypes import BOOL, DTYPES, FLOAT16, INDEX, INDEX64, INT32, INT64, VOID, DType
from core.index import add, floordiv, less, mod, number, scale
from core.ir.op import OPS, Op
from core.ir.parse import parse
from core.ir.text import show, show_values
from core.ir.value import Arg, Value, constant, make
from core.ir.walk import Graph
from core.linear.order import linearize
from tests.core.ir.graphs import TYPES, graph, scalar

FLOAT32 = DTYPES["float32"]
EVERY_TYPE = (*TYPES, INDEX, INDEX64, VOID)


@given(st.integers(0, 10**9))
def test_a_graph_is_its_text_parsed(seed: int) -> None:
    root = graph(seed)

    assert root is parse(show(root))


@st.composite
def anything(draw: st.DrawFn) -> Value:
    """Values no kernel has: any operation with any operands and any arg."""
    random = Random(draw(st.integers(0, 10**9)))
    made: list[Value] = []
    for _ in range(draw(st.integers(1, 12))):
        made.append(_any_value(random, made))
    return made[-1]


def _any_value(random: Random, made: list[Value]) -> Value:
    op, dtype, lanes = random.choice(list(OPS)), random.choice(EVERY_TYPE), random.choice((1, 1, 2, 4))
    if op is Op.CONST or not made:
        dtype = random.choice((*TYPES, INDEX, INDEX64))
        return constant(random.randrange(99) if dtype.is_index else scalar(random, dtype), dtype, lanes)
    count = OPS[op].arity if OPS[op].arity is not None else random.randrange(4)
    if op in (Op.LOAD, Op.STORE):
        count = random.randrange(4, 7)
    bounds = (random.randrange(-9, 0), random.randrange(9)) if random.random() < 0.3 else None
    src = tuple(random.choice(made) for _ in range(count or 0))
    return make(op, dtype, src, _arg(random, op, len(src)), lanes, bounds)


def _arg(random: Random, op: Op, count: int) -> Arg:
    match op:
        case Op.LOAD | Op.STORE:
            return random.choice((1, 2)), random.random() < 0.5
        case Op.SUM:
            return random.randrange(-9, 9), tuple(random.randrange(-9, 9) for _ in range(count))
        case Op.PARAM:
            return random.randrange(3), random.choice(("read", "write")), random.choice((None, (2, 3, 4))), 4
        case Op.SPECIAL:
            return random.choice(("group", "local", "global")), random.randrange(3)
        case Op.LESS:
            return random.randrange(-9, 9)
        case _:
            pool: tuple[Arg, ...] = (None, None, 5, -3, FLOAT16, 'a "b" \\ : {c', (1, (2, None), "n"), (), (7,), 1.5, True, float("-inf"))
            return random.choice(pool)


@given(anything())
def test_any_value_is_its_text_parsed(value: Value) -> None:
    assert value is parse(show(value))


def test_bounds_survive_when_nobody_holds_the_graph() -> None:
    index = add(scale(make(Op.SPECIAL, INDEX, (number(32),), ("global", 0), 1, (0, 31)), 4), number(1))
    text = show(floordiv(index, number(3)))
    del index

    again = parse(text)

    assert (0, 41) == (again.lo, again.hi)
    assert text == show(again)


def _sample() -> Value:
    group = make(Op.SPECIAL, INDEX, (number(32),), ("global", 0), 1, (0, 31))
    turn = make(Op.RANGE, INDEX, (number(64),), (0, "reduce"), 1, (0, 63))
    index = add(scale(group, 64), turn)
    read, written = (make(Op.PARAM, FLOAT32, (), (k, access, None, 4)) for k, access in ((1, "read"), (0, "write")))
    load = make(Op.LOAD, FLOAT32, (read, index, less(index, number(9)), constant(0.5, FLOAT32)), (1, True))
    register = make(Op.ACC, FLOAT32, (constant(0.0, FLOAT32), turn), 0)
    total = make(Op.UPDATE, FLOAT32, (register, make(Op.ADD, FLOAT32, (register, load))))
    small = make(Op.CMPLT, BOOL, (total, constant(-0.0, FLOAT32)))
    return make(Op.STORE, VOID, (written, mod(group, number(4)), total, small), (1, True))


GRAPH = """\
buf0 = param{0, "write", none, 4}   : float32
g1   = launch.global 0, 32          : index [0, 31]
i2   = g1 % 4                       : index [0, 3]
r3   = loop{0, "reduce"} 64         : index [0, 63]
a4   = acc{0} 0.0, r3               : float32
buf1 = param{1, "read", none, 4}    : float32
i6   = r3 + g1*64                   : index [0, 2047]
p7   = i6 < 9                       : bool
v8   = load buf1[i6] if p7 else 0.5 : float32
v9   = add a4, v8                   : float32
v10  = update a4, v9                : float32
p11  = cmplt v10, -0.0              : bool
s12  = store buf0[i2] = v10 if p11
"""


def test_a_graph_reads_like_this() -> None:
    sample = _sample()

    assert GRAPH == show(sample)
    assert sample is parse(GRAPH)


def test_scopes_of_a_listing_are_indented() -> None:
    lines = show_values(linearize(Graph.of(make(Op.SINK, VOID, (_sample(),))))).splitlines()

    start = next(k for k, line in enumerate(lines) if " loop" in line)
    end = next(k for k, line in enumerate(lines) if " end " in line)
    assert all(line.startswith("    ") for line in lines[start + 1 : end])
    assert not lines[end].startswith(" ")
    assert not lines[end + 1].startswith(" ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no value"),
        ("v0 = nothing v1 : int32", "line 1"),
        ("v0 = add v1, v2 : int32", "line 1"),
        ("v0 = const{1} : int32\nv1 = add v0, v0 : int33", "line 2"),
        ("v0 = cmplt 1, 2 : bool", "needs a type"),
        ("v0 = const{1} : int32 ]", "line 1"),
        ("v0 = const{1} ! : int32", "line 1"),
    ],
)
def test_what_is_not_understood_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_a_constant_says_its_type_where_the_place_does_not() -> None:
    def compared(dtype: DType) -> Value:
        return make(Op.CMPLT, BOOL, (constant(1, dtype), constant(2, dtype)))

    assert "p0 = cmplt 1:int32, 2:int32 : bool\n" == show(compared(INT32))
    assert compared(INT64) is parse("p0 = cmplt 1:int64, 2:int64 : bool")
