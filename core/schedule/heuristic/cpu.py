"""The steps for a CPU: wide vectors, register tiles, few fat work-items, chosen by the cost model move by move.

`core.schedule.cost` says what a plan costs. First the axis that lanes lie along, then whatever expands an axis further and gains most,
until nothing gains. Plans are judged on the nest as it is; only what was chosen is applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from core.schedule.axis import LEAST_ABREAST, MOST_ABREAST, AxisKind
from core.schedule.cost import Costs, Plan, Work, pieces, values_of, work_of
from core.schedule.heuristic.state import State, extent, memory_leaves, option, outputs_before_reduce, stride_of
from core.schedule.nest import Nest
from core.schedule.running import runs_along

VERY_FEW_OUTPUTS = 32  # outputs whose reduces are worth sharing among lanes
GROUP_SIZES = (16, 8)
SHARED_FROM = 64  # terms from which sharing a reduce pays

ABREAST = (32, 16, LEAST_ABREAST)  # lanes along a reduced axis
WIDEST = 16  # what UPCAST takes at once on a CPU
TILES = (2, 3, 5, 7)
MOST_WIDTHS = 3  # of an axis that are tried
AHEAD = (8, 7, 6, 5, 4, 3, 2)
UNROLLED = 8  # extents of reduced axes that are worth taking apart
MOST_ELEMENTS = 640  # expanded ones: beyond, compiling costs more than a launch ever gains
MOST_VALUES = 3000  # of a program, expanded ones counted one by one
MOST_PLAIN = 64  # of a kernel that reduces nothing
FEWEST_ITEMS = 16  # work-items that a tile leaves: for every core more than one
GAIN = 0.97  # of the cost before: a move that gains less is not made
SCALAR_TILE = 4  # where the language has no vectors: what compilers join to one again, and no more statements than that

PER_GROUP = (16, 8, 4, 2)  # work-items of a group where starting a group costs more than what it does
MANY_GROUPS = 512
NEAR = 64  # elements from one work-item of a group to the next


@dataclass(frozen=True, slots=True)
class Move:
    """One more cut of the nest the search began with: `amount` more digits of the axis at `position` are expanded."""

    position: int
    amount: int
    lanes: bool = False

    def made(self, plan: Plan) -> Plan:
        return plan.with_more(self.position, self.amount, lanes=self.lanes)


def running_sums(state: State) -> None:
    """A cumulative sum is a loop of the work-item that adds one term a turn."""
    for at, axis in enumerate(state.nest.axes):
        if axis.kind is AxisKind.GLOBAL and runs_along(state.nest, axis):
            reason = "the sum runs along the axis: one more term a turn, each waiting for the one before"
            state.stopped = state.attempt("running sum", reason, option("LOOP", at, 0))
            return


def shared_reduce(state: State) -> None:
    """Very few outputs: neighbouring lanes take neighbouring elements, which the device's compiler makes one vector loop."""
    nest, device = state.nest, state.device
    outputs = outputs_before_reduce(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or outputs is None or outputs > VERY_FEW_OUTPUTS:
        return
    if nest.expanded or not nest.of_kind(AxisKind.REDUCE):
        return
    at = len(nest.of_kind(AxisKind.REDUCE)) - 1
    axis = nest.axes[nest.first_reduce + at]
    if not any(stride_of(nest, leaf, axis) == 1 for leaf in nest.loads()):
        return
    for size in GROUP_SIZES:
        if extent(axis) >= SHARED_FROM and extent(axis) % size == 0:
            if state.attempt("shared reduce", f"{size} lanes side by side are one vector of partial sums", option("GROUP", at, size)):
                state.stopped = True
            return


def tiles(state: State) -> None:
    """Lanes and register tiles, by the cost model: what gains most for each doubling of a work-item's elements, until nothing gains."""
    nest = state.nest
    if nest.of_kind(AxisKind.GROUP) or any(a.extent == 0 for a in nest.axes):
        return
    work = work_of(nest)
    costs = Costs(work)
    begin = plan = Plan(dict(work.expanded))
    cost = costs.of(plan)
    moves = _lanes if state.device.supports_float4 else _scalars
    while True:
        plans = [(move.made(plan), move) for move in moves(nest, work, plan)]
        plans = [(after, move) for after, move in plans if _fits(work, plan, after)]
        best: tuple[float, Plan] | None = None
        if moves is _tiles:
            gains = [(-log2(cost.total / costs.of(after).total) / log2(move.amount), after) for after, move in plans]
            best = min(gains, key=lambda g: g[0], default=None)
            if best is None or costs.of(best[1]).total > cost.total * GAIN:
                break
        else:
            best = min(((_ahead(nest, costs, after), after) for after, _ in plans), key=lambda g: g[0], default=None)
            if best is None or best[0] > _ahead(nest, costs, plan) * GAIN:
                moves = _tiles
                continue
        plan = best[1]
        cost = costs.of(plan)
    _apply(state, begin, plan, f"{costs.of(begin)} becomes {cost}", cost.total / 1e3)


def _ahead(nest: Nest, costs: Costs, plan: Plan) -> float:
    """Work and memory of a plan with the best tile of one more axis.

    What lanes are worth shows only when they are reused, or their windows closed. Waiting is left out: further tiles hide it.
    """
    found = [costs.of(plan)]
    for p, axis in enumerate(nest.axes):
        left = extent(axis) // plan.expanded.get(p, 1)
        amounts = AHEAD if p < nest.first_reduce else (left,) if left <= UNROLLED and axis.kind is AxisKind.REDUCE else ()
        amount = next((a for a in amounts if a > 1 and left and left % a == 0), None)
        if amount is not None and _fits(costs.work, plan, after := plan.with_more(p, amount)):
            found.append(costs.of(after))
    return min(c.arithmetic + c.memory for c in found)


def _lanes(nest: Nest, work: Work, plan: Plan) -> Iterator[Move]:
    """Axes that some access runs along: an output's by what makes the widest vectors of it, a reduced one's by lanes that are registers.

    Beside others only where no access moves along both.
    """
    running = {p for site in work.sites for p, stride in site.strides if stride == 1}
    beside = {p for site in work.sites if not site.varies.isdisjoint(plan.lanes) for p in site.varies}
    for p in sorted(running - beside):
        axis = nest.axes[p]
        size = extent(axis)
        if axis.kind in (AxisKind.GLOBAL, AxisKind.LOOP):
            found = [amount for amount in range(WIDEST, 1, -1) if size and size % amount == 0]
            yield from (Move(p, amount, True) for amount in sorted(found, key=lambda a: (len(pieces(a)) / a, -a))[:MOST_WIDTHS])
        elif axis.kind is AxisKind.REDUCE:
            others = sum(a.kind is AxisKind.REDUCE and a.reduce_class == axis.reduce_class for a in nest.axes) > 1
            odd = range(WIDEST - 1, LEAST_ABREAST, -1)
            found = [amount for amount in ABREAST if size and size % amount == 0] or [a for a in odd if size and size % a == 0][:1]
            yield from (Move(p, amount, True) for amount in found if others or size > amount)


def _scalars(nest: Nest, work: Work, plan: Plan) -> Iterator[Move]:
    """Where the language has no vectors: few neighbours, once."""
    if not plan.lanes:
        running = {p for site in work.sites for p, stride in site.strides if stride == 1 and site.is_store}
        yield from (Move(p, SCALAR_TILE, True) for p in sorted(running) if extent(nest.axes[p]) and extent(nest.axes[p]) % SCALAR_TILE == 0)


def _tiles(nest: Nest, work: Work, plan: Plan) -> Iterator[Move]:
    """What may be expanded further: output axes by the smallest amounts, short reduced axes whole."""
    for p, axis in enumerate(nest.axes):
        left = extent(axis) // plan.expanded.get(p, 1)
        if axis.kind in (AxisKind.GLOBAL, AxisKind.LOOP):
            yield from (Move(p, amount) for amount in TILES if left and left % amount == 0)
        elif axis.kind is AxisKind.REDUCE and p not in plan.expanded and 2 <= left <= UNROLLED:
            yield Move(p, left)


def _fits(work: Work, before: Plan, after: Plan) -> bool:
    """Whether a plan leaves work-items enough, keeps terms abreast that are, and is no larger than compiling allows."""
    if after.elements > (MOST_ELEMENTS if work.chains else MOST_PLAIN):
        return False
    if values_of(work, after) > MOST_VALUES:
        return False
    for chain in work.chains:
        abreast = [p for p in after.lanes if p in chain.over]
        if abreast:
            registers = after.lanes[abreast[0]]
            for p in chain.varies:
                registers *= after.expanded.get(p, 1)
            if registers > MOST_ABREAST:
                return False

    def items(plan: Plan) -> int:
        count = 1
        for p in work.parallel:
            count *= work.extents[p] // plan.expanded.get(p, 1)
        return count

    left = items(after)
    return left >= FEWEST_ITEMS or left == items(before) or len(after.lanes) > len(before.lanes)


def _apply(state: State, begin: Plan, plan: Plan, reason: str, estimate_us: float) -> None:
    """A plan as options: lanes, then tiles, then what is unrolled. An axis taken whole moves those behind it up."""
    now = list(range(len(state.nest.axes)))  # positions of the plan that are there still
    first = state.nest.first_reduce
    cuts = [(p, lanes) for p, lanes in plan.lanes.items()]
    for p, amount in plan.expanded.items():
        rest = amount // begin.expanded.get(p, 1) // plan.lanes.get(p, 1)
        while rest > 1:
            cut = max(a for a in range(1, min(rest, WIDEST) + 1) if rest % a == 0)
            cuts.append((p, cut))
            rest //= cut
    left = {p: extent(state.nest.axes[p]) for p, _ in cuts}
    for p, amount in sorted(cuts, key=lambda cut: cut[0] >= first):
        at, nest = now.index(p), state.nest
        word = "UNROLL" if p >= first else "UPCAST"
        step = "lanes" if plan.lanes.get(p) == amount else "unroll" if p >= first else "tile"
        made = option(word, at - nest.first_reduce if p >= first else at, amount)
        if not state.attempt(step, reason, made, estimate_us=estimate_us):
            return
        left[p] //= amount
        if left[p] == 1:
            now.remove(p)


def groups(state: State) -> None:
    """Work-groups of a few work-items, where there are so many that starting them would count."""
    nest, device = state.nest, state.device
    if not device.has_local or nest.no_locals or nest.of_kind(AxisKind.REDUCE, AxisKind.GROUP, AxisKind.LOOP):
        return
    count = 1
    for axis in nest.of_kind(AxisKind.GLOBAL):
        count *= max(extent(axis), 1)
    axes = nest.of_kind(AxisKind.GLOBAL)
    if not axes or count < MANY_GROUPS:
        return
    at = len(axes) - 1
    if any((stride_of(nest, leaf, axes[at]) or 0) > NEAR for leaf in memory_leaves(nest)):
        return
    for size in PER_GROUP:
        if extent(axes[at]) and extent(axes[at]) % size == 0:
            state.attempt("groups", f"{size} work-items side by side start together", option("LOCAL", at, size))
            return
