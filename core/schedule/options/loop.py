"""LOOP: an output axis becomes a loop of the work-item, after the reduces that do not depend on it: they are computed once a row.

Or around sums that run along it, which then add one term a turn.
"""

from __future__ import annotations

from core.schedule.axis import Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, amount_of, axis_at, checked, refused
from core.schedule.running import runs_along


def loop(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """The low digits of a global axis, or all of it (amount 0: any extent), move to the end of the loop axes."""
    at = axis_at(nest, option, context, 0, len(nest.axes), "axes")
    axis = nest.axes[at]
    if axis.kind is not AxisKind.GLOBAL:
        raise refused(nest, option, context, f"the axis is {axis.kind.name.lower()}, not global")
    if nest.of_kind(AxisKind.GROUP, AxisKind.MID):
        raise refused(nest, option, context, "a reduce is grouped: the stores of a grouped kernel belong to one lane")
    if not shares_a_reduce(nest, axis) and not (option.amount == 0 and runs_along(nest, axis)):
        reason = "no reduce is free of the axis, so nothing would be shared between its turns, and no sum runs along it"
        raise refused(nest, option, context, reason)
    if option.amount == 0:
        kept = nest.without(at)
        moved = Axis(axis.var, axis.extent, AxisKind.LOOP, axis.reduce_class, axis.wires)
        return checked(nest, kept.placed(moved, kept.first_reduce), option, context)
    amount = amount_of(nest, option, context, axis)
    cut, part = nest.cut(at, amount, AxisKind.LOOP)
    return checked(nest, cut.placed(part, cut.first_reduce), option, context)


def shares_a_reduce(nest: Nest, axis: Axis) -> bool:
    """Whether some reduce's value is free of an output axis: no leaf under it has the axis in its index or validity."""
    sites = nest.sites
    under: list[bool] = []  # per site: whether what it is computed from depends on the axis
    for site in sites.sites:
        depends = any(under[s] for s in site.src)
        if site.leaf >= 0:
            depends = depends or nest.accesses[site.leaf].depends_on(axis.var)
        if site.instance >= 0 and sites.instances[site.instance].axes and not depends:
            return True
        under.append(depends)
    return False
