"""What is shown of a program before it runs: accesses inside their buffers, no element stored twice, barriers reached by all.

On the raw graph, where addresses and gates are exact index values over launch indices, loops and variables. Every verdict is counted in
points looked at, never in time. An access that is shown to leave its buffer, or two work-items shown to store one element, are a bug of
ours: kernels that do either are refused before they get here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from core.errors import CompilerBug
from core.index import all_of, at_least, number, split, subtract
from core.index.access import Access
from core.index.bounds import lower
from core.index.condition import FALSE, TRUE
from core.index.decide import UNBOUNDED, Decider, Outcome, Point, has_data, without_data
from core.index.enumerate import own_bounds
from core.index.injective import injective
from core.index.linear import shifted
from core.index.unknown import Unknown
from core.ir import parts
from core.ir.op import Op
from core.ir.value import Value
from core.ir.walk import Graph

_STORE_POINTS = 1 << 12  # a kernel's stores are injective before they are scheduled: looking again is a check of the compiler, and cheap
_PROVED = frozenset((Op.SPECIAL, Op.RANGE, Op.LOAD, Op.STORE, Op.BARRIER))  # all that is looked at


@dataclass(frozen=True, slots=True)
class Proofs:
    """open: what is not proved, in the order of arguments and nodes; everything else is."""

    open: tuple[Unknown, ...]

    def verdict(self, of: str) -> str:
        return "unknown" if any(u.of == of for u in self.open) else "proved"

    def to_json(self) -> dict[str, object]:
        verdicts: dict[str, object] = {of: self.verdict(of) for of in ("bounds", "writes", "barriers")}
        return {**verdicts, "open": [u.to_json() for u in self.open]}


def prove(
    graph: Graph,
    sizes: Mapping[int, Value],
    guard: Value = TRUE,
    provenance: Mapping[Value, tuple[int, ...]] | None = None,
    noted: Iterable[Unknown] = (),
    unbounded: Collection[int] = (),
) -> Proofs:
    """The proofs of a raw graph (a SINK before `narrow`).

    sizes: elements each buffer has. guard: holds for a work-item that does anything. provenance: rows of the canonical table each value
    stems from. noted: what was already left open of the kernel. unbounded: buffers of whose size nothing is known. Raises CompilerBug for
    what is refuted.
    """
    return _Prover(graph, sizes, guard, {} if provenance is None else provenance, noted, unbounded).run()


class _Prover:
    def __init__(
        self,
        graph: Graph,
        sizes: Mapping[int, Value],
        guard: Value,
        provenance: Mapping[Value, tuple[int, ...]],
        noted: Iterable[Unknown],
        unbounded: Collection[int],
    ) -> None:
        self.unbounded = frozenset(unbounded)
        self.graph, self.sizes, self.guard, self.provenance = graph, sizes, guard, provenance
        self.decider = Decider()
        self.open: dict[Unknown, None] = dict.fromkeys(noted)
        self.seen: dict[tuple[Value, ...], str] = {}
        self.elements: dict[Value, int] = {}
        self.reach: dict[tuple[Value, Value], tuple[int, int]] = {}
        self.gates: dict[tuple[Value, ...], Value] = {}

    def run(self) -> Proofs:
        order = [v for v in self.graph.order if v.op in _PROVED]
        counters = [v for v in order if v.op is Op.SPECIAL or v.op is Op.RANGE]
        if any(v.src[0] is number(0) and (v.op is Op.SPECIAL or parts_of(v)[1] == "output") for v in counters):
            return Proofs(())  # nothing is launched, or no turn of an output loop taken
        self.running = all_of(at_least(v.src[0], number(1)) for v in counters if v.src[0].op is not Op.CONST)
        launch = [v for v in counters if v.op is Op.SPECIAL or parts_of(v)[1] == "output"]
        for v in order:
            if v.op is Op.LOAD or v.op is Op.STORE:
                if not self._within(v):
                    self._bounds(v)
                if v.op is Op.STORE and v.src[0].op is Op.PARAM:
                    self._writes(v, launch)
        if any(v.op is Op.BARRIER for v in order):
            self._barriers(counters)
        ranked = sorted(self.open, key=lambda u: (u.of, u.argument is None, u.argument or 0, u.node is None, u.node or 0, u.why))
        return Proofs(tuple(ranked))

    def _note(self, of: str, access: Value, why: str) -> None:
        array = access.src[0]
        argument = parts.param(array).number if array.op is Op.PARAM else None
        rows = self.provenance.get(access) or self._rows_of_user(access)
        self.open.setdefault(Unknown(of, argument, rows[0] if rows else None, why))

    def _rows_of_user(self, access: Value) -> tuple[int, ...]:
        """A vector access is no node's value itself, its elements are."""
        return next((rows for v, rows in self.provenance.items() if access in v.src), ())

    # ---- bounds ----------------------------------------------------------------------------------------------------------

    def _within(self, v: Value) -> bool:
        """Whether a quick look shows an access inside its array, wherever it happens: by the interval of its one address."""
        array, address = v.src[0], v.src[1]
        if array not in self.elements:
            self.elements[array] = _elements(array, self.sizes)
        width = v.lanes if v.op is Op.LOAD else v.src[2].lanes
        return address.lo >= 0 and address.hi + width <= self.elements[array]  # type: ignore[operator]  # index values have bounds

    def _bounds(self, v: Value) -> None:
        access = parts.access(v)
        lanes = v.lanes if access.stored is None else access.stored.lanes
        gate = self.guard if access.gate is None else access.gate
        if access.gate is not None and self.guard is not TRUE:
            gate = all_of((access.gate, self.guard))
        if gate is FALSE:
            return
        is_open = access.array.op is Op.PARAM and parts.param(access.array).number in self.unbounded
        for address, size, width in _ranges_of(access, lanes, self.sizes):
            why = UNBOUNDED if is_open and not _is_within(address, size, width) else self._inside(address, size, width, gate)
            if why:
                self._note("bounds", v, why)
                return

    def _inside(self, address: Value, size: Value, width: int, gate: Value) -> str:
        """Why `address` to `address + width - 1` may leave [0, size); nothing where they never do."""
        if _is_within(address, size, width) or (size.op is Op.CONST and self._decided_together(address, parts.integer(size) - width, gate)):
            return ""
        key = (address, size, number(width), gate)
        if key not in self.seen:
            above = subtract(subtract(size, number(width)), address)
            self.seen[key] = self._never_negative(address, gate, address) or self._never_negative(above, gate, address)
        return self.seen[key]

    def _decided_together(self, address: Value, last: int, gate: Value) -> bool:
        """Whether the bounds under this gate of all addresses that lie a constant apart keep this one within [0, last]."""
        constant = split(address)[0]
        base = shifted(address, -constant)
        known = self.reach.get((base, gate))
        if known is None:
            known = self.reach[base, gate] = self.decider.given(gate).bounds(base)
        return known[0] + constant >= 0 and known[1] + constant <= last

    def _never_negative(self, x: Value, gate: Value, address: Value) -> str:
        if own_bounds(x)[0] >= 0 or lower(x) >= 0:
            return ""
        found = self.decider.nonnegative(x, gate)
        if found.outcome is Outcome.REFUTED and has_data(x):
            return UNBOUNDED  # beyond the one element it counts as, whatever the values are
        if found.outcome is Outcome.REFUTED and not has_data(gate):
            running = all_of((gate, self.running))
            if self.decider.nonnegative(x, running).outcome is Outcome.REFUTED:
                raise CompilerBug("prove", f"an access leaves its buffer: {address!r}{_at(found.point)}")
            return "not inside where a loop or the launch is empty"
        if found.outcome is Outcome.REFUTED:
            return "whether it happens depends on values of another node"
        return found.why if found.outcome is Outcome.UNKNOWN else ""

    # ---- writes ----------------------------------------------------------------------------------------------------------

    def _writes(self, v: Value, launch: list[Value]) -> None:
        """No two work-items, or turns of output loops, store to one element by this store.

        The kernel's store was shown injective over its axes, and each option is a bijection of them. So a store about which nothing is
        shown here is right by that, and one that is refuted is a bug.
        """
        access = parts.access(v)
        if len(access.addresses) != 1:
            return
        regions = [token.src[0] for token in access.tokens if token.op is Op.IF]  # of a grouped reduce one lane stores
        conditions = (self.guard, access.gate if access.gate is not None else TRUE, *regions)
        if conditions not in self.gates:
            self.gates[conditions] = without_data(all_of(conditions))
        gate = self.gates[conditions]
        address = access.addresses[0]
        key = (shifted(address, -split(address)[0]), gate)  # elements of one work-item mostly lie a constant apart
        if key in self.seen:
            return
        self.seen[key] = ""
        found = injective(Access(address, gate), launch, self.decider, _STORE_POINTS)
        if found.points is not None:
            where = f"{_at(found.points[0])} and{_at(found.points[1])}"
            raise CompilerBug("prove", f"two work-items store to one element{where}: {address!r}")

    # ---- barriers --------------------------------------------------------------------------------------------------------

    def _barriers(self, counters: list[Value]) -> None:
        """All of a group reach every barrier if neither the guard nor any loop's end depends on which lane one is."""
        if _differs_by_lane(self.guard):
            self.open.setdefault(Unknown("barriers", None, None, "the guard around it depends on the work-item"))
        for v in counters:
            if v.op is Op.RANGE and _differs_by_lane(v.src[0]):
                self.open.setdefault(Unknown("barriers", None, None, "a loop's end depends on the work-item"))


def parts_of(counter: Value) -> tuple[object, object]:
    """The arg of a SPECIAL or RANGE."""
    assert isinstance(counter.arg, tuple)
    return counter.arg[0], counter.arg[1]


def _differs_by_lane(x: Value) -> bool:
    return any(a.op is Op.INDEX_OF or (a.op is Op.SPECIAL and parts_of(a)[0] != "group") for a in x.free)


def _elements(array: Value, sizes: Mapping[int, Value]) -> int:
    """How many elements an array certainly has; none where that is no number, or where it is an image."""
    if array.op is Op.SHARED:
        return parts.shared(array).elements
    param = parts.param(array)
    size = sizes[param.number]
    return parts.integer(size) if param.image is None and size.op is Op.CONST else 0


def _ranges_of(access: parts.Access, lanes: int, sizes: Mapping[int, Value]) -> list[tuple[Value, Value, int]]:
    """(address, size, width) of each address of an access."""
    array = access.array
    if array.op is Op.SHARED:
        assert isinstance(array.arg, tuple)
        return [(access.addresses[0], number(int(array.arg[1])), lanes)]
    param = parts.param(array)
    if param.image is not None:
        height, width, _ = param.image
        x, y = access.addresses
        return [(x, number(width), 1), (y, number(height), 1)]
    return [(access.addresses[0], sizes[param.number], lanes)]


def _is_within(address: Value, size: Value, width: int) -> bool:
    """Whether intervals alone keep `address` to `address + width - 1` in [0, size)."""
    low, high = own_bounds(address)
    return low >= 0 and size.op is Op.CONST and high + width <= own_bounds(size)[0]


def _at(point: Point | None) -> str:
    return "" if not point else " at " + ", ".join(f"{atom!r} = {n}" for atom, n in point.items())
