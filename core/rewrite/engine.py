"""A table of rules to its fixpoint over a graph.

Bottom-up: a value is looked at when its operands are done, and what replaces it is looked at again. Each value is done once, so the cost
grows with the graph; the stack is a list. Index values (those with `free` atoms) are left alone unless data is looked up in them: they are
simple by construction, and `rebuild` keeps them so.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import CompilerBug
from core.ir.value import Value
from core.ir.walk import Graph, Rebuild, with_sources
from core.rewrite.rule import Rule, RuleSet, is_index

STEPS_PER_VALUE = 64  # rules fired per value visited before a table is taken to be circular; real graphs need about one


@dataclass(frozen=True, slots=True)
class Rewritten:
    """root: the graph after the rules. mapping: for every value met, what it became. fired: how often each rule did."""

    root: Value
    mapping: dict[Value, Value]
    fired: dict[Rule, int]


def rewrite(graph: Graph, rules: RuleSet, *, rebuild: Rebuild = with_sources, steps_per_value: int = STEPS_PER_VALUE) -> Rewritten:
    """Applies `rules` until none fits. Raises CompilerBug where they go round in circles."""
    work = _Rewriting(len(graph.order), rules, rebuild, steps_per_value)
    memo, fits = work.memo, rules.fits
    replaced: set[Value] = set()  # values of the graph that became something else
    for value in graph.order:
        if replaced.isdisjoint(value.src):
            if not fits(value):  # as most values: nothing to do
                memo[value] = value
                continue
        else:
            current = rebuild(value, tuple([memo[s] for s in value.src]))
            done = memo.get(current)
            if done is None and not fits(current) and all(memo.get(s) is s for s in current.src):
                done = memo[current] = current
            if done is not None:
                memo[value] = done
                replaced.add(value)
                continue
        if work.settled(value) is not value:
            replaced.add(value)
    return Rewritten(memo[graph.root], memo, work.fired)


class _Rewriting:
    """memo: what each value became. waiting: what replaces a value, and has to be looked at first. fired: how often each rule did."""

    def __init__(self, size: int, rules: RuleSet, rebuild: Rebuild, steps_per_value: int) -> None:
        self.memo: dict[Value, Value] = {}
        self.waiting: dict[Value, Value] = {}
        self.fired: dict[Rule, int] = {}
        self._rules, self._rebuild = rules, rebuild
        self._allowed = steps_per_value * (size + 100)

    def settled(self, value: Value) -> Value:
        """What a value becomes in the end."""
        memo, waiting = self.memo, self.waiting
        stack = [value]
        while stack:
            current = stack[-1]
            if current in memo:
                stack.pop()
            elif current in waiting:
                memo[current] = _done(memo, waiting, current)
                stack.pop()
            elif current.free and is_index(current):
                memo[current] = current
                stack.pop()
            elif pending := [s for s in current.src if s not in memo]:
                stack.extend(pending[::-1])
            else:
                self._one(current, stack)
        return memo[value]

    def _one(self, value: Value, stack: list[Value]) -> None:
        """The value on top of the stack, its operands done: from rule to rule, as long as the operands of what comes out are done."""
        memo = self.memo
        current = value
        new = tuple([memo[s] for s in value.src])
        if new != value.src:
            current = self._rebuild(value, new)
            if current in memo:
                memo[value] = memo[current]
                stack.pop()
                return
        passed = [value]
        while True:
            if current is not value:
                passed.append(current)
            after = self._replaced(current)
            done = current if after is None else memo.get(after)
            if after is not None:
                current = after
            if done is not None or any(memo.get(s) is not s for s in current.src):
                break
        if done is None:
            for v in passed:
                self.waiting[v] = current
            stack.append(current)
        else:
            for v in passed:
                memo[v] = done
            stack.pop()

    def _replaced(self, value: Value) -> Value | None:
        """What the first rule that fits puts in a value's place."""
        for rule, matcher in self._rules.candidates(value):
            other = matcher(value)
            if other is not None and other is not value:
                self.fired[rule] = self.fired.get(rule, 0) + 1
                self._allowed -= 1
                if self._allowed < 0:
                    raise _no_end(self.fired)
                return other
        return None


def _done(memo: dict[Value, Value], waiting: dict[Value, Value], value: Value) -> Value:
    done = memo.get(waiting[value])
    if done is None:
        raise CompilerBug("rewrite", f"what replaces {value!r} contains it again")
    return done


def _no_end(fired: dict[Rule, int]) -> CompilerBug:
    often = ", ".join(str(r) for r in sorted(fired, key=lambda r: -fired[r])[:3])
    return CompilerBug("rewrite", f"no fixpoint after {sum(fired.values())} steps; most often: {often}")
