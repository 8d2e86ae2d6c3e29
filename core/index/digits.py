"""Digits of a position: what a flat position becomes when it is cut up by floor division, found again in the index they make.

The algebra takes out of a quotient what divides, so that of (30i + j) div 4 only 7i + (2i + j) div 4 is left. The position is put together
again from the topmost quotient, its digits are built anew, and that the index is a sum of just these digits is checked, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from core.index.divmod import floordiv, mod
from core.index.given import Given
from core.index.linear import build, multiply, number, scale, split, subtract, total
from core.index.strides import Linear, Stride, linear, reaches_below, spans, times
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value

Injective = Callable[[Value], bool]
MOST_CUTS = 8


def digits_of(part: Linear, axes: frozenset[Value], given: Given, injective: Injective) -> list[Stride] | None:
    """The digits a part of an index consists of, as axes with strides; None where it is not made of all digits of one position.

    part: the terms of the index that `axes` are in. injective: whether a position differs at all points of these axes. A topmost digit may
    be a remainder too (f mod 8 alone) where the axes move the position by less than all digits count.
    """
    cuts = _cuts(part)
    if cuts is None:
        return None
    whole = total([times(part.strides), *(scale(t, c) for t, c in part.terms)])
    for position, wraps in _positions(part):
        digits = [given.simplify(d) for d in _digits(position, cuts)]
        if wraps:
            moves = linear(position, axes)
            if moves.terms or not reaches_below([Stride(by, spans(axis, given)) for axis, by in moves.strides.items()], cuts[-1]):
                continue
            digits.pop()
        strides = _coefficients(whole, digits, axes)
        if strides is not None and injective(position):
            return [Stride(number(c), (_span(d, given),)) for c, d in zip(strides, digits, strict=True) if c]
    return None


def _span(digit: Value, given: Given) -> Value:
    low, high = given.bounds(digit)
    return number(high - low)


def _cuts(part: Linear) -> list[Value] | None:
    """The weights at which the position is cut, lowest first, each a divisor of the next; None where they are no such row."""
    found: dict[Value, None] = {}
    for t, _ in part.terms:
        inner: Value = number(1)
        if t.op is Op.MOD:
            for u in split(t.src[0])[2]:
                if u.op is Op.DIV:
                    inner = u.src[1]
                    found[inner] = None
            found[multiply(inner, t.src[1])] = None
        elif t.op is Op.DIV:
            found[t.src[1]] = None
        else:
            return None
    if len(found) == 1:
        return list(found)
    if len(found) > MOST_CUTS or any(c.op is not Op.CONST for c in found):
        return None
    cuts = sorted(integer(c) for c in found)
    return None if any(b % a for a, b in pairwise(cuts)) else [number(c) for c in cuts]


def _positions(part: Linear) -> list[tuple[Value, bool]]:
    """What the digits may be digits of, and whether its topmost digit is a remainder.

    The numerator of a quotient with what was taken out of it put back, largest divisor first; then the numerators of remainders.
    """
    found: list[tuple[Value, bool]] = []
    _, coefficients, terms = split(times(part.strides))
    for t, c in sorted(part.terms, key=lambda p: (p[0].op is not Op.DIV, -(p[0].src[1].hi or 0), p[0].order)):
        if t.op is Op.MOD:
            found.append((_unwrapped(t.src[0]), True))
        elif not any(a % c for a in coefficients):
            outside = build(0, {u: a // c for u, a in zip(terms, coefficients, strict=True)})
            found.append((total((t.src[0], multiply(t.src[1], outside))), False))
    return found


def _unwrapped(x: Value) -> Value:
    """The position f of which x is f div a, with what was taken out of the quotient put back; x itself where it is none."""
    _, coefficients, terms = split(x)
    for t, c in zip(terms, coefficients, strict=True):
        if t.op is Op.DIV and c == 1:
            return total((t.src[0], multiply(t.src[1], subtract(x, t))))
    return x


def _digits(position: Value, cuts: list[Value]) -> list[Value]:
    """The digits of a position, lowest first."""
    if len(cuts) == 1:
        return [mod(position, cuts[0]), floordiv(position, cuts[0])]
    weights = [1, *(integer(c) for c in cuts)]
    low = [mod(floordiv(position, a), b // a) for a, b in pairwise(weights)]
    return [*low, floordiv(position, weights[-1])]


def _coefficients(whole: Value, digits: list[Value], axes: frozenset[Value]) -> list[int] | None:
    """The coefficient of each digit such that their sum is `whole` but for what no axis is in; 0 for a digit that is constant."""
    strides = [0] * len(digits)
    rest = whole
    for wanted in (True, False):  # digits that carry a quotient or remainder of their own first: their coefficient is plain to see
        for k, digit in enumerate(digits):
            _, coefficients, terms = split(digit)
            own = [(t, c) for t, c in zip(terms, coefficients, strict=True) if not axes.isdisjoint(t.free)]
            if strides[k] or not own or any(t.op in (Op.DIV, Op.MOD) for t, _ in own) != wanted:
                continue
            t, c = next(((t, c) for t, c in own if t.op in (Op.DIV, Op.MOD)), own[0])
            _, have, there = split(rest)
            at = dict(zip(there, have, strict=True)).get(t, 0)
            if not at or at % c:
                return None
            strides[k] = at // c
            rest = subtract(rest, scale(digit, strides[k]))
    return strides if axes.isdisjoint(rest.free) else None
