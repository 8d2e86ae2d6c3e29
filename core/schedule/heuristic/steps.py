"""The steps that every device takes: whole texels, rows as loops, small masks taken apart, short reduces unrolled."""

from __future__ import annotations

from core.kernel.node import Load
from core.schedule.apply import TEXEL, mandatory
from core.schedule.axis import EXPANDED, AxisKind
from core.schedule.heuristic.state import State, extent, option, stride_of
from core.schedule.options.base import extent_of

SMALL_MASKED = 7  # extents of stacks and concatenations worth taking apart
MOST_MASKED = 49  # elements that may come of it
UNROLLED_WHOLE = 32


def texels(state: State) -> None:
    """Mandatory image options."""
    for needed in mandatory(state.nest, state.rows):
        state.attempt("texels", "an image is written by whole texels", needed)


def rows(state: State) -> None:
    """LOOP of every output axis that a reduce inside reduces."""
    nest = state.nest
    reduced = {k for axes in nest.sites.classes for k in axes}
    at = 0
    while at < len(state.nest.axes):
        axis = state.nest.axes[at]
        if axis.kind is AxisKind.GLOBAL and not axis.wires.isdisjoint(reduced):
            reason = "one work-item has the row: its reduces run once, not once an element"
            if state.attempt("rows", reason, option("LOOP", at, 0)):
                continue
        at += 1


def image_inputs(state: State) -> None:
    """Whole texels of image loads."""
    for leaf in state.nest.loads():
        nest = state.nest
        node = nest.kernel.nodes[nest.sites.leaves[leaf][0]]
        if not isinstance(node, Load) or node.image is None:
            continue
        unit = [
            k
            for k, a in enumerate(nest.axes)
            if extent(a) % TEXEL == 0 and extent(a) and stride_of(nest, leaf, a, ignoring_validity=True) == 1
        ]
        if not unit or any(nest.axes[k].kind in EXPANDED for k in unit) or nest.axes[unit[0]].kind is AxisKind.MID:
            continue
        at = unit[0]
        reason = "the channels of a texel are read together"
        if at < nest.first_reduce:
            state.attempt("image inputs", reason, option("UPCAST", at, TEXEL))
        else:
            state.attempt("image inputs", reason, option("UNROLL", at - nest.first_reduce, TEXEL))


def small_masked_axes(state: State) -> None:
    """Stacks and concatenations: a short output axis some validity depends on is taken apart, and its masks fold away."""
    nest = state.nest
    taken = extent_of(nest.expanded)
    chosen = []
    for at in range(nest.first_reduce):
        axis = nest.axes[at]
        if not 2 <= extent(axis) <= SMALL_MASKED or axis.kind is AxisKind.LOOP or taken * extent(axis) > MOST_MASKED:
            continue
        if any(axis.var in a.valid.free for a in nest.accesses):
            chosen.append(at)
            taken *= extent(axis)
    for at in reversed(chosen):
        state.attempt("small masked axes", "each element knows its side of the mask", option("UPCAST", at, 0))


def unrolled_reduce(state: State) -> None:
    """The last reduce axis, whole if it is short, else by four."""
    nest = state.nest
    elements = extent_of(nest.expanded)
    left = nest.of_kind(AxisKind.REDUCE)
    if not left or (elements > 4 and any(a.kind is AxisKind.UNROLL for a in nest.expanded)) or elements >= 64:
        return
    last = len(nest.axes) - len(nest.expanded) - 1
    axis = nest.axes[last]
    size = extent(axis)
    at = last - nest.first_reduce
    if axis.kind is not AxisKind.REDUCE or size < 2:
        return
    if size <= UNROLLED_WHOLE:
        if state.attempt("unroll", f"a reduce of {size} needs no loop", option("UNROLL", at, 0)) and size <= 3 and at > 0:
            other = state.nest.axes[last - 1]
            if other.kind is AxisKind.REDUCE and 2 <= extent(other) <= 3:
                state.attempt("unroll", "nor does the short one around it", option("UNROLL", at - 1, 0))
    elif size % 4 == 0:
        state.attempt("unroll", "four terms a turn", option("UNROLL", at, 4))


def vector_fallback(state: State) -> None:
    """Four elements of the last axis where nothing is expanded yet."""
    nest = state.nest
    if nest.expanded or not nest.axes:
        return
    last = len(nest.axes) - 1
    axis = nest.axes[last]
    if extent(axis) == 0 or extent(axis) % 4:
        return
    if last < nest.first_reduce:
        state.attempt("vector", "four neighbouring elements a work-item", option("UPCAST", last, 4))
    elif axis.kind is AxisKind.REDUCE:
        state.attempt("vector", "four neighbouring terms a turn", option("UNROLL", last - nest.first_reduce, 4))
