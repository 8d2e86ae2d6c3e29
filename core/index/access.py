"""Where a leaf lies: an index and a validity over axes. From here on nobody knows whether views or an expression said it."""

from __future__ import annotations

from dataclasses import dataclass

from core.index.bounds import is_multiple
from core.index.condition import FALSE, TRUE, conjuncts
from core.index.given import Given
from core.index.linear import add, number, split, subtract
from core.index.remember import remembered
from core.index.substitute import Substitution, substitute
from core.ir.op import Op
from core.ir.value import Value


@dataclass(frozen=True, slots=True)
class Access:
    """index: the flat element number (a ramp's value); valid: a condition; where it fails the element does not exist and is 0."""

    index: Value
    valid: Value = TRUE

    @property
    def never(self) -> bool:
        """No point is valid."""
        return self.valid is FALSE

    def stride(self, axis: Value, *, ignoring_validity: bool = False) -> Value | None:
        """By how much the index moves with `axis`: a number or an expression of variables, or None where that depends on a point."""
        if not ignoring_validity and axis in self.valid.free:
            return None
        if axis not in self.index.free:
            return number(0)
        _, coefficients, terms = split(self.index)
        inside = [(t, c) for t, c in zip(terms, coefficients, strict=True) if axis in t.free]
        if len(inside) == 1 and inside[0][0] is axis:
            return number(inside[0][1])
        difference = subtract(substitute(self.index, {axis: add(axis, number(1))}), self.index)
        return difference if all(a.op is Op.VARIABLE for a in difference.free) else None

    def substituted(self, mapping: Substitution) -> Access:
        """The access over other axes."""
        index, valid = mapping(self.index), mapping(self.valid)
        return self if index is self.index and valid is self.valid else simplified(index, valid)

    def depends_on(self, axis: Value) -> bool:
        return axis in self.index.free or axis in self.valid.free

    def is_multiple(self, n: int) -> bool:
        """Whether the index is a multiple of n wherever it is valid, as far as residues show."""
        return is_multiple(self.index, n) or (self.valid is not TRUE and is_multiple(Given(conjuncts(self.valid)).narrow(self.index), n))


NOWHERE = Access(number(0), FALSE)


@remembered
def simplified(index: Value, valid: Value) -> Access:
    """The access with its index as simple as its validity makes it."""
    if valid is TRUE:
        return Access(index, TRUE)
    if valid is FALSE:
        return NOWHERE
    given = Given(conjuncts(valid))
    if given.impossible:
        return NOWHERE
    return Access(given.simplify(index), valid)
