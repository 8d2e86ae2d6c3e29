"""The product a matrix instruction takes: fragments of the operands, the instructions, and the result as elements of the nest.

The axes of the nest spell the result as the instruction leaves it. An operand is held by other lanes' numbers, so its accesses are made
over other values: each cut axis becomes those bits of lanes and of the operand's own elements that hold its digits there, or nothing where
the operand does not move along it. Everything else of the nest means what it always means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.device import DeviceOptions
from core.dtypes import DTYPES
from core.fragments import Bit, Dim, Fragment
from core.index import TRUE, add, all_of, conjuncts, floordiv, mod, number, scale
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant, make
from core.kernel.leaves import axis_value
from core.kernel.node import Load
from core.lower.elements import Elements, joined, numbers, points, size_of, strides_of
from core.lower.memory import Memory
from core.schedule.axis import OF_OUTPUT, Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.tile import Run, Tile, runs

Record = Callable[[int, tuple[Value, ...]], None]


@dataclass(frozen=True, slots=True)
class _Source:
    """Something whose value is bits [first, first + length) of a lane's or an element's number."""

    letter: str
    first: int
    length: int
    value: Value


class Product:
    """The tile of one nest. lanes: what its axes stand for on the launch. memory: that of the nest, whose order of accesses is shared."""

    def __init__(self, nest: Nest, tile: Tile, device: DeviceOptions, lanes: Mapping[Value, Value], memory: Memory, record: Record) -> None:
        self.nest, self.tile, self.record = nest, tile, record
        self.outer = tuple(a for a in nest.expanded if a not in tile.axes)
        self.launch = lanes
        self.lanes = [_Source("w", p.run.first, p.run.length, lanes[p.axis.var]) for p in tile.lanes]
        self.parts = (self._operand(tile.layout.a, device, memory), self._operand(tile.layout.b, device, memory))

    @property
    def replaced(self) -> frozenset[int]:
        """Sites that are computed for the reduce alone, and so not at all."""
        sites = self.nest.sites
        needed: set[int] = set()
        stack = list(sites.outputs)
        while stack:
            at = stack.pop()
            if at not in needed:
                needed.add(at)
                stack.extend(() if sites.sites[at].instance >= 0 else sites.sites[at].src)
        return frozenset(range(len(sites.sites))) - needed

    def result(self, loops: list[Value], mapping: Mapping[Value, Value], accumulator: int) -> Elements:
        """The reduce's values. loops: its ranges, outermost first; mapping: what its class's axes are in them. accumulator: the number of
        the first; one more for each fragment.
        """
        layout = self.tile.layout
        inside = self.nest.inside[0]
        a, b = (
            part.read(self.nest, site, mapping, inside, self.record)
            for part, site in zip(self.parts, (self.tile.a, self.tile.b), strict=True)
        )
        unrolled = tuple(axis for axis in self.outer if axis.kind is AxisKind.UNROLL)
        kept = tuple(axis for axis in joined(self.outer, [a, b]) if axis not in unrolled)
        dtype = DTYPES[layout.core.accumulator]
        start = constant(0, dtype, layout.c.elements)
        pairs = list(zip(*(part.fragments(x, (*unrolled, *kept)) for part, x in zip(self.parts, (a, b), strict=True)), strict=True))
        held: list[Value] = []
        for first in range(0, len(pairs), size_of(unrolled)):
            register = make(Op.ACC, dtype, (start, *loops), accumulator + len(held), layout.c.elements) if loops else None
            total = start if register is None else register
            for pair in pairs[first : first + size_of(unrolled)]:
                total = make(Op.MMA, dtype, (*pair, total), layout.name, layout.c.elements)
            held.append(total if register is None else make(Op.UPDATE, dtype, (register, total), None, layout.c.elements))
        return self._elements(kept, held)

    def _elements(self, kept: tuple[Axis, ...], held: list[Value]) -> Elements:
        """Fragments of the result as elements over the nest's own axes."""
        lowest = {part.axis: 1 << part.run.first for part in self.tile.elements}
        axes = tuple(a for a in self.nest.expanded if a in lowest or a in kept)
        places = zip(numbers(axes, strides_of(kept)), numbers(axes, lowest), strict=True)
        return Elements(axes, tuple([make(Op.EXTRACT, held[n].dtype, (held[n],), element) for n, element in places]))

    # ---- an operand --------------------------------------------------------------------------------------------------------

    def _operand(self, fragment: Fragment, device: DeviceOptions, memory: Memory) -> _Operand:
        """How an operand is held: its own element axes, and what each cut axis stands for in its accesses."""
        found: list[tuple[Run, Axis]] = []
        for dim, bits in fragment.bits.items():
            for run in runs(dim, bits):
                if run.letter == "e":
                    extent = 1 << run.length
                    var = axis_value(self.nest.next_number + len(found), extent)
                    found.append((run, Axis(var, extent, AxisKind.UPCAST, OF_OUTPUT, frozenset())))
        found.sort(key=lambda pair: pair[0].first)
        sources = [*self.lanes, *(_Source("e", run.first, run.length, axis.var) for run, axis in found)]
        own = tuple(axis for _, axis in found)
        mapping = dict(self.launch)
        for part in self.tile.parts:
            mapping[part.axis.var] = _digits(fragment.bits.get(part.run.dim, ()), part.run, sources)
        reads = Memory(self.nest, device, (*own, *self.outer))
        reads.loaded = memory.loaded
        return _Operand(fragment, own, mapping, reads)


@dataclass(frozen=True, slots=True)
class _Operand:
    """own: axes that number the elements of a fragment, lowest bits first. mapping: what the launch's and the tile's axes stand for."""

    layout: Fragment
    own: tuple[Axis, ...]
    mapping: Mapping[Value, Value]
    memory: Memory

    def read(self, nest: Nest, at: int, loops: Mapping[Value, Value], inside: Value, record: Record) -> Elements:
        """The values at a site, a load's or a converted one's, zero where the reduce is only padded."""
        site = nest.sites.sites[at]
        load = site if site.leaf >= 0 else nest.sites.sites[site.src[0]]
        node = nest.kernel.nodes[load.node]
        assert isinstance(node, Load)
        held = self.memory.read(load, node, [], Substitution({**self.mapping, **loops}))
        record(load.node, held.values)
        if site is not load:
            held = Elements(held.axes, tuple(cast(x, nest.kernel.nodes[site.node].dtype) for x in held.values))
            record(site.node, held.values)
        access = nest.accesses[load.leaf]
        free = access.index.free | access.valid.free
        open_ = all_of(c for c in conjuncts(inside) if free.isdisjoint(c.free))  # what it moves along, its own gate knows
        return held if open_ is TRUE else self._gated(held, Substitution({**self.mapping, **loops})(open_))

    def _gated(self, held: Elements, condition: Value) -> Elements:
        axes = tuple(a for a in self.memory.expanded if a in held.axes or a.var in condition.free)
        values = []
        for x, digits in zip(held.over(axes), points(axes), strict=True):
            here = Substitution({a.var: number(digits[a]) for a in axes})(condition)
            values.append(alu(Op.WHERE, here, x, constant(0, x.dtype)) if here is not TRUE else x)
        return Elements(axes, tuple(values))

    def fragments(self, held: Elements, around: tuple[Axis, ...]) -> list[Value]:
        """The fragment at each point of the axes around the tile."""
        values, size = held.over((*self.own, *around)), size_of(self.own)
        if size == 1:
            return list(values)
        return [make(Op.VECTOR, values[n].dtype, tuple(values[n : n + size]), None, size) for n in range(0, len(values), size)]


def _digits(bits: tuple[Bit, ...], run: Run, sources: list[_Source]) -> Value:
    """What bits [weight, weight + length) of a coordinate are, given who holds which bit; 0 where an operand has no such coordinate."""
    total: Value = number(0)
    for part in runs(_ANY, bits[run.weight : run.weight + run.length]):
        first, weight = part.first, part.weight
        while first < part.first + part.length:  # from one source after the other
            source = next(s for s in sources if s.letter == part.letter and s.first <= first < s.first + s.length)
            length = min(source.first + source.length, part.first + part.length) - first
            value = floordiv(source.value, 1 << (first - source.first))
            if first + length < source.first + source.length:
                value = mod(value, 1 << length)
            total = add(total, scale(value, 1 << weight))
            first, weight = first + length, weight + length
    return total


_ANY: Dim = "m"  # which coordinate is no matter here
