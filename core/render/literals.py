"""Constants as text: the type and every bit of the value survive, whatever stands around it."""

from __future__ import annotations

import math

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType, Kind, Number
from core.ir.value import bits_of
from core.render.dialect import Dialect
from core.render.text import PRIMARY, UNARY, Text

_PLAIN = 1e10  # integers up to here are written out


def literal(number: Number, dtype: DType, dialect: Dialect, native_half: bool) -> Text:
    """One scalar constant."""
    if dtype is BOOL:
        return Text(dialect.constants["true" if number else "false"], PRIMARY)
    if dtype is BFLOAT16 or (dtype is FLOAT16 and not native_half):
        return Text(f"0x{bits_of(float(number), dtype):04x}", PRIMARY)
    if dtype.is_float:
        return _float(float(number), dtype, dialect)
    return _integer(int(number), dtype, dialect.suffixes.get(dtype.name, ""))


def _integer(number: int, dtype: DType, suffix: str) -> Text:
    if dtype.kind is not Kind.UINT and dtype.bits >= 32 and number == dtype.least:  # -N is the negation of N, which is too large
        return Text(f"(-{-number - 1}{suffix} - 1)", PRIMARY)
    return Text(f"{number}{suffix}", PRIMARY if number >= 0 else UNARY)


def _float(number: float, dtype: DType, dialect: Dialect) -> Text:
    if not math.isfinite(number):
        word = dialect.constants["nan" if number != number else "inf"]  # both of type float
        sign = "-" if number < 0 else ""
        if dtype is FLOAT32:
            return Text(sign + word, UNARY if sign else PRIMARY)
        return Text(f"({dialect.types[dtype.name]}){sign}{word}", UNARY)
    words = shortest(number, dtype)
    if dtype is FLOAT16:
        return Text(f"({dialect.types[dtype.name]}){words}f", UNARY)
    return Text(words if dtype is FLOAT64 else words + "f", UNARY if words[0] == "-" else PRIMARY)


def shortest(number: float, dtype: DType) -> str:
    """The shortest decimal that reads back as this finite number of the type, also by way of a double; always with a point or exponent."""
    words = repr(number)
    if dtype is not FLOAT64 and not (number.is_integer() and abs(number) < _PLAIN):
        for digits in range(1, 10):
            attempt = f"{number:.{digits}g}"
            read = float(attempt)
            if read == number or (FLOAT32.round(read) == number and _is_clear(read)):
                words = attempt
                break
    return words if "." in words or "e" in words else words + ".0"


def _is_clear(read: float) -> bool:
    """Whether a double and its neighbours are the same float32, so that no double rounding can tell."""
    below, above = math.nextafter(read, -math.inf), math.nextafter(read, math.inf)
    return FLOAT32.round(below) == FLOAT32.round(above)
