"""A table of rules to its fixpoint over a graph.

Bottom-up: a value is looked at when its operands are done, and what replaces it is looked at again. Each value is done once, so the cost
grows with the graph; the stack is a list. Index values (those with `free` atoms) are left alone unless data is looked up in them: they are
simple by construction, and `rebuild` keeps them so.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.value import Value
from core.ir.walk import Rebuild, ordered, with_sources
from core.rewrite.rule import Rule, RuleSet

STEPS_PER_VALUE = 64  # rules fired per value visited before a table is taken to be circular; real graphs need about one


@dataclass(frozen=True, slots=True)
class Rewritten:
    """root: the graph after the rules. mapping: for every value met, what it became. fired: how often each rule did."""

    root: Value
    mapping: dict[Value, Value]
    fired: dict[Rule, int]


def rewrite(root: Value, rules: RuleSet, *, rebuild: Rebuild = with_sources, steps_per_value: int = STEPS_PER_VALUE) -> Rewritten:
    """Applies `rules` until none fits. Raises CompilerBug where they go round in circles."""
    memo: dict[Value, Value] = {}
    waiting: dict[Value, Value] = {}  # value → what replaces it, which has to be looked at first
    fired: dict[Rule, int] = {}
    found, candidates = rules.found, rules.candidates
    allowed = 1_000
    stack = [root]
    while stack:
        value = stack[-1]
        if value in memo:
            stack.pop()
            continue
        if value in waiting:
            memo[value] = _done(memo, waiting, value)
            stack.pop()
            continue
        if value.free and value.op in _INDEX and _is_pure_index(value):
            memo[value] = value
            stack.pop()
            continue
        current, src = value, value.src
        if src:
            pending = [s for s in src if s not in memo]
            if pending:
                stack.extend(pending[::-1])
                continue
            new = tuple([memo[s] for s in src])
            if new != src:
                current = rebuild(value, new)
                if current in memo:
                    memo[value] = memo[current]
                    stack.pop()
                    continue
        passed = [value]
        while True:  # from rule to rule, as long as the operands of what comes out are done
            if current is not value:
                passed.append(current)
            src = current.src
            count = len(src)
            if count == 2:
                key: tuple[object, ...] = (current.op, current.dtype, src[0].op, src[1].op)
            elif count == 1:
                key = (current.op, current.dtype, src[0].op)
            elif count == 3:
                key = (current.op, current.dtype, src[0].op, src[1].op, src[2].op)
            else:
                key = (current.op, current.dtype)
            tried = found.get(key)
            if tried is None:
                tried = candidates(current, key)
            done: Value | None = current
            for rule, matcher in tried:
                other = matcher(current)
                if other is not None and other is not current:
                    fired[rule] = fired.get(rule, 0) + 1
                    allowed -= 1
                    if allowed < 0:
                        allowed = _more_steps(root, fired, steps_per_value)
                    done = memo.get(other)
                    current = other
                    break
            if done is not None or any(memo.get(s) is not s for s in current.src):
                break
        if done is None:
            for v in passed:
                waiting[v] = current
            stack.append(current)
        else:
            for v in passed:
                memo[v] = done
            stack.pop()
    return Rewritten(memo[root], memo, fired)


def _done(memo: dict[Value, Value], waiting: dict[Value, Value], value: Value) -> Value:
    done = memo.get(waiting[value])
    if done is None:
        raise CompilerBug("rewrite", f"what replaces {value!r} contains it again")
    return done


_INDEX = frozenset(
    (Op.AXIS, Op.VARIABLE, Op.OPAQUE, Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD, Op.LESS, Op.SPECIAL, Op.RANGE)
)  # a conjunction is none: it may hold conditions on data


def _is_pure_index(value: Value) -> bool:
    return not any(atom.op is Op.INDEX_OF for atom in value.free)


def _more_steps(root: Value, fired: dict[Rule, int], per_value: int) -> int:
    total = sum(fired.values())
    left = per_value * (len(ordered(root)) + 100) - total
    if left <= 0:
        often = ", ".join(str(r) for r in sorted(fired, key=lambda r: -fired[r])[:3])
        raise CompilerBug("rewrite", f"no fixpoint after {total} steps; most often: {often}")
    return left
