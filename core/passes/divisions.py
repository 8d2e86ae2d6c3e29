"""Quotients and remainders of data integers: they truncate, their operands wrap, so most of what holds for indices does not hold here."""

from __future__ import annotations

from core.ir.op import Op
from core.ir.value import Value, constant, make
from core.passes.ranges import interval, product_fits
from core.rewrite import INTEGERS, RuleSet, any_value, apply, fold, literal, rule

x = any_value("x", INTEGERS)
c, d = literal("c", INTEGERS), literal("d", INTEGERS)


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
