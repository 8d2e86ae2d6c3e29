"""Sums and products in canonical form: one flat SUM of distinct terms with coefficients, products of atoms distributed over sums.

A SUM carries `arg = (constant, coefficients)` and its terms as `src`, ordered by `Value.order`; a term is an atom, a PRODUCT, a DIV or a
MOD. A sum of one term with coefficient 1 is that term, one of no term a CONST. Rules S1 to S3 hold by construction, S4 and S5 (a quotient
and its remainder are the whole again) are looked for whenever a remainder stands in a sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from core.dtypes import INDEX
from core.errors import LimitExceeded
from core.index.remember import remembered
from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value, constant, make

MAX_TERMS = 4_096  # of one distributed product: a polynomial a client can write in a few characters must not take the machine

_small = [constant(n, INDEX) for n in range(-64, 1025)]


def number(n: int) -> Value:
    """The constant `n`."""
    return _small[n + 64] if -64 <= n <= 1024 else constant(n, INDEX)


def split(x: Value) -> tuple[int, tuple[int, ...], tuple[Value, ...]]:
    """A value as constant, coefficients, terms."""
    op = x.op
    if op is Op.SUM:
        return *coefficients(x), x.src
    if op is Op.CONST:
        return integer(x), (), ()
    return 0, (1,), (x,)


def build(constant_part: int, pairs: dict[Value, int]) -> Value:
    """The sum of `constant_part` and each term times its (possibly zero) coefficient."""
    terms = [t for t, c in pairs.items() if c]
    if len(terms) > 1:
        for t in terms:
            if t.op is Op.MOD:
                extra, pairs = _recombined({t: pairs[t] for t in terms})
                constant_part += extra
                terms = list(pairs)
                break
        terms.sort(key=_order)
    if not terms:
        return number(constant_part)
    if len(terms) == 1 and constant_part == 0 and pairs[terms[0]] == 1:
        return terms[0]
    low = high = constant_part
    factors = []
    for t in terms:
        c = pairs[t]
        factors.append(c)
        if c > 0:
            low += c * t.lo  # type: ignore[operator]  # index values always have bounds
            high += c * t.hi  # type: ignore[operator]
        else:
            low += c * t.hi  # type: ignore[operator]
            high += c * t.lo  # type: ignore[operator]
    return make(Op.SUM, INDEX, tuple(terms), (constant_part, tuple(factors)), 1, (low, high))


_order = attrgetter("order")


def _recombined(pairs: dict[Value, int]) -> tuple[int, dict[Value, int]]:
    """S4: c·(x div c) + x mod c = x; S5: c·((x div c) mod d) + x mod c = x mod cd; each scaled. Repeats until nothing is found.

    Gives the constant part that x may bring, and the terms that are left.
    """
    from core.index.divmod import floordiv, mod

    extra = 0
    again = True
    while again:
        again = False
        for m, k in sorted(pairs.items(), key=lambda pair: pair[0].order):
            if m.op is not Op.MOD or not k or m.src[1].op is not Op.CONST:
                continue
            x, c = m.src[0], integer(m.src[1])
            quotient = floordiv(x, c)
            constant_part, coefficients, terms = split(quotient)
            if terms and all(pairs.get(t, 0) == k * c * a for t, a in zip(terms, coefficients, strict=True)):
                del pairs[m]
                for t in terms:
                    del pairs[t]
                whole_constant, whole_coefficients, whole_terms = split(x)
                extra += k * (whole_constant - c * constant_part)
                for t, a in zip(whole_terms, whole_coefficients, strict=True):
                    pairs[t] = pairs.get(t, 0) + k * a
                again = True
                break
            for upper, upper_k in pairs.items():
                if upper.op is Op.MOD and upper_k == k * c and upper.src[1].op is Op.CONST and upper.src[0] is quotient:
                    del pairs[m], pairs[upper]
                    whole = mod(x, c * integer(upper.src[1]))
                    whole_constant, whole_coefficients, whole_terms = split(whole)
                    extra += k * whole_constant
                    for t, a in zip(whole_terms, whole_coefficients, strict=True):
                        pairs[t] = pairs.get(t, 0) + k * a
                    again = True
                    break
            if again:
                break
    return extra, {t: c for t, c in pairs.items() if c}


def weighted(constant_part: int, values: Iterable[Value], factors: Iterable[int]) -> Value:
    """constant_part + Σ factor·value, built at once: no intermediate sum is ever made."""
    pairs: dict[Value, int] = {}
    for x, factor in zip(values, factors, strict=True):
        if x.op is Op.SUM:
            part, inner = coefficients(x)
            constant_part += factor * part
            for t, c in zip(x.src, inner, strict=True):
                pairs[t] = pairs.get(t, 0) + factor * c
        elif x.op is Op.CONST:
            constant_part += factor * integer(x)
        else:
            pairs[x] = pairs.get(x, 0) + factor
    return build(constant_part, pairs)


def total(values: Iterable[Value]) -> Value:
    """The sum of all values."""
    every = tuple(values)
    return weighted(0, every, (1,) * len(every))


@remembered
def add(x: Value, y: Value) -> Value:
    """x + y."""
    return total((x, y))


@remembered
def shifted(x: Value, n: int) -> Value:
    """x + n, without looking at its terms again."""
    if n == 0:
        return x
    part, factors, terms = split(x)
    if not terms:
        return number(part + n)
    if part + n == 0 and factors == (1,):
        return terms[0]
    return make(Op.SUM, INDEX, terms, (part + n, factors), 1, (x.lo + n, x.hi + n))  # type: ignore[operator]


def difference(x: Value, y: Value) -> int | None:
    """x - y where it is a number: sums are canonical, so their terms are then the same."""
    if x is y:
        return 0
    x0, xc, xt = split(x)
    y0, yc, yt = split(y)
    return x0 - y0 if xt == yt and xc == yc else None


@remembered
def scale(x: Value, c: int) -> Value:
    """x · c."""
    if c == 1:
        return x
    if x.op is Op.CONST:
        return number(c * integer(x))
    part, coefficients, terms = split(x)
    return build(part * c, {t: a * c for t, a in zip(terms, coefficients, strict=True)}) if c else number(0)


def negate(x: Value) -> Value:
    """-x."""
    return scale(x, -1)


@remembered
def subtract(x: Value, y: Value) -> Value:
    """x - y."""
    return weighted(0, (x, y), (1, -1))


@remembered
def multiply(x: Value, y: Value) -> Value:
    """x · y, distributed: (a + b)·c is a·c + b·c. Raises LimitExceeded beyond MAX_TERMS terms."""
    if x.op is Op.CONST:
        return scale(y, integer(x))
    if y.op is Op.CONST:
        return scale(x, integer(y))
    x0, xc, xt = split(x)
    y0, yc, yt = split(y)
    if (len(xt) + 1) * (len(yt) + 1) > MAX_TERMS:
        raise LimitExceeded("", limit="terms of one product of sums", needed=len(xt) * len(yt), allowed=MAX_TERMS)
    pairs: dict[Value, int] = {}
    for t, a in zip(xt, xc, strict=True):
        if y0:
            pairs[t] = pairs.get(t, 0) + a * y0
        for u, b in zip(yt, yc, strict=True):
            p = _product(t, u)
            pairs[p] = pairs.get(p, 0) + a * b
    if x0:
        for u, b in zip(yt, yc, strict=True):
            pairs[u] = pairs.get(u, 0) + x0 * b
    return build(x0 * y0, pairs)


def _product(t: Value, u: Value) -> Value:
    factors = (*(t.src if t.op is Op.PRODUCT else (t,)), *(u.src if u.op is Op.PRODUCT else (u,)))
    ordered = tuple(sorted(factors, key=lambda f: f.order))
    low, high = 1, 1
    for f in ordered:
        corners = (low * f.lo, low * f.hi, high * f.lo, high * f.hi)  # type: ignore[operator]
        low, high = min(corners), max(corners)
    if len(set(ordered)) == 1 and len(ordered) % 2 == 0:
        low = max(low, 0)
    return make(Op.PRODUCT, INDEX, ordered, None, 1, (low, high))
