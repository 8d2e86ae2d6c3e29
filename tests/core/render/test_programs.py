"""Programs run: gates that close over nonsense, shared memory, images, variables, loops of loops, and chains of any depth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, INDEX, INT8, INT32, INT64, UINT8, VOID, DType, Number
from core.index import add, all_of, floordiv, less, mod, number, scale, total
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make
from core.targets import Target
from tests.core.render.building import (
    EACH,
    LLVM,
    OPENCL,
    C,
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
    variable,
    vector,
)  # fmt: skip
from tests.core.render.meaning import Array, array, numbers
from tests.core.render.running import CHECKED, FAST, Run, run


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [INT32, INT64], ids=str)
def test_a_gather_reads_nothing_where_its_gate_is_closed(target: Target, dtype: DType) -> None:
    """Wild indices, whose addresses wrap, between good ones."""
    wild = [3, -1, 2**31 - 1, 0, -(2**31), 99, 100, 7]
    if dtype is INT64:
        wild += [2**63 - 1, -(2**63), 2**40, 5]
    out, ids, table = param(0, FLOAT32, "write"), param(1, dtype, "read"), param(2, FLOAT32, "read")
    i = point(target, len(wild))
    r = loop(4)
    index = make(Op.INDEX_OF, INDEX, (load(ids, i),), None, 1, (int(dtype.least), int(dtype.greatest)))
    gate = all_of((less(number(-1), index), below(index, 100)))
    acc = register(FLOAT32, 0, r)
    x = load(table, total((scale(index, 4), r)), gate=gate)
    built = program(target, (store(out, i, updated(acc, alu(Op.ADD, x, acc))),), (out, ids, table))
    data = np.arange(400, dtype=np.float32)
    got = run([Run(built, (np.zeros(len(wild), np.float32), array([*wild], dtype), data), len(wild))])[0][0]

    assert [float(data[4 * n : 4 * n + 4].sum()) if 0 <= n < 100 else 0.0 for n in wild] == got.tolist()


def test_a_group_shares_what_its_members_found() -> None:
    def launched(kind: str, extent: int) -> Value:
        return make(Op.SPECIAL, INDEX, (number(extent),), (kind, 0), 1, (0, extent - 1))

    runs, wanted = [], []
    for dtype in (FLOAT32, FLOAT16, BFLOAT16, INT8, BOOL):
        out, a = param(0, dtype, "write"), param(1, dtype, "read")
        group, member, r, t = launched("group", 5), launched("local", 4), loop(3), loop(4, 1)
        partial = register(dtype, 0, r)
        part = updated(partial, alu(Op.ADD, load(a, total((scale(group, 12), scale(r, 4), member))), partial))
        shared = make(Op.SHARED, dtype, (), (0, 4))
        barrier = make(Op.BARRIER, VOID, (store(shared, member, part),))
        whole = register(dtype, 0, t, number_=1)
        read = make(Op.LOAD, dtype, (shared, t, barrier), (1, False))
        stores = (store(out, group, updated(whole, alu(Op.ADD, read, whole)), gate=below(member, 1)),)
        built = program(OPENCL, stores, (out, a), local_size=(4, 1, 1))
        values: list[Number] = [(n % 12 == 7) if dtype is BOOL else dtype.round(n % 5) if dtype.is_float else n % 5 for n in range(60)]
        blank: list[Number] = [0] * 5
        runs.append(Run(built, (array(blank, dtype), array(values, dtype)), 5))
        sums = [sum(values[12 * g : 12 * g + 12]) for g in range(5)]
        wanted.append((dtype, [bool(s) for s in sums] if dtype is BOOL else sums))
    for (dtype, sums_), got in zip(wanted, run(runs), strict=True):
        assert sums_ == numbers(got[0], dtype), dtype


def test_lanes_are_shared_through_an_aligned_array() -> None:
    out, a = param(0, FLOAT32, "write"), param(1, FLOAT32, "read")
    member = make(Op.SPECIAL, INDEX, (number(4),), ("local", 0), 1, (0, 3))
    shared = make(Op.SHARED, FLOAT32, (), (0, 16))
    barrier = make(Op.BARRIER, VOID, (store(shared, scale(member, 4), load(a, scale(member, 4), lanes=4)),))
    other = add(number(12), scale(member, -4))
    read = make(Op.LOAD, FLOAT32, (shared, other, barrier), (1, False), 4)
    built = program(OPENCL, (store(out, scale(member, 4), read),), (out, a), local_size=(4, 1, 1))
    data = np.arange(16, dtype=np.float32)
    got = run([Run(built, (data * 0, data))])[0][0]

    assert "__local float s0[16] __attribute__((aligned(16)));" in built.source
    assert data.reshape(4, 4)[::-1].ravel().tolist() == got.tolist()


@pytest.mark.parametrize("storage", [np.float32, np.float16])
def test_images_are_read_and_written_by_texels(storage: type) -> None:
    dtype = FLOAT32 if storage is np.float32 else FLOAT16
    out, image, plain = param(0, dtype, "write", (4, 8, 4)), param(1, dtype, "read", (4, 8, 4)), param(2, FLOAT32, "write")
    i = point(OPENCL, 32)
    x, y = mod(i, 8), floordiv(i, 8)
    texel = load(image, x, y, lanes=4, gate=below(i, 30), dtype=FLOAT32)
    doubled = vector(*(alu(Op.MUL, lane(texel, k), constant(2.0, FLOAT32)) for k in range(4)))
    stores = (store(out, x, y, doubled, gate=below(i, 31)), store(plain, i, lane(texel, 2)))
    built = program(OPENCL, stores, (out, image, plain))
    data: Array = np.arange(128).astype(storage)
    before: Array = np.full(128, 7, storage)
    got = run([Run(built, (before, data, np.zeros(32, np.float32)), 32)])[0]

    assert [*(2.0 * data[:120]), *([0.0] * 4), *([7.0] * 4)] == got[0].tolist()
    assert [*data[2:120:4], 0.0, 0.0] == got[2].tolist()


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_what_stands_in_a_branch_asks_for_its_gate_no_more(target: Target) -> None:
    out, data = param(0, FLOAT32, "write"), param(1, FLOAT32, "read")
    i = point(target, 6)
    at = [total((scale(i, 5), number(k))) for k in range(5)]
    one, other = below(i, 3), below(i, 5)
    gates = [one, one, one, other, None]
    stores = tuple(store(out, a, load(data, a, gate=g), gate=g) for a, g in zip(at, gates, strict=True))
    built = program(target, stores, (out, data))
    x = np.arange(1, 31, dtype=np.float32)
    got = run([Run(built, (np.zeros(30, np.float32), x), 6)])[0][0].reshape(6, 5)

    open_for = (3, 3, 3, 5, 6)
    expected = [[v if n < open_for[k] else 0.0 for k, v in enumerate(row)] for n, row in enumerate(x.reshape(6, 5).tolist())]

    assert expected == got.tolist()
    assert built.source.count("br i1" if target is LLVM else "if (") == 2 + (target is LLVM)  # there a loop's end is one too
    assert "?" not in built.source


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_variables_bound_loops_and_scale_addresses(target: Target) -> None:
    """Names that mean something in the language are no obstacle; neither is a loop of no turns."""
    n, stride = variable("int", 0, 6), variable("d0", 1, 10)
    out, a = param(0, INT32, "write"), param(1, INT32, "read")
    i = point(target, 4)
    r = make(Op.RANGE, INDEX, (n,), (0, "reduce"), 1, (0, 5))
    acc = register(INT32, 5, r)
    where = make(Op.PRODUCT, INDEX, (i, stride), None, 1, (0, 30))
    value = updated(acc, alu(Op.ADD, load(a, total((where, r))), acc))
    built = program(target, (store(out, i, value),), (out, a), variables=(("d0", 1, 10), ("int", 0, 6)))
    data = np.arange(40, dtype=np.int32)
    for turns in (0, 1, 6):
        got = run([Run(built, (np.zeros(4, np.int32), data), 4, (10, turns))])[0][0]
        assert [5 + int(data[10 * k : 10 * k + turns].sum()) for k in range(4)] == got.tolist()


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_a_register_read_beside_its_update_holds_the_old_value(target: Target) -> None:
    """A running sum of squares of the running maximum: two registers of one loop, one of which looks at the other before it changes."""
    out, a = param(0, FLOAT32, "write"), param(1, FLOAT32, "read")
    i, r = point(target, 3), loop(6)
    most, total_ = register(FLOAT32, 0, r), register(FLOAT32, 0, r, number_=1)
    x = load(a, add(scale(i, 6), r))
    new_most = updated(most, alu(Op.MAX, x, most))
    new_total = updated(total_, alu(Op.ADD, alu(Op.MUL, alu(Op.NEG, most), alu(Op.NEG, most)), total_))
    built = program(target, (store(out, i, alu(Op.ADD, new_total, new_most)),), (out, a))
    data = np.random.default_rng(0).integers(0, 50, 18).astype(np.float32)
    got = run([Run(built, (np.zeros(3, np.float32), data), 3)])[0][0]
    for k in range(3):
        maximum = 0.0
        squares = 0.0
        for value in data[6 * k : 6 * k + 6]:
            squares += maximum * maximum
            maximum = max(maximum, float(value))
        assert squares + maximum == got[k]


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_a_load_stays_before_the_store_it_must_precede(target: Target) -> None:
    """Two buffers swapped in place: both are read before either is written."""
    a, b = param(0, FLOAT32, "readwrite"), param(1, FLOAT32, "readwrite")
    i = point(target, 4)
    x, y = load(a, i), load(b, i)
    first = make(Op.STORE, VOID, (a, i, y, x), (1, False))
    second = make(Op.STORE, VOID, (b, i, x, y), (1, False))
    built = program(target, (first, second), (a, b))
    ones, twos = np.full(4, 1, np.float32), np.full(4, 2, np.float32)
    got = run([Run(built, (ones, twos), 4)])[0]

    assert [2.0] * 4 == got[0].tolist()
    assert [1.0] * 4 == got[1].tolist()


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [FLOAT32, INT32, UINT8, FLOAT16], ids=str)
def test_a_chain_of_twenty_thousand_is_written_in_short_lines(target: Target, dtype: DType) -> None:
    out, a = param(0, dtype, "write"), param(1, dtype, "read")
    i = point(target, 4)
    value = load(a, i)
    for k in range(20_000):
        value = alu(Op.ADD, value, constant(k % 7, dtype))
    lines = program(target, (store(out, i, value),), (out, a)).source.splitlines()

    assert max(map(len, lines)) < 500
    assert max(line.count("(") for line in lines) <= 2 * 64 + 2


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_deep_and_wide_expressions_compile_and_run(target: Target) -> None:
    runs, wanted = [], []
    for dtype in (FLOAT32, INT32, FLOAT16):
        out, a = param(0, dtype, "write"), param(1, dtype, "read")
        i = point(target, 4)
        chain = load(a, i)
        for k in range(1500):
            chain = alu((Op.ADD, Op.MAX, Op.ADD)[k % 3], chain, constant((1, 0, -1)[k % 3], dtype))
        tree = [alu(Op.ADD, load(a, i), constant(k % 3, dtype)) for k in range(512)]
        while len(tree) > 1:
            tree = [alu(Op.ADD, x, y) for x, y in zip(tree[::2], tree[1::2], strict=True)]
        built = program(target, (store(out, i, alu(Op.ADD, chain, tree[0])),), (out, a), f"deep_{dtype.name}")
        runs.append(Run(built, (array([0] * 4, dtype), array([1, 0, 1, 0], dtype)), 4))
        wanted.append((dtype, [1 + 512 + 511, 511, 1 + 512 + 511, 511]))
    for (dtype, expected), got in zip(wanted, run(runs, FAST if target is C else CHECKED), strict=True):
        assert expected == numbers(got[0], dtype)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_constants_arrive_bit_by_bit(target: Target) -> None:
    runs, wanted = [], []
    for dtype in DTYPES.values():
        if dtype is BOOL:
            contents: list[Number] = [True, False]
        elif dtype.is_float:
            great = math.ldexp(2.0 - math.ldexp(1.0, 1 - dtype.significand), dtype.exponent_max)
            least = math.ldexp(1.0, 2 - dtype.exponent_max - dtype.significand)
            raw = [
                0.0,
                -0.0,
                math.inf,
                -math.inf,
                math.nan,
                0.1,
                1 / 3,
                1e-5,
                1e10,
                16777217.0,
                123456.789,
                great,
                -great,
                least,
                3 * least,
            ]
            contents = [dtype.round(x) for x in raw]
        else:
            contents = [n for n in (dtype.least, dtype.greatest, 0, 1, -1, 100) if dtype.least <= n <= dtype.greatest]
        out = param(0, dtype, "write")
        i = point(target, 1)
        stores = tuple(store(out, add(i, number(k)), constant(c, dtype)) for k, c in enumerate(contents))
        built = program(target, stores, (out,), f"constants_{dtype.name}")
        runs.append(Run(built, (array([0] * len(contents), dtype),)))
        wanted.append((dtype, contents))
    for (dtype, contents), got in zip(wanted, run(runs), strict=True):
        for c, x in zip(contents, numbers(got[0], dtype), strict=True):
            both_nan = c != c and x != x
            assert both_nan or (c == x and math.copysign(1, c) == math.copysign(1, x)), (dtype, c, x)
