"""What all options share: what they are, and the preconditions on axis and amount that each of them states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from core.errors import LimitExceeded, OptionRefused
from core.limits import Limits
from core.schedule.axis import Axis, AxisKind
from core.schedule.launch import map_axes
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
        context.pointer, option=option.to_json(), reason=f"{option.op}: {reason}", axes=nest.describe(),
        needed=facts.get("needed"), allowed=facts.get("allowed"),
    )  # fmt: skip


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


def checked(before: Nest, after: Nest, option: ScheduleOption, context: Context) -> Nest:
    """`after` with the option noted as applied. Raises OptionRefused naming every limit it passes, each with needed and allowed."""
    passed = [(name, needed, allowed) for name, needed, allowed in resources(after, context) if needed > allowed]
    if passed:
        reason = "; ".join(f"{name} would be {needed}, allowed are {allowed}" for name, needed, allowed in passed)
        needed = {name: needed for name, needed, _ in passed}
        allowed = {name: allowed for name, _, allowed in passed}
        raise refused(before, option, context, reason, needed=needed, allowed=allowed)
    lanes = after.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID)
    if lanes:
        try:
            group = map_axes(lanes, context.device.local_max, "local", reverse=False, may_guard=False)
        except LimitExceeded as error:
            facts = error.facts()
            raise refused(
                before, option, context, f"the work-group does not fit: {error.detail}", needed=facts["needed"], allowed=facts["allowed"]
            ) from error
        if after.tile is not None and group.order[: len(after.tile.lanes)] != tuple(range(len(after.tile.lanes))):
            raise refused(before, option, context, "the tensor core's lanes would not be the lowest of the work-group any more")
    return after.after(option)


def resources(nest: Nest, context: Context) -> list[tuple[str, int, int]]:
    """(what, needed, allowed) of each bounded resource a schedule takes."""
    device, limits = context.device, context.limits
    found = [("expanded elements", expanded_elements(nest), limits.expanded)]
    lanes = extent_of(nest.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID))
    if device.lanes_max is not None:
        found.append(("work-items of a group", lanes, device.lanes_max))
    if nest.of_kind(AxisKind.GROUP):
        found.append(("bytes of local memory", shared_bytes(nest, device.least_shared), device.shared_max))
    return found


def expanded_elements(nest: Nest) -> int:
    """How many values one program point may stand for; of a tile each lane has its fragment only."""
    if nest.tile is None:
        return extent_of(nest.expanded)
    layout = nest.tile.layout
    return extent_of(tuple(a for a in nest.expanded if a not in nest.tile.axes)) * max(f.elements for f in (layout.a, layout.b, layout.c))


def shared_bytes(nest: Nest, least: int) -> int:
    """Local memory of a work-group: per grouped reduce a slot, of `least` bytes or more, for each lane and each upcast element."""
    lanes = extent_of(nest.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID))
    elements = extent_of(nest.of_kind(AxisKind.UPCAST))
    grouped = nest.of_kind(AxisKind.GROUP)
    total = 0
    for instance in nest.sites.instances:
        if any(not a.wires.isdisjoint(instance.axes) for a in grouped):
            total += lanes * elements * max(slot_dtype(nest.kernel.nodes[instance.node].dtype).itemsize, least)
    return total


def slot_dtype(dtype: DType) -> DType:
    """What a partial result of this type is kept as: 16-bit floats are accumulated in 32 bits."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def extent_of(axes: tuple[Axis, ...]) -> int:
    """The product of integer extents."""
    result = 1
    for axis in axes:
        result *= axis.size
    return result


def need_plain(nest: Nest, option: ScheduleOption, context: Context) -> None:
    """Refuses where several reduce classes exist, or an output is full on an axis a reduce inside it reduces."""
    sites = nest.sites
    if len(sites.classes) > 1:
        raise refused(nest, option, context, f"the kernel reduces over different axes, {' and '.join(map(str, map(list, sites.classes)))}")
    both = [k for axes in sites.classes for k in axes if k in sites.output_axes]
    if both:
        raise refused(nest, option, context, f"the outputs are full on axis {both[0]}, which a reduce inside them reduces")


def need_locals(nest: Nest, option: ScheduleOption, context: Context) -> None:
    """Refuses where there are no work-groups, or NOLOCALS has given them up."""
    if not context.device.has_local:
        raise refused(nest, option, context, f"{context.device.target} has no work-groups here (has_local is false)")
    if nest.no_locals:
        raise refused(nest, option, context, "NOLOCALS was applied before")
