"""Sums that run along an output axis: each element is the one before and a single term more.

Σ over r < n of f(r + j), f nothing before L, with L at least n - 1 and at least the last j: the window's far end takes nothing away that
was ever added, so the sum at j is that at j - 1 plus f(j + n - 1). Cumulative sums written as windows over padding are such. Where j is a
loop of the work-item, the sum is a register of that loop and each term is read once.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.index import TRUE, conjuncts, split
from core.index.access import Access
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value
from core.kernel.node import Elementwise, Load, Reduce
from core.schedule.axis import Axis, AxisKind
from core.schedule.nest import Nest


@dataclass(frozen=True, slots=True)
class Running:
    """reduced: the axis summed over. parts: what the output axis was cut into, slowest first; the first is its loop or not cut at all."""

    reduced: Axis
    parts: tuple[Axis, ...]


def running(nest: Nest, number: int) -> Running | None:
    """How instance `number` of a reduce runs along the one output loop of the nest, if it does."""
    loops = nest.of_kind(AxisKind.LOOP)
    return _along(nest, number, loops[0]) if len(loops) == 1 else None


def runs_along(nest: Nest, axis: Axis) -> bool:
    """Whether some sum would run along an output axis, were it a loop."""
    return not nest.of_kind(AxisKind.LOOP) and any(_along(nest, n, axis) is not None for n in range(len(nest.sites.instances)))


def _along(nest: Nest, number: int, first: Axis) -> Running | None:
    instance = nest.sites.instances[number]
    node = nest.kernel.nodes[instance.node]
    own = [a for a in nest.axes if a.reduce_class == instance.reduce_class]
    if not isinstance(node, Reduce) or node.op != "REDUCE_SUM" or len(own) != 1 or own[0].kind is not AxisKind.REDUCE:
        return None
    access = _single_load(nest, number)
    if access is None or nest.inside[instance.reduce_class] is not TRUE:
        return None
    others = [a for a in nest.axes if not a.is_reduced and a is not first and not a.wires.isdisjoint(first.wires)]
    if any(a.kind is not AxisKind.UPCAST for a in others) or not isinstance(first.extent, int) or not isinstance(own[0].extent, int):
        return None
    stride = _number(access, own[0])
    if not stride:
        return None
    parts = sorted((first, *others), key=lambda a: -abs(_number(access, a) or 0))
    weights: list[int] = []
    weight = 1
    for part in reversed(parts):
        if _number(access, part) != stride * weight:
            return None
        weights.insert(0, weight)
        weight *= part.size
    if parts[0] is not first:
        return None
    variables = {own[0].var: 1, **{part.var: w for part, w in zip(parts, weights, strict=True)}}
    return Running(own[0], tuple(parts)) if _begins_late(access, variables, max(own[0].extent, weight) - 1) else None


def _single_load(nest: Nest, number: int) -> Access | None:
    """Where the one load lies whose elements an instance adds up as they are."""
    sites = nest.sites.sites
    site = next(s for s in sites if s.instance == number)
    site = sites[site.src[0]]
    node = nest.kernel.nodes[site.node]
    while isinstance(node, Elementwise) and node.op == "CAST":
        site = sites[site.src[0]]
        node = nest.kernel.nodes[site.node]
    return nest.accesses[site.leaf] if isinstance(node, Load) and node.image is None and not node.src else None


def _number(access: Access, axis: Axis) -> int | None:
    stride = access.stride(axis.var, ignoring_validity=True)
    return stride.lo if stride is not None and stride.lo == stride.hi else None


def _begins_late(access: Access, variables: dict[Value, int], least: int) -> bool:
    """Whether the validity names these variables by their weighted sum alone, and nothing below `least` is valid."""
    late = False
    for condition in conjuncts(access.valid):
        named = [v for v in variables if v in condition.free]
        if not named:
            continue
        if condition.op is not Op.LESS or len(named) < len(variables):
            return False
        _, coefficients, terms = split(condition.src[0])
        pairs = dict(zip(terms, coefficients, strict=True))
        by = pairs.get(next(iter(variables)), 0)
        if not by or any(pairs.pop(v, 0) != by * weight for v, weight in variables.items()):
            return False
        if any(v in t.free for t in pairs for v in variables):
            return False
        late = late or (by == -1 and not pairs and 1 - integer(condition) >= least)
    return late
