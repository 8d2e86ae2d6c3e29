"""The steps for a GPU: enough work-groups, neighbouring lanes on neighbouring elements, register tiles, local memory for few outputs."""

from __future__ import annotations

from core.kernel.leaves import most
from core.kernel.node import Store
from core.schedule.apply import TEXEL
from core.schedule.axis import AxisKind
from core.schedule.heuristic.state import (
    State,
    extent,
    matrix_operands,
    memory_leaves,
    option,
    outputs_before_reduce,
    stride_of,
    unit_outputs,
)  # fmt: skip

FEW_OUTPUTS = 2048  # below it the outputs alone do not fill a GPU
VERY_FEW_OUTPUTS = 32
TILED_FROM = 1024  # outputs from which register tiles pay
MOST_LANES = 128
LOCAL_SIZES = (16, 8, 4, 3, 2)


def matrix_vector(state: State) -> None:
    """A row per group of lanes: eight lanes stride along a row, four rows a lane reuse the vector."""
    nest, device = state.nest, state.device
    operands = matrix_operands(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or operands is None or len(nest.axes) < 2:
        return
    first = nest.first_reduce
    if (
        first >= len(nest.axes)
        or nest.axes[first].kind is not AxisKind.REDUCE
        or extent(nest.axes[first]) % 8
        or not extent(nest.axes[first])
    ):
        return
    if stride_of(nest, operands[0], nest.axes[first]) != 1:
        return
    broadcast = [any(stride_of(nest, leaf, a) == 0 for a in nest.axes if a.extent != 1) for leaf in operands]
    if all(broadcast):
        return
    for at in range(first):
        if extent(nest.axes[at]) and extent(nest.axes[at]) % 16 == 0:
            options = (option("GROUP", 0, 8), option("LOCAL", at, 4), option("UPCAST", at, 4))
            if state.attempt("matrix-vector", "eight lanes stride along a row, four rows a lane reuse the vector", *options):
                state.stopped = True
            return


def few_outputs(state: State) -> None:
    """Lanes share a reduce where the outputs alone do not fill the device."""
    nest, device = state.nest, state.device
    outputs = outputs_before_reduce(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or outputs is None or nest.first_reduce > 2:
        return
    if not nest.of_kind(AxisKind.REDUCE) or outputs > FEW_OUTPUTS:
        return
    if any(extent(nest.axes[k]) % 4 == 0 for k in unit_outputs(nest, expanded=True)):
        return
    axis = nest.axes[nest.first_reduce]
    for size in (256, 16) if outputs <= VERY_FEW_OUTPUTS else (16,):
        if extent(axis) and extent(axis) % size == 0:
            reason = f"{outputs} outputs do not fill a device: {size} lanes share each reduce"
            if state.attempt("few outputs", reason, option("GROUPTOP", 0, size)):
                return


def channels_as_lanes(state: State) -> None:
    """The four channels of a texel are lanes while a grouped reduce runs."""
    nest = state.nest
    store = nest.kernel.nodes[nest.sites.leaves[nest.stores()[0]][0]]
    outputs = outputs_before_reduce(nest)
    if not (isinstance(store, Store) and store.image and nest.of_kind(AxisKind.GROUP)) or nest.first_reduce > 2 or (outputs or 2) <= 1:
        return
    unit = unit_outputs(nest, expanded=False)
    if not unit_outputs(nest, expanded=True) and len(unit) == 1 and extent(nest.axes[unit[0]]) % TEXEL == 0:
        state.attempt("mid", "the channels of a texel reduce in parallel", option("UPCASTMID", unit[0], TEXEL))


def grouped_is_done(state: State) -> None:
    """A grouped kernel is as parallel as it gets."""
    state.stopped = bool(state.nest.of_kind(AxisKind.GROUP))


def register_tiles(state: State) -> None:
    """Output axes along which some load does not move: its value is reused from a register."""
    tiled: set[int] = set()
    while True:
        nest = state.nest
        outputs = 1
        for axis in nest.axes[: nest.first_reduce]:
            outputs *= most(axis.extent)
        if outputs < TILED_FROM:
            return
        best: tuple[int, int, int, int] | None = None
        for at in range(nest.first_reduce):
            if at in tiled:
                continue
            axis = nest.axes[at]
            strides = [stride_of(nest, leaf, axis) for leaf in memory_leaves(nest)]
            reused = any(
                stride == 0 and not any(stride_of(nest, leaf, e) == 0 for e in nest.expanded)
                for leaf, stride in zip(memory_leaves(nest), strides, strict=True)
                if leaf in nest.loads()
            )
            if not reused:
                continue
            for amount in (3, 4):
                if extent(axis) and extent(axis) % amount == 0:
                    score = (sum(1 for s in strides if s), sum(s or 0 for s in strides), at, amount)
                    best = score if best is None else min(best, score)
        if best is None:
            return
        _, _, at, amount = best
        before = len(state.nest.axes)
        if not state.attempt(
            "register tiles", f"a load does not move along axis {at}: its value serves {amount} elements", option("UPCAST", at, amount)
        ):
            return
        if len(state.nest.axes) > before:
            tiled.add(at)
        else:  # the axis was consumed whole: those behind it have moved up
            tiled = {t - 1 if t > at else t for t in tiled}


def lanes(state: State) -> None:
    """Work-groups: first along axes where something is reused or broadcast, then along the last ones, which lie closest in memory."""
    nest = state.nest
    if not state.device.has_local or nest.no_locals:
        return
    leaves = memory_leaves(nest)
    ranked = []
    for at in range(nest.first_reduce):
        axis = nest.axes[at]
        if axis.kind is AxisKind.GLOBAL and extent(axis) >= 2:
            broadcast = any(stride_of(nest, leaf, axis) == 0 for leaf in leaves)
            ranked.append((not broadcast, -at))
    picked: list[tuple[int, int]] = []
    taken = 1
    for _, negative in sorted(ranked):
        at = -negative
        sizes = (32, *LOCAL_SIZES) if at == 0 else LOCAL_SIZES
        size = next((s for s in sizes if extent(nest.axes[at]) % s == 0 and taken * s <= MOST_LANES), None)
        if size is not None:
            picked.append((at, size))
            taken *= size
    gone = 0
    for at, size in sorted(picked[:3]):
        before = len(state.nest.of_kind(AxisKind.GLOBAL))
        if state.attempt("lanes", f"{size} work-items of a group along axis {at - gone}", option("LOCAL", at - gone, size)):
            gone += len(state.nest.of_kind(AxisKind.GLOBAL)) < before
