"""Tensor cores, where the device has some that fit: a tile of fragments for each set of lanes, as many as reuse pays for."""

from __future__ import annotations

from core.errors import LimitExceeded, OptionRefused
from core.fragments import layouts_for
from core.schedule.axis import Axis
from core.schedule.heuristic.state import State, extent, matrix_operands, option
from core.schedule.nest import product
from core.schedule.option import ScheduleOption
from core.schedule.options import OPTIONS
from core.schedule.options.base import Context

ATTEMPTS = ((0, 0), *((choice, 1) for choice in range(9)), (0, 2))  # choices and levels: what fits as it is before what has to be padded
MOST_PADDED = 1.5  # times the work that padding may make of it
FRAGMENTS = (5, 4, 3, 2)  # of a side that one set of lanes keeps: each loaded fragment of the other operand serves them all
SETS = (4, 2)  # sets of lanes side by side in a work-group


def tensor_cores(state: State) -> None:
    """TC on the last triple of axes that fits, then tiles of fragments; nothing else pays beside them."""
    device = state.device
    if state.nest.applied or not device.has_local or not layouts_for(device) or matrix_operands(state.nest) is None:
        return
    fitting = next((o for o in (option("TC", choice, level) for choice, level in ATTEMPTS) if _fits(state, o)), option("TC", 0, 0))
    if not state.attempt("tensor cores", "the product under the reduce is a matrix instruction's", fitting):
        return
    state.stopped = True
    tile = state.nest.tile
    assert tile is not None
    _cut(state, tile.m, "UPCAST", FRAGMENTS, "each fragment of the second operand serves {} of the first")
    left = _cut(state, tile.n, "UPCAST", FRAGMENTS, "each fragment of the first operand serves {} of the second")
    _cut(state, left, "LOCAL", SETS, "{} sets of lanes in a work-group read the same rows")


def _fits(state: State, wanted: ScheduleOption) -> bool:
    """Whether an option can be applied, and pads little."""
    try:
        after = OPTIONS[wanted.op](state.nest, wanted, Context(state.device, state.limits, "/optimize"))
    except (OptionRefused, LimitExceeded):
        return False
    return product([extent(a) or 1 for a in after.axes]) <= MOST_PADDED * product([extent(a) or 1 for a in state.nest.axes])


def _cut(state: State, axis: Axis | None, op: str, amounts: tuple[int, ...], reason: str) -> Axis | None:
    """The largest amount that divides the axis and is legal; what is left of the axis then."""
    if axis is None:
        return None
    at = state.nest.axes.index(axis)
    for amount in amounts:
        divides = extent(axis) > 0 and extent(axis) % amount == 0
        if divides and state.attempt("tensor cores", reason.format(amount), option(op, at, amount)):
            return None if amount == axis.extent else state.nest.axes[at]
    return axis
