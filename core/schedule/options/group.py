"""GROUP and GROUPTOP: lanes of a work-group share a reduce and combine their parts through local memory."""

from __future__ import annotations

from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, amount_of, axis_at, checked, need_locals, need_plain, refused


def group(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """Low digits: neighbouring lanes take neighbouring elements."""
    return _grouped(nest, option, context, top=False)


def grouptop(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """High digits: each lane takes a contiguous part."""
    return _grouped(nest, option, context, top=True)


def _grouped(nest: Nest, option: ScheduleOption, context: Context, *, top: bool) -> Nest:
    need_locals(nest, option, context)
    if not context.device.has_shared:
        raise refused(nest, option, context, f"{context.device.target} has no local memory here (has_shared is false)")
    need_plain(nest, option, context)
    if nest.tile is not None:
        raise refused(
            nest, option, context, "a tensor core is active: its lanes must be the lowest of the work-group, and each holds a result"
        )
    if nest.of_kind(AxisKind.LOOP):
        raise refused(nest, option, context, "an output axis is a loop: the grouped reduce would have its barriers in it")
    groups = len(nest.of_kind(AxisKind.GROUP, AxisKind.MID))
    first = nest.first_reduce + groups
    at = axis_at(nest, option, context, first, first + len(nest.of_kind(AxisKind.REDUCE)), "remaining reduce axes")
    amount = amount_of(nest, option, context, nest.axes[at])
    cut, moved = nest.cut(at, amount, AxisKind.GROUP, top=top)
    return checked(nest, cut.placed(moved, first), option, context)
