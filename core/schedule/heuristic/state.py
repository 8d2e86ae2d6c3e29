"""What a choice has come to: the nest as it stands, the decisions that led there, and what decisions look at."""

from __future__ import annotations

from dataclasses import dataclass

from core.device import DeviceOptions
from core.errors import LimitExceeded, OptionRefused
from core.kernel.node import Elementwise, Load, Reduce
from core.limits import Limits
from core.schedule.axis import EXPANDED, Axis
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options import OPTIONS
from core.schedule.options.base import Context


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen at one step, and why; options empty where it chose nothing. refused: what could not be applied there, and why.

    estimate_us: what the cost model says of the whole plan that a step belongs to, microseconds of one core.
    """

    step: str
    options: tuple[ScheduleOption, ...]
    reason: str
    refused: tuple[tuple[ScheduleOption, str], ...] = ()
    estimate_us: float | None = None


@dataclass(slots=True)
class State:
    """The nest as it stands, and what led there; lives as long as one choice."""

    nest: Nest
    device: DeviceOptions
    limits: Limits
    rows: tuple[int, ...]
    decisions: list[Decision]
    stopped: bool = False

    def attempt(self, step: str, reason: str, *options: ScheduleOption, estimate_us: float | None = None) -> bool:
        """Applies all of the options or none; True when they were legal."""
        nest = self.nest
        for option in options:
            try:
                nest = OPTIONS[option.op](nest, option, Context(self.device, self.limits, "/optimize"))
            except (OptionRefused, LimitExceeded) as error:
                self.decisions.append(Decision(step, (), f"not: {reason}", ((option, error.detail.removeprefix("/optimize: ")),)))
                return False
        self.nest = nest
        self.decisions.append(Decision(step, options, reason, estimate_us=estimate_us))
        return True


def option(op: str, axis: int, amount: int) -> ScheduleOption:
    return ScheduleOption(op, axis, amount)


def stride_of(nest: Nest, leaf: int, axis: Axis, *, ignoring_validity: bool = False) -> int | None:
    """The real stride where it is a number, else None."""
    stride = nest.accesses[leaf].stride(axis.var, ignoring_validity=ignoring_validity)
    return stride.lo if stride is not None and stride.lo == stride.hi else None


def memory_leaves(nest: Nest) -> list[int]:
    return sorted((*nest.loads(), *nest.stores()))


def extent(axis: Axis) -> int:
    """An extent as a number, 0 where it is symbolic."""
    return axis.extent if isinstance(axis.extent, int) else 0


def outputs_before_reduce(nest: Nest) -> int | None:
    """How many points the axes before the reduce have; None with a symbolic one."""
    result = 1
    for axis in nest.axes[: nest.first_reduce]:
        if not isinstance(axis.extent, int):
            return None
        result *= axis.extent
    return result


def unit_outputs(nest: Nest, *, expanded: bool) -> list[int]:
    """Output axes along which output 0 has stride 1, expanded or not."""
    store = nest.stores()[0]
    return [k for k, a in enumerate(nest.axes) if not a.is_reduced and (a.kind in EXPANDED) is expanded and stride_of(nest, store, a) == 1]


def matrix_operands(nest: Nest) -> tuple[int, int] | None:
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
