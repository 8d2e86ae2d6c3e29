"""Which narrow floats are only moved: loaded, chosen and stored again, or looked at as bits.

So are those a matrix instruction takes. Such a value keeps its type, so that a NaN leaves with the sign and payload it came with. One array
is accessed in one way throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.dtypes import DType
from core.ir.op import Op
from core.ir.parts import access
from core.ir.value import Value


@dataclass(frozen=True, slots=True)
class Moved:
    """arrays: PARAMs and SHAREDs accessed as bits. values: WHEREs, VECTORs and EXTRACTs that choose and order bits."""

    arrays: frozenset[Value]
    values: frozenset[Value]


def find_moved(order: list[Value], narrow: frozenset[DType]) -> Moved:
    """order: every value after its operands."""
    if not any(v.dtype in narrow for v in order):
        return Moved(frozenset(), frozenset())
    movers: set[Value] = set()  # values that may be had as bits without a conversion
    for value in order:
        if value.dtype in narrow and (value.op in (Op.LOAD, Op.BITCAST) or (value.op in _CHOOSE and any(s in movers for s in value.src))):
            movers.add(value)
    arrays: set[Value] = set()
    wanted: set[Value] = set()
    for value in reversed(order):
        if value.op is Op.STORE:
            parts = access(value)
            stored = parts.stored
            if stored is not None and stored.dtype in narrow and stored in movers:
                arrays.add(parts.array)
                wanted.add(stored)
        elif value.op is Op.MMA:
            wanted.update(s for s in value.src if s.dtype in narrow)
        elif value.op is Op.BITCAST and value.src[0].dtype in narrow:
            wanted.add(value.src[0])
        elif value in wanted and value in movers:
            if value.op is Op.LOAD:
                arrays.add(value.src[0])
            elif value.op in _CHOOSE:
                wanted.update(value.src)
    arrays.update(v for v in order if v.op is Op.SHARED and v.dtype in narrow)
    return Moved(frozenset(arrays), frozenset(v for v in wanted & movers if v.op in _CHOOSE))


_CHOOSE = frozenset((Op.WHERE, Op.VECTOR, Op.EXTRACT))
