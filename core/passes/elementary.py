"""EXP2, LOG2 and SIN by arithmetic, where a machine has no instruction for them, or none that is good to 4 units in the last place.

Over random and hard operands exp2 is off by 1.1, log2 by 2.0, the sine by 2.3 units in the last place at most. The series are Taylor's;
the sine's argument is reduced exactly, as a product of integers with as many bits of 2/pi as its exponent asks for (M. Payne and R. Hanek,
*Radian reduction for trigonometric functions*, ACM SIGNUM Newsletter 18(1), 1983).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

from core.dtypes import DTYPES, FLOAT32, FLOAT64, INT32, UINT32, UINT64, DType, Number
from core.ir.op import Op
from core.ir.parts import like
from core.ir.value import Value, alu, cast, constant, make
from core.ir.walk import Graph, with_sources
from core.passes.guarded import truncated

Function = tuple[Op, DType]


def elementary(graph: Graph, wanted: frozenset[Function]) -> tuple[Graph, dict[Value, Value]]:
    """The graph with these functions computed by arithmetic, and what each value that changed became."""
    if wanted.isdisjoint((value.op, value.dtype) for value in graph.order):
        return graph, {}
    changed: dict[Value, Value] = {}
    for value in graph.order:
        src = tuple([changed.get(s, s) for s in value.src])
        made = value if src == value.src else with_sources(value, src)
        if (value.op, value.dtype) in wanted:
            made = _FUNCTIONS[value.op](src[0], _FORMATS[value.dtype])
        if made is not value:
            changed[value] = made
    return graph.became(changed[graph.root]), changed


@dataclass(frozen=True, slots=True)
class _Format:
    """A float type: the unsigned integer of its width, and how many terms its series take."""

    dtype: DType
    unsigned: DType
    exp2_terms: int
    log_terms: int
    sine_terms: int
    cosine_terms: int
    words: int  # of 64 bits of 2/pi that its largest exponent reaches

    @property
    def fraction(self) -> int:
        """Bits of the significand that are stored."""
        return self.dtype.significand - 1

    @property
    def bias(self) -> int:
        return self.dtype.exponent_max

    def parts(self, number: Fraction) -> tuple[float, float]:
        """A number as the sum of two of the type."""
        high = self.dtype.round(float(number))
        return high, self.dtype.round(float(number - Fraction(high)))


_FORMATS = {
    FLOAT32: _Format(FLOAT32, UINT32, exp2_terms=8, log_terms=4, sine_terms=4, cosine_terms=5, words=5),
    FLOAT64: _Format(FLOAT64, UINT64, exp2_terms=14, log_terms=10, sine_terms=8, cosine_terms=8, words=20),
}


def _arctangent_of_one_by(n: int, bits: int) -> int:
    """atan(1/n) in units of 2**-bits, to within a few of them."""
    term = (1 << bits) // n
    total, k = term, 1
    while term:
        term //= n * n
        k += 2
        total += term // k if k % 4 == 1 else -(term // k)
    return total


_BITS = 1280
_PI = Fraction(16 * _arctangent_of_one_by(5, _BITS) - 4 * _arctangent_of_one_by(239, _BITS), 1 << _BITS)  # J. Machin, 1706


def _binary_logarithm_of_e() -> Fraction:
    with localcontext() as context:
        context.prec = 50
        return Fraction(1 / Decimal(2).ln())


_LOG2_E = _binary_logarithm_of_e()


# ---- words ---------------------------------------------------------------------------------------------------------------------


def _add(x: Value, y: Value | Number) -> Value:
    return alu(Op.ADD, x, y if isinstance(y, Value) else like(y, x))


def _times(x: Value, y: Value | Number) -> Value:
    return alu(Op.MUL, x, y if isinstance(y, Value) else like(y, x))


def _minus(x: Value, y: Value) -> Value:
    return alu(Op.ADD, x, alu(Op.NEG, y))


def _and(x: Value, mask: int) -> Value:
    return alu(Op.AND, x, like(mask, x))


def _left(x: Value, by: Value | int) -> Value:
    return alu(Op.SHL, x, by if isinstance(by, Value) else constant(by, UINT32, x.lanes))


def _right(x: Value, by: Value | int) -> Value:
    return alu(Op.SHR, x, by if isinstance(by, Value) else constant(by, UINT32, x.lanes))


def _is(x: Value) -> Value:
    """Whether an integer is not zero."""
    return alu(Op.CMPNE, x, like(0, x))


def _reinterpreted(x: Value, dtype: DType) -> Value:
    return make(Op.BITCAST, dtype, (x,), None, x.lanes)


def _number(value: Number, x: Value, form: _Format) -> Value:
    return constant(form.dtype.round(float(value)), form.dtype, x.lanes)


def _series(x: Value, coefficients: Sequence[Fraction | float], form: _Format) -> Value:
    """A polynomial by Horner's rule, the constant coefficient first."""
    total = _number(float(coefficients[-1]), x, form)
    for coefficient in reversed(coefficients[:-1]):
        total = _add(_times(total, x), _number(float(coefficient), x, form))
    return total


# ---- functions -----------------------------------------------------------------------------------------------------------------


def _exp2(x: Value, form: _Format) -> Value:
    """x = n + f with |f| <= 1/2; 2**n as two factors, so that a subnormal result is rounded once."""
    edge = float(form.bias + form.fraction + 2)  # beyond it the result is 0 or infinite
    low, high = _number(-edge, x, form), _number(edge, x, form)
    inside = alu(Op.WHERE, alu(Op.CMPLT, x, low), low, alu(Op.WHERE, alu(Op.CMPLT, high, x), high, x))
    half = alu(Op.WHERE, alu(Op.CMPLT, inside, _number(0.0, x, form)), _number(-0.5, x, form), _number(0.5, x, form))
    n = truncated(_add(inside, half), INT32, saturates=False)
    f = _minus(inside, cast(n, form.dtype))
    power = math.log(2.0)
    value = _series(f, [power**k / math.factorial(k) for k in range(form.exp2_terms)], form)
    first = _right(n, 1)
    for exponent in (first, _minus(n, first)):
        biased = cast(_add(exponent, form.bias), form.unsigned)
        value = _times(value, _reinterpreted(_left(biased, form.fraction), form.dtype))
    return value


def _log2(x: Value, form: _Format) -> Value:
    """x = 2**e * (1 + f) with 1 + f between the roots of 1/2 and 2; log(1 + f) = f - f*f/2 + s*(f*f/2 + R), s = f/(2 + f)."""
    up = form.fraction + 1
    is_small = alu(Op.CMPLT, x, _number(2.0 ** (1 - form.bias), x, form))
    bits = _reinterpreted(alu(Op.WHERE, is_small, _times(x, 2.0**up), x), form.unsigned)
    signed = DTYPES[f"int{form.dtype.bits}"]
    root = int(math.sqrt(0.5) * 2.0 ** (form.fraction + 1)) - (1 << form.fraction) + ((form.bias - 1) << form.fraction)
    exponent = _right(_reinterpreted(_add(bits, form.unsigned.wrap(-root)), signed), form.fraction)
    mantissa = _minus(bits, _left(_reinterpreted(exponent, form.unsigned), form.fraction))
    f = _add(_reinterpreted(mantissa, form.dtype), -1.0)
    s = _times(f, alu(Op.RECIP, _add(f, 2.0)))
    z = _times(s, s)
    rest = _times(z, _series(z, [Fraction(2, 2 * k + 3) for k in range(form.log_terms)], form))
    half = _times(_times(f, f), 0.5)
    tail = _minus(_times(s, _add(half, rest)), half)
    high, low = form.parts(_LOG2_E)
    n = alu(Op.WHERE, is_small, _add(cast(exponent, form.dtype), -float(up)), cast(exponent, form.dtype))
    result = _add(n, _add(_times(f, high), _add(_times(f, low), _times(tail, high))))
    zero, infinity = _number(0.0, x, form), _number(math.inf, x, form)
    at_most_zero = alu(Op.WHERE, alu(Op.CMPNE, x, zero), _number(math.nan, x, form), _number(-math.inf, x, form))
    finite = alu(Op.WHERE, alu(Op.CMPLT, x, infinity), result, x)
    return alu(Op.WHERE, alu(Op.CMPLT, zero, x), finite, at_most_zero)


def _sine(x: Value, form: _Format) -> Value:
    """|x| = q quarter turns and an angle r of at most half of one; then the sine or cosine of r, with a sign."""
    top = form.dtype.bits - 1
    bits = _reinterpreted(x, form.unsigned)
    sign, magnitude = _right(bits, top), _and(bits, (1 << top) - 1)
    exponent = cast(_right(magnitude, form.fraction), UINT64)
    quarters, is_below, angle = _reduced(cast(magnitude, UINT64), exponent, form)
    is_small = alu(Op.CMPLT, exponent, like(form.bias - 1, exponent))  # |x| < 1/2
    none = like(0, exponent)
    quarters = alu(Op.WHERE, is_small, none, quarters)
    is_below = alu(Op.WHERE, is_small, none, is_below)
    r = alu(Op.WHERE, is_small, _reinterpreted(magnitude, form.dtype), angle)
    z = _times(r, r)
    odd = [Fraction((-1) ** (k + 1), math.factorial(2 * k + 3)) for k in range(form.sine_terms)]
    even = [Fraction((-1) ** k, math.factorial(2 * k)) for k in range(form.cosine_terms + 1)]
    sine, cosine = _add(r, _times(r, _times(z, _series(z, odd, form)))), _series(z, even, form)
    is_cosine = _and(quarters, 1)
    value = _reinterpreted(alu(Op.WHERE, _is(is_cosine), cosine, sine), form.unsigned)
    flips = alu(Op.XOR, _and(_right(quarters, 1), 1), alu(Op.AND, is_below, alu(Op.XOR, is_cosine, like(1, is_cosine))))
    turned = alu(Op.XOR, value, _left(alu(Op.XOR, sign, cast(flips, form.unsigned)), top))
    is_finite = alu(Op.CMPLT, exponent, like(2 * form.bias + 1, exponent))
    return alu(Op.WHERE, is_finite, _reinterpreted(turned, form.dtype), _number(math.nan, x, form))


def _reduced(magnitude: Value, exponent: Value, form: _Format) -> tuple[Value, Value, Value]:
    """|x| * 2/pi modulo 4: the nearest integer, whether that is above it (0 or 1), and how far it is, as an angle.

    |x| is an integer of significand bits times a power of two; bits of 2/pi that give multiples of 4 are left out, and those that no
    rounding of the result can feel. Before the first bit of 2/pi the table has 64 zeros.
    """
    fraction = form.fraction
    integer = alu(Op.OR, _and(magnitude, (1 << fraction) - 1), like(1 << fraction, magnitude))
    offset = _add(exponent, UINT64.wrap(63 - (form.bias + fraction + 1)))
    first, within = _right(offset, 6), _and(offset, 63)
    back = _minus(like(63, within), within)
    count = 3 if form.dtype is FLOAT32 else 4
    words = _window(first, form.words, count)
    window = [alu(Op.OR, _left(a, within), _right(_right(b, 1), back)) for a, b in pairwise(words)]
    high, low = _product(integer, window)
    is_below = _and(_right(high, 61), 1)
    quarters = _add(_right(high, 62), is_below)
    flip = alu(Op.NEG, is_below)
    part = _left(high, 2) if low is None else alu(Op.OR, _left(high, 2), _right(low, 62))
    part = alu(Op.XOR, part, flip)
    spare = 64 - form.dtype.significand
    leading = cast(_and(part, UINT64.wrap(-1 << spare)), form.dtype)
    trailing = cast(_and(part, (1 << spare) - 1), form.dtype)
    if low is not None:
        trailing = _add(trailing, _times(cast(alu(Op.XOR, _left(low, 2), flip), form.dtype), 2.0**-64))
    unit, less = form.parts(_PI / (1 << 65))
    angle = _add(_times(leading, unit), _add(_times(leading, less), _times(trailing, unit)))
    return quarters, is_below, angle


def _window(first: Value, size: int, count: int) -> list[Value]:
    """`count` words of the bits of 2/pi from the word of this number on, chosen bit by bit of the number."""
    two_by_pi = (1 << (64 * (size - 1))) * 2 / _PI
    whole = two_by_pi.numerator // two_by_pi.denominator
    words = [like(whole >> (64 * (size - 1 - k)) & (2**64 - 1), first) for k in range(size)]
    step = 1 << (size - count).bit_length() - 1
    while step:
        is_set = _is(_and(first, step))
        words = [alu(Op.WHERE, is_set, words[k + step], words[k]) if k + step < len(words) else words[k] for k in range(step - 1 + count)]
        step //= 2
    return words


def _product(integer: Value, window: list[Value]) -> tuple[Value, Value | None]:
    """An integer times a fraction of whose words the first stands for multiples up to 4: the product's first 64 bits, and the next."""
    if len(window) == 2:  # of at most 24 bits, times 96
        carry = _right(_times(integer, _right(window[1], 32)), 32)
        return _add(_times(integer, window[0]), carry), None
    limbs = [half for word in reversed(window) for half in (_and(word, 2**32 - 1), _right(word, 32))]  # the lowest first
    columns: list[Value] = []
    carry = like(0, integer)
    for limb in limbs:
        total = _add(_times(_and(integer, 2**32 - 1), limb), carry)
        columns.append(_and(total, 2**32 - 1))
        carry = _right(total, 32)
    carry = like(0, integer)
    for k, limb in enumerate(limbs[:-1], start=1):
        total = _add(_add(_times(_right(integer, 32), limb), columns[k]), carry)
        columns[k] = _and(total, 2**32 - 1)
        carry = _right(total, 32)
    return alu(Op.OR, _left(columns[5], 32), columns[4]), alu(Op.OR, _left(columns[3], 32), columns[2])


_FUNCTIONS = {Op.EXP2: _exp2, Op.LOG2: _log2, Op.SIN: _sine}
