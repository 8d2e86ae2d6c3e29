"""How many elements a buffer must have for an access: its greatest index where it is valid, and one.

By intervals, exactly where points are few, and as an expression of variables where a launch decides: the smaller where that is known.
"""

from __future__ import annotations

from core.index.bounds import lower
from core.index.condition import TRUE, conjuncts
from core.index.decide import Decider, has_data
from core.index.enumerate import own_bounds
from core.index.extremes import smaller, upper_expression
from core.index.linear import number, split, subtract
from core.ir.op import Op
from core.ir.value import Value


def greatest_index(index: Value, valid: Value, decider: Decider) -> Value:
    """An upper bound of `index` where `valid` holds: a number, or an expression of variables where that is no worse."""
    if valid is TRUE and all(t.op is Op.AXIS and not t.src for t in split(index)[2]):
        return number(own_bounds(index)[1])
    known = number(_greatest_number(index, valid, decider))
    if not any(atom.op is Op.VARIABLE for atom in index.free | valid.free):
        return known
    given = decider.given(valid)
    bound = upper_expression(index if valid is TRUE else given.simplify(index), given)
    if bound is None or bound.op is Op.CONST or bound.lo < -1:  # type: ignore[operator]  # index values have bounds
        return known if bound is None or bound.op is not Op.CONST else smaller(known, bound)
    return smaller(bound, known)


def _greatest_number(index: Value, valid: Value, decider: Decider) -> int:
    """By intervals; exact, of few points, where intervals may be loose."""
    most = decider.most(index, valid)
    if has_data(index) or _plain(index, valid):
        return most
    exact = decider.greatest_of_few(index, valid)
    return most if exact is None else min(most, exact)


def _plain(index: Value, valid: Value) -> bool:
    """Whether intervals are exact: a sum of atoms, each bounded by itself."""
    return all(t in t.free for t in split(index)[2]) and all(c.op is not Op.LESS or len(c.free) == 1 for c in conjuncts(valid))


def larger(x: Value, y: Value) -> Value:
    """An upper bound of both: the provably larger one, else a number."""
    if lower(subtract(x, y)) >= 0:
        return x
    if lower(subtract(y, x)) >= 0:
        return y
    return number(max(own_bounds(x)[1], own_bounds(y)[1]))
