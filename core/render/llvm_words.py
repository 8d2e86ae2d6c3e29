"""Types and constants of LLVM IR."""

from __future__ import annotations

import math
from fractions import Fraction

from core.dtypes import BOOL, FLOAT16, FLOAT64, DType, Number
from core.ir.value import bits_of

TYPES = {
    "bool": "i1", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32", "int64": "i64",
    "uint64": "i64", "float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double", "index": "i32", "index64": "i64",
}  # fmt: skip
_MANGLED = {"half": "f16", "float": "f32", "double": "f64"}  # within the names of intrinsics
_LONGEST_DECIMAL = 8  # characters; what is longer is written by its bits


def lanes_of(word: str, lanes: int) -> str:
    """The type of so many values of a type."""
    return word if lanes == 1 else f"<{lanes} x {word}>"


def mangled(word: str, lanes: int) -> str:
    """A type as the name of an intrinsic has it."""
    return ("" if lanes == 1 else f"v{lanes}") + _MANGLED.get(word, word)


def repeated(words: str, word: str, lanes: int) -> str:
    """A constant in every lane."""
    if lanes == 1:
        return words
    return "zeroinitializer" if words in ("0", "0.0", "false") else f"<{', '.join([f'{word} {words}'] * lanes)}>"


def literal(number: Number, dtype: DType, *, as_bits: bool) -> str:
    """One scalar constant, exactly. as_bits: of a 16-bit float that is kept as an integer."""
    if dtype is BOOL:
        return "true" if number else "false"
    if not dtype.is_float:
        return str(int(number))
    number = float(number)
    if as_bits:
        return str(bits_of(number, dtype))
    if math.isfinite(number):
        words = repr(number)
        if "e" not in words and len(words) <= _LONGEST_DECIMAL and Fraction(words) == Fraction(number):
            return words
    # a float is written by the bits of the double of the same value (LLVM Language Reference, "Simple Constants")
    return f"0xH{bits_of(number, FLOAT16):04X}" if dtype is FLOAT16 else f"0x{bits_of(number, FLOAT64):016X}"
