"""UPCAST: part of an output axis becomes elements of one work-item, each with its own result."""

from __future__ import annotations

from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, amount_of, axis_at, checked, refused

MOST_GPU = 8  # elements of one axis: registers and code size
MOST_CPU = 16  # a CPU's vectors are wider


def upcast(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """The low digits of a global, local or loop axis move to the far right and are expanded."""
    at = axis_at(nest, option, context, 0, nest.first_reduce, "output axes (UNROLL is for reduced ones)")
    if nest.tile is not None and nest.tile.has_lane(nest.axes[at]):
        raise refused(nest, option, context, "the axis is a tensor core's lanes, which belong to the instruction")
    most = MOST_CPU if context.device.device_class == "cpu" else MOST_GPU
    amount = amount_of(nest, option, context, nest.axes[at], most)
    cut, moved = nest.cut(at, amount, AxisKind.UPCAST)
    return checked(nest, cut.placed(moved, len(cut.axes)), option, context)
