"""Every conversion rounds once, truncates or keeps the low bits, as the wire says; bits that are only moved stay as they are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DType, Number
from core.index import add, number, scale
from core.ir.op import Op
from core.ir.value import alu, constant
from core.targets import Target
from tests.core.render.building import EACH, C, as_type, load, loop, param, point, program, register, store, updated
from tests.core.render.meaning import array, converted, edges, numbers, rounded, same
from tests.core.render.running import Run, run

NARROW = (FLOAT16, BFLOAT16)


def _near_ties(narrow: DType, source: DType, rng: np.random.Generator) -> list[Number]:
    """Values on, just above and just below the middle between two neighbours of a narrow type, as exactly as the source can say it."""
    out: list[Number] = []
    for _ in range(60):
        exponent = int(rng.integers(-20, 15)) if source.is_float else int(rng.integers(narrow.significand, source.bits - 1))
        steps = 2 * int(rng.integers(1 << (narrow.significand - 1), 1 << narrow.significand)) + 1  # an odd number of half steps
        if source.is_float:
            tie = math.ldexp(steps, exponent - narrow.significand)
            out += [tie, math.nextafter(tie, math.inf), math.nextafter(tie, -math.inf), -tie, -math.nextafter(tie, math.inf)]
        else:
            shift = exponent - narrow.significand
            whole = steps << shift if shift >= 0 else steps
            out += [n for n in (whole, whole + 1, whole - 1, -whole, -whole - 1, 1 - whole) if source.least <= n <= source.greatest]
    if source is FLOAT64 and narrow is FLOAT16:
        small = math.ldexp(1.0, -25)  # half of the least subnormal
        out += [small, math.nextafter(small, 1.0), math.nextafter(small, 0.0), 65520.0, math.nextafter(65520.0, 0.0), 1e300, 5e-324]
    return out


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_every_pair_of_types_converts_with_one_rounding(target: Target) -> None:
    runs, wanted = [], []
    types = list(DTYPES.values())
    for source in types:
        rng = np.random.default_rng(11)
        values = edges(source, rng)
        if source.is_integer and source.bits >= 32:
            values += [n for narrow in (*NARROW, FLOAT32) for n in _near_ties(narrow, source, rng)]
        elif source in (FLOAT32, FLOAT64):
            values += [rounded(float(n), source) for narrow in NARROW for n in _near_ties(narrow, source, rng)]
            values += [
                -128.9,
                -129.0,
                127.9,
                255.9,
                -0.9,
                -2147483648.5,
                2147483647.5,
                2.0**31,
                2.0**32 - 512,
                2.0**63,
                -(2.0**63),
                2.0**64,
            ]
            values = [rounded(float(n), source) for n in values]
        outputs = [param(n, d, "write") for n, d in enumerate(types)]
        a = param(len(types), source, "read")
        i = point(target, len(values))
        x = load(a, i)
        stores = tuple(store(out, i, as_type(Op.CAST, x, d)) for out, d in zip(outputs, types, strict=True))
        built = program(target, stores, (*outputs, a), f"from_{source.name}")
        runs.append(Run(built, (*(array([0] * len(values), d) for d in types), array(values, source)), len(values)))
        wanted.append((source, values))
    for (source, values), buffers in zip(wanted, run(runs), strict=True):
        for dtype, buffer in zip(types, buffers, strict=False):
            for x_, got in zip(values, numbers(buffer, dtype), strict=True):
                assert same(converted(x_, source, dtype), got), (source, dtype, x_, converted(x_, source, dtype), got)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
@pytest.mark.parametrize("narrow", NARROW, ids=str)
def test_every_bit_pattern_of_a_narrow_float_is_read_and_rounded_right(target: Target, narrow: DType) -> None:
    everything = np.arange(65536, dtype=np.uint16)
    wide, back, half = param(0, FLOAT32, "write"), param(1, narrow, "write"), param(2, narrow, "write")
    a = param(3, narrow, "read")
    i = point(target, 65536)
    x = load(a, i)
    stores = (
        store(wide, i, as_type(Op.CAST, x, FLOAT32)),
        store(back, i, alu(Op.NEG, alu(Op.NEG, x))),
        store(half, i, alu(Op.MUL, x, constant(0.5, narrow))),
    )
    built = program(target, stores, (wide, back, half, a), "patterns")
    got = run([Run(built, (np.zeros(65536, np.float32), everything * 0, everything * 0, everything), 65536)])[0]
    values = numbers(everything.view(np.float16) if narrow is FLOAT16 else everything, narrow)
    for k, value in enumerate(values):
        assert same(value, float(got[0][k]))
    as_numbers = [numbers(b.view(np.float16) if narrow is FLOAT16 else b, narrow) for b in got[1:3]]
    assert all(same(v, g) for v, g in zip(values, as_numbers[0], strict=True))
    for value, result in zip(values, as_numbers[1], strict=True):
        if narrow is FLOAT16 or value != value or abs(value) > 2.0**-120:  # bfloat16 subnormals may be taken for zeros
            assert same(narrow.round(float(value) * 0.5), result), (value, result)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_bits_are_kept_where_values_are_only_moved(target: Target) -> None:
    """LOAD, WHERE, BITCAST and STORE keep even the payload of a signalling NaN."""
    everything = np.arange(65536, dtype=np.uint16)
    runs = []
    for narrow in NARROW:
        copy, chosen, bits, signed, restored, doubled = (
            param(n, d, "write") for n, d in enumerate((narrow, narrow, UINT16, INT16, narrow, narrow))
        )
        a, b = param(6, narrow, "read"), param(7, UINT16, "read")
        i = point(target, 65536)
        x, n = load(a, i), load(b, i)
        stores = (
            store(copy, i, x),
            store(chosen, i, alu(Op.WHERE, alu(Op.CMPLT, n, constant(40000, UINT16)), x, constant(1.0, narrow))),
            store(bits, i, as_type(Op.BITCAST, x, UINT16)),
            store(signed, i, as_type(Op.BITCAST, x, INT16)),
            store(restored, i, as_type(Op.BITCAST, n, narrow)),
            store(doubled, i, alu(Op.ADD, x, x)),
        )
        built = program(target, stores, (copy, chosen, bits, signed, restored, doubled, a, b), f"moves_{narrow.name}")
        blank = everything * 0
        runs.append(Run(built, (blank, blank, blank, blank.view(np.int16), blank, blank, everything, everything), 65536))
    for narrow, got in zip(NARROW, run(runs), strict=True):
        one = 0x3C00 if narrow is FLOAT16 else 0x3F80
        assert np.array_equal(everything, got[0])
        assert np.array_equal(np.where(everything < 40000, everything, one), got[1])
        assert np.array_equal(everything, got[2])
        assert np.array_equal(everything, got[3].view(np.uint16))
        assert np.array_equal(everything, got[4])


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_equally_wide_types_share_bits(target: Target) -> None:
    runs, wanted = [], []
    for group in ((FLOAT32, INT32, UINT32), (FLOAT64, INT64, UINT64)):
        unsigned = np.uint32 if group[0].bits == 32 else np.uint64
        memory = np.concatenate([array(edges(d, np.random.default_rng(2)), d).view(unsigned) for d in group])
        for source, dtype in itertools.permutations(group, 2):
            out, a = param(0, dtype, "write"), param(1, source, "read")
            i = point(target, len(memory))
            built = program(target, (store(out, i, as_type(Op.BITCAST, load(a, i), dtype)),), (out, a), f"bits_{source.name}_{dtype.name}")
            runs.append(Run(built, (memory * 0, memory), len(memory)))
            wanted.append(memory)
    for memory, got in zip(wanted, run(runs), strict=True):
        assert np.array_equal(memory, got[0])


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_a_byte_as_a_bool_is_whether_it_is_not_zero(target: Target) -> None:
    everything = np.arange(256, dtype=np.uint8)
    out, back, a = param(0, BOOL, "write"), param(1, UINT8, "write"), param(2, UINT8, "read")
    i = point(target, 256)
    truth = as_type(Op.BITCAST, load(a, i), BOOL)
    built = program(target, (store(out, i, truth), store(back, i, as_type(Op.BITCAST, truth, UINT8))), (out, back, a))
    got = run([Run(built, (everything * 0, everything * 0, everything), 256)])[0]
    assert np.array_equal(everything != 0, got[0])
    assert np.array_equal(everything != 0, got[1])


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_an_index_becomes_a_number_with_one_rounding(target: Target) -> None:
    """A ramp that leaves 32 bits, in every type."""
    types = [d for d in DTYPES.values() if d is not BOOL]
    outputs = [param(n, d, "write") for n, d in enumerate(types)]
    truth = param(len(types), BOOL, "write")
    i = point(target, 50)
    exact = [k * 98765432109 - 3 * 98765432109 for k in range(50)]
    ramp = add(scale(i, 98765432109), number(-3 * 98765432109))
    stores = (
        *(store(out, i, as_type(Op.CAST, ramp, d)) for out, d in zip(outputs, types, strict=True)),
        store(truth, i, as_type(Op.CAST, ramp, BOOL)),
    )
    built = program(target, stores, (*outputs, truth))
    got = run([Run(built, (*(array([0] * 50, d) for d in types), array([0] * 50, BOOL)), 50)])[0]
    for dtype, buffer in zip((*types, BOOL), got, strict=True):
        for n, x in zip(exact, numbers(buffer, dtype), strict=True):
            assert same(converted(n, INT64, dtype), x), (dtype, n, x)


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
@pytest.mark.parametrize("narrow", NARROW, ids=str)
def test_narrow_sums_over_a_loop_are_rounded_after_it(target: Target, narrow: DType) -> None:
    out, a = param(0, narrow, "write"), param(1, narrow, "read")
    i = point(target, 3)
    r = loop(5000)
    acc = register(narrow, 0, r)
    total = updated(acc, alu(Op.ADD, load(a, add(scale(i, 5000), r)), acc))
    built = program(target, (store(out, i, alu(Op.MUL, total, constant(0.5, narrow))),), (out, a), float16=False)
    data = [narrow.round(float(x)) for x in np.random.default_rng(1).random(15000)]
    got = numbers(run([Run(built, (array([0] * 3, narrow), array(data, narrow)), 3)])[0][0], narrow)
    for k in range(3):
        exact = math.fsum(data[k * 5000 : k * 5000 + 5000])
        assert abs(float(got[k]) - exact / 2) <= exact * 2.0**-narrow.significand


def test_halves_the_machine_has_are_computed_in_by_c() -> None:
    values = [FLOAT16.round(float(x)) for x in np.random.default_rng(4).standard_normal(400) * 50]
    out, root, whole, wide = param(0, FLOAT16, "write"), param(1, FLOAT16, "write"), param(2, INT32, "write"), param(3, BFLOAT16, "write")
    a = param(4, FLOAT16, "read")
    i = point(C, 400)
    x = load(a, i)
    third = alu(Op.ADD, alu(Op.MUL, alu(Op.ADD, x, x), x), constant(FLOAT16.round(0.1), FLOAT16))
    stores = (
        store(out, i, third),
        store(root, i, alu(Op.SQRT, alu(Op.MUL, x, x))),
        store(whole, i, as_type(Op.CAST, x, INT32)),
        store(wide, i, as_type(Op.CAST, x, BFLOAT16)),
    )
    built = program(C, stores, (out, root, whole, wide, a), float16=True)
    assert "_Float16" in built.source
    blank: list[Number] = [0] * 400
    run_ = Run(
        built, (array(blank, FLOAT16), array(blank, FLOAT16), array(blank, INT32), array(blank, BFLOAT16), array(list(values), FLOAT16))
    )
    got = run([run_], ("-O2", "-std=c11"))[0]
    for k, value in enumerate(values):
        half = FLOAT16.round
        assert half(half(half(value + value) * value) + half(0.1)) == float(got[0][k])
        assert int(value) == got[2][k]
        assert BFLOAT16.round(value) == numbers(got[3], BFLOAT16)[k]
