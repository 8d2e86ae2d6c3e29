"""NOLOCALS: the runtime chooses the work-group size; the program counts work-items only."""

from __future__ import annotations

from dataclasses import replace

from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, need_locals, refused


def nolocals(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """Gives up work-groups; nothing may be local or grouped yet."""
    need_locals(nest, option, context)
    taken = nest.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID)
    if taken:
        raise refused(nest, option, context, f"{len(taken)} axes are lanes of a work-group already")
    return replace(nest, no_locals=True).after(option)
