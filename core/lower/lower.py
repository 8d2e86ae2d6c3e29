"""A nest as a raw graph: the stores it ends in, and how it is launched. A pure function; lowering twice gives the same graph.

Sites are visited operands first. Output axes are launch indices or loops for all sites alike; the axes of a reduce class are, for each
instance of a reduce, loops of its own. Expanded axes make a site a list of values (`Elements`). Where a value is computed follows from
what it depends on, so nothing here says "before the loop": `core.linear.order` finds it.

A mid axis is a lane while a grouped reduce runs and an expanded axis afterwards, so a site may be needed both ways (`Phase`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.device import DeviceOptions
from core.dtypes import VOID
from core.errors import LimitExceeded
from core.index import TRUE, less, number
from core.index.linear import total
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant, make, sink
from core.kernel.leaves import most
from core.kernel.node import Const, Elementwise, Load, Reduce, Store
from core.lower.axes import Launch, launch_of, loop_over
from core.lower.elements import Elements, joined, points, size_of
from core.lower.grouped import Slots
from core.lower.matrix import Product
from core.lower.memory import Memory
from core.lower.phase import Phase, phases_needed
from core.lower.provenance import Provenance
from core.lower.words import ELEMENTWISE, REDUCES, identity
from core.schedule.axis import LEAST_ABREAST, MOST_ABREAST, Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.options.base import slot_dtype
from core.schedule.running import Running, running
from core.schedule.sites import OUTPUT, Instance, Site


@dataclass(frozen=True, slots=True)
class Lowered:
    """root: the SINK. global_size, local_size: as the program answers them; None where there is no launch or the runtime chooses.

    guard: must hold for a work-item to do anything. provenance: nodes of the kernel each value stems from.
    """

    root: Value
    global_size: tuple[Value, Value, Value] | None
    local_size: tuple[Value, Value, Value] | None
    guard: Value
    provenance: Mapping[Value, tuple[int, ...]]


def lower(nest: Nest, device: DeviceOptions, *, called: bool, sized: bool = False, micro_op_limit: int) -> Lowered:
    """The raw graph of a nest. called: the program is a plain function (no launch). sized: no runtime can choose a group's size.

    Raises LimitExceeded.
    """
    return _Lowering(nest, launch_of(nest, device, called, sized), device, micro_op_limit).run()


class _Lowering:
    def __init__(self, nest: Nest, launch: Launch, device: DeviceOptions, micro_op_limit: int) -> None:
        self.nest = nest
        self.limit = micro_op_limit
        self.has_vectors = device.device_class == "cpu" and device.supports_float4
        self.launch = launch
        self.mids = nest.of_kind(AxisKind.MID)
        self.order = (*nest.expanded, *self.mids)
        self.grouped = nest.of_kind(AxisKind.GROUP)
        self.needed = phases_needed(nest)
        self.provenance = Provenance()
        self.loops: dict[int, tuple[list[Value], dict[Value, Value]]] = {}
        self.substitutions: dict[tuple[Phase, tuple[int, ...]], Substitution] = {}
        self.memory = Memory(nest, device, self.order)
        self.slots = Slots(nest, device, self.launch, self.order)
        self.only_one = self._one_lane()
        self.accumulators = 0
        self.made = 0
        self.product = Product(nest, nest.tile, device, self.launch.mapping, self.memory, self._record) if nest.tile is not None else None
        self.running: dict[int, Running | None] = {}
        self.carried: list[Value] = []  # updates of registers that output loops carry

    def run(self) -> Lowered:
        done: list[dict[Phase, Elements]] = []
        pending: list[tuple[Site, Store, list[Elements]]] = []
        replaced = self.product.replaced if self.product is not None else frozenset()
        for number_, site in enumerate(self.nest.sites.sites):
            node = self.nest.kernel.nodes[site.node]
            results: dict[Phase, Elements] = {}
            if number_ in replaced:
                pass
            elif isinstance(node, Reduce):
                results = self._reduce(number_, site, node, done[site.src[0]])
            else:
                for phase in self.needed[number_]:
                    operands = [done[s][phase] for s in site.src]
                    match node:
                        case Load() | Const():
                            alone = (
                                (self.only_one,) if phase is Phase.AFTER and self.only_one is not None and isinstance(node, Load) else ()
                            )
                            results[phase] = self.memory.read(site, node, operands, self._substitution(site, phase), alone)
                        case Elementwise():
                            results[phase] = self._elementwise(node, operands)
                        case Store():
                            pending.append((site, node, operands))
            for elements in results.values():
                self._record(site.node, elements.values)
            done.append(results)
        stores: list[Value] = []
        if any(a.extent == 0 and not a.is_reduced for a in self.nest.axes):
            pending = []  # an output without points: nothing is computed
        around = (*self.launch.loops, *((self.only_one,) if self.only_one is not None else ()), *self.carried)
        if any(most(axis.extent) == 0 for axis in self.nest.axes if not axis.is_reduced):
            pending.clear()  # no output has an element
        for site, store, operands in pending:  # after every load: loads of a buffer come before its stores
            new = self.memory.write(site, store, operands, self._substitution(site, Phase.AFTER), around)
            self._record(site.node, tuple(new))
            stores.extend(new)
        return Lowered(sink(tuple(stores)), self.launch.global_size, self.launch.local_size, self.launch.guard, self.provenance)

    def _record(self, row: int, values: tuple[Value, ...]) -> None:
        self.made += len(values)
        if self.made > self.limit:
            raise LimitExceeded("/ast", limit="micro_ops", needed=f"more than {self.limit}", allowed=self.limit)
        self.provenance.note(row, values)

    def _one_lane(self) -> Value | None:
        """Of a grouped nest: the region of the lanes that store, those whose group and mid indices are all 0."""
        lanes = [self.launch.mapping[a.var] for a in (*self.grouped, *self.mids)]
        return make(Op.IF, VOID, (less(total(lanes), number(1)),)) if lanes else None

    # ---- what axes stand for ---------------------------------------------------------------------------------------------

    def _substitution(self, site: Site, phase: Phase) -> Substitution:
        """The atoms of the nest at a site: launch indices, output loops, and the loops of the instances around it."""
        around = tuple(sorted({b for b in site.binding if b is not None and b != OUTPUT}))
        found = self.substitutions.get((phase, around))
        if found is None:
            mapping = dict(self.launch.mapping)
            if phase is Phase.AFTER:
                for axis in self.mids:
                    del mapping[axis.var]
            for instance in around:
                mapping.update(self._loops_of(instance)[1])
            found = self.substitutions[phase, around] = Substitution(mapping)
        return found

    def _own(self, instance: Instance, *kinds: AxisKind) -> list[Axis]:
        """The axes of the nest that an instance runs over, of some kinds."""
        return [
            a
            for a in self.nest.axes
            if a.reduce_class == instance.reduce_class and a.kind in kinds and not a.wires.isdisjoint(instance.axes)
        ]

    def _loops_of(self, number_: int) -> tuple[list[Value], dict[Value, Value]]:
        """The ranges of an instance, outermost first, and what its class's atoms stand for in them."""
        if number_ not in self.loops:
            loops: list[Value] = []
            mapping: dict[Value, Value] = {}
            along = self._running(number_)
            if along is not None:  # the last term of its window, in each turn of the output loop
                self.loops[number_] = [self.launch.mapping[along.parts[0].var]], {along.reduced.var: number(along.reduced.size - 1)}
                return self.loops[number_]
            for axis in self._own(self.nest.sites.instances[number_], AxisKind.REDUCE):
                loop = loop_over(axis.extent, number_, "reduce", self.nest.axes.index(axis))
                loops.append(loop)
                if axis.var.op is not Op.CONST:
                    mapping[axis.var] = loop
            self.loops[number_] = loops, mapping
        return self.loops[number_]

    # ---- nodes -----------------------------------------------------------------------------------------------------------

    def _elementwise(self, node: Elementwise, operands: list[Elements]) -> Elements:
        axes = joined(self.order, operands)
        every = list(zip(*[o.over(axes) for o in operands], strict=True))
        made = {src: _apply(node, src) for src in dict.fromkeys(every)}
        return Elements(axes, tuple([made[src] for src in every]))

    def _reduce(self, number_: int, site: Site, node: Reduce, operand: dict[Phase, Elements]) -> dict[Phase, Elements]:
        instance = self.nest.sites.instances[site.instance]
        if not instance.axes:
            return {phase: operand[phase] for phase in self.needed[number_]}
        if self.product is not None:
            return {Phase.AFTER: self._multiplied(site, node, self.product)}
        groups = self._own(instance, AxisKind.GROUP)
        if not groups:
            return {phase: self._summed(site, node, instance, operand[phase]) for phase in self.needed[number_]}
        partial = self._summed(site, node, instance, operand[Phase.INSIDE])
        shared = self.slots.publish(site.instance, slot_dtype(node.dtype), partial)
        results = {}
        for phase in self.needed[number_]:
            tokens = (shared.barrier,) if self._needed_by_all(number_) or self.only_one is None else (shared.barrier, self.only_one)
            loops = [loop_over(a.extent, site.instance, "reduce", len(self.nest.axes) + self.nest.axes.index(a)) for a in groups]
            parts = self.slots.collect(shared, partial, dict(zip(groups, loops, strict=True)), phase, tokens)
            values = tuple(cast(self._folded(node, loops, [cast(v, node.dtype)]), node.dtype) for v in parts.values)
            results[phase] = Elements(parts.axes, values)
        return results

    def _needed_by_all(self, number_: int) -> bool:
        """Whether a reduce's total is needed under another grouped reduce: then by every lane."""
        return Phase.INSIDE in self.needed[number_]

    def _multiplied(self, site: Site, node: Reduce, product: Product) -> Elements:
        """The reduce by a matrix instruction."""
        if any(a.extent == 0 for a in self.nest.of_kind(AxisKind.REDUCE)):
            return Elements((), (constant(identity(node.op, node.dtype), node.dtype),))
        loops, mapping = self._loops_of(site.instance)
        result = product.result(loops, mapping, self.accumulators)
        self.accumulators += len(result.values)
        return result

    def _summed(self, site: Site, node: Reduce, instance: Instance, operand: Elements) -> Elements:
        """What a work-item reduces: its loops, and its unrolled elements."""
        own = self._own(instance, AxisKind.GROUP, AxisKind.REDUCE, AxisKind.UNROLL)
        start = constant(identity(node.op, node.dtype), node.dtype)
        if any(a.extent == 0 for a in own):
            return Elements((), (start,))
        along = self._running(site.instance)
        if along is not None:
            return self._run(node, operand, along, self._loops_of(site.instance)[0])
        unrolled = [a for a in own if a.kind is AxisKind.UNROLL]
        kept = tuple(a for a in operand.axes if a not in unrolled)
        loops, mapping = self._loops_of(site.instance)
        inside = self.nest.inside[instance.reduce_class]
        if inside is not TRUE:
            others = {
                a.var: number(0) for a in self.nest.axes if a.reduce_class == instance.reduce_class and a.wires.isdisjoint(instance.axes)
            }
            inside = Substitution({**self.launch.mapping, **mapping, **others})(inside)  # of the class's axes it runs over its own only
        abreast = self._abreast(unrolled, kept, loops)
        if abreast is not None:
            unrolled = [*(a for a in unrolled if a is not abreast), abreast]
        values = operand.over((*unrolled, *kept))
        count = size_of(unrolled)
        chains = [values[k : k + count] for k in range(0, len(values), count)]
        if inside is not TRUE:
            conditions = [Substitution({a.var: number(d) for a, d in digits.items()})(inside) for digits in points(unrolled)]
            chains = [[_where(c, v, start) for c, v in zip(conditions, chain, strict=True)] for chain in chains]
        each = count // abreast.size if abreast is not None else count
        registers = [[self._folded(node, loops, chain[k : k + each]) for k in range(0, count, each)] for chain in chains]
        return Elements(kept, tuple([cast(_halved(REDUCES[node.op], parts), node.dtype) for parts in registers]))

    def _running(self, number_: int) -> Running | None:
        if number_ not in self.running:
            self.running[number_] = running(self.nest, number_)
        return self.running[number_]

    def _run(self, node: Reduce, operand: Elements, along: Running, loops: list[Value]) -> Elements:
        """A sum that runs along an output loop: a register of that loop, and what it holds after each term of a turn."""
        dtype = slot_dtype(node.dtype)
        within = along.parts[:0:-1]  # the fastest part first: in the order of the axis
        order = (*within, *(a for a in operand.axes if a not in within))
        results: list[Value] = []
        count = size_of(within)
        values = operand.over(order)
        for first in range(0, len(values), count):
            register = make(Op.ACC, dtype, (constant(identity(node.op, dtype), dtype), *loops), self.accumulators)
            self.accumulators += 1
            total: Value = register
            for term in values[first : first + count]:
                total = alu(REDUCES[node.op], cast(term, dtype), total)
                results.append(cast(total, node.dtype))
            self.carried.append(make(Op.UPDATE, dtype, (register, total)))
        self.made += len(results)
        return Elements(operand.axes, tuple(Elements(order, tuple(results)).over(operand.axes)))

    def _abreast(self, unrolled: list[Axis], kept: tuple[Axis, ...], loops: list[Value]) -> Axis | None:
        """An unrolled axis whose terms have a register each while the loops run, so that they are lanes of one vector register."""
        if not self.has_vectors or not loops:
            return None
        wide = [a for a in unrolled if a.size >= LEAST_ABREAST and a.size * size_of(kept) <= MOST_ABREAST]
        return max(wide, key=lambda a: a.size, default=None)

    def _folded(self, node: Reduce, loops: list[Value], terms: Sequence[Value]) -> Value:
        """All terms of one accumulator: one update per turn, or no accumulator where no loop is left; as wide as it adds up.

        16-bit floats add up in 32 bits.
        """
        op = REDUCES[node.op]
        dtype = node.dtype if op is Op.MAX else slot_dtype(node.dtype)
        accumulator = None
        if loops:
            start = constant(identity(node.op, dtype), dtype)
            accumulator = make(Op.ACC, dtype, (start, *loops), self.accumulators)
            self.accumulators += 1
        result = accumulator
        for term in terms:
            wide = cast(term, dtype)
            result = wide if result is None else alu(op, wide, result)
        assert result is not None
        self.made += len(terms)
        if accumulator is not None:
            result = make(Op.UPDATE, dtype, (accumulator, result))
        return result


def _halved(op: Op, values: list[Value]) -> Value:
    """All values combined, the upper half with the lower as long as there are two."""
    while len(values) > 1:
        half = (len(values) + 1) // 2
        values = [alu(op, values[k + half], v) if k + half < len(values) else v for k, v in enumerate(values[:half])]
    return values[0]


def _where(condition: Value, value: Value, otherwise: Value) -> Value:
    return value if condition is TRUE else make(Op.WHERE, value.dtype, (condition, value, otherwise))


def _apply(node: Elementwise, operands: tuple[Value, ...]) -> Value:
    if node.op == "CAST":
        return cast(operands[0], node.dtype)
    if node.op == "BITCAST":
        return operands[0] if operands[0].dtype is node.dtype else make(Op.BITCAST, node.dtype, (operands[0],))
    return alu(ELEMENTWISE[node.op], *operands)
