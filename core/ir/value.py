"""The one node of every graph: interned, immutable, compared by identity; its bounds and its place in the canonical order computed once.

Equal means identical: `make` looks every node up before it builds one. The table holds its nodes weakly, so a long-lived process does
not grow. It and the answers that `core.index.remember` keeps are the only process-wide state of `core`; nothing that is computed depends on
what they hold.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from operator import attrgetter
from weakref import ref
from zlib import crc32

from core.dtypes import BOOL, INDEX, VOID, DType, Number, float_bits
from core.ir.op import OPS, Op

Arg = Hashable
NO_VALUES: frozenset[Value] = frozenset()


class Value:
    """One operation on earlier values.

    op, dtype, lanes, src, arg: what it is (`core.ir.op` says what each op carries).
    lo, hi: bounds, inclusive, of integer and bool values; None where nothing is known (floats, void).
    order: a number that follows from the structure alone; the canonical order of commuting operands, the same in every process.
    free: the index atoms (AXIS, VARIABLE, OPAQUE, SPECIAL, RANGE, INDEX_OF) an index value is made of.
    """

    __slots__ = ("__weakref__", "arg", "dtype", "free", "hi", "lanes", "lo", "op", "order", "residue", "src")

    op: Op
    dtype: DType
    lanes: int
    src: tuple[Value, ...]
    arg: Arg
    lo: int | None
    hi: int | None
    order: int
    free: frozenset[Value]
    residue: tuple[int, int] | None  # cache of core.index.bounds: every value is r modulo g

    def __repr__(self) -> str:
        inner = ", ".join(s.op.name.lower() if s.src else repr(s) for s in self.src)
        arg = "" if self.arg is None else f" {self.arg}"
        return f"<{OPS[self.op].name}{arg}({inner}): {self.dtype}{self.lanes if self.lanes > 1 else ''}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("values live in one process; send text or JSON instead")

    @property
    def is_const(self) -> bool:
        return self.op is Op.CONST


_table: dict[tuple[object, ...], ref[Value]] = {}
_room = 1 << 15  # entries the table may have before those whose value is gone are swept out; doubled with what lives


def _sweep() -> None:
    """Drops the entries of values nobody holds any more. Users were entered after what they use, so going backwards frees both at once."""
    global _room
    keys = list(_table)
    while keys:  # popped, so that nothing here holds a key, and with it what its value used, any longer than that
        key = keys.pop()
        if _table[key]() is None:
            del _table[key]
    _room = max(1 << 15, 2 * len(_table))


def make(
    op: Op, dtype: DType, src: tuple[Value, ...] = (), arg: Arg = None, lanes: int = 1, bounds: tuple[int | None, int | None] | None = None
) -> Value:
    """The one value that is this operation. bounds: what is known of an integer's range, if more than its dtype says.

    Bounds are no part of identity: they must follow from op, src and arg.
    """
    plain = float_bits(arg) if arg.__class__ is float else arg
    key = (op, dtype, lanes, src, plain)
    entry = _table.get(key)
    if entry is not None:
        found = entry()
        if found is not None:
            return found
    value = Value()
    value.op, value.dtype, value.lanes, value.src, value.arg = op, dtype, lanes, src, arg
    value.residue = None
    value.lo, value.hi = dtype.bounds if bounds is None else bounds
    said = plain if op in _OF_NUMBERS else stable(plain)
    value.order = hash((_PLACE[op], dtype.digest, lanes, said, *map(_order, src)))
    if op in ATOMS:
        value.free = frozenset((value,)).union(*map(_free, src)) if src else frozenset((value,))
    elif dtype is INDEX or op is Op.LESS or op is Op.ALL:
        value.free = NO_VALUES.union(*map(_free, src)) if len(src) != 1 else src[0].free
    else:
        value.free = NO_VALUES
    if len(_table) > _room:
        _sweep()
    _table[key] = ref(value)
    return value


_order, _free = attrgetter("order"), attrgetter("free")
_PLACE = {op: op.value for op in Op}
_OF_NUMBERS = frozenset((Op.SUM, Op.LESS, Op.EXTRACT, Op.ACC, Op.LOAD, Op.STORE))  # whose args are numbers, or tuples of numbers alone
ATOMS = frozenset((Op.AXIS, Op.VARIABLE, Op.OPAQUE, Op.SPECIAL, Op.RANGE, Op.INDEX_OF))


def stable(arg: object) -> int:
    """A number of any arg that is the same in every process: of integers and tuples of them Python's own hash is, of text it is not."""
    if arg is None:
        return -1
    if isinstance(arg, int):
        return arg
    if isinstance(arg, tuple):
        return hash(tuple([stable(item) for item in arg]))
    if isinstance(arg, str):
        return crc32(arg.encode())
    if isinstance(arg, DType):
        return arg.digest
    raise TypeError(f"no arg may be a {type(arg).__name__}")


def constant(value: Number, dtype: DType, lanes: int = 1) -> Value:
    """A constant of a data or index type; `value` must be in its range, floats already rounded."""
    if dtype.is_float:
        return make(Op.CONST, dtype, (), float(value), lanes)
    if dtype is BOOL:
        return make(Op.CONST, dtype, (), bool(value), lanes, (int(value), int(value)))
    number = int(value)
    return make(Op.CONST, dtype, (), number, lanes, (number, number))


_COMMUTES = frozenset(op for op, info in OPS.items() if info.commutes and info.arity == 2)


def table_size() -> int:
    """How many values are alive; for tests of leaks."""
    _sweep()
    return len(_table)


def alu(op: Op, *src: Value) -> Value:
    """An elementwise operation; the dtype is the first operand's (the second's of WHERE), BOOL of comparisons.

    Commuting operands are put in canonical order: a constant last, others by their number.
    """
    lanes = src[0].lanes
    if op is Op.WHERE:
        return make(op, src[1].dtype, src, None, src[1].lanes)
    if op in _COMMUTES:
        a, b = src
        if b.op is not Op.CONST and (a.op is Op.CONST or a.order > b.order):
            src = (b, a)
    return make(op, BOOL if op is Op.CMPLT or op is Op.CMPNE else src[0].dtype, src, None, lanes)


def cast(value: Value, dtype: DType) -> Value:
    """`value` converted as the wire's CAST; itself where the type is already this one."""
    return value if value.dtype is dtype else make(Op.CAST, dtype, (value,), None, value.lanes)


def sink(stores: tuple[Value, ...]) -> Value:
    return make(Op.SINK, VOID, stores)


def bits_of(value: float, dtype: DType) -> int:
    """The bit pattern of a float in its own type."""
    match dtype.name:
        case "float64":
            return float_bits(value)
        case "float32":
            return 0x7FC00000 if value != value else int(struct.unpack("<I", struct.pack("<f", value))[0])
        case "float16":
            return 0x7E00 if value != value else int(struct.unpack("<H", struct.pack("<e", value))[0])
        case "bfloat16":
            return 0x7FC0 if value != value else int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16
        case _:
            raise TypeError(f"{dtype} has no float bits")
