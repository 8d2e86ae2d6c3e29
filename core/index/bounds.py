"""What is known of an index value's range: bounds (kept on each Value), residues, and the exact maximum over symbolic extents."""

from __future__ import annotations

from math import gcd

from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value


def residue(x: Value) -> tuple[int, int]:
    """(g, r): every value of x is r modulo g; g = 0 for a constant, which r then is. Computed once per value."""
    if x.residue is None:
        x.residue = _residue(x)
    return x.residue


def _residue(x: Value) -> tuple[int, int]:
    match x.op:
        case Op.CONST:
            return 0, integer(x)
        case Op.SUM:
            r, factors = coefficients(x)
            g = 0
            for c, t in zip(factors, x.src, strict=True):
                tg, tr = residue(t)
                g, r = gcd(g, c * tg), r + c * tr
            return _normal(g, r)
        case Op.PRODUCT:
            g, r = residue(x.src[0])
            for t in x.src[1:]:
                tg, tr = residue(t)
                g, r = gcd(gcd(g * tg, g * tr), tg * r), r * tr
            return _normal(g, r)
        case Op.DIV if x.src[1].op is Op.CONST:
            c = integer(x.src[1])
            g, r = residue(x.src[0])
            return _normal(g // c, r // c) if g % c == 0 and r % c == 0 else (1, 0)
        case Op.MOD if x.src[1].op is Op.CONST:
            c = integer(x.src[1])
            g, r = residue(x.src[0])
            return _normal(gcd(g, c), r)
        case _:
            return 1, 0


def _normal(g: int, r: int) -> tuple[int, int]:
    return (g, r % g) if g else (0, r)


def is_multiple(x: Value, n: int) -> bool:
    """Whether every value of x is a multiple of n, as far as residues show."""
    g, r = residue(x)
    return g % n == 0 and r % n == 0


def upper(x: Value) -> int:
    """An upper bound of x that knows an axis to stay below its symbolic extent: of r - n with r < n it is -1, not the interval's."""
    return _extreme(x, 1)


def lower(x: Value) -> int:
    """The lower counterpart of `upper`."""
    return -_extreme(x, -1)


_COUNTING = frozenset((Op.AXIS, Op.RANGE, Op.SPECIAL))


def _has_symbolic_extent(t: Value) -> bool:
    """Whether t counts from 0 to below an extent of variables; an axis narrowed by assumptions (`core.index.given`) does not."""
    if t.op not in _COUNTING or not t.src or not t.src[0].free:
        return False
    return t.op is not Op.AXIS or (isinstance(t.arg, tuple) and t.arg[0] == "axis")


def _extreme(x: Value, sign: int) -> int:
    plain: int = x.hi if sign > 0 else -x.lo  # type: ignore[operator,assignment]
    if not any(map(_has_symbolic_extent, x.src if x.op is Op.SUM else (x,))):
        return plain
    from core.index.linear import build, number, scale, split, subtract

    current = scale(x, sign)
    for _ in range(8):  # axes whose extent names no further such axis: one round each
        constant_part, coefficients, terms = split(current)
        axis = next((t for t in terms if _has_symbolic_extent(t)), None)
        if axis is None:
            break
        pairs = dict(zip(terms, coefficients, strict=True))
        c = pairs.pop(axis)
        rest = build(constant_part, pairs)
        current = rest if c < 0 else subtract(rest, scale(subtract(number(1), axis.src[0]), c))
        plain = min(plain, current.hi)  # type: ignore[type-var,assignment]
    return plain
