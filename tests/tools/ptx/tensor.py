"""`mma.sync` on the registers of warps, by the figures of *Parallel Thread Execution ISA* 8.5, section 9.7.14.5.

With g = lane / 4 and t = lane mod 4 an element's row and column follow from its number i within the lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.linear.interpret import Fault

Array = Any
WARP = 32


def multiplied(shape: str, kind: str, a: list[Array], b: list[Array], c: list[Array]) -> list[Array]:
    """Each lane's elements of D = A·B + C, from the 32-bit registers of A and B and the floats of C, of as many warps as there are."""
    k = {"m16n8k16": 16, "m16n8k8": 8}.get(shape)
    if k is None or kind not in ("f16", "bf16", "tf32"):
        raise Fault(f"no such matrix instruction: {shape} of {kind}")
    left, right = _elements(kind, a), _elements(kind, b)
    lane = np.arange(WARP)
    g, t = lane // 4, lane % 4
    is_pair = kind != "tf32"
    first, second, total = np.full((3, len(c[0]) // WARP, 16, 16), np.nan)  # tiles, or more than they are
    for i, x in enumerate(left):
        row = g + 8 * (i // 2 % 2 if is_pair else i % 2)
        column = 2 * t + i % 2 + 8 * (i // 4) if is_pair else t + 4 * (i // 2)
        first[:, row, column] = x.reshape(-1, WARP)
    for i, x in enumerate(right):
        row = 2 * t + i % 2 + 8 * (i // 2) if is_pair else t + 4 * i
        second[:, row, g] = x.reshape(-1, WARP)
    places = [(g + 8 * (i // 2), 2 * t + i % 2) for i in range(4)]
    for (row, column), x in zip(places, c, strict=True):
        total[:, row, column] = x.reshape(-1, WARP)
    product = np.einsum("wmk,wkn->wmn", first[:, :, :k], second[:, :k, :8]) + total[:, :, :8]
    return [product[:, row, column].reshape(-1).astype(np.float32) for row, column in places]


def _elements(kind: str, registers: list[Array]) -> list[Array]:
    found: list[Array] = []
    for register in registers:
        if kind == "tf32":
            found.append((register & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64))
            continue
        for half in (register & np.uint32(0xFFFF), register >> np.uint32(16)):
            bits = half.astype(np.uint16)
            wide = bits.view(np.float16) if kind == "f16" else (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
            found.append(wide.astype(np.float64))
    return found
