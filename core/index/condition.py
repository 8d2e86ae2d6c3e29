"""Comparisons and their conjunctions in canonical form.

`LESS` with source x and arg t says x < t: x is a sum without constant whose coefficients have no common factor. `ALL` is a conjunction of
two or more; TRUE and FALSE are constants. Rules L1 to L7, A1, A2 and A4 of the catalogue hold by construction.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from core.dtypes import BOOL
from core.index.bounds import lower, upper
from core.index.linear import build, negate, shifted, split, subtract
from core.index.remember import remembered
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value, constant, make

TRUE = constant(True, BOOL)
FALSE = constant(False, BOOL)


@remembered
def less(x: Value, y: Value) -> Value:
    """x < y."""
    return _below(subtract(x, y), 0)


@remembered
def at_least(x: Value, y: Value) -> Value:
    """x >= y: y < x + 1."""
    return _below(subtract(y, x), 1)


def _below(x: Value, limit: int) -> Value:
    """x < limit, in canonical form."""
    while True:
        part, coefficients, terms = split(x)
        x, limit = shifted(x, -part), limit - part
        if upper(x) < limit:  # L1, L7
            return TRUE
        if lower(x) >= limit:
            return FALSE
        g = gcd(*coefficients)
        if g > 1:  # L3
            coefficients, limit = tuple([c // g for c in coefficients]), -(-limit // g)
            x = build(0, dict(zip(terms, coefficients, strict=True)))
        if len(terms) == 1 and terms[0].op is Op.DIV and terms[0].src[1].op is Op.CONST:  # L5
            numerator, c = terms[0].src[0], integer(terms[0].src[1])
            if coefficients[0] == 1:  # y div c < t: y < c·t
                x, limit = numerator, c * limit
            else:  # -(y div c) < t: y div c > -t: y >= c·(1 - t): -y < 1 - c·(1 - t)
                x, limit = negate(numerator), 1 - c * (1 - limit)
            continue
        shorter = _without_small_rest(coefficients, terms, limit)  # L4
        if shorter is None:
            return make(Op.LESS, BOOL, (x,), limit, 1, (0, 1))
        coefficients, terms, limit = shorter
        x = build(0, dict(zip(terms, coefficients, strict=True)))


def _without_small_rest(
    coefficients: tuple[int, ...], terms: tuple[Value, ...], limit: int
) -> tuple[tuple[int, ...], tuple[Value, ...], int] | None:
    """L4: g·y + z < t with z in [0, g) and q, ρ = divmod(t, g): y < q + 1 where z < ρ always, y < q where z >= ρ always."""
    if len(terms) < 2:
        return None
    for g in sorted({abs(c) for c in coefficients}, reverse=True):
        if g == 1:
            return None
        big = [(c // g, t) for c, t in zip(coefficients, terms, strict=True) if c % g == 0]
        if len(big) == len(terms):
            continue
        rest = build(0, {t: c for c, t in zip(coefficients, terms, strict=True) if c % g})
        low, high = rest.lo, rest.hi
        if high - low >= g:  # type: ignore[operator]
            continue
        q, rho = divmod(limit - low, g)  # type: ignore[operator]
        if high - low < rho:  # type: ignore[operator]
            return tuple(c for c, _ in big), tuple(t for _, t in big), q + 1
        if rho == 0:
            return tuple(c for c, _ in big), tuple(t for _, t in big), q
    return None


def conjuncts(condition: Value) -> tuple[Value, ...]:
    """The comparisons that must all hold: none of TRUE; FALSE stands for itself."""
    if condition.op is Op.ALL:
        return condition.src
    return () if condition is TRUE else (condition,)


def all_of(conditions: Iterable[Value]) -> Value:
    """The conjunction: duplicates, weaker and implied conditions dropped, contradictions FALSE."""
    tightest: dict[Value, Value] = {}  # of each sum the comparison that says most
    others: dict[Value, None] = {}
    for condition in conditions:
        for c in conjuncts(condition):
            if c.op is Op.LESS:
                known = tightest.get(c.src[0])
                if known is None or integer(c) < integer(known):
                    tightest[c.src[0]] = c
            elif c is FALSE:
                return FALSE
            else:
                others[c] = None
    kept = list(tightest.values())
    if len(kept) > 1:
        reduced = None if _contradict(kept) else _drop_implied(kept)
        if reduced is None:
            return FALSE
        kept = reduced
    parts = sorted((*kept, *others), key=_order)
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else make(Op.ALL, BOOL, tuple(parts), None, 1, (0, 1))


def _order(c: Value) -> int:
    return c.order


def _contradict(comparisons: list[Value]) -> bool:
    """A2: x < t and -x < s need t > 1 - s."""
    limits: dict[Value, int] = {}
    for c in comparisons:
        opposite = limits.get(negate(c.src[0]))
        if opposite is not None and 1 - opposite >= integer(c):
            return True
        limits[c.src[0]] = integer(c)
    return False


def _bounds_one_atom(c: Value) -> bool:
    """Such conditions imply nothing about each other but what A2 has seen."""
    x = c.src[0]
    return x in x.free or (x.op is Op.SUM and len(x.src) == 1 and x.src[0] in x.free)


MAX_IMPLIED = 12  # conditions among which implied ones are looked for: the search is quadratic


def _drop_implied(kept: list[Value]) -> list[Value] | None:
    """A4: without what the intervals of the others imply; None where they contradict each other."""
    from core.index.given import Given

    if len(kept) > MAX_IMPLIED or all(_bounds_one_atom(c) for c in kept):
        return kept
    kept = sorted(kept, key=lambda c: (len(c.src[0].free), c.order), reverse=True)
    for c in list(kept):
        others = [o for o in kept if o is not c]
        if not any(not o.free.isdisjoint(c.free) for o in others):
            continue
        given = Given(others)
        if given.impossible:
            return None
        low, high = given.bounds(c.src[0])
        if high < integer(c):
            kept = others
        elif low >= integer(c):
            return None
    return kept
