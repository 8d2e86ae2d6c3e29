"""Data arithmetic, simpler: constants, identities, collected terms, division, bools, conversions.

Between `lower` and `linear`. Each table says which types its rows hold for. Integer rows hold for every bit pattern, wrapping included;
float rows are exact under IEEE 754 (what is open on the wire, the sign and payload of a NaN and the sign of a maximum of zeros, stays
open). FAST_MATH alone takes floats for real numbers. Index values are simplified where they are built, in `core.index`.
"""

from __future__ import annotations

import math

from core.dtypes import BOOL, Number
from core.ir.evaluate import fold_value
from core.ir.op import OPS, Op
from core.ir.value import Value, constant, make
from core.ir.value import cast as converted
from core.passes.ranges import interval, product_fits
from core.rewrite import (
    BOOLS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    RuleSet,
    any_value,
    apply,
    bitcast,
    cast,
    fold,
    literal,
    maximum,
    mulacc,
    ne,
    one_of,
    recip,
    rule,
)

x, y = any_value("x", INTEGERS), any_value("y", INTEGERS)
z = any_value("z", SIGNED)
c, d = literal("c", INTEGERS), literal("d", INTEGERS)
f, g, h = any_value("f", FLOATS), any_value("g", FLOATS), any_value("h", FLOATS)
a, b = literal("a", FLOATS), literal("b", FLOATS)
n, m = any_value("n", NUMBERS), any_value("m", NUMBERS)
negative = -n
k, l = literal("k", NUMBERS), literal("l", NUMBERS)  # noqa: E741
p, q, r = any_value("p", BOOLS), any_value("q", BOOLS), any_value("r", BOOLS)
s, t = any_value("s"), any_value("t")
u, v, w = literal("u"), literal("v"), literal("w")

_ELEMENTWISE = {arity: tuple(op for op, info in OPS.items() if info.elementwise and info.arity == arity) for arity in (1, 2, 3)}
_COMMUTING = tuple(op for op in _ELEMENTWISE[2] if OPS[op].commutes)


def folds(root: Value) -> Value | None:
    return fold_value(root)


def in_order(root: Value) -> Value | None:
    """Commuting operands in canonical order: a constant last, others by their number."""
    first, second = root.src
    if second.op is Op.CONST or (first.op is not Op.CONST and first.order <= second.order):
        return None
    return make(root.op, root.dtype, (second, first), root.arg, root.lanes)


def index_constant(root: Value, c: int) -> Value:
    return constant(int(c), root.dtype, root.lanes)


CONSTANTS = RuleSet(
    rule(one_of(_ELEMENTWISE[1], u), folds),
    rule(one_of(_ELEMENTWISE[2], u, v), folds),
    rule(one_of(_ELEMENTWISE[3], u, v, w), folds),
    rule(apply(Op.INDEX_OF, c), index_constant),
    rule(one_of(_COMMUTING, s, t), in_order),
)  # fmt: skip


def _varies(n: Value) -> bool:
    return n.op is not Op.CONST


def _nonzero(x: Value) -> bool:
    low, high = interval(x)
    return low > 0 or high < 0


def _above_least(z: Value) -> bool:
    return interval(z)[0] > z.dtype.least


def _out_of_range(root: Value, c: int) -> bool:
    return not 0 <= c < root.dtype.bits


def _is_least(root: Value, k: Number) -> bool:
    return k == root.dtype.least


def _is_greatest(root: Value, c: int) -> bool:
    return c == root.dtype.greatest


def _never_more(x: Value, c: int) -> bool:
    return interval(x)[1] <= c


def _never_less(x: Value, c: int) -> bool:
    return interval(x)[0] >= c


IDENTITIES = RuleSet(
    rule(x + 0, x),
    rule(f + -0.0, f),  # not 0.0: -0.0 + 0.0 is 0.0
    rule(n * 1, n),
    rule(n * -1, -n),
    rule(x * 0, 0),  # not of floats: infinities and NaN
    rule(-negative, n),
    rule(x + -x, 0),
    rule((x + y) + -y, x),
    rule(negative * -m, n * m),
    rule(negative * k, n * fold(-k)),
    rule(-(n * k), n * fold(-k)),
    rule(x // 1, x),
    rule(z // -1, -z, when=_above_least),
    rule(x // x, 1, when=_nonzero),
    rule(apply(Op.IDIV, 0, x), 0),
    rule(x % 1, 0),
    rule(z % -1, 0),
    rule(x % x, 0),
    rule(apply(Op.REM, 0, x), 0),
    rule(x & x, x),
    rule(x | x, x),
    rule(x ^ x, 0),
    rule(x & 0, 0),
    rule(x & -1, x),
    rule(x | 0, x),
    rule(x | -1, -1),
    rule(x ^ 0, x),
    rule(~~x, x),
    rule(x << 0, x),
    rule(x >> 0, x),
    rule(x << c, 0, when=_out_of_range),  # any value; the text must not depend on the target's
    rule(x >> c, 0, when=_out_of_range),
    rule(apply(Op.SHL, 0, x), 0),
    rule(apply(Op.SHR, 0, x), 0),
    rule(maximum(n, n), n),
    rule(maximum(n, k), n, when=_is_least),
    rule(maximum(x, c), c, when=_is_greatest),
    rule(maximum(x, c), c, when=_never_more),
    rule(maximum(x, c), x, when=_never_less),
    rule(mulacc(k, l, n), fold(k * l) + n),
    rule(mulacc(k, n, m), mulacc(n, k, m), when=_varies),
    rule(mulacc(n, 1, m), n + m),
    rule(mulacc(x, 0, y), y),
    rule(mulacc(x, y, 0), x * y),
    rule(mulacc(f, g, -0.0), f * g),
)  # fmt: skip

# Terms collect modulo 2**bits, so of integers only: float sums and products may not be regrouped.
COLLECTING = RuleSet(
    rule((x + c) + d, x + fold(c + d)),
    rule((x * c) * d, x * fold(c * d)),
    rule((x & c) & d, x & fold(c & d)),
    rule((x | c) | d, x | fold(c | d)),
    rule((x ^ c) ^ d, x ^ fold(c ^ d)),
    rule(maximum(maximum(n, k), l), maximum(n, fold(maximum(k, l)))),
    rule(x + x, x * 2),
    rule(x * c + x, x * fold(c + 1)),
    rule(x * c + -x, x * fold(c + -1)),
    rule(x * c + x * d, x * fold(c + d)),
    rule(-x + -x, x * -2),
    rule(x << c, x * fold(apply(Op.SHL, 1, c))),  # one spelling: products collect, shifts do not
)


def _positive(c: int, d: int) -> bool:
    return c > 0 and d > 0


def _exact_product(root: Value, c: int, d: int) -> bool:
    return c > 0 and d > 0 and c * d <= root.dtype.greatest


def _divides(c: int, d: int) -> bool:
    """d divides c, both positive."""
    return c > 0 and d > 0 and c % d == 0


def _whole_multiple(x: Value, c: int, d: int) -> bool:
    return _divides(c, d) and product_fits(x, c)


def _smaller(x: Value, c: int) -> bool:
    low, high = interval(x)
    return -abs(c) < low and high < abs(c)


def _power_of_two_of_natural(x: Value, c: int) -> bool:
    return c > 0 and c & (c - 1) == 0 and interval(x)[0] >= 0


def _exact_shifted(root: Value, x: Value, c: int, d: int) -> bool:
    return 0 <= c < root.dtype.bits and d > 0 and d << c <= root.dtype.greatest and interval(x)[0] >= 0


def _exact_shift(root: Value, x: Value, c: int, d: int) -> bool:
    return 0 <= d < root.dtype.bits and c > 0 and c << d <= root.dtype.greatest and interval(x)[0] >= 0


def _shifts_within(root: Value, c: int, d: int) -> bool:
    return 0 <= c and 0 <= d and c + d < root.dtype.bits


def _bit_of(root: Value, c: int) -> Value:
    """log2(c) as a constant."""
    return constant(c.bit_length() - 1, root.dtype, root.lanes)


def shifted(root: Value, x: Value, c: int) -> Value:
    """x / c, c a power of two, as a shift."""
    return make(Op.SHR, root.dtype, (x, _bit_of(root, c)), None, root.lanes)


def shifts_joined(root: Value, x: Value, c: int, d: int) -> Value:
    """Shifts by c and by d as one; their types may differ."""
    return make(Op.SHR, root.dtype, (x, constant(c + d, root.src[1].dtype, root.lanes)), None, root.lanes)


DIVISIONS = RuleSet(
    rule(x // c, 0, when=_smaller),
    rule(x % c, x, when=_smaller),
    rule((x // c) // d, x // fold(c * d), when=_exact_product),
    rule((x >> c) // d, x // fold(apply(Op.SHL, 1, c) * d), when=_exact_shifted),
    rule((x // c) >> d, x // fold(c * apply(Op.SHL, 1, d)), when=_exact_shift),
    rule((x >> c) >> d, shifts_joined, when=_shifts_within),
    rule((x % c) % d, x % d, when=_divides),
    rule((x * c) // d, x * fold(c // d), when=_whole_multiple),
    rule((x * c) % d, 0, when=_whole_multiple),
    rule(x // c, shifted, when=_power_of_two_of_natural),
    rule(x % c, x & fold(c + -1), when=_power_of_two_of_natural),
)  # fmt: skip


def _always_below(x: Value, c: int) -> bool:
    return interval(x)[1] < c


def _always_above(x: Value, c: int) -> bool:
    return interval(x)[0] > c


def _never_above(x: Value, c: int) -> bool:
    return interval(x)[1] <= c


def _never_below(x: Value, c: int) -> bool:
    return interval(x)[0] >= c


def _never_equal(x: Value, c: int) -> bool:
    low, high = interval(x)
    return not low <= c <= high


def _nothing_below(a: float) -> bool:
    return a != a or a == -math.inf


def _nothing_above(a: float) -> bool:
    return a != a or a == math.inf


# No row moves a term across a comparison: on wrapping data x + 3 < 5 holds for the greatest x too.
COMPARISONS = RuleSet(
    rule(s < s, False),
    rule(ne(x, x), False),  # not of floats: NaN differs from itself
    rule(x < c, True, when=_always_below),
    rule(x < c, False, when=_never_below),
    rule(c < x, True, when=_always_above),
    rule(c < x, False, when=_never_above),
    rule(ne(x, c), True, when=_never_equal),
    rule(f < a, False, when=_nothing_below),
    rule(a < f, False, when=_nothing_above),
    rule(ne(cast(p), 0), p),
    rule(ne(cast(p), 1), ~p),
    rule(cast(p) < 1, ~p),
    rule(apply(Op.CMPLT, 0, cast(p)), p),
)  # fmt: skip

# One spelling: or, and, xor, not. The wire's ADD, MAX, MUL, NEG, CMPNE and MULACC of bools are these.
BOOLEANS = RuleSet(
    rule(p + q, p | q),
    rule(maximum(p, q), p | q),
    rule(p * q, p & q),
    rule(-p, ~p),
    rule(ne(p, q), p ^ q),
    rule(mulacc(p, q, r), (p & q) | r),
    rule(~~p, p),
    rule(p & True, p),
    rule(p & False, False),
    rule(p | True, True),
    rule(p | False, p),
    rule(p ^ True, ~p),
    rule(p ^ False, p),
    rule(p & p, p),
    rule(p | p, p),
    rule(p ^ p, False),
    rule(p & ~p, False),
    rule(p | ~p, True),
    rule(p ^ ~p, True),
    rule((~p) ^ (~q), p ^ q),
    rule(p & (p & q), p & q),
    rule(p | (p | q), p | q),
    rule(p & (p | q), p),
    rule(p | (p & q), p),
    rule(p < False, False),
    rule(apply(Op.CMPLT, True, p), False),
    rule(apply(Op.CMPLT, False, p), p),
    rule(p < True, ~p),
)  # fmt: skip


def loses_nothing(value: Value, root: Value) -> bool:
    """Whether a conversion of `value` to `root`'s type can be undone: every value it may have is a value there."""
    source, dtype = value.dtype, root.dtype
    if dtype.is_float:
        if source.is_float:
            return source.significand <= dtype.significand and source.exponent_max <= dtype.exponent_max
        most = 1 << dtype.significand
        low, high = _least_and_greatest(value)
        return -most <= low and high <= most and most.bit_length() <= dtype.exponent_max + 1
    if source.is_float or not dtype.is_integer:
        return False
    low, high = _least_and_greatest(value)
    return dtype.least <= low and high <= dtype.greatest


def _least_and_greatest(value: Value) -> tuple[float, float]:
    if value.lo is None or value.hi is None:
        return -math.inf, math.inf
    return value.lo, value.hi


def same_type(root: Value, s: Value) -> Value | None:
    return s if s.dtype is root.dtype else None


def cast_once(root: Value, s: Value) -> Value | None:
    """Both conversions as one, where the first loses nothing."""
    return converted(s, root.dtype) if loses_nothing(s, root.src[0]) else None


def bits_once(root: Value, s: Value) -> Value | None:
    """Both reinterpretations as one; a bool between them keeps one bit only."""
    if not root.src[0].dtype.is_integer:
        return None
    return s if s.dtype is root.dtype else make(Op.BITCAST, root.dtype, (s,), None, root.lanes)


def is_rounded(root: Value, s: Value) -> Value | None:
    """Rounding what is rounded so already, or came from that type, changes nothing."""
    inner = root.src[0]
    return inner if root.arg is (inner.arg if inner.op is Op.ROUND else s.dtype) else None


CONVERSIONS = RuleSet(
    rule(cast(s), same_type),
    rule(bitcast(s), same_type),
    rule(cast(cast(s)), cast_once),
    rule(bitcast(bitcast(s)), bits_once),
    rule(apply(Op.ROUND, apply(Op.ROUND, s)), is_rounded),
    rule(apply(Op.ROUND, cast(s)), is_rounded),
)


def is_zero_test(root: Value, n: Value) -> Value | None:
    """A conversion to bool as the comparison it is."""
    if root.dtype is not BOOL:
        return None
    zero = constant(0.0 if n.dtype.is_float else 0, n.dtype, n.lanes)
    return make(Op.CMPNE, root.dtype, (n, zero), None, root.lanes)


TO_BOOL = RuleSet(rule(cast(n), is_zero_test))

EXACT = RuleSet(CONSTANTS, IDENTITIES, COLLECTING, DIVISIONS, COMPARISONS, BOOLEANS, CONVERSIONS, TO_BOOL)

# Floats as real numbers: NaN, infinities, signs of zero and rounding are the client's risk.
FAST_MATH = RuleSet(
    rule(f + 0.0, f),
    rule(f * 0.0, 0.0),
    rule(f + -f, 0.0),
    rule((f + g) + -g, f),
    rule(f * recip(f), 1.0),
    rule((f * g) * recip(g), f),
    rule((f + a) + b, f + fold(a + b)),
    rule((f * a) * b, f * fold(a * b)),
    rule(f * a + f, f * fold(a + 1.0)),
    rule(f * a + f * b, f * fold(a + b)),
)
