"""What each operation takes: one row per op of the wire, for the reader, the checks and whoever lists them."""

from __future__ import annotations

from dataclasses import dataclass

from core.dtypes import DType, Kind


@dataclass(frozen=True, slots=True)
class Takes:
    """A set of element types, and what it is called in a message."""

    words: str
    kinds: frozenset[Kind]

    def __contains__(self, dtype: DType) -> bool:
        return dtype.kind in self.kinds


ANY = Takes("any dtype", frozenset((Kind.BOOL, Kind.INT, Kind.UINT, Kind.FLOAT)))
FLOATS = Takes("a float dtype", frozenset((Kind.FLOAT,)))
INTEGERS = Takes("an integer dtype", frozenset((Kind.INT, Kind.UINT)))
BITS = Takes("an integer dtype or bool", frozenset((Kind.BOOL, Kind.INT, Kind.UINT)))


@dataclass(frozen=True, slots=True)
class Operation:
    """operands: how many; takes: of which dtype they may be."""

    operands: int
    takes: Takes


ELEMENTWISE: dict[str, Operation] = {
    "NEG": Operation(1, ANY),
    "EXP2": Operation(1, FLOATS),
    "LOG2": Operation(1, FLOATS),
    "SIN": Operation(1, FLOATS),
    "SQRT": Operation(1, FLOATS),
    "RECIP": Operation(1, FLOATS),
    "ADD": Operation(2, ANY),
    "MUL": Operation(2, ANY),
    "IDIV": Operation(2, INTEGERS),
    "MOD": Operation(2, INTEGERS),
    "MAX": Operation(2, ANY),
    "CMPLT": Operation(2, ANY),
    "CMPNE": Operation(2, ANY),
    "XOR": Operation(2, BITS),
    "AND": Operation(2, BITS),
    "OR": Operation(2, BITS),
    "SHL": Operation(2, INTEGERS),
    "SHR": Operation(2, INTEGERS),
    "WHERE": Operation(3, ANY),
    "MULACC": Operation(3, ANY),
}
CONVERSIONS = ("CAST", "BITCAST")
REDUCES = ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MUL")
LEAVES = ("LOAD", "CONST", "STORE")
OPS = (*LEAVES, *CONVERSIONS, *ELEMENTWISE, *REDUCES)

SHIFTS = frozenset(("SHL", "SHR"))  # the amount may be of another integer dtype than what is shifted
