"""Element types: width, kind, range, and what a constant becomes in each.

The thirteen types of the wire, and the index integers the compiler uses inside: `INDEX` is an exact integer with floor division. In a
machine graph its bounds prove that 32 bits hold it; what needs more has become `INDEX64`. Neither ever overflows.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from enum import Enum
from zlib import crc32

Number = bool | int | float


class Kind(Enum):
    """What values of a type are."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    INDEX = "index"
    VOID = "void"


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type; compared by identity. bits: the width in memory (a bool is one byte there; of `INDEX`: on a machine), 0 of VOID."""

    name: str
    kind: Kind
    bits: int
    significand: int = 0  # floats: bits of the significand, the hidden one included
    exponent_max: int = 0  # floats: largest exponent e of a finite 1.xxx * 2**e
    digest: int = field(init=False)  # of the name: what canonical orders count with
    bounds: tuple[int | None, int | None] = field(init=False)  # of its values, where they are integers or bools

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", crc32(self.name.encode()) * 31)
        bounded = self.bits > 0 and self.kind is not Kind.FLOAT and self.name != "index"  # exact: each value has bounds of its own
        object.__setattr__(self, "bounds", (int(self.least), int(self.greatest)) if bounded else (None, None))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return (dtype_named, (self.name,))

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Data integers only: neither bool nor an index."""
        return self.kind is Kind.INT or self.kind is Kind.UINT

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.INT

    @property
    def is_index(self) -> bool:
        return self.kind is Kind.INDEX

    @property
    def least(self) -> Number:
        """The least value: what a maximum over nothing is."""
        match self.kind:
            case Kind.BOOL:
                return False
            case Kind.UINT:
                return 0
            case Kind.FLOAT:
                return -math.inf
            case _:
                return -(1 << (self.bits - 1))

    @property
    def greatest(self) -> Number:
        match self.kind:
            case Kind.BOOL:
                return True
            case Kind.UINT:
                return (1 << self.bits) - 1
            case Kind.FLOAT:
                return math.inf
            case _:
                return (1 << (self.bits - 1)) - 1

    def wrap(self, value: int) -> int:
        """An exact integer as this integer type keeps it: the low bits, two's complement."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.kind is not Kind.UINT and value >> (self.bits - 1) else value

    def round(self, value: int | float) -> float:
        """A number as this float type keeps it: one rounding, to nearest even, subnormals kept, the sign of zero too."""
        if isinstance(value, int):
            return _round_integer(value, self)
        if self.significand == 53 or not math.isfinite(value) or value == 0.0:
            return value
        if self is FLOAT32:
            return _single(value)
        _, exponent = math.frexp(value)  # value = m * 2**exponent with 0.5 <= |m| < 1
        if exponent > self.exponent_max + 1:
            return math.copysign(math.inf, value)
        ulp = max(exponent - self.significand, 2 - self.exponent_max - self.significand)  # the latter: of subnormals
        scaled = math.ldexp(value, -ulp)  # exact: a power of two; python's round goes to even
        rounded = math.ldexp(float(round(scaled)), ulp) if abs(scaled) < 2.0**53 else value
        if abs(rounded) >= math.ldexp(1.0, self.exponent_max + 1):
            return math.copysign(math.inf, value)
        return math.copysign(rounded, value)


_SINGLE = struct.Struct("<f")


def _single(value: float) -> float:
    """A finite number as binary32 keeps it: packing rounds once, to nearest even."""
    try:
        rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _round_integer(value: int, dtype: DType) -> float:
    """An exact integer, rounded once; beyond double range it is an infinity."""
    spare = abs(value).bit_length() - dtype.significand
    if spare > 0:
        low = abs(value) & ((1 << spare) - 1)
        kept = abs(value) >> spare
        half = 1 << (spare - 1)
        kept += low > half or (low == half and kept & 1)
        value = (kept << spare) * (1 if value > 0 else -1)
    if abs(value).bit_length() > dtype.exponent_max + 1:
        return math.copysign(math.inf, value)
    return float(value)


BOOL = DType("bool", Kind.BOOL, 8)
INT8 = DType("int8", Kind.INT, 8)
UINT8 = DType("uint8", Kind.UINT, 8)
INT16 = DType("int16", Kind.INT, 16)
UINT16 = DType("uint16", Kind.UINT, 16)
INT32 = DType("int32", Kind.INT, 32)
UINT32 = DType("uint32", Kind.UINT, 32)
INT64 = DType("int64", Kind.INT, 64)
UINT64 = DType("uint64", Kind.UINT, 64)
FLOAT16 = DType("float16", Kind.FLOAT, 16, 11, 15)
BFLOAT16 = DType("bfloat16", Kind.FLOAT, 16, 8, 127)
FLOAT32 = DType("float32", Kind.FLOAT, 32, 24, 127)
FLOAT64 = DType("float64", Kind.FLOAT, 64, 53, 1023)

INDEX = DType("index", Kind.INDEX, 32)
INDEX64 = DType("index64", Kind.INDEX, 64)
VOID = DType("void", Kind.VOID, 0)

DTYPES: dict[str, DType] = {
    d.name: d for d in (BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
}  # the wire's, in its order
_ALL = {d.name: d for d in (*DTYPES.values(), INDEX, INDEX64, VOID)}


def dtype_named(name: str) -> DType:
    """The type of this name, the compiler's own included. Raises KeyError."""
    return _ALL[name]


def float_bits(value: float) -> int:
    """The binary64 pattern of a float; every NaN is the one quiet NaN."""
    return 0x7FF8000000000000 if value != value else struct.unpack("<Q", struct.pack("<d", value))[0]
