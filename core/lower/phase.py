"""Inside a grouped reduce a mid axis is a lane, after it an expanded axis: which sites are needed in which phase."""

from __future__ import annotations

from enum import Enum

from core.schedule.axis import AxisKind
from core.schedule.nest import Nest


class Phase(Enum):
    """AFTER: on the way to a store; the only one where nothing is grouped. INSIDE: on the way to a grouped reduce."""

    AFTER = 0
    INSIDE = 1

    __hash__ = object.__hash__


def phases_needed(nest: Nest) -> list[tuple[Phase, ...]]:
    """Per site the phases it is needed in, in a fixed order. Without a grouped reduce that is AFTER for all."""
    sites = nest.sites
    groups = nest.of_kind(AxisKind.GROUP)
    if not groups:
        return [(Phase.AFTER,)] * len(sites.sites)
    needed: list[set[Phase]] = [set() for _ in sites.sites]
    for output in sites.outputs:
        needed[output].add(Phase.AFTER)
    for number in range(len(sites.sites) - 1, -1, -1):
        site = sites.sites[number]
        axes = sites.instances[site.instance].axes if site.instance >= 0 else ()
        grouped = any(not a.wires.isdisjoint(axes) for a in groups)
        for operand in site.src:
            needed[operand] |= {Phase.INSIDE} if grouped else needed[number]
    return [tuple(phase for phase in Phase if phase in phases) for phases in needed]
