"""Is what a program left in a buffer what the kernel means?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.dtypes import DType
from core.reference.bounded import Array, from_stored, ulp, wide
from core.reference.evaluate import Result


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one output buffer compares.

    compared: elements with something to compare (the others may hold anything). worst_ulp: the largest distance from the reference among
    right and wrong ones, in units of the last place of the reference's value; of integers the plain distance; None where it is not a
    number (a NaN, an infinity that should not be there). worst_share: the largest part of its tolerance a right element uses up.
    """

    compared: int
    wrong: int
    first_wrong: int | None
    worst_ulp: float | None
    worst_share: float


def compare(got: Array, expected: Result, dtype: DType, *, fast_math: bool = False) -> Agreement:
    """`got`: the buffer's elements as stored. fast_math: without the rules on NaN, infinities, signs of zero and accuracy."""
    if got.dtype != expected.values.dtype or got.shape != expected.values.shape:
        raise ValueError(f"a buffer of {got.shape} {got.dtype}, expected {expected.values.shape} {expected.values.dtype}")
    same = _bits(got) == _bits(expected.values)
    comparable = ~np.isinf(expected.tolerance)
    if not dtype.is_float:
        right = same | ~comparable
        away = np.abs(got.astype(np.float64) - expected.values.astype(np.float64))
        share = np.zeros(())
    else:
        with np.errstate(all="ignore"):
            x, y = wide(from_stored(got, dtype)), wide(from_stored(expected.values, dtype))
            away = np.where(same | (x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
            tolerance = expected.tolerance
            if fast_math:
                comparable = comparable & np.isfinite(y)
                tolerance = np.maximum(4 * tolerance, FAST_MATH_ULPS * ulp(np.abs(y), dtype))
            right = same | ~comparable | ((tolerance > 0) & ((away <= tolerance) | (np.isnan(x) & np.isnan(y))))
            share = np.where((tolerance > 0) & comparable & right, away / tolerance, 0.0)
            away = away / ulp(np.abs(y), dtype)
    wrong = np.flatnonzero(~right)
    seen = away[comparable]
    worst = float(seen.max()) if seen.size else 0.0
    return Agreement(
        compared=int(comparable.sum()),
        wrong=len(wrong),
        first_wrong=int(wrong[0]) if len(wrong) else None,
        worst_ulp=worst if np.isfinite(worst) else None,
        worst_share=float(share.max()) if share.size else 0.0,
    )


FAST_MATH_ULPS = 4096  # of a value; what speed may cost is not promised, a wrong element is much further off


def _bits(elements: Array) -> Array:
    return np.ascontiguousarray(elements).view(f"u{elements.dtype.itemsize}")
