"""The greatest value of an index as an expression of variables: what holds for one launch's values rather than for all.

Axes are eliminated where the index is monotone in them, each by the greatest or least value it takes; what is left is bounded term by term.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.index.bounds import lower
from core.index.divmod import floordiv
from core.index.enumerate import DATA, own_bounds, symbolic
from core.index.given import Given
from core.index.linear import add, build, multiply, number, scale, split, subtract
from core.index.substitute import substitute
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value


def upper_expression(x: Value, given: Given) -> Value | None:
    """An expression of variables that x never exceeds where the conditions hold; None where none was found."""
    for atom in sorted(x.free, key=lambda a: a.order):
        if atom.op is Op.VARIABLE or atom not in x.free:
            continue
        step = subtract(substitute(x, {atom: add(atom, number(1))}), x)
        if step.lo >= 0 or lower(step) >= 0:  # type: ignore[operator]
            x = substitute(x, {atom: _greatest(atom, given, beyond=atom not in step.free)})
        elif step.hi <= 0:  # type: ignore[operator]
            x = substitute(x, {atom: number(given.bounds(atom)[0])})
    return _upper(x, given, 1)


def _greatest(atom: Value, given: Given, *, beyond: bool = True) -> Value:
    """The greatest value of an atom. beyond: one above all the atom's own values is of use too, the index being linear in it."""
    result = number(given.bounds(atom)[1])
    if atom.op not in DATA:
        for other in greatest_values(atom, given):
            if beyond or own_bounds(other)[1] <= own_bounds(atom)[1]:
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


def greatest_values(axis: Value, given: Given) -> Iterable[Value]:
    """Expressions of variables that the axis never exceeds: its extent less one, and what a condition compares it with."""
    if symbolic(axis):
        yield subtract(axis.src[0], number(1))
    for c in given.conditions:
        if c.op is Op.LESS and axis in c.src[0].free:
            _, coefficients, terms = split(c.src[0])
            pairs = dict(zip(terms, coefficients, strict=True))
            if pairs.pop(axis, 0) == 1 and pairs and all(_of_variables(t) for t in pairs):
                yield subtract(number(integer(c) - 1), build(0, pairs))


def _of_variables(x: Value) -> bool:
    return all(atom.op is Op.VARIABLE for atom in x.free)


def smaller(x: Value, y: Value) -> Value:
    """Of two upper bounds the one that is provably no larger; x where neither is."""
    return y if lower(subtract(x, y)) >= 0 else x
