"""What a listing does: operations, bytes moved, and which accesses its arguments have to be fit for.

Counts what runs, index arithmetic and padding included; `core.assemble` sets it beside what the kernel's nodes say. Neither influences the
code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce as fold
from math import prod

from core.fragments import layout_named
from core.index import multiply, number, scale
from core.index.linear import weighted
from core.ir.op import OPS, Op
from core.ir.parts import coefficients, integer, moved, param, shared
from core.ir.value import Value
from core.linear.listing import Listing

_FREE = frozenset((Op.CAST, Op.BITCAST, Op.ROUND))  # conversions, as moves
_COUNTED_APART = frozenset((Op.LOAD, Op.STORE, Op.SUM, Op.PRODUCT, Op.MMA, Op.RANGE, Op.IF, Op.END))
_PER_LANE = {op: int(info.elementwise and op not in _FREE) for op, info in OPS.items() if op not in _COUNTED_APART}
_PER_LANE |= {Op.MULACC: 2, Op.DIV: 1, Op.MOD: 1, Op.LESS: 1}


Amount = int | Value  # an expression only where it depends on variables


@dataclass(frozen=True, slots=True)
class Count:
    """operations, moved: arithmetic and bytes to and from buffers, of all work-items together, each loop's turns counted.

    widest: by number of a buffer, the lanes of the widest access that assumes alignment. shared_bytes: local memory of a work-group.
    """

    operations: Amount
    moved: Amount
    widest: Mapping[int, int]
    shared_bytes: int


def count(listing: Listing, work_items: Amount, least_shared: int = 1) -> Count:
    """What a listing does in a launch of so many work-items. least_shared: bytes the smallest element of local memory takes."""
    turns = [work_items]
    spent: list[tuple[Amount, int, int]] = []  # how often, operations, bytes
    widest: dict[int, int] = {}
    arrays: set[Value] = set()
    operations = size = 0
    for v in listing.body:
        op = v.op
        per_lane = _PER_LANE.get(op)
        if per_lane is not None:
            operations += per_lane * v.lanes
        elif op is Op.LOAD or op is Op.STORE:
            array, lanes = v.src[0], moved(v).lanes
            if array.op is Op.PARAM:
                size += lanes * array.dtype.itemsize
                facts = param(array)
                if facts.image is None and lanes > widest.get(facts.number, 1) and lanes * array.dtype.itemsize <= facts.alignment:
                    widest[facts.number] = lanes
            else:
                arrays.add(array)
        elif op is Op.SUM or op is Op.PRODUCT:
            operations += _of_index(v)
        elif op is Op.MMA:
            layout = layout_named(v.arg)
            operations += 2 * prod(layout.core.dims) // layout.lanes  # a lane's share
        else:
            spent.append((turns[-1], operations, size))
            operations = size = 0
            if op is Op.END:
                turns.pop()
            else:
                turns.append(product((turns[-1], exact(v.src[0]))) if op is Op.RANGE else turns[-1])
    spent.append((turns[-1], operations, size))
    return Count(
        total([(often, operations) for often, operations, _ in spent]),
        total([(often, size) for often, _, size in spent]),
        widest,
        sum([max(a.dtype.itemsize, least_shared) * shared(a).elements for a in arrays]),
    )


def _of_index(v: Value) -> int:
    """Additions and multiplications of a SUM or PRODUCT."""
    if v.op is Op.PRODUCT:
        return len(v.src) - 1
    part, factors = coefficients(v)
    return len(factors) - 1 + bool(part) + sum([abs(c) != 1 for c in factors])


def product(factors: Iterable[Amount]) -> Amount:
    """The product of sizes."""
    whole = 1
    symbolic: list[Value] = []
    for factor in factors:
        if isinstance(factor, int):
            whole *= factor
        elif factor.op is Op.CONST:
            whole *= integer(factor)
        else:
            symbolic.append(factor)
    return scale(fold(multiply, symbolic), whole) if symbolic and whole else whole


def total(parts: Iterable[tuple[Amount, int]]) -> Amount:
    """The sum of amounts, each so many times."""
    whole = 0
    symbolic: list[tuple[Value, int]] = []
    for amount, times in parts:
        if isinstance(amount, int):
            whole += amount * times
        else:
            symbolic.append((amount, times))
    return weighted(whole, [x for x, _ in symbolic], [n for _, n in symbolic]) if symbolic else whole


def exact(x: Value) -> Value:
    """A machine size as an exact value again: a constant or an expression of variables."""
    match x.op:
        case Op.CONST:
            return number(integer(x))
        case Op.CAST:
            return exact(x.src[0])
        case Op.SUM:
            part, factors = coefficients(x)
            return weighted(part, map(exact, x.src), factors)
        case Op.PRODUCT:
            return fold(multiply, map(exact, x.src))
        case _:
            return number(x.hi or 0)
