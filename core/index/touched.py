"""How many elements a buffer must have for an access: its greatest index where it is valid, and one.

Axes are eliminated where the index is monotone in them, each by the greatest or least value it takes, which may be an expression of
variables; what is left is bounded term by term, or by intervals. An expression holds for the launch's values, a number for all launches.
"""

from __future__ import annotations

from core.index.bounds import lower
from core.index.condition import TRUE
from core.index.decide import Decider, has_data
from core.index.divmod import floordiv
from core.index.enumerate import DATA, own_bounds
from core.index.given import Given
from core.index.linear import add, multiply, number, scale, split, subtract
from core.index.strides import greatest_values
from core.index.substitute import substitute
from core.ir.op import Op
from core.ir.value import Value


def greatest_index(index: Value, valid: Value, decider: Decider) -> Value:
    """An upper bound of `index` where `valid` holds: a number, or an expression of variables where that is no worse."""
    known = number(_greatest_number(index, valid, decider))
    if not any(atom.op is Op.VARIABLE for atom in index.free | valid.free):
        return known
    given = decider.given(valid)
    bound = _eliminated(index if valid is TRUE else given.simplify(index), given)
    if bound is None or bound.op is Op.CONST or bound.lo < -1:  # type: ignore[operator]  # index values have bounds
        return known if bound is None or bound.op is not Op.CONST else smaller(known, bound)
    return smaller(bound, known)


def _greatest_number(index: Value, valid: Value, decider: Decider) -> int:
    """By intervals; exact, of few points, where an axis stands in several terms, which intervals take for different ones."""
    most = decider.most(index, valid)
    met: set[Value] = set()
    for t in split(index)[2]:
        if not met.isdisjoint(t.free) and not has_data(index):
            exact = decider.greatest_of_few(index, valid)
            return most if exact is None else min(most, exact)
        met |= t.free
    return most


def smaller(x: Value, y: Value) -> Value:
    """Of two upper bounds the one that is provably no larger; x where neither is."""
    return y if lower(subtract(x, y)) >= 0 else x


def larger(x: Value, y: Value) -> Value:
    """An upper bound of both: the provably larger one, else a number."""
    if lower(subtract(x, y)) >= 0:
        return x
    if lower(subtract(y, x)) >= 0:
        return y
    return number(max(own_bounds(x)[1], own_bounds(y)[1]))


def _eliminated(x: Value, given: Given) -> Value | None:
    """x at the greatest value of each axis it grows with and the least of each it falls with, then each term's bound."""
    for atom in sorted(x.free, key=lambda a: a.order):
        if atom.op is Op.VARIABLE or atom not in x.free:
            continue
        step = subtract(substitute(x, {atom: add(atom, number(1))}), x)
        if step.lo >= 0 or lower(step) >= 0:  # type: ignore[operator]
            x = substitute(x, {atom: _greatest(atom, given)})
        elif step.hi <= 0:  # type: ignore[operator]
            x = substitute(x, {atom: number(given.bounds(atom)[0])})
    return _upper(x, given, 1)


def _greatest(atom: Value, given: Given) -> Value:
    result = number(given.bounds(atom)[1])
    if atom.op not in DATA:
        for other in greatest_values(atom, given):
            result = smaller(other, result)
    return result


def _upper(x: Value, given: Given, sign: int) -> Value | None:
    """An expression of variables that sign·x never exceeds."""
    if all(atom.op is Op.VARIABLE for atom in x.free):
        return scale(x, sign)
    match x.op:
        case Op.SUM:
            part, coefficients, terms = split(x)
            result = number(part * sign)
            for c, t in zip(coefficients, terms, strict=True):
                bound = _upper(t, given, sign if c > 0 else -sign)
                if bound is None:
                    return None
                result = add(result, scale(bound, abs(c)))
            return result
        case Op.DIV if x.src[1].op is Op.CONST and sign > 0:
            bound = _upper(x.src[0], given, 1)
            return None if bound is None else floordiv(bound, x.src[1])
        case Op.PRODUCT if sign > 0 and all(f.lo >= 0 for f in x.src):  # type: ignore[operator]
            result = number(1)
            for f in x.src:
                bound = _upper(f, given, 1)
                if bound is None:
                    return None
                result = multiply(result, bound)
            return result
        case Op.MOD if sign > 0:
            return smaller(subtract(x.src[1], number(1)), number(given.bounds(x)[1]))
        case Op.AXIS | Op.RANGE | Op.SPECIAL if sign > 0:
            return _greatest(x, given)
        case _:
            low, high = given.bounds(x)
            return number(high if sign > 0 else -low)
