"""Comparisons, and bools in one spelling."""

from __future__ import annotations

import math

from core.dtypes import BOOL
from core.ir.op import Op
from core.ir.value import Value, constant, make
from core.passes.ranges import interval
from core.rewrite import BOOLS, FLOATS, INTEGERS, NUMBERS, RuleSet, any_value, apply, cast, literal, maximum, mulacc, ne, rule

x = any_value("x", INTEGERS)
c = literal("c", INTEGERS)
f = any_value("f", FLOATS)
a = literal("a", FLOATS)
n = any_value("n", NUMBERS)
p, q, r = any_value("p", BOOLS), any_value("q", BOOLS), any_value("r", BOOLS)
s = any_value("s")


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


def is_zero_test(root: Value, n: Value) -> Value | None:
    """A conversion to bool as the comparison it is."""
    if root.dtype is not BOOL:
        return None
    zero = constant(0.0 if n.dtype.is_float else 0, n.dtype, n.lanes)
    return make(Op.CMPNE, root.dtype, (n, zero), None, root.lanes)


TO_BOOL = RuleSet(rule(cast(n), is_zero_test))

LOGIC = RuleSet(COMPARISONS, BOOLEANS, TO_BOOL)
