"""What all options share: what they are, and the preconditions on axis and amount that each of them states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.device import DeviceOptions
from core.errors import OptionRefused
from core.limits import Limits
from core.schedule.axis import Axis
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption


@dataclass(frozen=True, slots=True)
class Context:
    """What an option may look at besides the nest. pointer: its place in the request, for a refusal."""

    device: DeviceOptions
    limits: Limits
    pointer: str


Apply = Callable[[Nest, ScheduleOption, Context], Nest]


def refused(nest: Nest, option: ScheduleOption, context: Context, reason: str, **facts: object) -> OptionRefused:
    """The refusal of an option: its reason, and the axes as they are."""
    return OptionRefused(
        context.pointer, option=option.to_json(), reason=f"{option.op}: {reason}", axes=nest.describe(), needed=facts.get("needed"), allowed=facts.get("allowed")
    )


def axis_at(nest: Nest, option: ScheduleOption, context: Context, first: int, end: int, what: str) -> int:
    """The position of the axis an option names, counted from `first`; it must lie before `end`."""
    number = option.axis or 0
    if not 0 <= number < end - first:
        raise refused(nest, option, context, f"axis {number} is not one of the {max(end - first, 0)} {what}")
    return first + number


def amount_of(nest: Nest, option: ScheduleOption, context: Context, axis: Axis, most: int | None = None) -> int:
    """The amount an option cuts an axis by, 0 resolved: it divides the extent and is at most `most`."""
    if not isinstance(axis.extent, int):
        raise refused(nest, option, context, "the axis has a symbolic extent and can't be cut")
    if axis.extent == 0:
        raise refused(nest, option, context, "the axis is empty and can't be cut")
    amount = option.amount or axis.extent
    if most is not None and amount > most:
        raise refused(nest, option, context, f"an amount of {amount} is more than {most}", needed=amount, allowed=most)
    if amount < 2 or axis.extent % amount:
        raise refused(nest, option, context, f"an amount of {amount} does not divide the extent {axis.extent}")
    return amount


def check_expanded(nest: Nest, option: ScheduleOption, context: Context, after: Nest) -> Nest:
    """`after`, unless its program points stand for more elements than allowed."""
    elements = 1
    for axis in after.expanded:
        elements *= int(axis.extent)  # type: ignore[call-overload]  # expanded axes have integer extents
    if elements > context.limits.expanded:
        raise refused(
            nest, option, context, f"{elements} expanded elements are more than {context.limits.expanded}",
            needed=elements, allowed=context.limits.expanded,
        )  # fmt: skip
    return after
