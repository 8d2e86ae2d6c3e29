"""What the axes of a nest become: hardware indices, loops of the work-item, or nothing yet (expanded ones)."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.device import DeviceOptions
from core.dtypes import INDEX
from core.index import TRUE, number
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value, make
from core.kernel.leaves import Extent, as_value, most
from core.schedule.axis import AxisKind
from core.schedule.launch import SpecialKind, map_axes
from core.schedule.nest import Nest

Sizes = tuple[Value, Value, Value]

USUAL_LANES = 64  # what every GPU runs at full width
LOOPS_PER_INSTANCE = 256  # numbers of ranges are (instance, position) in one integer


@dataclass(slots=True)
class Launch:
    """mapping: what each output axis's atom (and each lane's) stands for. loops: output loops, outermost first. Sizes: see `Lowered`."""

    mapping: dict[Value, Value] = field(default_factory=dict)
    loops: list[Value] = field(default_factory=list)
    global_size: Sizes | None = None
    local_size: Sizes | None = None
    guard: Value = TRUE

    def add_loop(self, var: Value, extent: Extent) -> None:
        """One more output loop, inside those there are."""
        loop = loop_over(extent, 0, "output", len(self.loops))
        self.loops.append(loop)
        if var.op is not Op.CONST:
            self.mapping[var] = loop


def loop_over(extent: Extent, instance: int, role: str, position: int) -> Value:
    """A loop variable in [0, extent), its own for each instance and position."""
    name = (instance * LOOPS_PER_INSTANCE + position, role)
    return make(Op.RANGE, INDEX, (as_value(extent),), name, 1, (0, max(most(extent) - 1, 0)))


def launch_of(nest: Nest, device: DeviceOptions, called: bool, sized: bool) -> Launch:
    """The launch of a nest; without work-groups every global axis is a loop, outermost first. Raises LimitExceeded.

    called: the program is a plain function. sized: how many work-items a group has must be known, even where a schedule leaves it open.
    """
    out = Launch()
    parallel = nest.of_kind(AxisKind.GLOBAL)
    if not device.has_local:
        for axis in parallel:
            out.add_loop(axis.var, axis.extent)
        if not called:
            out.global_size = out.local_size = (number(1), number(1), number(1))
    else:
        kind: SpecialKind = "global" if nest.no_locals else "group"
        lanes = nest.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID)
        grid = map_axes(parallel, device.global_max, kind, reverse=True, may_guard=True)
        group = map_axes(lanes, device.local_max, "local", reverse=False, may_guard=False)
        for axis, value in zip((*parallel, *lanes), (*grid.values, *group.values), strict=True):
            if axis.var.op is not Op.CONST:
                out.mapping[axis.var] = value
        out.guard = grid.guard
        out.global_size = grid.sizes
        out.local_size = None if nest.no_locals else group.sizes
        if sized and out.local_size is None:
            out.global_size, out.local_size = _grouped(grid.sizes, device)
    for axis in nest.of_kind(AxisKind.LOOP):
        out.add_loop(axis.var, axis.extent)
    return out


def _grouped(items: Sizes, device: DeviceOptions) -> tuple[Sizes, Sizes]:
    """(groups, work-items of one) for so many work-items: as many side by side along x as divide them, up to a usual width."""
    x, y, z = items
    lanes = 1
    if x.op is Op.CONST:
        most_lanes = min(USUAL_LANES, (device.local_max or (None,))[0] or USUAL_LANES, device.lanes_max or USUAL_LANES)
        lanes = max(n for n in range(1, most_lanes + 1) if integer(x) % n == 0)
        x = number(integer(x) // lanes)
    return (x, y, z), (number(lanes), number(1), number(1))
