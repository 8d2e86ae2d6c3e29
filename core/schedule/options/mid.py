"""UPCASTMID: the four channels of a texel are lanes while a grouped reduce runs, and elements of one lane when it is stored."""

from __future__ import annotations

from core.kernel.node import Store
from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, amount_of, axis_at, checked, need_locals, need_plain, refused

TEXEL = 4


def upcastmid(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """The low digits of the image's one stride-1 axis move to the end of the group axes."""
    need_locals(nest, option, context)
    need_plain(nest, option, context)
    first_store = nest.stores()[0]
    store = nest.kernel.nodes[nest.sites.leaves[first_store][0]]
    if not isinstance(store, Store) or store.image is None:
        raise refused(nest, option, context, "output 0 is no image")
    if not nest.of_kind(AxisKind.GROUP):
        raise refused(nest, option, context, "no reduce is grouped")
    if nest.first_reduce > 2:
        raise refused(nest, option, context, f"there are {nest.first_reduce} output axes before the reduce, not two at most")
    at = axis_at(nest, option, context, 0, nest.first_reduce, "output axes")
    unit = [k for k, a in enumerate(nest.axes) if not a.is_reduced and _is_unit(nest, first_store, k)]
    if any(nest.axes[k].kind is AxisKind.UPCAST and nest.axes[k].size % TEXEL == 0 for k in unit):
        raise refused(nest, option, context, "an expanded axis already runs along the channels")
    if unit != [at]:
        raise refused(nest, option, context, f"the axis is not the one along which the channels lie ({unit})")
    amount = amount_of(nest, option, context, nest.axes[at], TEXEL)
    cut, moved = nest.cut(at, amount, AxisKind.MID)
    return checked(nest, cut.placed(moved, cut.first_reduce + len(cut.of_kind(AxisKind.GROUP, AxisKind.MID))), option, context)


def _is_unit(nest: Nest, store: int, position: int) -> bool:
    stride = nest.accesses[store].stride(nest.axes[position].var)
    return stride is not None and stride.lo == 1 and stride.hi == 1
