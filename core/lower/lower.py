"""A nest as a raw graph: the stores it ends in, and how it is launched. A pure function; lowering twice gives the same graph.

Sites are visited operands first. Output axes are launch indices or loops for all sites alike; the axes of a reduce class are, for each
instance of a reduce, loops of its own. Expanded axes make a site a list of values (`Elements`). Where a value is computed follows from
what it depends on, so nothing here says "before the loop": `core.linear.order` finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.device import DeviceOptions
from core.dtypes import INDEX, DType
from core.errors import LimitExceeded
from core.index import TRUE, number
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make, sink
from core.kernel.leaves import Extent, as_value, most
from core.kernel.node import Const, Elementwise, Load, Reduce, Store
from core.lower.elements import Elements, joined, points
from core.lower.launch import map_axes
from core.lower.memory import Memory
from core.lower.words import ELEMENTWISE, REDUCES, identity
from core.schedule.axis import AxisKind
from core.schedule.nest import Nest
from core.schedule.sites import OUTPUT, Site


@dataclass(frozen=True, slots=True)
class Lowered:
    """root: the SINK. global_size, local_size: as the program answers them; None where there is no launch or the runtime chooses.

    guard: must hold for a work-item to do anything. provenance: nodes of the kernel each value stems from.
    """

    root: Value
    global_size: tuple[Value, Value, Value] | None
    local_size: tuple[Value, Value, Value] | None
    guard: Value
    provenance: dict[Value, tuple[int, ...]]


@dataclass(slots=True)
class _Launch:
    mapping: dict[Value, Value] = field(default_factory=dict)
    loops: list[Value] = field(default_factory=list)
    global_size: tuple[Value, Value, Value] | None = None
    local_size: tuple[Value, Value, Value] | None = None
    guard: Value = TRUE


def lower(nest: Nest, device: DeviceOptions, *, called: bool, micro_op_limit: int) -> Lowered:
    """The raw graph of a nest. called: the program is a plain function (no launch). Raises LimitExceeded."""
    return _Lowering(nest, device, called, micro_op_limit).run()


class _Lowering:
    def __init__(self, nest: Nest, device: DeviceOptions, called: bool, micro_op_limit: int) -> None:
        self.nest = nest
        self.limit = micro_op_limit
        self.launch = _launch(nest, device, called)
        self.expanded = nest.expanded
        self.provenance: dict[Value, list[int]] = {}
        self.instance_loops: dict[int, list[Value]] = {}
        self.instance_mapping: dict[int, dict[Value, Value]] = {}
        self.substitutions: dict[tuple[int, ...], Substitution] = {}
        self.memory = Memory(nest, device, self.launch.loops)
        self.accumulators = 0
        self.made = 0

    def run(self) -> Lowered:
        done: list[Elements] = []
        pending: list[tuple[Site, Store, list[Elements]]] = []
        for site in self.nest.sites.sites:
            node = self.nest.kernel.nodes[site.node]
            operands = [done[s] for s in site.src]
            match node:
                case Load() | Const():
                    result = self.memory.read(site, node, operands, self._substitution(site))
                case Store():
                    pending.append((site, node, operands))
                    result = Elements((), ())
                case Elementwise():
                    result = self._elementwise(node, operands)
                case Reduce():
                    result = self._reduce(site, node, operands[0])
            self._record(site.node, result.values)
            done.append(result)
        stores: list[Value] = []
        for site, store, operands in pending:  # after every load: loads of a buffer come before its stores
            new = self.memory.write(site, store, operands, self._substitution(site))
            self._record(site.node, new)
            stores.extend(new)
        launch = self.launch
        provenance = {value: tuple(rows) for value, rows in self.provenance.items()}
        return Lowered(sink(tuple(stores)), launch.global_size, launch.local_size, launch.guard, provenance)

    def _record(self, row: int, values: tuple[Value, ...] | list[Value]) -> None:
        self.made += len(values)
        if self.made > self.limit:
            raise LimitExceeded("/ast", limit="micro_ops", needed=f"more than {self.limit}", allowed=self.limit)
        for value in values:
            rows = self.provenance.setdefault(value, [])
            if row not in rows:
                rows.append(row)

    # ---- what axes stand for ---------------------------------------------------------------------------------------------

    def _substitution(self, site: Site) -> Substitution:
        """The atoms of the nest at a site: launch indices, output loops, and the loops of the instances around it."""
        around = tuple(sorted({b for b in site.binding if b is not None and b != OUTPUT}))
        found = self.substitutions.get(around)
        if found is None:
            mapping = dict(self.launch.mapping)
            for instance in around:
                mapping.update(self._loops_of(instance)[1])
            found = self.substitutions[around] = Substitution(mapping)
        return found

    def _loops_of(self, number_: int) -> tuple[list[Value], dict[Value, Value]]:
        """The ranges of an instance, outermost first, and what its class's atoms stand for in them."""
        if number_ not in self.instance_loops:
            instance = self.nest.sites.instances[number_]
            loops: list[Value] = []
            mapping: dict[Value, Value] = {}
            for position, axis in enumerate(self.nest.axes):
                if axis.reduce_class == instance.reduce_class and axis.kind is AxisKind.REDUCE and not axis.wires.isdisjoint(instance.axes):
                    loop = loop_over(axis.extent, number_ * 64 + position, "reduce")
                    loops.append(loop)
                    if axis.var.op is not Op.CONST:
                        mapping[axis.var] = loop
            self.instance_loops[number_], self.instance_mapping[number_] = loops, mapping
        return self.instance_loops[number_], self.instance_mapping[number_]

    # ---- nodes -----------------------------------------------------------------------------------------------------------

    def _elementwise(self, node: Elementwise, operands: list[Elements]) -> Elements:
        axes = joined(self.expanded, operands)
        if not axes:
            return Elements((), (_apply(node, [o.values[0] for o in operands]),))
        return Elements(axes, tuple(_apply(node, [o.at(digits) for o in operands]) for digits in points(axes)))

    def _reduce(self, site: Site, node: Reduce, operand: Elements) -> Elements:
        instance = self.nest.sites.instances[site.instance]
        if not instance.axes:
            return operand
        own = [a for a in self.nest.axes if a.reduce_class == instance.reduce_class and not a.wires.isdisjoint(instance.axes)]
        op, dtype = REDUCES[node.op], node.dtype
        start = constant(identity(node.op, dtype), dtype)
        if any(a.extent == 0 for a in own):
            return Elements((), (start,))
        unrolled = [a for a in own if a.kind is AxisKind.UNROLL]
        kept = tuple(a for a in operand.axes if a not in unrolled)
        loops, mapping = self._loops_of(site.instance)
        inside = self.nest.inside[instance.reduce_class]
        if inside is not TRUE:
            inside = Substitution({**self.launch.mapping, **mapping})(inside)
        results = []
        for digits in points(kept):
            terms = []
            for inner in points(unrolled):
                here = {**digits, **inner}
                term = operand.at(here)
                if inside is not TRUE:
                    condition = Substitution({a.var: number(d) for a, d in inner.items()})(inside)
                    if condition is not TRUE:
                        term = make(Op.WHERE, dtype, (condition, term, start))
                terms.append(term)
            results.append(self._folded(op, dtype, start, loops, terms))
        return Elements(kept, tuple(results))

    def _folded(self, op: Op, dtype: DType, start: Value, loops: list[Value], terms: list[Value]) -> Value:
        """All terms of one accumulator: one update per turn, or no accumulator where no loop is left."""
        if not loops:
            result = terms[0]
            for term in terms[1:]:
                result = alu(op, term, result)
            return result
        accumulator = make(Op.ACC, dtype, (start, *loops), self.accumulators)
        self.accumulators += 1
        result = accumulator
        for term in terms:
            result = alu(op, term, result)
        return make(Op.UPDATE, dtype, (accumulator, result))


def _apply(node: Elementwise, operands: list[Value]) -> Value:
    if node.op == "CAST":
        return operands[0] if operands[0].dtype is node.dtype else make(Op.CAST, node.dtype, (operands[0],))
    if node.op == "BITCAST":
        return operands[0] if operands[0].dtype is node.dtype else make(Op.BITCAST, node.dtype, (operands[0],))
    return alu(ELEMENTWISE[node.op], *operands)


def loop_over(extent: Extent, number_: int, role: str) -> Value:
    """A loop variable in [0, extent)."""
    return make(Op.RANGE, INDEX, (as_value(extent),), (number_, role), 1, (0, max(most(extent) - 1, 0)))


def _launch(nest: Nest, device: DeviceOptions, called: bool) -> _Launch:
    """What output axes stand for, and the launch they make."""
    out = _Launch()
    parallel = nest.of_kind(AxisKind.GLOBAL)
    if not device.has_local:
        for position, axis in enumerate(parallel):
            _add_loop(out, axis.var, axis.extent, position)
        if not called:
            out.global_size = out.local_size = (number(1), number(1), number(1))
    else:
        kind = "global" if nest.no_locals else "group"
        grid = map_axes(parallel, device.global_max, kind, reverse=True, may_guard=True)
        lanes = nest.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID)
        group = map_axes(lanes, device.local_max, "local", reverse=False, may_guard=False)
        for axis, value in zip((*parallel, *lanes), (*grid.values, *group.values), strict=True):
            if axis.var.op is not Op.CONST:
                out.mapping[axis.var] = value
        out.guard = grid.guard
        out.global_size = grid.sizes
        out.local_size = None if nest.no_locals else group.sizes
    for position, axis in enumerate(nest.of_kind(AxisKind.LOOP)):
        _add_loop(out, axis.var, axis.extent, len(parallel) + position)
    return out


def _add_loop(out: _Launch, var: Value, extent: Extent, position: int) -> None:
    loop = loop_over(extent, position, "output")
    out.loops.append(loop)
    if var.op is not Op.CONST:
        out.mapping[var] = loop


