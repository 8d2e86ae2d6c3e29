"""Scalars of one form side by side become one vector: what a store, or a loop's registers, take lane by lane is computed whole.

A *pack* is a tuple of scalars that may be the lanes of one value. Packs are found from their users: the lanes of a vector, and registers of
one loop whose updates have one form. Operands are packed as far as lanes agree in their operation; elsewhere a pack is gathered, which
costs as much as it saves, so each pack is taken only where what lies beneath it gains on the whole. Lanes of one pack have as many
operations beneath them and depend on the same loops: none can need another, and no two packs each other. A scalar joins one pack; whoever
else looks at it takes its lane. For devices that compute with vectors; after `legalize`, so that everything here is in the target's words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from core.dtypes import VOID
from core.ir.op import OPS, Op
from core.ir.parts import content
from core.ir.value import Value, constant, make
from core.ir.walk import Graph, with_sources
from core.passes.vectors import whole

Pack = tuple[Value, ...]
Watch = Callable[[Value, Value], None]

WIDTHS = (16, 8, 4)  # registers packed at once, where nothing says how many belong together
FUNCTIONS = frozenset((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT))
FUNCTION_GAIN = 8  # simple operations that one lane of a function costs
_MOVES = frozenset((Op.CAST, Op.BITCAST, Op.ROUND))


class Form(Enum):
    """How a pack comes about. WHOLE: another vector. CONSTANTS: a literal. SPLAT: one scalar in every lane. GATHER: put together."""

    WHOLE = 0
    CONSTANTS = 1
    SPLAT = 2
    OPERATION = 3
    REGISTER = 4
    GATHER = 5


@dataclass(slots=True)
class Plan:
    """operands: the packs an OPERATION computes with; of one of UPDATE its registers first."""

    form: Form
    operands: tuple[Pack, ...] = ()
    gain: int = 0


def superwords(graph: Graph, watch: Watch | None = None) -> Graph:
    """The graph with vectors where they gain. watch: told each scalar that went into one, and the vector."""
    return graph.became(_Packing(graph.order).run(watch))


class _Packing:
    def __init__(self, order: list[Value]) -> None:
        self.order = order
        self.place = _places(self.order)
        self.form = _forms(self.order, loose=False)
        self.loose = _forms(self.order, loose=True)
        self.update_of = {v.src[0]: v for v in self.order if v.op is Op.UPDATE}
        self.plans: dict[Pack, Plan] = {}
        self.pack_of: dict[Value, Pack] = {}

    def run(self, watch: Watch | None) -> Value:
        vectors = [value.src for value in self.order if value.op is Op.VECTOR]
        self._planned(vectors, first=True)
        if vectors and self.update_of:  # registers may be lanes across what a store puts side by side, or along it
            score, plans, pack_of = self._score(), self.plans, self.pack_of
            self._planned(vectors, first=False)
            if self._score() <= score:
                self.plans, self.pack_of = plans, pack_of
        return self._rebuilt(watch)

    def _planned(self, vectors: list[Pack], *, first: bool) -> None:
        """All packs, those of vectors or those of registers first."""
        self.plans, self.pack_of = {}, {}
        for pack in vectors if first else ():
            self._plan(pack)
        for pack in self._registers():
            self._plan(pack)
        for pack in vectors:
            self._plan(pack)
        self._decide()

    def _score(self) -> int:
        """Scalar operations saved in all, less what putting lanes together costs."""
        score = 0
        gathered: set[Pack] = set()
        for pack, plan in self.plans.items():
            if plan.form is Form.OPERATION:
                score += len(pack) * FUNCTION_GAIN if pack[0].op in FUNCTIONS else len(pack) - 1
                gathered.update(p for p in plan.operands if self.plans[p].form is Form.GATHER)
        return score - sum(gathering(pack) for pack in gathered)

    # ---- finding packs -----------------------------------------------------------------------------------------------------

    def _registers(self) -> list[Pack]:
        """Updates of one form in one loop, in the order of their registers' numbers, that no vector asked for.

        Those left over are packed by looser forms, in which loads of one buffer look alike wherever they are from.
        """
        packs: list[Pack] = []
        packed = set(self.pack_of)
        for form in (self.form, self.loose):
            alike: dict[tuple[object, ...], list[Value]] = {}
            for register, update in self.update_of.items():
                if update.lanes == 1 and update not in packed:
                    key = (register.src[1:], register.src[0], form[update], self.place[update])
                    alike.setdefault(key, []).append(update)
            for updates in alike.values():
                updates.sort(key=lambda u: u.src[0].arg)  # type: ignore[arg-type,return-value]  # a number
                at = 0
                for width in WIDTHS:
                    while len(updates) - at >= width:
                        packs.append(tuple(updates[at : at + width]))
                        at += width
                packed.update(updates[:at])
        return packs

    def _plan(self, pack: Pack) -> None:
        """A pack and all beneath it, unless it is planned."""
        waiting = [pack]
        while waiting:
            pack = waiting.pop()
            if pack in self.plans:
                continue
            plan = self.plans[pack] = self._read(pack)
            if plan.form in (Form.OPERATION, Form.REGISTER):
                for lane in pack:
                    self.pack_of[lane] = pack
            waiting.extend(plan.operands[::-1])

    def _read(self, pack: Pack) -> Plan:
        first = pack[0]
        if all(lane.op is Op.CONST for lane in pack):
            return Plan(Form.CONSTANTS)
        if all(lane is first for lane in pack):
            return Plan(Form.SPLAT)
        if first.op is Op.EXTRACT:
            source = first.src[0]
            in_place = source.lanes == len(pack) and all(
                v.op is Op.EXTRACT and v.src[0] is source and v.arg == k for k, v in enumerate(pack)
            )
            return Plan(Form.WHOLE if in_place else Form.GATHER)
        if len(set(pack)) < len(pack) or not self._alike(pack):
            return Plan(Form.GATHER)
        if first.op is Op.ACC:
            updates = tuple(self.update_of[lane] for lane in pack)
            return Plan(Form.REGISTER) if updates in self.plans and self.plans[updates].form is Form.OPERATION else Plan(Form.GATHER)
        if first.op is Op.UPDATE:
            registers = tuple(lane.src[0] for lane in pack)
            if not self._alike(registers) or any(r.src != registers[0].src for r in registers):
                return Plan(Form.GATHER)
            return Plan(Form.OPERATION, (registers, tuple(lane.src[1] for lane in pack)))
        return Plan(Form.OPERATION, self._operands(pack))

    def _alike(self, pack: Pack) -> bool:
        """Whether these scalars are one operation at one depth in one place, and free to be a pack."""
        first = pack[0]
        if not (OPS[first.op].elementwise or first.op in _MOVES or first.op in (Op.UPDATE, Op.ACC)):
            return False
        if any(s.dtype.is_index for s in first.src if first.op is not Op.ACC):
            return False
        place = self.place[first]
        return all(
            v.op is first.op
            and v.dtype is first.dtype
            and v.lanes == 1
            and (v.arg == first.arg or first.op is Op.ACC)
            and len(v.src) == len(first.src)
            and all(s.dtype is t.dtype for s, t in zip(v.src, first.src, strict=True))
            and self.place[v] == place
            and v not in self.pack_of
            for v in pack
        )

    def _operands(self, pack: Pack) -> tuple[Pack, ...]:
        """The operands of each lane side by side; those that commute turned to be like those of one lane."""
        first = pack[len(pack) // 2]  # those at the ends are masked more often
        if not OPS[first.op].commutes or len(first.src) != 2:
            return tuple(zip(*(lane.src for lane in pack), strict=True))
        a, b = first.src
        turned = []
        for lane in pack:
            x, y = lane.src
            straight, crossed = self._likeness(x, a) + self._likeness(y, b), self._likeness(y, a) + self._likeness(x, b)
            turned.append((y, x) if crossed > straight else (x, y))
        return tuple(zip(*turned, strict=True))

    def _likeness(self, x: Value, y: Value) -> int:
        """More the more alike two scalars are: of one operation, of one form, with an operand that is the very same."""
        if x is y:
            return 5
        if x.op is not y.op:
            return 0
        shares = x.op is not Op.EXTRACT and not set(x.src).isdisjoint(y.src)
        return (3 if self.form[x] == self.form[y] else 1) + shares

    # ---- which of them to make ---------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Packs that lose are gathered; registers are packed with their updates or not at all."""
        packs = sorted(self.plans, key=lambda pack: self.place[pack[0]][0])
        while True:
            for pack in packs:
                plan = self.plans[pack]
                plan.gain = self._gain(pack, plan)
                if plan.form is Form.OPERATION and plan.gain < -gathering(pack):
                    plan.form, plan.gain = Form.GATHER, -gathering(pack)
            lost = False
            for pack in packs:
                plan = self.plans[pack]
                if plan.form is Form.REGISTER:
                    updates = tuple(self.update_of[lane] for lane in pack)
                    if self.plans[updates].form is not Form.OPERATION or self.plans[updates].operands[0] != pack:
                        plan.form, lost = Form.GATHER, True
                elif plan.form is Form.OPERATION and pack[0].op is Op.UPDATE:
                    registers = self.plans[plan.operands[0]]
                    if registers.form is not Form.REGISTER or plan.gain <= 0:
                        plan.form, lost = Form.GATHER, True
            if not lost:
                return

    def _gain(self, pack: Pack, plan: Plan) -> int:
        """Scalar operations saved, less those of putting lanes together, in this pack and beneath it."""
        match plan.form:
            case Form.OPERATION:
                own = len(pack) * FUNCTION_GAIN if pack[0].op in FUNCTIONS else len(pack) - 1
                return own + sum(self.plans[p].gain for p in plan.operands)
            case Form.GATHER:
                return -gathering(pack)
            case Form.SPLAT:
                return -1
            case _:
                return 0

    # ---- the graph with them -----------------------------------------------------------------------------------------------

    def _rebuilt(self, watch: Watch | None) -> Value:
        done: dict[Value, Value] = {}
        for value in sorted(self.order, key=lambda v: self.place[v][0]):  # stable: of one depth in the old order
            pack = self.pack_of.get(value)
            if pack is None or self.plans[pack].form not in (Form.OPERATION, Form.REGISTER):
                src = tuple([done[s] for s in value.src])
                made = value if src == value.src else with_sources(value, src)
                done[value] = (whole(made) or made) if made.op is Op.VECTOR else made
                continue
            if value in done:
                continue  # made with the first of its lanes
            vector = self._made(pack, self.plans[pack], done)
            for number, lane in enumerate(pack):
                done[lane] = make(Op.EXTRACT, lane.dtype, (vector,), number)
                if watch is not None:
                    watch(lane, vector)
        return done[self.order[-1]]

    def _made(self, pack: Pack, plan: Plan, done: dict[Value, Value]) -> Value:
        first, lanes = pack[0], len(pack)
        if plan.form is Form.REGISTER:
            start = constant(content(first.src[0]), first.dtype, lanes)
            return make(Op.ACC, first.dtype, (start, *(done[s] for s in first.src[1:])), first.arg, lanes)
        operands = [self._vector(p, done) for p in plan.operands]
        if first.op is Op.WHERE and self.plans[plan.operands[0]].form is Form.SPLAT:
            operands[0] = done[plan.operands[0][0]]  # one condition for all lanes
        return make(first.op, first.dtype, tuple(operands), first.arg, lanes, _joint_bounds(pack))

    def _vector(self, pack: Pack, done: dict[Value, Value]) -> Value:
        """A pack as one value."""
        made = make(Op.VECTOR, pack[0].dtype, tuple([done[lane] for lane in pack]), None, len(pack))
        return whole(made) or made


def gathering(pack: Pack) -> int:
    """Operations it takes to put these lanes together: one for each scalar, two for each vector that they are taken from."""
    vectors = {lane.src[0] for lane in pack if lane.op is Op.EXTRACT}
    return min(len(pack), 2 * len(vectors) + sum(lane.op is not Op.EXTRACT and lane.op is not Op.CONST for lane in pack))


def _joint_bounds(pack: Pack) -> tuple[int | None, int | None]:
    lows, highs = [v.lo for v in pack], [v.hi for v in pack]
    least = min((x for x in lows if x is not None), default=None) if None not in lows else None
    greatest = max((x for x in highs if x is not None), default=None) if None not in highs else None
    return least, greatest


def _places(order: list[Value]) -> dict[Value, tuple[int, int]]:
    """How many operations lie one upon the other beneath each value, and the loops and regions it depends on, a bit each."""
    found: dict[Value, tuple[int, int]] = {}
    bits: dict[Value, int] = {}
    for v in order:
        depth = mask = 0
        for s in v.src:
            d, m = found[s]
            depth = max(depth, d)
            mask |= m
        depth += v.op is Op.UPDATE or v.op in _MOVES or OPS[v.op].elementwise
        if v.op is Op.RANGE or v.op is Op.IF:
            bits[v] = 1 << len(bits)
            mask |= bits[v]
        elif v.op is Op.UPDATE:
            for loop in v.src[0].src[1:]:
                mask &= ~bits[loop]
        found[v] = depth, mask
    return found


def _forms(order: list[Value], *, loose: bool) -> dict[Value, int]:
    """A number for what each value looks like: lanes of one vector look alike, and so do operations on what looks alike.

    loose: loads of one buffer do too.
    """
    numbers: dict[tuple[object, ...], int] = {}
    form: dict[Value, int] = {}
    for v in order:
        key: tuple[object, ...]
        if v.op is Op.EXTRACT:
            key = (v.op, form[v.src[0]] if loose else v.src[0])
        elif v.op is Op.LOAD and loose:
            key = (v.op, v.src[0], v.lanes)
        elif v.op is Op.CONST:
            key = (v.op, v.dtype, v.lanes)
        elif v.op is Op.ACC:
            key = (v.op, v.src)
        elif v.op is Op.UPDATE or v.op in _MOVES or (OPS[v.op].elementwise and v.dtype is not VOID):
            inner = [form[s] for s in v.src]
            key = (v.op, v.dtype, v.lanes, v.arg, *(sorted(inner) if OPS[v.op].commutes else inner))
        else:
            key = (v.op, v)
        form[v] = numbers.setdefault(key, len(numbers))
    return form
