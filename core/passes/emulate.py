"""A raw graph made fit for one target: what its language lacks is computed by what it has, what it leaves undefined is kept from happening.

Between `lower` and `narrow`. Afterwards

- float16, unless the device computes in it, and bfloat16 are FLOAT32 values already rounded (ROUND). A LOAD of FLOAT32 from an array of
  such a type widens, a STORE of FLOAT32 into one rounds. Where bits are moved and not computed with, so that even a NaN keeps its payload,
  values keep the narrow type, and a CAST leads from one form to the other;
- bool has AND, OR, XOR, NOT and WHERE alone; there is no MULACC;
- IDIV, REM, SHL, SHR and float-to-integer CAST are defined for every operand;
- on targets without vectors every value has one lane.

Sums and products over a loop stay in float32 and are rounded after it.
"""

from __future__ import annotations

from collections.abc import Callable

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType
from core.errors import TargetError
from core.ir.op import OPS, Op
from core.ir.parts import access, content, param
from core.ir.value import Value, alu, cast, constant, make
from core.ir.walk import ordered, with_sources
from core.passes.guarded import divided, non_zero, shifted, truncated
from core.passes.machine import Machine
from core.passes.moved import Moved, find_moved
from core.passes.rounding import narrowed, rounded
from core.passes.scalars import scalars

Watch = Callable[[Value, Value], None]

TRANSCENDENTAL = frozenset((Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT))
_BOOL_OPS = {Op.ADD: Op.OR, Op.MAX: Op.OR, Op.MUL: Op.AND, Op.NEG: Op.NOT, Op.CMPNE: Op.XOR}
_EXACT = frozenset((Op.NEG, Op.MAX))  # of values of a type again values of it: nothing to round
_CARRIERS = frozenset((Op.ADD, Op.MUL, Op.MAX, Op.MULACC, Op.WHERE, Op.VECTOR, Op.EXTRACT))


def legalize(sink: Value, device: DeviceOptions, machine: Machine, watch: Watch | None = None) -> Value:
    """The graph for this machine. watch: told each value and what stands for it. Raises TargetError for what can't be had."""
    _refuse(ordered(sink), device, machine)
    if not machine.vectors:
        sink = scalars(sink)
    return _Legalizer(ordered(sink), device, machine, watch).run()


def _refuse(order: list[Value], device: DeviceOptions, machine: Machine) -> None:
    for value in order:
        if value.dtype is FLOAT64 and not device.float64:
            raise TargetError("/device/float64", target=machine.target, feature="float64")
        if value.op is Op.PARAM and not machine.images and param(value).image is not None:
            raise TargetError("/device/target", target=machine.target, feature="images")


class _Legalizer:
    def __init__(self, order: list[Value], device: DeviceOptions, machine: Machine, watch: Watch | None) -> None:
        self.order = order
        self.machine = machine
        self.watch = watch
        self.narrow = frozenset((BFLOAT16,) if device.float16 else (BFLOAT16, FLOAT16))
        self.moved: Moved = find_moved(order, self.narrow)
        self.carried: dict[Value, bool] = {}  # values on the way from a register to its update: whether something was added on it
        self.done: dict[Value, Value] = {}

    def run(self) -> Value:
        for value in self.order:
            made = self.rewritten(value)
            self.done[value] = made
            if self.watch is not None and made is not value:
                self.watch(value, made)
        return self.done[self.order[-1]]

    # ---- the two forms of a narrow float -----------------------------------------------------------------------------------

    def number(self, value: Value) -> Value:
        """The value to compute with: of a narrow type its FLOAT32 form."""
        made = self.done[value]
        return cast(made, FLOAT32) if made.dtype in self.narrow else made

    def bits(self, value: Value) -> Value:
        """The value as it lies in memory, of its own type."""
        made = self.done[value]
        if made.dtype is value.dtype:
            return made
        if made.is_const:
            return constant(content(made), value.dtype, made.lanes)
        return make(Op.CAST, value.dtype, (_unrounded(made, value.dtype),), None, made.lanes)

    # ---- one value ---------------------------------------------------------------------------------------------------------

    def rewritten(self, value: Value) -> Value:
        match value.op:
            case Op.LOAD:
                return self.load(value)
            case Op.STORE:
                return self.store(value)
            case Op.CAST:
                return self.converted(value)
            case Op.BITCAST:
                return self.reinterpreted(value)
            case Op.UPDATE:
                return self.update(value)
            case op if OPS[op].elementwise:
                return self.elementwise(value)
            case _ if value.dtype in self.narrow and value.op not in (Op.PARAM, Op.SHARED):
                return self.carrier(value)
            case _:
                return self.same(value, tuple([self.done[s] for s in value.src]))

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
        src = [self.done[s] for s in value.src]
        if value.dtype not in self.narrow:
            return self.same(value, tuple(src))
        parts = access(value)
        as_bits = parts.array in self.moved.arrays
        if parts.alternative is not None:
            at = 2 + len(parts.addresses)
            src[at] = self.bits(parts.alternative) if as_bits else self.number(parts.alternative)
        return make(Op.LOAD, value.dtype if as_bits else FLOAT32, tuple(src), value.arg, value.lanes)

    def store(self, value: Value) -> Value:
        src = [self.done[s] for s in value.src]
        parts = access(value)
        stored = parts.stored
        if stored is not None and stored.dtype in self.narrow:
            as_bits = parts.array in self.moved.arrays
            src[1 + len(parts.addresses)] = self.bits(stored) if as_bits else _unrounded(self.number(stored), stored.dtype)
        return self.same(value, tuple(src))

    def update(self, value: Value) -> Value:
        register, result = value.src
        if value.dtype not in self.narrow:
            return self.same(value, (self.done[register], self.done[result]))
        made = make(Op.UPDATE, FLOAT32, (self.done[register], self.number(result)), None, value.lanes)
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
            return self.done[source]
        if dtype is BOOL:
            return non_zero(x)
        if dtype in self.narrow:
            return narrowed(x, dtype)
        if dtype.is_integer and x.dtype.is_float:
            return truncated(x, dtype, self.machine.saturates)
        if x.dtype is dtype:
            return x
        return self.same(value, (x,))

    def reinterpreted(self, value: Value) -> Value:
        source, dtype = value.src[0], value.dtype
        if source.dtype is dtype:
            return self.done[source]
        if dtype is BOOL:
            return non_zero(self.done[source])
        if source.dtype is BOOL:
            return cast(self.done[source], dtype)
        x = self.bits(source) if source.dtype in self.narrow else self.done[source]
        return self.same(value, (x,))

    # ---- arithmetic --------------------------------------------------------------------------------------------------------

    def elementwise(self, value: Value) -> Value:
        op = value.op
        if op is Op.WHERE:
            return self.where(value)
        src = [self.number(s) for s in value.src]
        if op is Op.MULACC:
            return self.multiplied_and_added(value, src)
        of = value.src[0].dtype
        if of is BOOL:
            return self.logical(value, src)
        if value.dtype in self.narrow:
            made = make(op, FLOAT32, tuple(src), value.arg, value.lanes)
            return made if self.follow(value) or op in _EXACT else rounded(made, value.dtype)
        if op in (Op.IDIV, Op.REM):
            return divided(op, src[0], src[1])
        if op in (Op.SHL, Op.SHR):
            return shifted(op, src[0], src[1])
        if of is FLOAT16 and op in TRANSCENDENTAL:  # a half the machine has; its library may not
            return cast(alu(op, cast(src[0], FLOAT32)), FLOAT16)
        return self.same(value, tuple(src))

    def where(self, value: Value) -> Value:
        condition, x, y = value.src
        chosen = self.done[condition]
        if value.dtype not in self.narrow:
            return self.same(value, (chosen, self.done[x], self.done[y]))
        self.follow(value)
        if value in self.moved.values:
            return self.same(value, (chosen, self.bits(x), self.bits(y)))
        return alu(Op.WHERE, chosen, self.number(x), self.number(y))

    def logical(self, value: Value, src: list[Value]) -> Value:
        if value.op is Op.CMPLT:
            return alu(Op.AND, alu(Op.NOT, src[0]), src[1])
        op = _BOOL_OPS.get(value.op)
        return self.same(value, tuple(src)) if op is None else make(op, BOOL, tuple(src), None, value.lanes)

    def multiplied_and_added(self, value: Value, src: list[Value]) -> Value:
        a, b, c = src
        if value.dtype is BOOL:
            return alu(Op.OR, alu(Op.AND, a, b), c)
        product = alu(Op.MUL, a, b)
        if value.dtype not in self.narrow:
            return alu(Op.ADD, product, c)
        if value.src[0] not in self.carried and value.src[1] not in self.carried:
            product = rounded(product, value.dtype)
        return alu(Op.ADD, product, c) if self.follow(value) else rounded(alu(Op.ADD, product, c), value.dtype)


def _unrounded(value: Value, narrow: DType) -> Value:
    """What a rounding to this type rounds: for where storing rounds by itself."""
    return value.src[0] if value.op is Op.ROUND and value.arg is narrow else value
