"""Constants as text: shortest that reads back, typed, and no trap of the language."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT32, UINT64, DType, Number
from core.render.literals import literal, shortest
from core.targets.c import DIALECT as C
from core.targets.opencl import DIALECT as OPENCL


@pytest.mark.parametrize(
    ("number", "dtype", "opencl", "c"),
    [
        (1.0, FLOAT32, "1.0f", "1.0f"),
        (-0.0, FLOAT32, "-0.0f", "-0.0f"),
        (FLOAT32.round(0.1), FLOAT32, "0.1f", "0.1f"),
        (1e-45, FLOAT32, "1e-45f", "1e-45f"),
        (math.inf, FLOAT32, "INFINITY", "INFINITY"),
        (-math.inf, FLOAT64, "(double)-INFINITY", "(double)-INFINITY"),
        (math.nan, FLOAT32, "NAN", "NAN"),
        (0.1, FLOAT64, "0.1", "0.1"),
        (1e300, FLOAT64, "1e+300", "1e+300"),
        (1.5, FLOAT16, "(half)1.5f", "(_Float16)1.5f"),
        (1.5, BFLOAT16, "0x3fc0", "0x3fc0"),
        (-(2**31), INT32, "(-2147483647 - 1)", "(-2147483647 - 1)"),
        (-(2**63), INT64, "(-9223372036854775807L - 1)", "(-9223372036854775807LL - 1)"),
        (3_000_000_000, UINT32, "3000000000u", "3000000000u"),
        (2**64 - 1, UINT64, "18446744073709551615ul", "18446744073709551615ull"),
        (-128, INT8, "-128", "-128"),
        (True, BOOL, "true", "1"),
    ],
)
def test_constants_are_spelled(number: Number, dtype: DType, opencl: str, c: str) -> None:
    assert opencl == literal(number, dtype, OPENCL, native_half=True).words
    assert c == literal(number, dtype, C, native_half=True).words


def test_a_half_that_is_an_integer_is_its_bits() -> None:
    assert "0x3e00" == literal(1.5, FLOAT16, C, native_half=False).words


@given(st.integers(0, 0x7F7FFFFF))
def test_every_float32_reads_back(bits: int) -> None:
    number = struct.unpack("<f", struct.pack("<I", bits))[0]
    words = shortest(number, FLOAT32)

    assert number == struct.unpack("<f", struct.pack("<f", float(words)))[0]
    assert "." in words or "e" in words
    assert len(words) <= 14
