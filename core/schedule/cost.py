"""What a schedule costs on a CPU, in nanoseconds of one core: the model that orders the heuristic's choices there.

A nest is looked at as *sites* (loads, stores, arithmetic), each with the axes it is computed anew along, and a *plan* says how many digits
of each axis are expanded and along which of them lanes lie. Per site that gives how many instructions run, and how wide; per buffer how
many bytes come from which level of memory and in how many separate stretches; per reduce how many turns, and how long its chain of
additions is. All of it follows from strides and extents: nothing is scheduled to be judged. The constants were measured with PoCL 3.0 on a
Xeon with AVX-512; the model orders schedules, and is within a factor of three of most times measured there (`docs/schedule.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from core.kernel.leaves import most
from core.kernel.node import Const, Elementwise, Kernel, Reduce, Store
from core.schedule.axis import EXPANDED, AxisKind
from core.schedule.nest import Nest

INSTRUCTION = 0.17  # ns: of up to REGISTER bytes, two a cycle
STORE = 0.35
INSERT = 0.3  # one scalar put into a lane
SHUFFLE = 1.0  # lanes of a few vectors put in another order
GATED = 4.0  # times a scalar: one that may not be read
REGISTER, REGISTERS = 32, 32  # bytes of what compilers put into one instruction, and how many of them there are
SPILL = 0.5  # a register that does not fit, stored and loaded in each turn
FOLDED = 0.5  # a lane of a register combined with the others, after the loop
LATENCY = 1.3  # of an addition whose result the next one waits for
TURN = 0.6  # of a loop: counting and jumping
WORK_GROUP = 5.0
FUNCTIONS = {  # ns an element: alone, as a lane
    "EXP2": (10.0, 0.6), "LOG2": (10.0, 0.6), "SIN": (10.0, 10.0), "SQRT": (1.5, 0.3), "RECIP": (1.2, 0.3), "IDIV": (2.0, 1.5),
    "MOD": (2.0, 1.5),
}  # fmt: skip
NARROW = 4.0  # lanes that a vector function costs beside its own
FREE = frozenset(("CAST", "BITCAST"))
COMPARED = frozenset(("CAST", "CMPLT", "CMPNE", "WHERE", "MUL"))  # between a ramp and the sum that it gives a closed form
L1, L2 = 32 << 10, 2 << 20  # bytes
FROM_L2, FROM_MEMORY = 0.015, 0.045  # ns a byte
LINE = 64  # bytes: gaps no wider cost nothing of their own
STRETCH = 4.0  # ns: going on elsewhere in a buffer that does not stay in L2
PAGE, WAYS, CONFLICT = 4096, 8, 1.0  # bytes apart that meet in L1; how many of these it holds; ns an access beyond
MASKED = 8.0  # times an instruction: lanes under gates that a loop moves along them
WIDTHS = (16, 8, 4, 2, 1)  # lanes


@dataclass(frozen=True, slots=True)
class Site:
    """varies: positions of the axes it is computed anew along. strides: of an access along these, None where unknown.

    masked: positions that its validity names. alone, in_lane: ns an element of arithmetic that is more than an instruction.
    """

    varies: frozenset[int]
    itemsize: int
    strides: tuple[tuple[int, int | None], ...] = ()
    masked: frozenset[int] = frozenset()
    is_access: bool = False
    is_store: bool = False
    alone: float = 0.0
    in_lane: float = 0.0


@dataclass(frozen=True, slots=True)
class Chain:
    """A reduce. over: positions it runs over. varies: those its result varies along, so that elements there have registers of their own."""

    over: frozenset[int]
    varies: frozenset[int]
    itemsize: int


@dataclass(frozen=True, slots=True)
class Work:
    """A nest as the model sees it. extents: by position, a symbolic one by its maximum. parallel: positions of launch axes.

    sites: with how many of each there are. expanded: by position the extents of axes that are expanded already.
    """

    extents: tuple[int, ...]
    parallel: tuple[int, ...]
    sites: Mapping[Site, int]
    chains: tuple[Chain, ...]
    expanded: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """expanded: by position how many digits are expanded. lanes: by position of the axes that lanes lie along how many; one in a site."""

    expanded: Mapping[int, int]
    lanes: Mapping[int, int] = field(default_factory=dict)

    def with_more(self, position: int, amount: int, *, lanes: bool = False) -> Plan:
        """The plan with an axis expanded by `amount` more. lanes: these digits are the lanes."""
        expanded = {**self.expanded, position: self.expanded.get(position, 1) * amount}
        return Plan(expanded, {**self.lanes, position: amount} if lanes else self.lanes)

    @property
    def elements(self) -> int:
        """How many values a point of the program stands for."""
        result = 1
        for amount in self.expanded.values():
            result *= amount
        return result


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the expanded elements of an access lie. distinct: the part of them that are different ones. run: how many of these lie
    together; span: from the first of a run to its last, in elements."""

    distinct: float
    run: float
    span: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds of one core. waiting: what turns of loops and chains of additions add. launch: of work-groups."""

    arithmetic: float
    waiting: float
    memory: float
    launch: float

    @property
    def total(self) -> float:
        return self.arithmetic + self.waiting + self.memory + self.launch

    def __str__(self) -> str:
        parts = ", ".join(f"{f.name} {getattr(self, f.name) / 1e3:.1f}" for f in fields(self))
        return f"{self.total / 1e3:.1f} µs of one core ({parts})"


def work_of(nest: Nest) -> Work:
    """What the model has to know of a nest."""
    positions = range(len(nest.axes))
    varies: list[frozenset[int]] = []
    sites: dict[Site, int] = {}
    chains: list[Chain] = []
    for site in nest.sites.sites:
        node = nest.kernel.nodes[site.node]
        along: frozenset[int] = frozenset().union(*(varies[s] for s in site.src))
        found = None
        if site.leaf >= 0:
            access = nest.accesses[site.leaf]
            along |= {p for p in positions if access.depends_on(nest.axes[p].var)}
            if not isinstance(node, Const):
                strides = tuple((p, _stride(nest, site.leaf, p)) for p in sorted(along))
                masked = frozenset(p for p in positions if nest.axes[p].var in access.valid.free)
                found = Site(along, node.dtype.itemsize, strides, masked, is_access=True, is_store=isinstance(node, Store))
        elif isinstance(node, Reduce):
            instance = nest.sites.instances[site.instance]
            axes = nest.axes
            over = frozenset(
                p for p in positions if axes[p].reduce_class == instance.reduce_class and not axes[p].wires.isdisjoint(instance.axes)
            )
            if not _is_product(nest.kernel, node):  # multiplied and added at once
                found = Site(along | over, node.dtype.itemsize)
            along -= over
            chains.append(Chain(over, along, node.dtype.itemsize))
        elif isinstance(node, Elementwise) and node.op not in FREE:
            alone, in_lane = FUNCTIONS.get(node.op, (0.0, 0.0))
            found = Site(along, node.dtype.itemsize, alone=alone, in_lane=in_lane)
        if found is not None:
            sites[found] = sites.get(found, 0) + 1
        varies.append(along)
    gone = _closed(nest)
    extents = tuple(1 if p in gone else max(most(nest.axes[p].extent), 1) for p in positions)
    parallel = tuple(p for p in positions if nest.axes[p].kind in (AxisKind.GLOBAL, AxisKind.LOCAL))
    expanded = {p: extents[p] for p in positions if nest.axes[p].kind in EXPANDED}
    return Work(extents, parallel, sites, tuple(chains), expanded)


def _closed(nest: Nest) -> set[int]:
    """Axes of reduces that compare with a ramp along them: such sums have a closed form, and their loops are gone in the end."""
    sites, nodes = nest.sites, nest.kernel.nodes
    ramps: list[set[int]] = []  # by site: axes of the ramps that it compares, or is
    gone: set[int] = set()
    for site in sites.sites:
        node = nodes[site.node]
        found = set[int]().union(*(ramps[s] for s in site.src))
        if isinstance(node, Const):
            access = nest.accesses[site.leaf]
            found = {p for p, axis in enumerate(nest.axes) if axis.is_reduced and access.depends_on(axis.var)}
        elif isinstance(node, Reduce):
            gone |= found
            found = set()
        elif isinstance(node, Elementwise) and node.op not in COMPARED:
            found = set()
        ramps.append(found)
    return gone


def _is_product(kernel: Kernel, node: Reduce) -> bool:
    operand = kernel.nodes[node.src[0]]
    return isinstance(operand, Elementwise) and operand.op == "MUL" and node.op == "REDUCE_SUM"


def _stride(nest: Nest, leaf: int, position: int) -> int | None:
    stride = nest.accesses[leaf].stride(nest.axes[position].var, ignoring_validity=True)
    return stride.lo if stride is not None and stride.lo == stride.hi else None


def pieces(extent: int) -> list[int]:
    """The widths of the vectors that make up an extent."""
    result = []
    for width in WIDTHS:
        result += [width] * (extent // width)
        extent %= width
    return result


def values_of(work: Work, plan: Plan) -> int:
    """How many values a program has under a plan, before lanes become vectors."""
    total = 0
    for site, times in work.sites.items():
        for p in site.varies:
            times *= plan.expanded.get(p, 1)
        total += times
    return total


def cost_of(work: Work, plan: Plan) -> Cost:
    """What a nest costs under a plan."""
    return _Estimate(work, plan).cost()


class Costs:
    """What one nest costs under many plans: a search comes to the same plan by several ways, and each is worked out once."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._known: dict[tuple[frozenset[tuple[int, int]], tuple[tuple[int, int], ...]], Cost] = {}

    def of(self, plan: Plan) -> Cost:
        key = frozenset(plan.expanded.items()), tuple(plan.lanes.items())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = cost_of(self.work, plan)
        return known


class _Estimate:
    def __init__(self, work: Work, plan: Plan) -> None:
        self.work = work
        self.expanded = plan.expanded
        self.lanes = plan.lanes
        self.items = 1.0
        for p in work.parallel:
            self.items *= work.extents[p] / plan.expanded.get(p, 1)

    def cost(self) -> Cost:
        arithmetic = memory = 0.0
        for site, times in self.work.sites.items():
            count = self._count(site.varies)
            if site.is_access:
                reach = self._reach(site)
                count *= reach.distinct
                memory += times * self._memory(site, count, reach)
            arithmetic += times * self._instructions(site, count)
        for chain in self.work.chains:
            along = self._along(chain.over)
            if along is not None:
                arithmetic += self._count(chain.varies) * self.lanes[along] * FOLDED
        return Cost(arithmetic, self._waiting(), memory, self.items * WORK_GROUP)

    def _count(self, varies: frozenset[int]) -> float:
        """How many elements are computed: an axis it does not vary along costs a turn per work-item, its expanded digits share one."""
        work, count = self.work, 1.0
        for p in varies:
            count *= work.extents[p]
        for p in work.parallel:
            if p not in varies:
                count *= work.extents[p] / self.expanded.get(p, 1)
        return count

    def _reach(self, site: Site) -> Reach:
        """Where an access's expanded elements lie: windows overlap, and rows begin in the line where others end."""
        every = span = unit = 1
        distinct = run = 1.0
        near = True
        for stride, extent in sorted((abs(by), self.expanded[p]) for p, by in site.strides if by and self.expanded.get(p, 1) > 1):
            unit = unit if every > 1 else stride
            overlaps = stride % unit == 0 and stride // unit <= distinct
            grown = distinct + stride // unit * (extent - 1) if overlaps else distinct * extent
            near = near and stride * site.itemsize <= span * site.itemsize + LINE
            if near:
                run *= grown / distinct
                span += stride * (extent - 1)
            distinct = grown
            every *= extent
        return Reach(distinct / every, run, span)

    def _gate(self, site: Site) -> float:
        """How many times an instruction an access of a single element takes: gates stay unless the axes they name are taken apart."""
        return GATED if any(self.expanded.get(p, 1) < self.work.extents[p] for p in site.masked) else 1.0

    def _along(self, varies: frozenset[int]) -> int | None:
        """The axis that the lanes of a site lie along."""
        return next((p for p in self.lanes if p in varies), None)

    def _wide(self, lanes: int, itemsize: int) -> float:
        """Instructions for the lanes of one vector."""
        return sum(max(1.0, width * itemsize / REGISTER) for width in pieces(lanes))

    def _instructions(self, site: Site, count: float) -> float:
        each = STORE if site.is_store else INSTRUCTION
        along = self._along(site.varies)
        if along is None:
            return count * (site.alone or each * (self._gate(site) if site.masked else 1.0))
        if site.is_access and (stride := dict(site.strides)[along]) != 1:
            if stride and any(by == 1 and self.expanded.get(p, 1) >= stride for p, by in site.strides):  # a window closes the gaps
                return count / self.lanes[along] * (self._wide(self.lanes[along], site.itemsize) * each + SHUFFLE)
            return count * (each + INSERT) * self._gate(site)
        if site.in_lane:
            return count * site.in_lane * (1 + NARROW / self.lanes[along])
        windows = [p for p, stride in site.strides if stride == 1 and p != along]
        if along in site.masked and any(self.expanded.get(p, 1) < self.work.extents[p] for p in windows):
            each *= MASKED
        return count / self.lanes[along] * self._wide(self.lanes[along], site.itemsize) * each

    def _waiting(self) -> float:
        """Turns of loops, chains that wait for themselves, registers that do not fit."""
        total = 0.0
        for chain in self.work.chains:
            turns = self._turns(chain)
            registers = terms = 1.0
            for p in chain.varies:
                registers *= self.expanded.get(p, 1)
            for p in chain.over:
                terms *= self.expanded.get(p, 1)
            along = self._along(chain.over | chain.varies)
            if along is not None:
                lanes = self.lanes[along]
                if along in chain.over:
                    registers, terms = registers * lanes, terms / lanes
                registers *= self._wide(lanes, chain.itemsize) / lanes
            busy = terms * registers * INSTRUCTION
            excess = max(0.0, registers + (self._held(chain) if terms > 1 and along is not None else 0.0) - REGISTERS)
            total += turns * (TURN + max(0.0, terms * LATENCY - busy) + excess * SPILL * (1 + terms) / 2)
        return total

    def _held(self, chain: Chain) -> float:
        """Registers of operands that several sums take, where terms are side by side: each is held from the first sum to the last.

        Whole vectors are read from memory each time; scalars in every lane, and rows that are shifted between their masks, are not.
        """
        total = 0.0
        for site in self.work.sites:
            along = self._along(site.varies)
            if not site.is_access or site.varies.isdisjoint(chain.over):
                continue
            if along is not None and not (along in site.masked and self.lanes[along] == self.work.extents[along]):
                continue
            if any(self.expanded.get(p, 1) > 1 for p in chain.varies if p not in site.varies and p not in self.lanes):
                registers = 1.0 if along is None else self._wide(self.lanes[along], site.itemsize) / self.lanes[along]
                for p in site.varies:
                    registers *= self.expanded.get(p, 1)
                total += registers
        return total

    def _turns(self, chain: Chain) -> float:
        turns = self.items
        for p in chain.over:
            turns *= self.work.extents[p] / self.expanded.get(p, 1)
        for p in chain.varies:
            if p not in self.work.parallel:
                turns *= self.work.extents[p] / self.expanded.get(p, 1)
        return turns

    def _memory(self, site: Site, count: float, reach: Reach) -> float:
        """Bytes from beyond the first cache, and stretches that are begun."""
        work = self.work
        whole = own = 1.0
        for p in site.varies:
            whole *= work.extents[p]
            own *= self.expanded.get(p, 1) if p in work.parallel else work.extents[p]
        whole, own = whole * site.itemsize, own * site.itemsize
        shared = bool(work.parallel) and work.parallel[-1] not in site.varies  # the next work-item reads the same
        near = own if shared else whole
        rate = 0.0 if near <= L1 else FROM_L2 if near <= L2 else FROM_MEMORY
        streams, apart = 1, 0
        for p, stride in site.strides:
            if stride and abs(stride) > 1 and self.expanded.get(p, 1) > 1:
                streams *= self.expanded[p]
                apart = abs(stride) * site.itemsize
        bytes_moved = max(whole, count * site.itemsize if near > L1 else 0.0)
        begun = count / reach.run * STRETCH if whole > L2 and not self._runs_on(site, reach) else 0.0
        met = count * CONFLICT if streams > WAYS and apart and apart % PAGE == 0 else 0.0
        return bytes_moved * rate + begun + met

    def _runs_on(self, site: Site, reach: Reach) -> bool:
        """Whether the innermost loop around it, or the next work-item, goes on where this one ends."""
        for p, stride in reversed(site.strides):
            if self.work.extents[p] > (taken := self.expanded.get(p, 1)):
                return stride is not None and abs(stride) * taken * site.itemsize <= reach.span * site.itemsize + LINE
        return False
