"""A schedule: the options an image output makes mandatory, then a list exactly as given; a refusal says which option, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.device import DeviceOptions
from core.errors import KernelError, LimitExceeded, OptionRefused, Pointer, Said
from core.kernel.node import Store
from core.kernel.texels import TEXEL_RULE, texel_axes
from core.limits import Limits
from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options import OPTIONS
from core.schedule.options.base import Context

TEXEL = 4


def scheduled(nest: Nest, options: Sequence[ScheduleOption], device: DeviceOptions, limits: Limits, rows: tuple[int, ...]) -> Nest:
    """The nest after the mandatory options and these, in order. A list that itself starts with the mandatory ones is taken as it is, and
    so is one that makes the channels lanes (UPCASTMID), which they could not become once they are expanded.

    rows: per node the row of the request's table. Raises OptionRefused with `/optimize/N`, KernelError for an image no axis of which runs
    along texels.
    """
    return [after for _, after in steps(nest, options, device, limits, rows)][-1]


def steps(
    nest: Nest, options: Sequence[ScheduleOption], device: DeviceOptions, limits: Limits, rows: tuple[int, ...]
) -> Iterator[tuple[ScheduleOption | None, Nest]]:
    """The nest as it is, and after each option with that option; raises as `scheduled`."""
    needed = mandatory(nest, rows)
    if list(options[: len(needed)]) == needed or any(option.op == "UPCASTMID" for option in options):
        needed = []
    yield None, nest
    for option in needed:
        nest = _mandatory_applied(nest, option, device, limits)
        yield option, nest
    for number, option in enumerate(options):
        pointer = Pointer("") / "optimize" / number
        if option.op not in OPTIONS:
            reason = f"{option.op} is not among the options of this target: {', '.join(OPTIONS)}"
            raise OptionRefused(pointer, option=option.to_json(), reason=reason, axes=nest.describe())
        nest = OPTIONS[option.op](nest, option, Context(device, limits, pointer))
        yield option, nest


def _mandatory_applied(nest: Nest, option: ScheduleOption, device: DeviceOptions, limits: Limits) -> Nest:
    try:
        return OPTIONS[option.op](nest, option, Context(device, limits, "/ast"))
    except OptionRefused as error:  # nobody asked for it, so it is the kernel that is too large
        raise LimitExceeded("/ast", limit="mandatory option", needed=option.to_json(), allowed=error.detail, detail=error.detail) from error


def mandatory(nest: Nest, rows: tuple[int, ...]) -> list[ScheduleOption]:
    """The options without which an image output has no texel to write: UPCAST by 4 of the first axis the channels lie along."""
    image_stores = [n for n in nest.stores() if _store(nest, n).image is not None]
    if not image_stores:
        return []
    for position, axis in enumerate(nest.axes):
        if axis.kind is AxisKind.GLOBAL and all(runs_along_texels(nest, n, position) for n in image_stores):
            return [ScheduleOption("UPCAST", position, TEXEL)]
    row = nest.sites.leaves[image_stores[0]][0]
    raise KernelError(Pointer("/ast/nodes") / rows[row], expected=TEXEL_RULE, got=Said("none"), node=row)


def runs_along_texels(nest: Nest, store: int, position: int) -> bool:
    """Whether whole texels lie along an axis."""
    axis = nest.axes[position]
    return bool(texel_axes(nest.accesses[store], [(axis.var, axis.extent)]))


def _store(nest: Nest, leaf: int) -> Store:
    node = nest.kernel.nodes[nest.sites.leaves[leaf][0]]
    assert isinstance(node, Store)
    return node
