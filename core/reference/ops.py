"""One elementwise node, by what its operands are."""

from __future__ import annotations

from core.dtypes import BOOL
from core.kernel.node import Elementwise
from core.reference import arithmetic, integers
from core.reference.bounded import Bounded
from core.reference.convert import bitcast, cast


def elementwise(node: Elementwise, sources: list[Bounded]) -> Bounded:
    """Its values from those of its operands."""
    first = sources[0]
    match node.op:
        case "CAST":
            return cast(first, node.dtype)
        case "BITCAST":
            return bitcast(first, node.dtype)
        case "WHERE":
            return arithmetic.chosen(first, sources[1], sources[2])
        case "NEG":
            return arithmetic.neg(first) if first.dtype.is_float else integers.negated(first)
        case "MULACC":
            if first.dtype.is_float:
                return arithmetic.mulacc(first, sources[1], sources[2])
            exact = integers.logical if first.dtype is BOOL else integers.binary
            return exact("ADD", exact("MUL", first, sources[1]), sources[2])
        case "EXP2" | "LOG2" | "SIN" | "SQRT" | "RECIP":
            return arithmetic.function(node.op, first)
    if first.dtype.is_float:
        return {
            "ADD": arithmetic.add,
            "MUL": arithmetic.mul,
            "MAX": arithmetic.maximum,
            "CMPLT": arithmetic.less,
            "CMPNE": arithmetic.differs,
        }[node.op](first, sources[1])
    if first.dtype is BOOL:
        return integers.logical(node.op, first, sources[1])
    return integers.binary(node.op, first, sources[1])
