"""What PTX's instructions on registers compute, in numpy, for many threads at once: (type, operands) to a result.

Source of facts: NVIDIA, *Parallel Thread Execution ISA* 8.5, section 9.7. Approximations are taken as exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
TYPES: dict[str, Any] = {
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}, **{f"s{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"b{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}, **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "pred": np.dtype(bool), "bf16": np.dtype(np.uint16), "tf32": np.dtype(np.uint32),
}  # fmt: skip
WIDER = {"f16": np.float64, "f32": np.float64, "f64": np.longdouble}  # what a product of floats is exact in, or nearly


def fused(kind: str, a: Array, b: Array, c: Array) -> Array:
    wide = WIDER[kind]
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(TYPES[kind])


def divided(kind: str, a: Array, b: Array) -> Array:
    safe = np.where(b == 0, np.ones_like(b), b)
    quotient = a // safe
    if kind[0] == "s":  # toward zero
        quotient = quotient + ((a - quotient * safe != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), quotient)


def remainder(kind: str, a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - divided(kind, a, b) * b)


def shifted_left(kind: str, a: Array, by: Array) -> Array:
    bits = a.dtype.itemsize * 8
    return np.where(by >= bits, np.zeros_like(a), a << np.minimum(by, bits - 1).astype(a.dtype))


def shifted_right(kind: str, a: Array, by: Array) -> Array:
    bits = a.dtype.itemsize * 8
    near = a >> np.minimum(by, bits - 1).astype(a.dtype)
    return near if kind[0] == "s" else np.where(by >= bits, np.zeros_like(a), near)


def greatest(kind: str, a: Array, b: Array) -> Array:
    return np.fmax(a, b) if kind[0] == "f" else np.maximum(a, b)


def negative(kind: str, a: Array) -> Array:
    return -a if kind[0] == "f" else np.zeros_like(a) - a


def by_double(function: Callable[[Array], Array]) -> Callable[[str, Array], Array]:
    """A function of float32, computed in float64."""
    return lambda kind, a: function(a.astype(np.float64)).astype(TYPES[kind])


def reciprocal(kind: str, a: Array) -> Array:
    return (1 / a).astype(a.dtype)


COMPUTED: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("add", "add.rn"), lambda kind, a, b: a + b),
    "sub": lambda kind, a, b: a - b,
    "sub.rn": lambda kind, a, b: a - b,
    **dict.fromkeys(("mul.lo", "mul.rn"), lambda kind, a, b: a * b),
    "mad.lo": lambda kind, a, b, c: a * b + c,
    "fma.rn": fused,
    "div": divided,
    "rem": remainder,
    "shr": shifted_right,
    "and": lambda kind, a, b: a & b,
    "or": lambda kind, a, b: a | b,
    "xor": lambda kind, a, b: a ^ b,
    "not": lambda kind, a: ~a,
    "neg": negative,
    "max": greatest,
    "max.NaN": lambda kind, a, b: np.maximum(a, b),
    **dict.fromkeys(("sqrt.rn", "sqrt.approx"), lambda kind, a: np.sqrt(a)),
    **dict.fromkeys(("rcp.rn", "rcp.approx"), reciprocal),
    "ex2.approx": by_double(np.exp2),
    "lg2.approx": by_double(np.log2),
    "sin.approx": by_double(np.sin),
}  # by the instruction's name without its type

COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "lt": lambda a, b: a < b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: (a < b) | (a > b),  # of a NaN false
    "neu": lambda a, b: a != b,
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}


def converted(modifier: str, to: str, of: str, a: Array) -> Array:
    """`cvt` from a value of type `of`, already cut to its width."""
    dtype = TYPES[to]
    if to == "bf16":
        bits = a.view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(a), 0x7FFF, rounded).astype(np.uint16)
    if to == "tf32":  # ties away from zero; a NaN stays one
        bits = a.view(np.uint32)
        return np.where(np.isfinite(a), bits + 0x1000 & ~np.uint32(0x1FFF), bits)
    if of[0] == "f" and to[0] != "f":
        assert modifier == "rzi", "a float becomes an integer toward zero"
        limits = np.iinfo(dtype)
        cut = np.trunc(np.nan_to_num(a.astype(np.longdouble), nan=0.0, posinf=float(limits.max) * 2, neginf=float(limits.min) * 2))
        return np.where(cut >= limits.max, limits.max, np.where(cut <= limits.min, limits.min, cut)).astype(dtype)
    if to == "f16" and of[0] != "f":
        return np.clip(a.astype(np.longdouble), -131072, 131072).astype(np.float64).astype(dtype)
    narrows = to[0] == "f" and (of[0] != "f" or TYPES[of].itemsize > dtype.itemsize)
    assert (modifier == "rn") is narrows, f"cvt.{modifier}.{to}.{of}"
    return a.astype(dtype)
