"""The compiler's own choice of schedule: a short list of decisions, taken in order, each with its reason.

The result is a legal list of options, always the same for the same kernel, device options and compiler. The decisions for a GPU follow
what such devices reward (enough work-groups, neighbouring lanes on neighbouring elements, register tiles, local memory for few outputs);
those for a CPU what its compilers make of a kernel: wide vectors along unit strides, few fat work-items, no local memory that only copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.device import DeviceOptions
from core.errors import LimitExceeded, OptionRefused
from core.kernel.leaves import most
from core.kernel.node import Elementwise, Load, Reduce, Store
from core.limits import Limits
from core.schedule.apply import TEXEL, mandatory
from core.schedule.axis import EXPANDED, Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options import OPTIONS
from core.schedule.options.base import Context, extent_of

FEW_OUTPUTS = 2048  # below it the outputs alone do not fill a GPU
VERY_FEW_OUTPUTS = 32
SMALL_MASKED = 7  # extents of stacks and concatenations worth taking apart
MOST_MASKED = 49  # elements that may come of it
TILED_FROM = 1024  # outputs from which register tiles pay
MOST_LANES = 128
LOCAL_SIZES = (16, 8, 4, 3, 2)
UNROLLED_WHOLE = 32


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen at one step, and why; options empty where it chose nothing. refused: what was tried and could not be applied."""

    step: str
    options: tuple[ScheduleOption, ...]
    reason: str
    refused: tuple[str, ...] = ()


@dataclass(slots=True)
class _State:
    """The nest as it stands, and what led there; lives as long as one choice."""

    nest: Nest
    device: DeviceOptions
    limits: Limits
    rows: tuple[int, ...]
    decisions: list[Decision]
    stopped: bool = False

    def attempt(self, step: str, reason: str, *options: ScheduleOption) -> bool:
        """Applies all of the options or none; True when they were legal."""
        nest = self.nest
        try:
            for option in options:
                nest = OPTIONS[option.op](nest, option, Context(self.device, self.limits, "/optimize"))
        except (OptionRefused, LimitExceeded) as error:
            self.decisions.append(Decision(step, (), f"not: {reason}", (str(error),)))
            return False
        self.nest = nest
        self.decisions.append(Decision(step, options, reason))
        return True


Step = Callable[[_State], None]


def choose(nest: Nest, device: DeviceOptions, limits: Limits, rows: tuple[int, ...]) -> tuple[Nest, tuple[Decision, ...]]:
    """A nest without options as scheduled, mandatory ones included, and the decisions behind it."""
    state = _State(nest, device, limits, rows, [])
    for step in CPU_STEPS if device.device_class == "cpu" or not device.has_local else GPU_STEPS:
        if state.stopped:
            break
        step(state)
    return state.nest, tuple(state.decisions)


# ---- what decisions look at ----------------------------------------------------------------------------------------------


def _option(op: str, axis: int, amount: int) -> ScheduleOption:
    return ScheduleOption(op, axis, amount)


def _stride(nest: Nest, leaf: int, axis: Axis, *, ignoring_validity: bool = False) -> int | None:
    """The real stride where it is a number, else None."""
    stride = nest.accesses[leaf].stride(axis.var, ignoring_validity=ignoring_validity)
    return stride.lo if stride is not None and stride.lo == stride.hi else None


def _memory_leaves(nest: Nest) -> list[int]:
    return sorted((*nest.loads(), *nest.stores()))


def _extent(axis: Axis) -> int:
    """An extent as a number, 0 where it is symbolic."""
    return axis.extent if isinstance(axis.extent, int) else 0


def _outputs_before_reduce(nest: Nest) -> int | None:
    """How many points the axes before the reduce have; None with a symbolic one."""
    result = 1
    for axis in nest.axes[: nest.first_reduce]:
        if not isinstance(axis.extent, int):
            return None
        result *= axis.extent
    return result


def _unit_outputs(nest: Nest, *, expanded: bool) -> list[int]:
    """Output axes along which output 0 has stride 1, expanded or not."""
    store = nest.stores()[0]
    return [k for k, a in enumerate(nest.axes) if not a.is_reduced and (a.kind in EXPANDED) is expanded and _stride(nest, store, a) == 1]


def _matrix_operands(nest: Nest) -> tuple[int, int] | None:
    """The leaves of a kernel whose one reduce sums the product of two loads."""
    kernel = nest.kernel
    reduces = [node for node in kernel.nodes if isinstance(node, Reduce)]
    if len(reduces) != 1 or reduces[0].op != "REDUCE_SUM":
        return None
    node = kernel.nodes[reduces[0].src[0]]
    if isinstance(node, Elementwise) and node.op == "CAST":
        node = kernel.nodes[node.src[0]]
    if not isinstance(node, Elementwise) or node.op != "MUL":
        return None
    leaves = []
    for row in node.src:
        if not isinstance(kernel.nodes[row], Load):
            return None
        found = [n for n, (of, _) in enumerate(nest.sites.leaves) if of == row]
        leaves.append(found[0])
    return leaves[0], leaves[1]


# ---- steps both classes share ------------------------------------------------------------------------------------------------


def texels(state: _State) -> None:
    """Mandatory image options."""
    for option in mandatory(state.nest, state.rows):
        state.attempt("texels", "an image is written by whole texels", option)


def rows(state: _State) -> None:
    """LOOP of every output axis that a reduce inside reduces."""
    nest = state.nest
    reduced = {k for axes in nest.sites.classes for k in axes}
    at = 0
    while at < len(state.nest.axes):
        axis = state.nest.axes[at]
        if axis.kind is AxisKind.GLOBAL and not axis.wires.isdisjoint(reduced):
            reason = "one work-item has the row: its reduces run once, not once an element"
            if state.attempt("rows", reason, _option("LOOP", at, 0)):
                continue
        at += 1


def image_inputs(state: _State) -> None:
    """Whole texels of image loads."""
    for leaf in state.nest.loads():
        nest = state.nest
        node = nest.kernel.nodes[nest.sites.leaves[leaf][0]]
        if not isinstance(node, Load) or node.image is None:
            continue
        unit = [
            k
            for k, a in enumerate(nest.axes)
            if _extent(a) % TEXEL == 0 and _extent(a) and _stride(nest, leaf, a, ignoring_validity=True) == 1
        ]
        if not unit or any(nest.axes[k].kind in EXPANDED for k in unit) or nest.axes[unit[0]].kind is AxisKind.MID:
            continue
        at = unit[0]
        reason = "the channels of a texel are read together"
        if at < nest.first_reduce:
            state.attempt("image inputs", reason, _option("UPCAST", at, TEXEL))
        else:
            state.attempt("image inputs", reason, _option("UNROLL", at - nest.first_reduce, TEXEL))


def small_masked_axes(state: _State) -> None:
    """Stacks and concatenations: a short output axis some validity depends on is taken apart, and its masks fold away."""
    nest = state.nest
    taken = extent_of(nest.expanded)
    chosen = []
    for at in range(nest.first_reduce):
        axis = nest.axes[at]
        if not 2 <= _extent(axis) <= SMALL_MASKED or axis.kind is AxisKind.LOOP or taken * _extent(axis) > MOST_MASKED:
            continue
        if any(axis.var in a.valid.free for a in nest.accesses):
            chosen.append(at)
            taken *= _extent(axis)
    for at in reversed(chosen):
        state.attempt("small masked axes", "each element knows its side of the mask", _option("UPCAST", at, 0))


def unrolled_reduce(state: _State) -> None:
    """The last reduce axis, whole if it is short, else by four."""
    nest = state.nest
    elements = extent_of(nest.expanded)
    left = nest.of_kind(AxisKind.REDUCE)
    if not left or (elements > 4 and any(a.kind is AxisKind.UNROLL for a in nest.expanded)) or elements >= 64:
        return
    last = len(nest.axes) - len(nest.expanded) - 1
    axis = nest.axes[last]
    size = _extent(axis)
    at = last - nest.first_reduce
    if axis.kind is not AxisKind.REDUCE or size < 2:
        return
    if size <= UNROLLED_WHOLE:
        if state.attempt("unroll", f"a reduce of {size} needs no loop", _option("UNROLL", at, 0)) and size <= 3 and at > 0:
            other = state.nest.axes[last - 1]
            if other.kind is AxisKind.REDUCE and 2 <= _extent(other) <= 3:
                state.attempt("unroll", "nor does the short one around it", _option("UNROLL", at - 1, 0))
    elif size % 4 == 0:
        state.attempt("unroll", "four terms a turn", _option("UNROLL", at, 4))


def vector_fallback(state: _State) -> None:
    """Four elements of the last axis where nothing is expanded yet."""
    nest = state.nest
    if nest.expanded or not nest.axes:
        return
    last = len(nest.axes) - 1
    axis = nest.axes[last]
    if _extent(axis) == 0 or _extent(axis) % 4:
        return
    if last < nest.first_reduce:
        state.attempt("vector", "four neighbouring elements a work-item", _option("UPCAST", last, 4))
    elif axis.kind is AxisKind.REDUCE:
        state.attempt("vector", "four neighbouring terms a turn", _option("UNROLL", last - nest.first_reduce, 4))


# ---- steps for a GPU ---------------------------------------------------------------------------------------------------------


def matrix_vector(state: _State) -> None:
    """A row per group of lanes: eight lanes stride along a row, four rows a lane reuse the vector."""
    nest, device = state.nest, state.device
    operands = _matrix_operands(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or operands is None or len(nest.axes) < 2:
        return
    first = nest.first_reduce
    if (
        first >= len(nest.axes)
        or nest.axes[first].kind is not AxisKind.REDUCE
        or _extent(nest.axes[first]) % 8
        or not _extent(nest.axes[first])
    ):
        return
    if _stride(nest, operands[0], nest.axes[first]) != 1:
        return
    broadcast = [any(_stride(nest, leaf, a) == 0 for a in nest.axes if a.extent != 1) for leaf in operands]
    if all(broadcast):
        return
    for at in range(first):
        if _extent(nest.axes[at]) and _extent(nest.axes[at]) % 16 == 0:
            options = (_option("GROUP", 0, 8), _option("LOCAL", at, 4), _option("UPCAST", at, 4))
            if state.attempt("matrix-vector", "eight lanes stride along a row, four rows a lane reuse the vector", *options):
                state.stopped = True
            return


def few_outputs(state: _State) -> None:
    """Lanes share a reduce where the outputs alone do not fill the device."""
    nest, device = state.nest, state.device
    outputs = _outputs_before_reduce(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or outputs is None or nest.first_reduce > 2:
        return
    if not nest.of_kind(AxisKind.REDUCE) or outputs > FEW_OUTPUTS:
        return
    if any(_extent(nest.axes[k]) % 4 == 0 for k in _unit_outputs(nest, expanded=True)):
        return
    axis = nest.axes[nest.first_reduce]
    for size in (256, 16) if outputs <= VERY_FEW_OUTPUTS else (16,):
        if _extent(axis) and _extent(axis) % size == 0:
            reason = f"{outputs} outputs do not fill a device: {size} lanes share each reduce"
            if state.attempt("few outputs", reason, _option("GROUPTOP", 0, size)):
                return


def channels_as_lanes(state: _State) -> None:
    """The four channels of a texel are lanes while a grouped reduce runs."""
    nest = state.nest
    store = nest.kernel.nodes[nest.sites.leaves[nest.stores()[0]][0]]
    outputs = _outputs_before_reduce(nest)
    if not (isinstance(store, Store) and store.image and nest.of_kind(AxisKind.GROUP)) or nest.first_reduce > 2 or (outputs or 2) <= 1:
        return
    unit = _unit_outputs(nest, expanded=False)
    if not _unit_outputs(nest, expanded=True) and len(unit) == 1 and _extent(nest.axes[unit[0]]) % TEXEL == 0:
        state.attempt("mid", "the channels of a texel reduce in parallel", _option("UPCASTMID", unit[0], TEXEL))


def grouped_is_done(state: _State) -> None:
    """A grouped kernel is as parallel as it gets."""
    state.stopped = bool(state.nest.of_kind(AxisKind.GROUP))


def register_tiles(state: _State) -> None:
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
            strides = [_stride(nest, leaf, axis) for leaf in _memory_leaves(nest)]
            reused = any(
                stride == 0 and not any(_stride(nest, leaf, e) == 0 for e in nest.expanded)
                for leaf, stride in zip(_memory_leaves(nest), strides, strict=True)
                if leaf in nest.loads()
            )
            if not reused:
                continue
            for amount in (3, 4):
                if _extent(axis) and _extent(axis) % amount == 0:
                    score = (sum(1 for s in strides if s), sum(s or 0 for s in strides), at, amount)
                    best = score if best is None else min(best, score)
        if best is None:
            return
        _, _, at, amount = best
        before = len(state.nest.axes)
        if not state.attempt(
            "register tiles", f"a load does not move along axis {at}: its value serves {amount} elements", _option("UPCAST", at, amount)
        ):
            return
        if len(state.nest.axes) > before:
            tiled.add(at)
        else:  # the axis was consumed whole: those behind it have moved up
            tiled = {t - 1 if t > at else t for t in tiled}


def lanes(state: _State) -> None:
    """Work-groups: first along axes where something is reused or broadcast, then along the last ones, which lie closest in memory."""
    nest = state.nest
    if not state.device.has_local or nest.no_locals:
        return
    leaves = _memory_leaves(nest)
    ranked = []
    for at in range(nest.first_reduce):
        axis = nest.axes[at]
        if axis.kind is AxisKind.GLOBAL and _extent(axis) >= 2:
            broadcast = any(_stride(nest, leaf, axis) == 0 for leaf in leaves)
            ranked.append((not broadcast, -at))
    picked: list[tuple[int, int]] = []
    taken = 1
    for _, negative in sorted(ranked):
        at = -negative
        sizes = (32, *LOCAL_SIZES) if at == 0 else LOCAL_SIZES
        size = next((s for s in sizes if _extent(nest.axes[at]) % s == 0 and taken * s <= MOST_LANES), None)
        if size is not None:
            picked.append((at, size))
            taken *= size
    gone = 0
    for at, size in sorted(picked[:3]):
        before = len(state.nest.of_kind(AxisKind.GLOBAL))
        if state.attempt("lanes", f"{size} work-items of a group along axis {at - gone}", _option("LOCAL", at - gone, size)):
            gone += len(state.nest.of_kind(AxisKind.GLOBAL)) < before


GPU_STEPS: tuple[Step, ...] = (
    texels, rows, matrix_vector, few_outputs, channels_as_lanes, image_inputs, grouped_is_done, small_masked_axes, register_tiles,
    unrolled_reduce, vector_fallback, lanes,
)  # fmt: skip


# ---- steps for a CPU ---------------------------------------------------------------------------------------------------------


def wide_unit_stride(state: _State) -> None:
    """Vectors along the axis the store (or, in a reduce, a load) runs along."""
    nest = state.nest
    store = nest.stores()[0]
    for at in range(nest.first_reduce):
        axis = nest.axes[at]
        if _stride(nest, store, axis) == 1 and axis.kind in (AxisKind.GLOBAL, AxisKind.LOOP):
            width = next((w for w in (16, 8, 4) if _extent(axis) and _extent(axis) % w == 0), None)
            if width is not None:
                state.attempt("wide vectors", f"{width} neighbouring elements are one vector", _option("UPCAST", at, width))
            return


def cpu_tiles(state: _State) -> None:
    """A second tile axis in matrix products: each vector of one operand serves several rows of the other."""
    nest = state.nest
    if _matrix_operands(nest) is None or not nest.expanded:
        return
    vectors = [leaf for leaf in nest.loads() if any(_stride(nest, leaf, e) == 1 for e in nest.expanded)]
    for at in range(nest.first_reduce - 1, -1, -1):
        axis = nest.axes[at]
        if any(_stride(nest, leaf, axis) == 0 for leaf in vectors):
            amount = next((a for a in (4, 3, 2) if _extent(axis) and _extent(axis) % a == 0), None)
            if amount is not None:
                state.attempt("tiles", f"one vector serves {amount} rows", _option("UPCAST", at, amount))
            return


def shared_reduce(state: _State) -> None:
    """Very few outputs: neighbouring lanes take neighbouring elements, which the device's compiler makes one vector loop."""
    nest, device = state.nest, state.device
    outputs = _outputs_before_reduce(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or outputs is None or outputs > VERY_FEW_OUTPUTS:
        return
    if nest.expanded or not nest.of_kind(AxisKind.REDUCE):
        return
    axis = nest.axes[nest.first_reduce + len(nest.of_kind(AxisKind.REDUCE)) - 1]
    for size in (16, 8):
        if _extent(axis) >= 64 and _extent(axis) % size == 0:
            at = len(nest.of_kind(AxisKind.REDUCE)) - 1
            if state.attempt("shared reduce", f"{size} lanes side by side are one vector of partial sums", _option("GROUP", at, size)):
                state.stopped = True
            return


CPU_STEPS: tuple[Step, ...] = (
    texels, rows, image_inputs, small_masked_axes, wide_unit_stride, cpu_tiles, shared_reduce, unrolled_reduce, vector_fallback,
)  # fmt: skip
