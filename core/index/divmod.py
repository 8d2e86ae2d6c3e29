"""The identities of floor division and its remainder, as tables of named rules; each is right for all integers, negative ones too.

A rule takes the numerator and a positive constant and gives the simplified value, or None where it says nothing; the first that speaks
wins. The letters are those of the catalogue of rules in `docs/index-math.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from core.dtypes import INDEX
from core.index.bounds import lower
from core.index.linear import add, build, number, scale, split, subtract
from core.index.remember import remembered
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value, make

Rule = Callable[[Value, int], Value | None]


@remembered
def floordiv(x: Value, d: Value | int) -> Value:
    """⌊x / d⌋. d: a positive integer, or a value that is at least 1 wherever the result matters (a symbolic extent)."""
    if not isinstance(d, int):
        if d.op is not Op.CONST:
            return _symbolic_div(x, d)
        d = integer(d)
    if d <= 0:
        raise ValueError(f"division by {d}: divisors are positive")
    for rule in DIV_RULES:
        found = rule(x, d)
        if found is not None:
            return found
    return make(Op.DIV, INDEX, (x, number(d)), None, 1, (x.lo // d, x.hi // d))  # type: ignore[operator]


@remembered
def mod(x: Value, d: Value | int) -> Value:
    """x - d·⌊x / d⌋, in [0, d). d as for `floordiv`."""
    if not isinstance(d, int):
        if d.op is not Op.CONST:
            return _symbolic_mod(x, d)
        d = integer(d)
    if d <= 0:
        raise ValueError(f"remainder by {d}: divisors are positive")
    for rule in MOD_RULES:
        found = rule(x, d)
        if found is not None:
            return found
    return make(Op.MOD, INDEX, (x, number(d)), None, 1, (0, min(d - 1, x.hi) if x.lo >= 0 else d - 1))  # type: ignore[operator,type-var]


# ---- x div c ---------------------------------------------------------------------------------------------------------


def d1_by_one(x: Value, c: int) -> Value | None:
    """x div 1 = x."""
    return x if c == 1 else None


def d4_one_quotient(x: Value, c: int) -> Value | None:
    """x div c is the one quotient its bounds allow."""
    quotient = x.lo // c  # type: ignore[operator]
    return number(quotient) if quotient == x.hi // c else None  # type: ignore[operator]


def d2_nested(x: Value, c: int) -> Value | None:
    """(y div a) div c = y div ac."""
    if x.op is Op.DIV and x.src[1].op is Op.CONST:
        return floordiv(x.src[0], integer(x.src[1]) * c)
    return None


def d6_of_remainder(x: Value, c: int) -> Value | None:
    """(y mod cd) div c = (y div c) mod d."""
    if x.op is Op.MOD and x.src[1].op is Op.CONST and integer(x.src[1]) % c == 0:
        return mod(floordiv(x.src[0], c), integer(x.src[1]) // c)
    return None


def d5_common_factor(x: Value, c: int) -> Value | None:
    """(g·y + z) div (g·d) = (y + z div g) div d, z a constant."""
    constant_part, coefficients, terms = split(x)
    g = gcd(c, *coefficients)
    if g == 1:
        return None
    return floordiv(build(constant_part // g, {t: a // g for t, a in zip(terms, coefficients, strict=True)}), c // g)


def d3_take_out(x: Value, c: int) -> Value | None:
    """(c·y + z) div c = y + z div c, each coefficient and the constant cut into a multiple of c and what is left of it."""
    constant_part, coefficients, terms = split(x)
    if 0 <= constant_part < c and all(0 <= a < c for a in coefficients):
        return None
    whole = build(constant_part // c, {t: a // c for t, a in zip(terms, coefficients, strict=True)})
    rest = build(constant_part % c, {t: a % c for t, a in zip(terms, coefficients, strict=True)})
    return add(whole, floordiv(rest, c))


def d5_small_rest(x: Value, c: int) -> Value | None:
    """(g·y + z) div (g·d) = y div d where z stays in [0, g), g one of the coefficients."""
    for y, _, g in _parts_with_small_rest(x, c):
        return floordiv(y, c // g)
    return None


DIV_RULES: tuple[Rule, ...] = (d1_by_one, d4_one_quotient, d2_nested, d6_of_remainder, d5_common_factor, d5_small_rest, d3_take_out)


# ---- x mod c ---------------------------------------------------------------------------------------------------------


def m1_by_one(x: Value, c: int) -> Value | None:
    """x mod 1 = 0."""
    return number(0) if c == 1 else None


def m3_one_quotient(x: Value, c: int) -> Value | None:
    """x mod c = x - c·q where q is the one quotient its bounds allow."""
    quotient = x.lo // c  # type: ignore[operator]
    return subtract(x, number(c * quotient)) if quotient == x.hi // c else None  # type: ignore[operator]


def m4_nested(x: Value, c: int) -> Value | None:
    """(y mod cd) mod c = y mod c."""
    if x.op is Op.MOD and x.src[1].op is Op.CONST and integer(x.src[1]) % c == 0:
        return mod(x.src[0], c)
    return None


def m2_reduce_coefficients(x: Value, c: int) -> Value | None:
    """(a·y + z) mod c with each coefficient and the constant reduced modulo c."""
    constant_part, coefficients, terms = split(x)
    if 0 <= constant_part < c and all(0 <= a < c for a in coefficients):
        return None
    return mod(build(constant_part % c, {t: a % c for t, a in zip(terms, coefficients, strict=True)}), c)


def m6_negative_coefficients(x: Value, c: int) -> Value | None:
    """M3 for the coefficients a - c in place of those a above c/2: (7y) mod 8 = 8 - y for y in [1, 3]."""
    constant_part, coefficients, terms = split(x)
    if not any(2 * a > c for a in coefficients):
        return None
    other = build(constant_part, {t: a - c if 2 * a > c else a for t, a in zip(terms, coefficients, strict=True)})
    return m3_one_quotient(other, c)


def m5_common_factor(x: Value, c: int) -> Value | None:
    """(g·y + z) mod (g·d) = g·((y + z div g) mod d) + z mod g, z a constant."""
    constant_part, coefficients, terms = split(x)
    g = gcd(c, *coefficients)
    if g == 1:
        return None
    inner = mod(build(constant_part // g, {t: a // g for t, a in zip(terms, coefficients, strict=True)}), c // g)
    return add(scale(inner, g), number(constant_part % g))


def m5_small_rest(x: Value, c: int) -> Value | None:
    """(g·y + z) mod (g·d) = g·(y mod d) + z where z stays in [0, g), g one of the coefficients."""
    for y, z, g in _parts_with_small_rest(x, c):
        return add(scale(mod(y, c // g), g), z)
    return None


MOD_RULES: tuple[Rule, ...] = (
    m1_by_one, m3_one_quotient, m4_nested, m2_reduce_coefficients, m6_negative_coefficients, m5_common_factor, m5_small_rest,
)  # fmt: skip


def _parts_with_small_rest(x: Value, c: int) -> list[tuple[Value, Value, int]]:
    """(y, z, g) with x = g·y + z, z in [0, g), g > 1 a coefficient that divides c; the largest such g, if any."""
    if x.op is not Op.SUM:
        return []
    constant_part, coefficients, terms = split(x)
    for g in sorted({abs(a) for a in coefficients}, reverse=True):
        if g == 1 or c % g or g >= c:
            continue
        rest = build(constant_part, {t: a for t, a in zip(terms, coefficients, strict=True) if a % g})
        shift = rest.lo // g  # type: ignore[operator]
        if shift == rest.hi // g:  # type: ignore[operator]
            y = build(shift, {t: a // g for t, a in zip(terms, coefficients, strict=True) if a % g == 0})
            return [(y, subtract(rest, number(g * shift)), g)]
    return []


# ---- symbolic divisors: where a position is unflattened over a symbolic shape ---------------------------------------------


def _symbolic_parts(x: Value, d: Value) -> tuple[Value, Value]:
    """(q, rest) with x = d·q + rest: the terms of x that have d as a factor are in q."""
    constant_part, coefficients, terms = split(x)
    whole: dict[Value, int] = {}
    rest: dict[Value, int] = {}
    one = 0
    for t, a in zip(terms, coefficients, strict=True):
        if t is d:
            one += a
        elif t.op is Op.PRODUCT and d in t.src:
            factors = list(t.src)
            factors.remove(d)
            from core.index.linear import multiply

            q = factors[0]
            for f in factors[1:]:
                q = multiply(q, f)
            whole[q] = whole.get(q, 0) + a
        else:
            rest[t] = a
    if not whole and not one and d.op is Op.SUM:  # a sum as divisor: x may be a multiple of it as it stands
        _, dc, dt = split(d)
        pairs = dict(zip(terms, coefficients, strict=True))
        if dt and dt[0] in pairs and pairs[dt[0]] % dc[0] == 0:
            k = pairs[dt[0]] // dc[0]
            if all(pairs.get(t, 0) == k * a for t, a in zip(dt, dc, strict=True)):
                return number(k), subtract(x, scale(d, k))
    return build(one, whole), build(constant_part, rest)


def _stays_below(x: Value, d: Value) -> bool:
    return lower(x) >= 0 and lower(subtract(d, x)) >= 1


def _symbolic_div(x: Value, d: Value) -> Value:
    """D8, D9 and the part that d divides; else a DIV by a value."""
    q, rest = _symbolic_parts(x, d)
    if _stays_below(rest, d):
        return q
    low, high = max(d.lo, 1), max(d.hi, 1)  # type: ignore[type-var]
    corners = [n // m for n in (rest.lo, rest.hi) for m in (low, high)]  # type: ignore[operator]
    return add(q, make(Op.DIV, INDEX, (rest, d), None, 1, (min(corners), max(corners))))


def _symbolic_mod(x: Value, d: Value) -> Value:
    """D8, D9 and the part that d divides; else a MOD by a value."""
    _, rest = _symbolic_parts(x, d)
    if _stays_below(rest, d):
        return rest
    return make(Op.MOD, INDEX, (rest, d), None, 1, (0, max(d.hi - 1, 0)))  # type: ignore[operator]
