"""Reduce loops that have a closed form: sums over a range of a condition on it, of what does not depend on it, of one selected element.

`arange`, triangular masks and gathers by one-hot are such loops; without this each is quadratic. One rewrite of (update, accumulator,
value): no half-transformed value can survive. What has no closed form stays in the loop, beside what has. Only reduce loops are looked at,
innermost first. Between two runs of `simplify`, while indices are exact.

Floats: a sum of n equal terms becomes one product (the terms of a reduce may be taken in any order), where n is exactly representable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.dtypes import BOOL, INDEX, DType
from core.index import TRUE, add, all_of, at_least, conjuncts, floordiv, less, mod, negate, number, scale, split, subtract
from core.index.linear import build
from core.index.substitute import rebuilt
from core.ir.op import Op
from core.ir.parts import access, content, integer
from core.ir.value import Value, alu, constant, make
from core.ir.walk import Graph, ordered
from core.passes.gates import both

MAX_BOUNDS = 4  # ways a condition may confine the loop variable; more are no kernel's
_LOOKS = 32  # values a quick look at a term takes in; the thorough one takes in all
_SUMS = (Op.ADD, Op.OR)
_COMBINE = frozenset((Op.ADD, Op.OR, Op.MAX, Op.AND))
_CONDITIONS = (Op.LESS, Op.ALL)


def collapse(graph: Graph) -> tuple[Graph, dict[Value, Value]]:
    """The graph without the loops that have a closed form, and what each changed value became."""
    if all(is_plain(*v.src) for v in graph.order if v.op is Op.UPDATE):
        return graph, {}
    work = _Collapse()
    mapping: dict[Value, Value] = {}
    changed = mapping.keys()
    for value in graph.order:
        new = value if changed.isdisjoint(value.src) else rebuilt(value, tuple([mapping.get(s, s) for s in value.src]))
        if new.op is Op.UPDATE:
            found = work.closed(new)
            new = found if found is not None else new
        if new is not value:
            mapping[value] = new
    return graph.became(mapping.get(graph.root, graph.root)), mapping


@dataclass(frozen=True, slots=True)
class Selected:
    """A term that is `value` where `condition` holds and 0 elsewhere."""

    condition: Value
    value: Value


class _Collapse:
    def __init__(self) -> None:
        self._bits: dict[Value, int] = {}
        self._depends: dict[Value, int] = {}

    def depends(self, value: Value, on: Value) -> bool:
        """Whether what a value is may differ from turn to turn of a loop, or with what a register holds; finished loops left out."""
        return bool(self._mask(value) & self._bits.get(on, 0))

    def _mask(self, value: Value) -> int:
        """The loops and registers a value depends on, a bit each."""
        memo, bits = self._depends, self._bits
        stack = [value]
        while stack:
            v = stack[-1]
            if v in memo:
                stack.pop()
                continue
            waiting = [s for s in v.src if s not in memo]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            mask = 0
            for s in v.src:
                mask |= memo[s]
            if v.op is Op.RANGE or v.op is Op.ACC:
                bits[v] = 1 << len(bits)
                mask |= bits[v]
            elif v.op is Op.UPDATE:
                for done in v.src[0].src[1:]:
                    mask &= ~bits[done]
                mask &= ~bits[v.src[0]]
            memo[v] = mask
        return memo[value]

    # ---- one accumulator -------------------------------------------------------------------------------------------------

    def closed(self, update: Value) -> Value | None:
        """What an update's register holds in the end, with at least one loop or term less; None where nothing collapses."""
        accumulator, value = update.src
        if is_plain(accumulator, value) or any(r.arg[1] == "output" for r in accumulator.src[1:]):  # type: ignore[index]  # (number, role)
            return None  # nothing to close; or what it holds on the way is looked at
        terms = self.terms_of(accumulator, value)
        if terms is None:
            return None
        op, parts = terms
        ranges = accumulator.src[1:]
        result = self._over(op, update.dtype, ranges, parts, accumulator)
        if result is None:
            return None
        start = accumulator.src[0]
        return alu(op, result, start)

    def terms_of(self, accumulator: Value, value: Value) -> tuple[Op, list[Value]] | None:
        """The operation an update combines with, and what it combines its register with; None where the register is used otherwise."""
        op = value.op
        terms: list[Value] = []
        if op not in _COMBINE:
            return None
        while value is not accumulator:
            if value.op is not op:
                return None
            inside = [s for s in value.src if self.depends(s, accumulator)]
            if len(inside) != 1:
                return None
            terms.extend(s for s in value.src if s is not inside[0])
            value = inside[0]
        return op, terms

    def _over(self, op: Op, dtype: DType, ranges: Sequence[Value], terms: list[Value], accumulator: Value) -> Value | None:
        """The terms taken together over all ranges, without the initial value; None where no closed form is found."""
        if not ranges:
            return None
        inner = ranges[-1]
        free: list[Value] = []
        rest: list[Value] = []
        for term in terms:
            once = self._without(op, dtype, inner, term)
            (rest if once is None else free).append(term if once is None else once)
        if not free:
            return None
        outer = ranges[:-1]
        if outer:
            done = self._over(op, dtype, outer, free, accumulator)
            if done is None:
                done = self._looped(op, dtype, outer, free, accumulator, len(outer))
        else:
            done = folded(op, free)
        if rest:
            done = alu(op, self._looped(op, dtype, ranges, rest, accumulator, 0), done)
        return done

    def _looped(self, op: Op, dtype: DType, ranges: Sequence[Value], terms: list[Value], accumulator: Value, part: int) -> Value:
        """What is left to do in loops. part: tells the accumulators made of one apart (it stands for how many loops they kept)."""
        identity = accumulator.src[0] if op is not Op.ADD and op is not Op.MUL else constant(0 if op is Op.ADD else 1, dtype)
        name = -1 - (integer(accumulator) * 64 + part)  # below 0: no lowered accumulator's
        register = make(Op.ACC, dtype, (identity, *ranges), name)
        return make(Op.UPDATE, dtype, (register, alu(op, folded(op, terms), register)))

    # ---- one term over one range ---------------------------------------------------------------------------------------------

    def _without(self, op: Op, dtype: DType, r: Value, term: Value) -> Value | None:
        """The term taken together over r, in a form without r."""
        if not self.depends(term, r):
            return repeated(op, dtype, r.src[0], term)
        if op not in _SUMS:
            return None
        chosen = selected(term)
        if chosen is None:
            return None
        if chosen.condition.op in _CONDITIONS and not self.depends(chosen.value, r):
            return self._counted(dtype, r, chosen)
        return self._one_hot(dtype, r, chosen)

    def _counted(self, dtype: DType, r: Value, chosen: Selected) -> Value | None:
        """Σ over r of [condition]·v: the length of the interval the condition confines r to, times v."""
        lengths = interval(chosen.condition, r)
        if lengths is None:
            return None
        differences, others = lengths
        if dtype is BOOL:
            some = all_of((*(less(number(0), d) for d in differences), others))
            return alu(Op.AND, some, chosen.value) if some is not TRUE else chosen.value
        most = min(d.hi or 0 for d in differences)
        if dtype.is_float and most > 1 << dtype.significand:
            return None
        count = clamped(differences, dtype)
        product = alu(Op.MUL, chosen.value, count)
        if dtype.is_float:  # an infinite or NaN value counts only where it is taken at all
            none = all_of((*(less(number(0), d) for d in differences), others))
            return product if none is TRUE else alu(Op.WHERE, none, product, constant(0, dtype))
        return product if others is TRUE else alu(Op.WHERE, others, product, constant(0, dtype))

    def _one_hot(self, dtype: DType, r: Value, chosen: Selected) -> Value | None:
        """Σ over r of [c·r == e]·f(r): f(e/c) where that is an integer in the range."""
        if dtype is BOOL:
            return None
        found = self._equals(chosen.condition, r)
        if found is None:
            return None
        place, whole = found
        within = all_of((whole, at_least(place, number(0)), less(place, r.src[0])))
        taken = self._at(chosen.value, r, place, within)
        return alu(Op.WHERE, within, taken, constant(0, dtype))

    def _equals(self, condition: Value, r: Value) -> tuple[Value, Value] | None:
        """(e, where that is an integer), where the condition says r == e with e free of r."""
        if condition.op is not Op.NOT or condition.src[0].op is not Op.CMPNE:
            return None
        for ramp, other in (condition.src[0].src, condition.src[0].src[::-1]):
            if ramp.op is not Op.CAST or ramp.src[0].dtype is not INDEX or not ramp.dtype.is_integer or self.depends(other, r):
                continue
            x = ramp.src[0]
            if not (int(ramp.dtype.least) <= (x.lo or 0) and (x.hi or 0) <= int(ramp.dtype.greatest)):
                continue
            part, coefficients, terms = split(x)
            pairs = dict(zip(terms, coefficients, strict=True))
            c = pairs.pop(r, 0)
            if not c or any(r in t.free for t in pairs):
                continue
            least, greatest = int(other.dtype.least), int(other.dtype.greatest)
            value = number(integer(other)) if other.is_const else make(Op.INDEX_OF, INDEX, (other,), None, 1, (least, greatest))
            ahead = scale(subtract(value, build(part, pairs)), 1 if c > 0 else -1)
            return floordiv(ahead, abs(c)), less(mod(ahead, abs(c)), number(1))
        return None

    def _at(self, value: Value, r: Value, place: Value, within: Value) -> Value:
        """`value` with r replaced; what it reads there is read only where the place lies within the range."""
        mapping: dict[Value, Value] = {r: place}
        for v in ordered(value):
            if v in mapping or not self.depends(v, r):
                continue
            new = rebuilt(v, tuple(mapping.get(s, s) for s in v.src))
            if new.op is Op.LOAD:
                new = gated(new, within)
            mapping[v] = new
        return mapping.get(value, value)


# ---- reading terms -----------------------------------------------------------------------------------------------------------


def is_plain(accumulator: Value, value: Value) -> bool:
    """Whether the quickest look shows that no term has a closed form: each moves with the innermost loop, and none is a selection."""
    op, inner = value.op, accumulator.src[-1]
    seen: set[Value] = {accumulator}
    stack = [value]
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        if term.op is op:
            stack.extend(term.src)
        elif not reads_along(term, inner) or (op in _SUMS and selected(term) is not None):
            return False
    return True


def reads_along(value: Value, r: Value) -> bool:
    """Whether a load that a short look finds in it reads elsewhere at each turn of r."""
    stack = [value]
    for _ in range(_LOOKS):
        if not stack:
            return False
        v = stack.pop()
        if v.op is Op.LOAD:
            if any(r in s.free for s in v.src[1:]):
                return True
        elif v.op is not Op.UPDATE:
            stack.extend(v.src)
    return False


def selected(term: Value) -> Selected | None:
    """A term read as "value where condition, else 0"."""
    match term.op:
        case Op.WHERE:
            condition, x, y = term.src
            if is_zero(y):
                return Selected(condition, x)
            if is_zero(x):
                return Selected(negated(condition), y)
        case Op.CAST if term.src[0].dtype is BOOL:
            return Selected(term.src[0], constant(1, term.dtype))
        case Op.CAST:
            inner = selected(term.src[0])
            if inner is not None:
                return Selected(inner.condition, make(Op.CAST, term.dtype, (inner.value,)))
        case Op.MUL if term.dtype.is_integer:
            for one, other in (term.src, term.src[::-1]):
                inner = selected(one)
                if inner is not None:
                    return Selected(inner.condition, alu(Op.MUL, inner.value, other))
        case _:
            if term.dtype is BOOL:
                return Selected(term, constant(True, BOOL))
    return None


def is_zero(x: Value) -> bool:
    """The constant 0 (false); of floats the positive one, which adds nothing to any sum but the sign of a zero."""
    return x.is_const and not content(x)


def negated(condition: Value) -> Value:
    """Where the condition fails."""
    if condition.op is Op.LESS and condition.src[0].dtype is INDEX:
        return at_least(condition.src[0], number(integer(condition)))
    return condition.src[0] if condition.op is Op.NOT else alu(Op.NOT, condition)


def interval(condition: Value, r: Value) -> tuple[list[Value], Value] | None:
    """(differences, others): the condition leaves r min(differences) values, if that is positive, wherever `others` holds."""
    ups: list[Value] = [r.src[0]]
    lows: list[Value] = [number(0)]
    others: list[Value] = []
    for c in conjuncts(condition):
        if r not in c.free:
            others.append(c)
            continue
        _, coefficients, terms = split(c.src[0])
        pairs = dict(zip(terms, coefficients, strict=True))
        m = pairs.pop(r, 0)
        if not m or any(r in t.free for t in pairs):
            return None
        room = subtract(number(integer(c)), build(0, pairs))
        if m > 0:
            ups.append(floordiv(add(room, number(m - 1)), m))
        else:
            lows.append(add(floordiv(negate(room), -m), number(1)))
    if len(ups) * len(lows) > MAX_BOUNDS:
        return None
    return [subtract(u, low) for u in ups for low in lows], all_of(others)


# ---- building closed forms ---------------------------------------------------------------------------------------------------


def clamped(differences: list[Value], dtype: DType) -> Value:
    """The least of these index values as data, 0 where one of them is not positive."""
    *some, last = differences
    result = converted(last, dtype)
    for k in range(len(some) - 1, -1, -1):
        least_here = all_of(at_least(other, some[k]) for n, other in enumerate(differences) if n != k)
        result = chosen(least_here, converted(some[k], dtype), result)
    for d in differences:
        result = chosen(less(d, number(1)), constant(0, dtype), result)
    return result


def chosen(condition: Value, x: Value, y: Value) -> Value:
    """x where the condition holds, else y."""
    if condition.is_const:
        return x if content(condition) else y
    return alu(Op.WHERE, condition, x, y)


def converted(x: Value, dtype: DType) -> Value:
    """An index value as data."""
    if x.is_const:
        exact = integer(x)
        return constant(dtype.round(exact) if dtype.is_float else dtype.wrap(exact), dtype)
    return make(Op.CAST, dtype, (x,))


def repeated(op: Op, dtype: DType, times: Value, term: Value) -> Value | None:
    """A term that does not depend on the loop, taken `times` times."""
    if op is not Op.ADD:
        if (times.lo or 0) >= 1:
            return term
        return None
    if dtype.is_float and (times.hi or 0) > 1 << dtype.significand:
        return None
    if times.is_const and times.arg == 1:
        return term
    product = alu(Op.MUL, term, converted(times, dtype))
    if dtype.is_float and (times.lo or 0) < 1:
        return alu(Op.WHERE, less(times, number(1)), constant(0, dtype), product)
    return product


def folded(op: Op, terms: list[Value]) -> Value:
    """All terms combined."""
    result = terms[0]
    for term in terms[1:]:
        result = alu(op, term, result)
    return result


def gated(load: Value, condition: Value) -> Value:
    """A load that happens only where this condition holds too."""
    parts = access(load)
    gate, at = parts.gate, 1 + len(parts.addresses)
    if gate is not None:
        src = (*load.src[:at], both(gate, condition), *load.src[at + 1 :])
    else:
        src = (*load.src[:at], condition, constant(0, load.dtype, load.lanes), *load.src[at:])
    return make(Op.LOAD, load.dtype, src, (len(parts.addresses), True), load.lanes)
