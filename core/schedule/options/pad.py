"""PADTO: an axis's extent rounded up to a multiple; padded points read 0, store nothing and count as the identity in a reduce."""

from __future__ import annotations

from core.schedule.axis import EXPANDED, AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, axis_at, checked, refused


def padto(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """Any axis that is not expanded, by less than quadruple the work."""
    at = axis_at(nest, option, context, 0, len(nest.axes), "axes")
    axis, multiple = nest.axes[at], option.amount or 0
    if axis.kind in EXPANDED or axis.kind is AxisKind.MID:
        raise refused(nest, option, context, f"the axis is {axis.kind.name.lower()}: pad before expanding")
    if nest.tile is not None and nest.tile.has_lane(axis):
        raise refused(nest, option, context, "the axis is a tensor core's lanes, which belong to the instruction")
    if not isinstance(axis.extent, int):
        raise refused(nest, option, context, "the axis has a symbolic extent and can't be padded")
    if axis.extent == 0:
        raise refused(nest, option, context, "the axis is empty and can't be padded")
    padded = -(-axis.extent // multiple) * multiple if multiple else axis.extent
    if padded == axis.extent:
        raise refused(nest, option, context, f"nothing was padded: {axis.extent} is a multiple already")
    if axis.extent <= multiple // 4:
        raise refused(nest, option, context, f"padding {axis.extent} to {padded} would be more than quadruple the work")
    return checked(nest, nest.padded(at, padded), option, context)
