"""Exact indices become machine integers: 32 bits where bounds prove it, 64 where not, and floor division becomes truncating.

The last pass on the graph. Every address is judged by the bounds of every value it is made of, under its own gate. What fits 32 bits
without the gate stays the `INDEX` it is, most often with all that uses it; what fits 64 becomes `INDEX64`: neither ever overflows. What
fits only where the gate holds becomes `INT32` or `INT64`, which wrap: its garbage outside the gate does no harm. Numerators that may be
negative are shifted up by a multiple of the divisor first.
"""

from __future__ import annotations

from collections.abc import Callable

from core.dtypes import BOOL, INDEX, INDEX64, INT32, INT64, DType
from core.errors import CompilerBug, LimitExceeded
from core.index import TRUE, conjuncts, negate, split
from core.index.given import Given
from core.index.linear import build, shifted
from core.ir.op import Op
from core.ir.parts import access, coefficients, integer
from core.ir.value import Value, constant, make
from core.ir.walk import Graph

Bounds = Callable[[Value], tuple[int, int]]
_CONDITIONS = (Op.LESS, Op.ALL)
_WIDTHS = ((32, INDEX, INT32), (64, INDEX64, INT64))  # bits, what never overflows, what may wrap


def narrow(graph: Graph, *, index64: bool) -> tuple[Graph, dict[Value, Value]]:
    """The machine graph of a raw one, and what each changed value became. index64: the target has 64-bit integers. Raises LimitExceeded."""
    work = _Narrowing(index64)
    return graph.became(work.root(graph)), work.done


def machine_condition(condition: Value, *, index64: bool) -> Value:
    """A condition on its own, as `narrow` makes it in a graph: the same values. Raises LimitExceeded."""
    return _Narrowing(index64).condition(condition)


class _Narrowing:
    def __init__(self, index64: bool) -> None:
        self.index64 = index64
        self.done: dict[Value, Value] = {}  # data and conditions that became something else
        self.machine: dict[tuple[Value, DType], Value] = {}
        self.gated: dict[tuple[Value, ...], _Gated] = {}
        self.fits_memo: dict[tuple[Value, int], bool] = {}

    # ---- the data graph --------------------------------------------------------------------------------------------------

    def root(self, graph: Graph) -> Value:
        changing: set[Value] = set()  # indices and conditions that are no machine values as they are, and data that has changed
        for x in graph.order:
            if x.dtype is INDEX:
                if not changing.isdisjoint(x.src) or not is_machine_index(x):
                    changing.add(x)
            elif x.op in _CONDITIONS:
                if not changing.isdisjoint(x.src) or not is_machine_condition(x):
                    changing.add(x)
            elif not changing.isdisjoint(x.src):
                self.done[x] = self._rebuilt(x)
                changing.add(x)
        return self.done.get(graph.root, graph.root)

    def _rebuilt(self, x: Value) -> Value:
        if x.op is Op.LOAD or x.op is Op.STORE:
            return self._access(x)
        what = "a constant of index values" if x.op is Op.CAST else "an index"
        return make(x.op, x.dtype, tuple([self._source(s, what) for s in x.src]), x.arg, x.lanes, (x.lo, x.hi))

    def _source(self, s: Value, what: str = "an index") -> Value:
        if s.op in _CONDITIONS:
            return self.condition(s)
        if s.dtype is INDEX:
            return self.plain(s, what)
        return self.done.get(s, s)

    def _access(self, x: Value) -> Value:
        parts = access(x)
        places = self.addresses(parts.addresses, parts.gate if parts.gate is not None else TRUE)
        rest = tuple([self._source(s) for s in x.src[1 + len(places) :]])
        return make(x.op, x.dtype, (x.src[0], *places, *rest), x.arg, x.lanes, (x.lo, x.hi))

    # ---- widths ----------------------------------------------------------------------------------------------------------

    def addresses(self, values: tuple[Value, ...], gate: Value) -> tuple[Value, ...]:
        """Machine values of an address, all of one type."""
        for bits, exact, wrapping in _WIDTHS:
            if bits == 64 and not self.index64:
                break
            if all(self._fits(v, bits) for v in values):
                return tuple(self.as_machine(v, exact, _own) for v in values)
            known = _comparisons(gate)
            if known:
                gated = self._gated(known)
                if all(fits(v, bits, gated.bounds) for v in values):
                    return tuple(gated.as_machine(v, wrapping) for v in values)
        low, high = min(v.lo or 0 for v in values), max(v.hi or 0 for v in values)
        raise too_wide(low, high, 64 if self.index64 else 32)

    def _gated(self, known: tuple[Value, ...]) -> _Gated:
        """Machine values where these comparisons hold."""
        found = self.gated.get(known)
        if found is None:
            found = self.gated[known] = _Gated(self, Given(known).bounds)
        return found

    def plain(self, x: Value, what: str) -> Value:
        """A machine value of an index used outside any gate."""
        if self._fits(x, 32):
            return self.as_machine(x, INDEX, _own)
        if self.index64 and self._fits(x, 64):
            return self.as_machine(x, INDEX64, _own)
        raise too_wide(x.lo or 0, x.hi or 0, 64 if self.index64 else 32, what)

    def _fits(self, x: Value, bits: int) -> bool:
        key = (x, bits)
        found = self.fits_memo.get(key)
        if found is None:
            found = self.fits_memo[key] = fits(x, bits, _own)
        return found

    # ---- conditions ------------------------------------------------------------------------------------------------------

    def condition(self, c: Value) -> Value:
        """A condition over machine values. Bounds on a bare value of the data are compared in the value's own type."""
        found = self.done.get(c)
        if found is None:
            if c.op is Op.ALL:
                bare = [p for p in c.src if _bare_value(p) is not None]
                given = Given(bare)
                parts = tuple(self._comparison(p, given) for p in (*bare, *(p for p in c.src if p not in bare)))
                found = parts[0]
                for p in parts[1:]:
                    found = make(Op.AND, BOOL, (found, p))
            else:
                found = self._comparison(c, Given(()))
            self.done[c] = found
        return found

    def _comparison(self, c: Value, given: Given) -> Value:
        x, limit = c.src[0], integer(c)
        bare = _bare_value(c)
        if bare is not None:
            value, negated = bare
            data = self._source(value.src[0])
            bound = 1 - limit if negated else limit
            below = make(Op.CMPLT, BOOL, (data, constant(bound, data.dtype))) if data.dtype is not BOOL else make(Op.NOT, BOOL, (data,))
            return make(Op.NOT, BOOL, (below,)) if negated else below
        for bits, exact, wrapping in _WIDTHS:
            if bits == 64 and not self.index64:
                break
            if not int(exact.least) <= limit <= int(exact.greatest):
                continue
            if self._fits(x, bits):
                return make(Op.LESS, BOOL, (self.as_machine(x, exact, _own),), limit, 1, (0, 1))
            if given.conditions and fits(x, bits, given.bounds):
                return make(Op.LESS, BOOL, (_Gated(self, given.bounds).as_machine(x, wrapping),), limit, 1, (0, 1))
        alone = _value_alone(c)
        if alone is not None and self.index64 and self._fits(alone[2], 64):
            return self._against(*alone)
        raise too_wide(x.lo or 0, x.hi or 0, 64 if self.index64 else 32, "a condition")

    def _against(self, value: Value, negated: bool, bound: Value) -> Value:
        """value < bound, or its negation, in the 64 bits of the value's own type: the sum of both might leave them."""
        data = self._source(value.src[0])
        machine = self.as_machine(bound, INDEX64, _own)
        below = make(Op.CMPLT, BOOL, (data, make(Op.CAST, data.dtype, (machine,))))
        if (bound.lo or 0) < int(data.dtype.least):  # an unsigned value is never below a negative bound
            positive = make(Op.NOT, BOOL, (make(Op.LESS, BOOL, (machine,), 0, 1, (0, 1)),))
            below = make(Op.AND, BOOL, (positive, below))
        return make(Op.NOT, BOOL, (below,)) if negated else below

    # ---- machine values --------------------------------------------------------------------------------------------------

    def as_machine(self, x: Value, dtype: DType, bounds: Bounds) -> Value:
        """x in `dtype`, which holds it and all it is made of; an explicit stack, memoised per type."""
        memo = self.machine
        stack = [x]
        while stack:
            v = stack[-1]
            if (v, dtype) in memo:
                stack.pop()
                continue
            waiting = [] if v.op in _ATOMS else [s for s in v.src if (s, dtype) not in memo]
            if waiting:
                stack.extend(waiting)
                continue
            memo[v, dtype] = self.machine_of(v, dtype, [memo[s, dtype] for s in v.src] if v.op not in _ATOMS else [], bounds)
            stack.pop()
        return memo[x, dtype]

    def machine_of(self, v: Value, dtype: DType, src: list[Value], bounds: Bounds) -> Value:
        match v.op:
            case Op.CONST:
                return constant(dtype.wrap(integer(v)), dtype)
            case Op.VARIABLE:
                return converted(v, dtype)
            case Op.RANGE | Op.SPECIAL:
                own = INDEX if self._fits(v, 32) and self._fits(v.src[0], 32) else INDEX64
                atom = make(v.op, own, (self.as_machine(v.src[0], own, _own),), v.arg, 1, (v.lo, v.hi))
                return converted(atom, dtype)
            case Op.INDEX_OF:
                data = self._source(v.src[0])
                if dtype.is_index:
                    return make(Op.INDEX_OF, dtype, (data,), None, 1, (v.lo, v.hi))
                return data if data.dtype is dtype else make(Op.CAST, dtype, (data,))
            case Op.SUM:
                part, factors = coefficients(v)
                return sum_of(dtype, dtype.wrap(part), [(s, dtype.wrap(c)) for s, c in zip(src, factors, strict=True)], (v.lo, v.hi))
            case Op.PRODUCT:
                return make(Op.PRODUCT, dtype, tuple(src), None, 1, (v.lo, v.hi))
            case Op.DIV | Op.MOD:
                return self._divided(v, dtype, src, bounds)
            case _:
                raise CompilerBug("narrow", f"no machine form of {v!r}")

    def _divided(self, v: Value, dtype: DType, src: list[Value], bounds: Bounds) -> Value:
        numerator, divisor = src
        low = bounds(v.src[0])[0]
        by = v.src[1]
        if by.op is not Op.CONST and (by.lo or 0) < 1:  # an extent that may be 0: nothing is computed where it is, but it may be hoisted
            one = constant(1, dtype)
            divisor = make(Op.WHERE, dtype, (make(Op.LESS, BOOL, (divisor,), 1, 1, (0, 1)), one, divisor), None, 1, (1, by.hi))
        shift = shift_of(low, by)
        if not shift:
            return make(v.op, dtype, (numerator, divisor), None, 1, (v.lo, v.hi))
        if by.op is Op.CONST:
            raised = sum_of(dtype, dtype.wrap(shift * integer(by)), [(numerator, 1)], None)
        else:
            raised = sum_of(dtype, 0, [(numerator, 1), (divisor, shift)], None)
        if v.op is Op.MOD:
            return make(Op.MOD, dtype, (raised, divisor), None, 1, (v.lo, v.hi))
        return sum_of(dtype, -shift, [(make(Op.DIV, dtype, (raised, divisor), None, 1, (0, (v.hi or 0) + shift)), 1)], (v.lo, v.hi))


class _Gated:
    """Machine values under one gate: a memo of their own, since a shift depends on the gate's bounds."""

    def __init__(self, parent: _Narrowing, bounds: Bounds) -> None:
        self._work = _Narrowing(parent.index64)
        self._work.done = parent.done
        self._work.fits_memo = parent.fits_memo
        self.bounds = bounds

    def as_machine(self, x: Value, dtype: DType) -> Value:
        return self._work.as_machine(x, dtype, self.bounds)


_ATOMS = frozenset((Op.CONST, Op.VARIABLE, Op.RANGE, Op.SPECIAL, Op.INDEX_OF))


def _own(x: Value) -> tuple[int, int]:
    return x.lo, x.hi  # type: ignore[return-value]  # index values always have bounds


def _comparisons(gate: Value) -> tuple[Value, ...]:
    """The comparisons of indices that hold where a gate does, whatever data it also asks."""
    found: dict[Value, None] = {}
    seen = {gate}
    stack = [gate]
    while stack:
        c = stack.pop()
        if c.op in _CONDITIONS:
            found.update(dict.fromkeys(conjuncts(c)))
        elif c.op is Op.AND:
            stack += [s for s in c.src if s not in seen]
            seen.update(c.src)
    return tuple(found)


def shift_of(low: int, by: Value) -> int:
    """How many divisors must be added to a numerator as small as `low` so that it is never negative."""
    if low >= 0:
        return 0
    return -(low // integer(by)) if by.op is Op.CONST else -low


def is_machine_index(v: Value) -> bool:
    """Whether an index operation is one of the machine's as it stands, if its operands are: of 32 bits, dividing nothing below zero."""
    if v.op is Op.DIV or v.op is Op.MOD:
        numerator, divisor = v.src
        if numerator.lo < 0 or divisor.lo < 1:  # type: ignore[operator]  # index values always have bounds
            return False
    return step_fits(v, 32, _own)


def is_machine_condition(c: Value) -> bool:
    """Whether a condition is one of the machine's as it stands, if its operands are: one comparison, not of a bare data value."""
    return c.op is Op.LESS and int(INDEX.least) <= integer(c) <= int(INDEX.greatest) and _bare_value(c) is None


def fits(x: Value, bits: int, bounds: Bounds) -> bool:
    """Whether x and everything computed on the way to it stays within a signed integer of `bits` bits."""
    seen = set()
    stack = [x]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if not step_fits(v, bits, bounds):
            return False
        if v.op not in _ATOMS:
            stack.extend(v.src)
    return True


def step_fits(v: Value, bits: int, bounds: Bounds) -> bool:
    """As `fits`, of this one operation on operands that fit."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    a, b = bounds(v)
    if a < low or b > high:
        return False
    match v.op:
        case Op.SUM:
            part, factors = coefficients(v)
            down, up = min(part, 0), max(part, 0)
            for c, t in zip(factors, v.src, strict=True):
                if abs(c) > high:
                    return False
                ta, tb = bounds(t)
                down += min(c * ta, c * tb, 0)
                up += max(c * ta, c * tb, 0)
            return low <= down and up <= high
        case Op.PRODUCT:
            size = 1
            for t in v.src:
                ta, tb = bounds(t)
                size *= max(abs(ta), abs(tb), 1)
            return size <= high
        case Op.DIV | Op.MOD:
            na, nb = bounds(v.src[0])
            by = v.src[1]
            return nb + shift_of(na, by) * (by.hi or 1) <= high
        case _:
            return True


def sum_of(dtype: DType, part: int, terms: list[tuple[Value, int]], bounds: tuple[int | None, int | None] | None) -> Value:
    """A machine SUM; the term itself where it is alone."""
    if not terms:
        return constant(part, dtype)
    if part == 0 and len(terms) == 1 and terms[0][1] == 1:
        return terms[0][0]
    return make(Op.SUM, dtype, tuple(t for t, _ in terms), (part, tuple(c for _, c in terms)), 1, bounds)


def converted(x: Value, dtype: DType) -> Value:
    """An integer machine value in another integer type."""
    return x if x.dtype is dtype else make(Op.CAST, dtype, (x,), None, 1, (x.lo, x.hi))


def _bare_value(c: Value) -> tuple[Value, bool] | None:
    """(value, negated) where the condition bounds one data value alone."""
    if c.op is not Op.LESS:
        return None
    x = c.src[0]
    if x.op is Op.INDEX_OF:
        return x, False
    if x.op is Op.SUM and x.arg == (0, (-1,)) and x.src[0].op is Op.INDEX_OF:
        return x.src[0], True
    return None


def _value_alone(c: Value) -> tuple[Value, bool, Value] | None:
    """(value, negated, bound) with the one 64-bit data value of a comparison on one side: value < bound, negated: not that."""
    if c.op is not Op.LESS or c.src[0].op is not Op.SUM:
        return None
    part, factors, terms = split(c.src[0])
    data = [(t, f) for t, f in zip(terms, factors, strict=True) if any(a.op is Op.INDEX_OF for a in t.free)]
    if len(data) != 1 or data[0][0].op is not Op.INDEX_OF or abs(data[0][1]) != 1 or data[0][0].src[0].dtype.bits != 64:
        return None
    value, factor = data[0]
    rest = build(part - integer(c), {t: f for t, f in zip(terms, factors, strict=True) if t is not value})  # value·factor + rest < 0
    return (value, False, negate(rest)) if factor == 1 else (value, True, shifted(rest, 1))


def too_wide(low: int, high: int, bits: int, what: str = "an index") -> LimitExceeded:
    text = f"{what} may lie in [{low}, {high}], beyond {bits}-bit integers; if another buffer's values are in it, `valid` should bound them"
    return LimitExceeded("/ast", limit=f"int{bits}", needed=[low, high], allowed=bits, detail=text)
