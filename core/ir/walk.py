"""Ways through a graph, none of them by recursion: an order, who uses what, other values in place of some.

What is computed follows from the graph alone: operands are visited left to right, depth first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from core.ir.value import Value, make

Rebuild = Callable[[Value, tuple[Value, ...]], Value]


def ordered(*roots: Value) -> list[Value]:
    """Every value the roots are made of, each once, after its operands."""
    order: list[Value] = []
    seen: set[Value] = set()
    stack: list[Value | None] = []
    opened: list[Value] = []
    for root in roots:
        stack.append(root)
        while stack:
            value = stack.pop()
            if value is None:
                order.append(opened.pop())
            elif value not in seen:
                seen.add(value)
                if value.src:
                    opened.append(value)
                    stack.append(None)
                    stack.extend(value.src[::-1])
                else:
                    order.append(value)
    return order


@dataclass(frozen=True, slots=True)
class Graph:
    """A root and all that it is made of, `ordered`: what the passes hand on, so that the order is found once."""

    root: Value
    order: list[Value]

    @classmethod
    def of(cls, root: Value) -> Graph:
        return cls(root, ordered(root))

    def became(self, root: Value) -> Graph:
        """The graph of what the root became; this one where that is the same."""
        return self if root is self.root else Graph.of(root)


def users(order: Iterable[Value]) -> dict[Value, int]:
    """How many operand places each value stands in, among the values of `order`; 0 for roots."""
    count: dict[Value, int] = {}
    for value in order:
        count.setdefault(value, 0)
        for operand in value.src:
            count[operand] = count.get(operand, 0) + 1
    return count


def with_sources(value: Value, src: tuple[Value, ...]) -> Value:
    """The same operation on other operands that mean the same: bounds known of the value still hold."""
    return make(value.op, value.dtype, src, value.arg, value.lanes, (value.lo, value.hi))


def substitute(value: Value, mapping: Mapping[Value, Value], rebuild: Rebuild = with_sources) -> Value:
    """`value` with every occurrence of a key replaced by its image, images left as they are.

    rebuild makes an operation on changed operands; one is needed where images have other bounds than what they replace.
    """
    return substituted((value,), mapping, rebuild)[0]


def substituted(values: Iterable[Value], mapping: Mapping[Value, Value], rebuild: Rebuild = with_sources) -> list[Value]:
    """As `substitute`, for several values at once: what they share is built once."""
    roots = list(values)
    done: dict[Value, Value] = dict(mapping)
    stack = list(roots)
    while stack:
        value = stack[-1]
        if value in done:
            stack.pop()
            continue
        pending = [s for s in value.src if s not in done]
        if pending:
            stack.extend(pending[::-1])
            continue
        stack.pop()
        src = tuple([done[s] for s in value.src])
        done[value] = value if src == value.src else rebuild(value, src)
    return [done[root] for root in roots]
