"""All simplifying tables to their common fixpoint: optional by design, a kernel is right without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.dtypes import INDEX
from core.index.substitute import rebuilt as index_rebuilt
from core.ir.op import Op
from core.ir.parts import access
from core.ir.value import Value
from core.ir.walk import Graph, substitute, substituted, users, with_sources
from core.passes.arithmetic import ARITHMETIC, COMMUTING, FAST_MATH, in_order
from core.passes.conversions import CONVERSIONS
from core.passes.divisions import DIVISIONS
from core.passes.gates import GATES, absorbed
from core.passes.logic import LOGIC
from core.passes.vectors import VECTORS
from core.rewrite import Rule, RuleSet, rewrite

EXACT = RuleSet(ARITHMETIC, DIVISIONS, LOGIC, CONVERSIONS)
RULES = RuleSet(VECTORS, EXACT, GATES)
FAST_RULES = RuleSet(VECTORS, EXACT, FAST_MATH, GATES)


def simplify(graph: Graph, *, fast_math: bool) -> tuple[Graph, Mapping[Value, Value]]:
    """The graph, simpler; and for every value met on the way what it became, so that what is noted beside values can follow.

    Idempotent. An empty SINK is possible: a kernel whose stores all turned out not to happen.
    """
    simpler, mapping, _ = simplified(graph, fast_math=fast_math)
    return simpler, mapping


def simplified(graph: Graph, *, fast_math: bool) -> tuple[Graph, Mapping[Value, Value], dict[Rule, int]]:
    """As `simplify`, with how often each rule fired."""
    rules = FAST_RULES if fast_math else RULES
    done = rewrite(graph, rules, rebuild=rebuilt)
    graph, mapping, fired = graph.became(done.root), done.mapping, done.fired
    while merged := _alternatives_merged(graph, mapping.values()):
        again = rewrite(Graph.of(substitute(graph.root, merged, rebuilt)), rules, rebuild=rebuilt)
        images = list(dict.fromkeys(mapping.values()))
        moved = dict(zip(images, substituted(images, merged, rebuilt), strict=True))
        mapping = again.mapping | {old: again.mapping.get(moved[new], moved[new]) for old, new in mapping.items()}
        for rule, times in again.fired.items():
            fired[rule] = fired.get(rule, 0) + times
        graph = Graph.of(again.root)
    return graph, mapping, fired


def rebuilt(value: Value, src: tuple[Value, ...]) -> Value:
    """The same operation on simpler operands; index values through the constructors that keep them canonical."""
    if value.dtype is INDEX or (value.op is Op.LESS and src[0].dtype is INDEX) or value.op is Op.ALL:
        return index_rebuilt(value, src)
    return with_sources(value, in_order(src) if value.op in COMMUTING else src)


def _alternatives_merged(graph: Graph, values: Iterable[Value]) -> dict[Value, Value]:
    """Selections of the graph, all among `values`, that a load's alternative can make."""
    candidates = {v for v in values if v.op is Op.WHERE and any(s.op is Op.LOAD and access(s).gate is not None for s in v.src)}
    if not candidates:
        return {}
    count = users(graph.order)
    return {v: other for v in candidates if v in count and (other := absorbed(v, count)) is not None}
