"""The wire's words as micro-ops, and what a reduce over nothing is."""

from __future__ import annotations

from core.dtypes import BOOL, DType, Number
from core.ir.op import Op

ELEMENTWISE: dict[str, Op] = {
    "NEG": Op.NEG, "EXP2": Op.EXP2, "LOG2": Op.LOG2, "SIN": Op.SIN, "SQRT": Op.SQRT, "RECIP": Op.RECIP, "ADD": Op.ADD, "MUL": Op.MUL,
    "IDIV": Op.IDIV, "MOD": Op.REM, "MAX": Op.MAX, "CMPLT": Op.CMPLT, "CMPNE": Op.CMPNE, "XOR": Op.XOR, "AND": Op.AND, "OR": Op.OR,
    "SHL": Op.SHL, "SHR": Op.SHR, "WHERE": Op.WHERE, "MULACC": Op.MULACC,
}  # fmt: skip

REDUCES: dict[str, Op] = {"REDUCE_SUM": Op.ADD, "REDUCE_MAX": Op.MAX, "REDUCE_MUL": Op.MUL}


def identity(op: str, dtype: DType) -> Number:
    """What a reduce over an empty axis gives: 0 (false), 1 (true), or the dtype's least value."""
    match op:
        case "REDUCE_SUM":
            return False if dtype is BOOL else 0
        case "REDUCE_MUL":
            return True if dtype is BOOL else 1
        case _:
            return dtype.least
