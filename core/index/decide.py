"""Whether an index value is negative at a point where a condition holds: proved never, refuted by a point, or unknown.

Intervals and residues first, then what the condition makes of them, then every point of the smallest box that decides, then a solver. All
is counted in points and steps, never in time, so that a verdict is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from core.index.bounds import lower, residue
from core.index.condition import TRUE, all_of, conjuncts, less
from core.index.enumerate import (
    DATA,
    MAX_POINTS,
    Array,
    Points,
    Range,
    atoms_of,
    box_points,
    first_point,
    own_bounds,
    symbolic,
    work,
)
from core.index.extremes import upper_expression
from core.index.given import Given
from core.index.linear import negate, number, scale, shifted, split, subtract
from core.index.solve import Undecided, point_where
from core.index.substitute import substitute
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value

BUDGET = 1 << 22  # points looked at for one kernel, of values of up to _PLAIN operations: a second at most
STEPS = 1 << 20  # the solver's, for one kernel: a second at most
_QUESTION = 1 << 18  # of them for one question
_PLAIN = 16  # operations beyond which a point counts several times
_SAMPLED = 1 << 12  # points among which a counterexample is looked for where all are too many
_SAMPLE_WORK = 1 << 20  # operations on them
_FEW = 1 << 14  # points of an index whose exact greatest value is worth knowing: a fraction of a millisecond
UNBOUNDED = "the index holds values of another node that `valid` does not bound"
Point = dict[Value, int]


class Outcome(Enum):
    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Decision:
    """point: where it fails, of a refutation. why: in words, of what stays unknown."""

    outcome: Outcome
    point: Point | None = None
    why: str = ""


PROVED = Decision(Outcome.PROVED)


def has_data(x: Value) -> bool:
    """Whether what other nodes give is in x."""
    return any(atom.op in DATA for atom in x.free)


def without_data(valid: Value) -> Value:
    """A condition without the parts that depend on what nodes give: it holds wherever the whole one does."""
    parts = conjuncts(valid)
    kept = tuple(c for c in parts if c.op is Op.CONST or (c.op is Op.LESS and not has_data(c)))
    return valid if len(kept) == len(parts) else all_of(kept)


class Decider:
    """Decisions about one kernel, which share what they know of conditions and one budget of points and steps."""

    def __init__(self, budget: int = BUDGET, steps: int = STEPS) -> None:
        self.left = budget
        self.steps = steps
        self._given: dict[Value, Given] = {}
        self._least: dict[tuple[Value, Value], int] = {}

    def given(self, valid: Value) -> Given:
        """What follows from a condition, made once."""
        found = self._given.get(valid)
        if found is None:
            found = self._given[valid] = Given(c for c in conjuncts(valid) if c.op is Op.LESS or c.op is Op.CONST)
        return found

    def least(self, x: Value, valid: Value) -> int:
        """A lower bound of x where `valid` holds: the best that intervals, residues and symbolic extents show."""
        if valid is not TRUE and self.given(valid).impossible:
            return max(own_bounds(x)[0], 0)
        constant = split(x)[0]
        base = shifted(x, -constant)  # many indices lie a constant apart
        known = self._least.get((base, valid))
        if known is None:
            known = self._least[base, valid] = self._least_of(base, valid)
        return known + constant

    def _least_of(self, x: Value, valid: Value) -> int:
        extents = any(symbolic(atom) for atom in x.free)
        low = max(own_bounds(x)[0], lower(x)) if extents else own_bounds(x)[0]
        if valid is not TRUE:
            given = self.given(valid)
            narrow = given.narrow(x)
            low = max(low, given.bounds(x)[0], lower(given.simplify(x)) if extents else low)
            low = max(low, _least_by_conditions(x, given, low))
            x = narrow
        g, r = residue(x)
        return low + (r - low) % g if g > 1 else low

    def most(self, x: Value, valid: Value) -> int:
        """The upper counterpart of `least`."""
        return -self.least(negate(x), valid)

    def nonnegative(self, x: Value, valid: Value) -> Decision:
        """Whether x >= 0 wherever `valid` holds, atoms with a symbolic extent being below it."""
        if own_bounds(x)[0] >= 0 or self.least(x, valid) >= 0:
            return PROVED
        if has_data(x):
            return self._with_data(x, valid)
        if self._never_by_launch(x, valid):
            return PROVED
        axes = without_data(valid)
        found = self._enumerated(x, axes)
        if found.outcome is Outcome.REFUTED and axes is not valid:
            return self._whatever_the_values(x, _comparisons(valid), "whether its points are valid depends on values of another node")
        return found

    def _never_by_launch(self, x: Value, valid: Value) -> bool:
        """Whether an expression of variables shows it, where intervals take a variable for a different one in each term."""
        if not any(atom.op is Op.VARIABLE for atom in x.free):
            return False
        bound = upper_expression(negate(x), self.given(valid))
        return bound is not None and own_bounds(bound)[1] <= 0

    def _with_data(self, x: Value, valid: Value) -> Decision:
        """Refuted only where it fails whatever the values are."""
        axes = without_data(valid)
        if self.most(x, valid) < 0:
            point = self.some_point(axes)
            if point is not None:
                return Decision(Outcome.REFUTED, point)
        conditions = self._connected(x, valid)
        box = self._box(x, conditions, valid)
        if box is not None and self._spend(box, x, *conditions) and _failing(box, x, conditions) is None:
            return PROVED
        corner = self._corner(x, conditions, valid)
        if self._spend(corner, x, *conditions) and _failing(corner, x, conditions) is not None:
            return Decision(Outcome.UNKNOWN, None, UNBOUNDED)
        return self._whatever_the_values(x, conditions, UNBOUNDED)

    def _whatever_the_values(self, x: Value, conditions: list[Value], why: str) -> Decision:
        """As the solver says; but values for which it fails refute nothing, for nobody knows whether there are such."""
        found = self._solved(x, conditions, why)
        return Decision(Outcome.UNKNOWN, None, why) if found.outcome is Outcome.REFUTED else found

    def greatest_of_few(self, x: Value, valid: Value) -> int | None:
        """The greatest value of x where `valid` holds, -1 where it never does; None where the points are not few. x holds no data."""
        valid = without_data(valid)
        atoms = atoms_of(x, valid)
        box = box_points(atoms, self.ranges(atoms, valid), min(_FEW, self.left))
        if box is None or not self._spend(box, x, valid):
            return None
        held = box.holds(valid) & box.within_extents()
        values = box.full(box.value(x))[box.full(held)]
        return int(values.max()) if len(values) else -1

    # ---- enumeration -----------------------------------------------------------------------------------------------------

    def _enumerated(self, x: Value, valid: Value) -> Decision:
        whole, conditions = x, self._connected(x, valid)
        fixed = _free_terms(x, conditions)
        x = substitute(x, {atom: number(n) for atom, n in fixed.items()}) if fixed else x
        box = self._box(x, conditions, valid)
        if box is not None and self._spend(box, x, *conditions):
            failing = _failing(box, x, conditions)
            if failing is None:
                return PROVED
            rest = all_of(c for c in conjuncts(valid) if c not in conditions)
            other = self.some_point(rest)
            if other is not None:
                return Decision(Outcome.REFUTED, {**other, **fixed, **failing})
            return self._solved(whole, _comparisons(valid), "no point was found where its conditions hold")
        own = frozenset(atoms_of(x))
        conditions = [c for c in conditions if own.issuperset(c.free)]
        box = self._box(x, conditions, valid)
        if box is not None and self._spend(box, x, *conditions) and _failing(box, x, conditions) is None:
            return PROVED
        point = self._sampled(whole, valid)
        if point is not None:
            return Decision(Outcome.REFUTED, point)
        why = (
            f"its bounds do not follow from intervals, its points are more than {MAX_POINTS}, and a solver did not decide within its steps"
        )
        return self._solved(whole, _comparisons(valid), why)

    def _solved(self, x: Value, conditions: list[Value], why: str) -> Decision:
        """What the solver says within the steps that are left. A point of its is believed if x fails there by plain arithmetic."""
        steps = min(_QUESTION, self.steps)
        if steps <= 0:
            return Decision(Outcome.UNKNOWN, None, why)
        try:
            point, taken = point_where((less(x, number(0)), *conditions), steps)
        except Undecided as error:
            self.steps -= error.steps
            return Decision(Outcome.UNKNOWN, None, why)
        self.steps -= taken
        if point is None:
            return PROVED
        whole = {atom: point.get(atom, own_bounds(atom)[0]) for atom in atoms_of(x, *conditions)}
        failing = _failing(Points({atom: (n, n) for atom, n in whole.items()}), x, conditions)
        return Decision(Outcome.REFUTED, failing) if failing is not None else Decision(Outcome.UNKNOWN, None, why)

    def _connected(self, x: Value, valid: Value) -> list[Value]:
        """The conditions that share an atom with x, directly or by others."""
        free = set(atoms_of(x))
        waiting = [c for c in conjuncts(valid) if c.op is Op.LESS]
        found: list[Value] = []
        again = True
        while again:
            again = False
            for c in list(waiting):
                if not c.free.isdisjoint(free):
                    free.update(atoms_of(c))
                    found.append(c)
                    waiting.remove(c)
                    again = True
        return found

    def _box(self, x: Value, conditions: list[Value], valid: Value) -> Points | None:
        return box_points(atoms_of(x, *conditions), self.ranges(atoms_of(x, *conditions), valid), min(MAX_POINTS, self.left))

    def ranges(self, atoms: Iterable[Value], valid: Value) -> dict[Value, Range]:
        """The atoms' ranges as `valid` leaves them."""
        given = self.given(valid)
        if valid is TRUE or given.impossible:
            return {}
        return {atom: given.bounds(atom) for atom in atoms}

    def _spend(self, box: Points, *values: Value) -> bool:
        """Whether the budget has room for these values at every point of the box; it is spent if so."""
        cost = box.count * -(-work(*values) // _PLAIN)
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def some_point(self, valid: Value) -> Point | None:
        """A point where `valid` holds, or None where none was found."""
        valid = without_data(valid)
        if valid is TRUE:
            return {}
        atoms = atoms_of(valid)
        ranges = self.ranges(atoms, valid)
        box = box_points(atoms, ranges, min(MAX_POINTS, self.left)) or sample(atoms, ranges, work(valid))
        if not self._spend(box, valid):
            return None
        return first_point(box, lambda part: part.holds(valid) & part.within_extents())

    def _sampled(self, x: Value, valid: Value) -> Point | None:
        """A counterexample in the corner where x is least as far as its own terms say, or among the least values of all atoms."""
        conditions = list(conjuncts(valid))
        atoms = atoms_of(x, valid)
        for box in (self._corner(x, conditions, valid), sample(atoms, self.ranges(atoms, valid), work(x, valid))):
            if self._spend(box, x, valid):
                failing = _failing(box, x, conditions)
                if failing is not None:
                    return failing
        return None

    def _corner(self, x: Value, conditions: list[Value], valid: Value) -> Points:
        """The one point where x is least as far as its own terms say, each atom as `valid` leaves it."""
        atoms = atoms_of(x, *conditions)
        ranges = self.ranges(atoms, valid)
        _, coefficients, terms = split(x)
        down = {t: c < 0 for t, c in zip(terms, coefficients, strict=True)}
        corner: dict[Value, Range] = {}
        for atom in atoms:
            low, high = ranges.get(atom) or own_bounds(atom)
            corner[atom] = (high, high) if down.get(atom, False) else (low, low)
        return Points(corner)


def _comparisons(valid: Value) -> list[Value]:
    """The conditions that say something of index values."""
    return [c for c in conjuncts(valid) if c.op is Op.LESS]


def _failing(box: Points, x: Value, conditions: list[Value]) -> Point | None:
    """The first point where x is negative and all conditions hold."""

    def fails(part: Points) -> Array:
        failing: Array = np.asarray(part.value(x) < 0, np.bool_) & part.within_extents()
        for c in conditions:
            failing = failing & part.holds(c)
        return failing

    return first_point(box, fails)


def _least_by_conditions(x: Value, given: Given, low: int) -> int:
    """A lower bound of x as a multiple of some condition's sum and a rest: x = k·s + rest with s < t and k < 0."""
    _, factors, terms = split(x)
    mine = dict(zip(terms, factors, strict=True))
    for c in given.conditions:
        if c.op is not Op.LESS or c.src[0].op is not Op.SUM:
            continue
        _, theirs, others = split(c.src[0])
        for k in {mine[t] // a for t, a in zip(others, theirs, strict=True) if t in mine and mine[t] % a == 0}:
            if k < 0:
                rest = subtract(x, scale(c.src[0], k))
                low = max(low, k * (integer(c) - 1) + given.bounds(rest)[0])
    return low


def _free_terms(x: Value, conditions: list[Value]) -> Point:
    """Terms of x on which nothing else depends, each at the value where x is least."""
    _, coefficients, terms = split(x)
    fixed: Point = {}
    for t, c in zip(terms, coefficients, strict=True):
        if t.free == {t} and not any(t in other.free for other in (*terms, *conditions) if other is not t):
            fixed[t] = own_bounds(t)[0 if c > 0 else 1]
    return fixed


def sample(atoms: tuple[Value, ...], ranges: dict[Value, Range], cost: int) -> Points:
    """The least values of every atom, as many of each as come to few points. cost: of one point, as `work` says."""
    whole = {atom: ranges.get(atom) or own_bounds(atom) for atom in atoms}
    most = min(_SAMPLED, _SAMPLE_WORK // cost)
    each = 64
    while each > 1:
        points = Points({atom: (low, min(high, low + each - 1)) for atom, (low, high) in whole.items()})
        if points.count <= most:
            return points
        each //= 2
    return Points({atom: (low, low) for atom, (low, _) in whole.items()})
