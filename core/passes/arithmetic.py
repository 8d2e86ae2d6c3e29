"""Data arithmetic, simpler: constants, identities, collected terms, division, bools, conversions.

Between `lower` and `linear`. Each table says which types its rows hold for. Integer rows hold for every bit pattern, wrapping included;
float rows are exact under IEEE 754 (what is open on the wire, the sign and payload of a NaN and the sign of a maximum of zeros, stays
open). FAST_MATH alone takes floats for real numbers. Index values are simplified where they are built, in `core.index`.
"""

from __future__ import annotations

from core.dtypes import Number
from core.ir.evaluate import fold_value
from core.ir.op import OPS, Op
from core.ir.value import Value, constant, make
from core.passes.ranges import interval
from core.rewrite import (
    BOOLS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    RuleSet,
    any_value,
    apply,
    fold,
    literal,
    maximum,
    mulacc,
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
COMMUTING = tuple(op for op in _ELEMENTWISE[2] if OPS[op].commutes)


def folds(root: Value) -> Value | None:
    return fold_value(root)


def in_order(src: tuple[Value, ...]) -> tuple[Value, ...]:
    """Commuting operands in canonical order: a constant last, others by their number."""
    first, second = src
    return src if second.op is Op.CONST or (first.op is not Op.CONST and first.order <= second.order) else (second, first)


def reordered(root: Value) -> Value | None:
    """A commuting operation whose operands are not in canonical order."""
    src = in_order(root.src)
    return None if src is root.src else make(root.op, root.dtype, src, root.arg, root.lanes)


def index_constant(root: Value, c: int) -> Value:
    return constant(int(c), root.dtype, root.lanes)


CONSTANTS = RuleSet(
    rule(one_of(_ELEMENTWISE[1], u), folds),
    rule(one_of(_ELEMENTWISE[2], u, v), folds),
    rule(one_of(_ELEMENTWISE[3], u, v, w), folds),
    rule(apply(Op.INDEX_OF, c), index_constant),
    rule(one_of(COMMUTING, s, t), reordered),
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


ARITHMETIC = RuleSet(CONSTANTS, IDENTITIES, COLLECTING)

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
