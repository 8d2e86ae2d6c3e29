"""Estimates: floating and integer operations and bytes moved, from the kernel and from the listing; the smaller of each is reported.

The kernel's count knows each element once but nothing of what simplification removed; the listing's counts what runs, index arithmetic
and padding included. Neither influences the code.
"""

from __future__ import annotations

from core.index import add, multiply, number, scale
from core.ir.op import OPS, Op
from core.ir.parts import access, coefficients, integer
from core.ir.value import Value
from core.linear.listing import Listing

_FREE = frozenset((Op.CAST, Op.BITCAST, Op.ROUND))


def smaller(x: Value, y: Value) -> Value:
    """The estimate with the smaller maximum."""
    return y if (y.hi or 0) < (x.hi or 0) else x


def listing_cost(listing: Listing, work_items: Value) -> tuple[Value, Value]:
    """(operations, bytes) of all work-items together; loops count their trips."""
    trips = [work_items]
    operations: Value = number(0)
    moved: Value = number(0)
    count, size = 0, 0
    for v in listing.body:
        if v.op in (Op.RANGE, Op.IF, Op.END):
            operations, moved = add(operations, scale(trips[-1], count)), add(moved, scale(trips[-1], size))
            count = size = 0
            if v.op is Op.END:
                trips.pop()
            else:
                trips.append(multiply(trips[-1], exact(v.src[0])) if v.op is Op.RANGE else trips[-1])
        else:
            count += operations_of(v)
            size += bytes_of(v)
    return add(operations, scale(trips[-1], count)), add(moved, scale(trips[-1], size))


def operations_of(v: Value) -> int:
    """Arithmetic of one value: a lane counts one, a multiply-add two; conversions and moves nothing."""
    if v.op is Op.SUM:
        part, factors = coefficients(v)
        return len(factors) - 1 + bool(part) + sum(abs(c) != 1 for c in factors)
    if v.op is Op.PRODUCT:
        return len(v.src) - 1
    if v.op in (Op.DIV, Op.MOD, Op.LESS):
        return 1
    if v.op in _FREE or not OPS[v.op].elementwise:
        return 0
    return v.lanes * (2 if v.op is Op.MULACC else 1)


def bytes_of(v: Value) -> int:
    """Bytes a load or store moves between the work-item and a buffer."""
    if v.op not in (Op.LOAD, Op.STORE) or v.src[0].op is not Op.PARAM:
        return 0
    stored = access(v).stored
    lanes = v.lanes if stored is None else stored.lanes
    return lanes * v.src[0].dtype.itemsize


def exact(x: Value) -> Value:
    """A machine size as an exact value again: a constant or an expression of variables."""
    match x.op:
        case Op.CONST:
            return number(integer(x))
        case Op.CAST:
            return exact(x.src[0])
        case Op.SUM:
            part, factors = coefficients(x)
            total = number(part)
            for c, t in zip(factors, x.src, strict=True):
                total = add(total, scale(exact(t), c))
            return total
        case Op.PRODUCT:
            result = number(1)
            for t in x.src:
                result = multiply(result, exact(t))
            return result
        case _:
            return number(x.hi or 0)
