"""A raw graph made fit for one target: what its language lacks is computed by what it has, what it leaves undefined is kept from happening.

Between `lower` and `narrow`. Afterwards

- float16, unless the device computes in it, and bfloat16 are FLOAT32 values already rounded (ROUND). A LOAD of FLOAT32 from an array of
  such a type widens, a STORE of FLOAT32 into one rounds. Where bits are moved and not computed with, so that even a NaN keeps its payload,
  values keep the narrow type, and a CAST leads from one form to the other;
- bool has AND, OR, XOR, NOT and WHERE alone; there is no MULACC;
- IDIV, REM, SHL, SHR and float-to-integer CAST are defined for every operand;
- functions that a target lacks, or has only roughly, are arithmetic;
- on targets without vectors every value has one lane; where vectors are only moved, nothing is computed with them.

Sums and products over a loop stay in float32 and are rounded after it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType
from core.errors import TargetError
from core.ir.op import OPS, Op
from core.ir.parts import access, content, param
from core.ir.value import Value, alu, cast, constant, make
from core.ir.walk import Graph, with_sources
from core.passes.apart import apart
from core.passes.elementary import elementary
from core.passes.guarded import divided, non_zero, shifted, truncated
from core.passes.machine import Machine
from core.passes.moved import Moved, find_moved
from core.passes.rounding import narrowed, odd, rounded, unrounded
from core.passes.scalars import scalars

Watch = Callable[[Value, Value], None]
Way = Callable[["_Legalizer", Value], Value]

TRANSCENDENTAL = frozenset((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT))
_BOOL_OPS = {Op.ADD: Op.OR, Op.MAX: Op.OR, Op.MUL: Op.AND, Op.NEG: Op.NOT, Op.CMPNE: Op.XOR}
_EXACT = frozenset((Op.NEG, Op.MAX))  # of values of a type again values of it: nothing to round
_CARRIERS = frozenset((Op.ADD, Op.MUL, Op.MAX, Op.MULACC, Op.WHERE, Op.VECTOR, Op.EXTRACT))


def legalize(graph: Graph, device: DeviceOptions, machine: Machine, watch: Watch | None = None) -> Graph:
    """The graph for this machine. watch: told each value and what stands for it. Raises TargetError for what can't be had."""
    _refuse(graph.order, device, machine)
    if not machine.vectors:
        graph = scalars(graph)
    work = _Legalizer(graph.order, device, machine)
    graph, changed = graph.became(work.run()), work.changed
    if machine.vectors and not machine.computes_vectors:
        graph, moved = apart(graph)
        changed = {**moved, **{value: moved.get(made, made) for value, made in changed.items()}}
    wanted = machine.software if device.fast_math else machine.software | machine.rough
    if wanted:
        graph, computed = elementary(graph, wanted)
        changed = {**computed, **{value: computed.get(made, made) for value, made in changed.items()}}
    if watch is not None:
        for value, made in changed.items():
            watch(value, made)
    return graph


def _refuse(order: list[Value], device: DeviceOptions, machine: Machine) -> None:
    if not device.float64 and any(v.dtype is FLOAT64 for v in order):
        raise TargetError("/device/float64", target=machine.target, feature="float64")
    lacking = [v.dtype for v in order if v.dtype in machine.lacks] if machine.lacks else []
    if lacking:
        raise TargetError("/device/target", target=machine.target, feature=lacking[0].name)
    if not machine.images and any(v.op is Op.PARAM and param(v).image is not None for v in order):
        raise TargetError("/device/target", target=machine.target, feature="images")


class _Legalizer:
    def __init__(self, order: list[Value], device: DeviceOptions, machine: Machine) -> None:
        self.order = order
        self.machine = machine
        self.narrow = frozenset((BFLOAT16,) if device.float16 else (BFLOAT16, FLOAT16))
        self.moved: Moved = find_moved(order, self.narrow)
        self.carried: dict[Value, bool] = {}  # values on the way from a register to its update: whether something was added on it
        self.changed: dict[Value, Value] = {}

    def run(self) -> Value:
        changed, narrow = self.changed, self.narrow
        untouched = changed.keys().isdisjoint
        for value in self.order:
            src = value.src
            way = way_of(value.op, value.dtype, src[0].dtype if src else None, narrow)
            if way is not None:
                made = way(self, value)
            elif untouched(src):
                continue
            else:
                made = with_sources(value, tuple([changed.get(s, s) for s in src]))
            if made is not value:
                changed[value] = made
        return self.done(self.order[-1])

    def done(self, value: Value) -> Value:
        """What a value met before has become."""
        return self.changed.get(value, value)

    # ---- the two forms of a narrow float -----------------------------------------------------------------------------------

    def number(self, value: Value) -> Value:
        """The value to compute with: of a narrow type its FLOAT32 form."""
        made = self.done(value)
        return cast(made, FLOAT32) if made.dtype in self.narrow else made

    def bits(self, value: Value) -> Value:
        """The value as it lies in memory, of its own type."""
        made = self.done(value)
        if made.dtype is value.dtype:
            return made
        if made.is_const:
            return constant(content(made), value.dtype, made.lanes)
        return make(Op.CAST, value.dtype, (unrounded(made, value.dtype),), None, made.lanes)

    # ---- one value ---------------------------------------------------------------------------------------------------------

    def same(self, value: Value, src: tuple[Value, ...]) -> Value:
        return value if src == value.src else with_sources(value, src)

    def carrier(self, value: Value) -> Value:
        """CONST, ACC, VECTOR or EXTRACT of a narrow type."""
        if value.op is Op.ACC:
            self.carried[value] = False
        self.follow(value)
        if value in self.moved.values:
            return self.same(value, tuple([self.bits(s) for s in value.src]))
        src = tuple([self.number(s) for s in value.src])
        return make(value.op, FLOAT32, src, value.arg, value.lanes)

    def load(self, value: Value) -> Value:
        src = [self.done(s) for s in value.src]
        parts = access(value)
        as_bits = parts.array in self.moved.arrays
        if parts.alternative is not None:
            at = 2 + len(parts.addresses)
            src[at] = self.bits(parts.alternative) if as_bits else self.number(parts.alternative)
        return make(Op.LOAD, value.dtype if as_bits else FLOAT32, tuple(src), value.arg, value.lanes)

    def store(self, value: Value) -> Value:
        src = [self.done(s) for s in value.src]
        parts = access(value)
        stored = parts.stored
        if stored is not None and stored.dtype in self.narrow:
            as_bits = parts.array in self.moved.arrays
            src[1 + len(parts.addresses)] = self.bits(stored) if as_bits else unrounded(self.number(stored), stored.dtype)
        return self.same(value, tuple(src))

    def update(self, value: Value) -> Value:
        register, result = value.src
        made = make(Op.UPDATE, FLOAT32, (self.done(register), self.number(result)), None, value.lanes)
        return rounded(made, value.dtype) if self.carried.get(result, False) else made

    def follow(self, value: Value) -> bool:
        """Whether this value lies on the way from a register to its update."""
        if value.op not in _CARRIERS:
            return False
        carried = [self.carried[s] for s in value.src if s in self.carried]
        if carried:
            self.carried[value] = any(carried) or value.op in (Op.ADD, Op.MUL, Op.MULACC)
        return bool(carried)

    # ---- conversions -------------------------------------------------------------------------------------------------------

    def converted(self, value: Value) -> Value:
        source, dtype = value.src[0], value.dtype
        x = self.number(source)
        if source.dtype is dtype:
            return self.done(source)
        if dtype is BOOL:
            return non_zero(x)
        if dtype in self.narrow:
            return narrowed(x, dtype)
        if dtype.is_integer and x.dtype.is_float:
            return truncated(x, dtype, self.machine.saturates)
        if x.dtype is dtype:
            return x
        if dtype is FLOAT16 and x.dtype is FLOAT64 and not self.machine.halves_doubles:
            return cast(odd(x), dtype)
        return self.same(value, (x,))

    def reinterpreted(self, value: Value) -> Value:
        source, dtype = value.src[0], value.dtype
        if source.dtype is dtype:
            return self.done(source)
        if dtype is BOOL:
            return non_zero(self.done(source))
        if source.dtype is BOOL:
            return cast(self.done(source), dtype)
        x = self.bits(source) if source.dtype in self.narrow else self.done(source)
        return self.same(value, (x,))

    # ---- arithmetic --------------------------------------------------------------------------------------------------------

    def arithmetic(self, value: Value) -> Value:
        """Operations on narrow floats, and on a half the machine has but whose library may not."""
        op, src = value.op, [self.number(s) for s in value.src]
        if value.dtype in self.narrow:
            made = make(op, FLOAT32, tuple(src), value.arg, value.lanes)
            return made if self.follow(value) or op in _EXACT else rounded(made, value.dtype)
        if value.dtype is FLOAT16:
            return cast(alu(op, cast(src[0], FLOAT32)), FLOAT16)
        return self.same(value, tuple(src))

    def matrix(self, value: Value) -> Value:
        """A matrix instruction takes its fragments as they lie in memory, and gives one like that."""
        a, b, c = value.src
        return self.same(value, (self.bits(a), self.bits(b), self.bits(c)))

    def integral(self, value: Value) -> Value:
        """Quotients and shifts, defined for every operand."""
        first, second = (self.done(s) for s in value.src)
        if self.machine.total and not second.is_const:
            return alu(value.op, first, second)
        return divided(value.op, first, second) if value.op is Op.IDIV or value.op is Op.REM else shifted(value.op, first, second)

    def where(self, value: Value) -> Value:
        condition, x, y = value.src
        self.follow(value)
        if value in self.moved.values:
            return self.same(value, (self.done(condition), self.bits(x), self.bits(y)))
        return alu(Op.WHERE, self.done(condition), self.number(x), self.number(y))

    def logical(self, value: Value) -> Value:
        src = tuple([self.done(s) for s in value.src])
        if value.op is Op.CMPLT:
            return alu(Op.AND, alu(Op.NOT, src[0]), src[1])
        return make(_BOOL_OPS[value.op], BOOL, src, None, value.lanes)

    def multiplied_and_added(self, value: Value) -> Value:
        a, b, c = [self.number(s) for s in value.src]
        if value.dtype is BOOL:
            return alu(Op.OR, alu(Op.AND, a, b), c)
        product = alu(Op.MUL, a, b)
        if value.dtype not in self.narrow:
            return alu(Op.ADD, product, c)
        if value.src[0] not in self.carried and value.src[1] not in self.carried:
            product = rounded(product, value.dtype)
        return alu(Op.ADD, product, c) if self.follow(value) else rounded(alu(Op.ADD, product, c), value.dtype)


@cache
def way_of(op: Op, dtype: DType, of: DType | None, narrow: frozenset[DType]) -> Way | None:
    """How an operation that gives `dtype` of (first) operands of type `of` becomes the machine's; None where it is.

    narrow: the float types that are computed in FLOAT32.
    """
    match op:
        case Op.LOAD:
            return _Legalizer.load if dtype in narrow else None
        case Op.STORE:
            return _Legalizer.store if of in narrow else None
        case Op.CAST:
            return _Legalizer.converted
        case Op.BITCAST:
            return _Legalizer.reinterpreted
        case Op.UPDATE:
            return _Legalizer.update if dtype in narrow else None
        case Op.WHERE:
            return _Legalizer.where if dtype in narrow else None
        case Op.MULACC:
            return _Legalizer.multiplied_and_added
        case Op.MMA:
            return _Legalizer.matrix if of in narrow else None
        case Op.IDIV | Op.REM | Op.SHL | Op.SHR if of is not BOOL:
            return _Legalizer.integral
        case _ if OPS[op].elementwise:
            if of is BOOL:
                return _Legalizer.logical if op in _BOOL_OPS or op is Op.CMPLT else None
            return _Legalizer.arithmetic if of in narrow or (of is FLOAT16 and op in TRANSCENDENTAL) else None
        case _:
            return _Legalizer.carrier if dtype in narrow and op is not Op.PARAM and op is not Op.SHARED else None
