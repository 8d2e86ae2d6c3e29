"""LOCAL: part of a global axis becomes work-items of a group."""

from __future__ import annotations

from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, amount_of, axis_at, checked, need_locals, refused


def local(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """The low digits of a global axis move to the end of the local axes, before the output loops."""
    need_locals(nest, option, context)
    at = axis_at(nest, option, context, 0, len(nest.axes), "axes")
    if nest.axes[at].kind is not AxisKind.GLOBAL:
        raise refused(nest, option, context, f"the axis is {nest.axes[at].kind.name.lower()}, not global")
    amount = amount_of(nest, option, context, nest.axes[at])
    cut, moved = nest.cut(at, amount, AxisKind.LOCAL)
    return checked(nest, cut.placed(moved, len(cut.of_kind(AxisKind.GLOBAL, AxisKind.LOCAL))), option, context)
