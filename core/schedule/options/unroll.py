"""UNROLL: part of a reduce or group axis is reduced inside the work-item, without a loop."""

from __future__ import annotations

from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, amount_of, axis_at, checked, refused

MOST = 32  # elements of one axis


def unroll(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """The low digits of a reduce or group axis move to the far right and are expanded; of a group axis they are no lanes any more."""
    first = nest.first_reduce
    end = len(nest.axes) - len(nest.expanded)
    at = axis_at(nest, option, context, first, end, "group and reduce axes")
    if nest.axes[at].kind is AxisKind.MID:
        raise refused(nest, option, context, "the axis is an output's (mid), expanded after the reduce anyway")
    amount = amount_of(nest, option, context, nest.axes[at], MOST)
    cut, moved = nest.cut(at, amount, AxisKind.UNROLL)
    return checked(nest, cut.placed(moved, len(cut.axes)), option, context)
