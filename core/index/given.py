"""What an index value is where a condition holds: narrower bounds, and what simplifies under them (rule A3).

Results are used only where the condition holds. A comparison bounds an atom (x < 5), or a sum (4i + j < 7), which then narrows wherever
that sum stands in another value; each also bounds every term of its sum, given the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.dtypes import INDEX
from core.index.linear import build, negate, number, split
from core.index.substitute import Rebuild
from core.ir.op import Op
from core.ir.parts import coefficients, content, integer
from core.ir.value import NO_VALUES, Value, make

ROUNDS = 3  # of carrying bounds from sums to their terms and back; more has not changed a kernel seen so far


class Given:
    """Assumptions, and what follows. `impossible`: they contradict each other, nothing lies where they hold."""

    def __init__(self, conditions: Iterable[Value]) -> None:
        self.conditions = tuple(conditions)
        self.impossible = False
        self._limits: dict[Value, tuple[int, int]] = {}
        self._sums: list[tuple[Value, int]] = []  # of several terms
        for c in self.conditions:
            if c.op is Op.LESS:
                x, most = c.src[0], integer(c) - 1
                if x.op is Op.SUM and len(x.src) > 1:
                    self._sums.append((x, most))
                else:
                    self._bound(x, most)
            elif c.op is Op.CONST and not content(c):
                self.impossible = True
        for _ in range(ROUNDS):
            changed = [self._carry(x, most) for x, most in self._sums]  # each of them, also after one that changed something
            if not any(changed):
                break
        self._between: dict[Value, tuple[int, int]] = {}  # bounds of sums, each once, its first coefficient positive
        if self._sums and not self.impossible:
            self._pair()
        self._narrowing: _Narrowing | None = None  # made when something is narrowed

    def _range(self, x: Value) -> tuple[int, int]:
        return self._limits.get(x) or (x.lo, x.hi)  # type: ignore[return-value]

    def _carry(self, x: Value, most: int) -> bool:
        """From Σ c·t <= most: each c·t is at most what the least of the others leaves."""
        _, coefficients, terms = split(x)
        ranges = [self._range(t) for t in terms]
        least = [c * (r[0] if c > 0 else r[1]) for c, r in zip(coefficients, ranges, strict=True)]
        floor = sum(least)
        if floor > most:
            self.impossible = True
            return False
        changed = False
        for c, t, (low, high), own in zip(coefficients, terms, ranges, least, strict=True):
            room = most - (floor - own)
            if c > 0 and room // c < high:
                high, changed = room // c, True
            elif c < 0 and -(room // -c) > low:
                low, changed = -(room // -c), True
            else:
                continue
            if low > high:
                self.impossible = True
                return False
            self._limits[t] = (low, high)
        return changed

    def _bound(self, x: Value, most: int) -> None:
        """From c·t <= most."""
        t, c = (x, 1) if x.op is not Op.SUM else (x.src[0], coefficients(x)[1][0])
        low, high = self._range(t)
        if c > 0 and most // c < high:
            high = most // c
        elif c < 0 and -(most // -c) > low:
            low = -(most // -c)
        else:
            return
        self._limits[t] = (low, high)
        self.impossible = self.impossible or low > high

    def _pair(self) -> None:
        """What the conditions say of whole sums, from above and from below."""
        for x, most in self._sums:
            turned = coefficients(x)[1][0] < 0
            key = negate(x) if turned else x
            low, high = self._between.get(key) or self._interval(key)
            low, high = self._between[key] = (max(low, -most), high) if turned else (low, min(high, most))
            self.impossible = self.impossible or low > high

    def _interval(self, x: Value) -> tuple[int, int]:
        part, coefficients, terms = split(x)
        low = high = part
        for c, t in zip(coefficients, terms, strict=True):
            a, b = self._range(t)
            low, high = low + min(c * a, c * b), high + max(c * a, c * b)
        return low, high

    def narrow(self, x: Value) -> Value:
        """x with the narrower atoms in place: good for its bounds and residues, not for output."""
        if self.impossible or not self.conditions:
            return x
        if self._narrowing is None:
            self._narrowing = _Narrowing(self.conditions, self._limits, self._between)
        return self._narrowing(x)

    def bounds(self, x: Value) -> tuple[int, int]:
        """Least and greatest value of x where the conditions hold, as far as this sees."""
        if not self.conditions:
            return x.lo, x.hi  # type: ignore[return-value]
        y = self.narrow(x)
        low, high = self._interval(x)
        return max(low, y.lo), min(high, y.hi)  # type: ignore[type-var,return-value]

    def simplify(self, x: Value) -> Value:
        """x as simple as the conditions make it."""
        if x.op is Op.CONST:
            return x
        y = self.narrow(x)
        return x if y is x else widened(y)


class _Narrowing(Rebuild):
    """Atoms with the bounds that were found in the place of what they bound, and of whole sums.

    Apart from the assumptions it follows from, so that nothing refers to what refers to it: both go as soon as nobody asks any more.
    """

    __slots__ = ("_atoms", "_multi", "_narrow")

    def __init__(self, conditions: tuple[Value, ...], limits: dict[Value, tuple[int, int]], between: dict[Value, tuple[int, int]]) -> None:
        super().__init__()
        self._atoms = NO_VALUES.union(*[c.free for c in conditions])
        self._narrow = {t: narrowed(t, low, high) for t, (low, high) in limits.items()}
        self._multi: list[tuple[dict[Value, int], Value]] = []
        for x, (low, high) in between.items():
            _, factors, terms = split(x)
            self._multi.append((dict(zip(terms, factors, strict=True)), narrowed(x, low, high)))

    def replaced(self, x: Value) -> Value | None:
        if x.free.isdisjoint(self._atoms):
            return x
        found = self._narrow.get(x)
        if found is not None:
            return found
        if x.op is Op.INDEX_OF:  # what it is made of is computed whether or not the conditions hold
            return x
        if x.op is not Op.SUM or not self._multi:
            return None
        part, coefficients, terms = split(x)
        pairs = dict(zip(terms, coefficients, strict=True))
        for wanted, atom in self._multi:
            first = next(iter(wanted))
            have = pairs.get(first, 0)
            if not have or have % wanted[first] or len(wanted) > len(pairs):
                continue
            k = have // wanted[first]
            if all(pairs.get(t, 0) == k * c for t, c in wanted.items()):
                for t in wanted:
                    del pairs[t]
                pairs[atom] = pairs.get(atom, 0) + k
                rest = {t: c for t, c in pairs.items() if t is not atom}
                kept = self(build(part, rest))
                rest_part, rest_coefficients, rest_terms = split(kept)
                out = dict(zip(rest_terms, rest_coefficients, strict=True))
                if atom.op is Op.CONST:
                    return build(rest_part + k * integer(atom), out)
                out[atom] = out.get(atom, 0) + k
                return build(rest_part, out)
        return None


def narrowed(x: Value, low: int, high: int) -> Value:
    """An atom that stands for x with these bounds; a number where they meet."""
    if low == high:
        return number(low)
    return make(Op.AXIS, INDEX, (x,), ("narrowed", low, high), 1, (low, high))


def _plain(x: Value) -> Value | None:
    if x.op is Op.AXIS and x.src and isinstance(x.arg, tuple) and x.arg[0] == "narrowed":
        return x.src[0]
    return None


class _Widening(Rebuild):
    __slots__ = ()

    def replaced(self, x: Value) -> Value | None:
        return _plain(x)


def widened(x: Value) -> Value:
    """x with every narrowed atom replaced by what it stands for."""
    return _Widening()(x)
