"""Matrix instructions: who of the lanes that execute one together holds which element of each tile.

An instruction gives D = A·B + C of an M×K, a K×N and an M×N tile. A coordinate of a tile is written in bits, lowest first; each of them
is a bit of the lane's number (`w0` the lowest) or of the number the element has within the lane (`e0`). D lies as C does. Where a lane bit
occurs in no coordinate of a tile, lanes that differ in it alone hold the same elements.

Sources: NVIDIA, *Parallel Thread Execution ISA* 8.5, "Matrix Fragments for mma.m16n8k8" and "… mma.m16n8k16"; AMD, *RDNA3 Instruction Set
Architecture*, WMMA, and *CDNA2 Instruction Set Architecture*, MFMA; Apple publishes none, the rows are as observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.device import DeviceOptions, TensorCore

Dim = Literal["m", "n", "k"]
Bit = tuple[str, int]  # "w" or "e", and which


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tile among lanes: per coordinate its bits. elements: how many each lane holds."""

    bits: Mapping[Dim, tuple[Bit, ...]]

    @property
    def elements(self) -> int:
        return 1 << sum(letter == "e" for bits in self.bits.values() for letter, _ in bits)

    def place(self, lane: int, element: int) -> dict[Dim, int]:
        """The coordinates of an element of a lane."""
        number = {"w": lane, "e": element}
        return {dim: sum((number[letter] >> bit & 1) << at for at, (letter, bit) in enumerate(bits)) for dim, bits in self.bits.items()}


@dataclass(frozen=True, slots=True)
class Layout:
    """One instruction. lanes: how many execute it together. a, b, c: its tiles among them; A over m and k, B over k and n, C over m and n.

    family: of instructions that differ in dims and types only.
    """

    family: str
    core: TensorCore
    lanes: int
    a: Fragment
    b: Fragment
    c: Fragment

    @property
    def name(self) -> tuple[str, tuple[int, int, int], str, str]:
        """What tells it from all others; a plain value."""
        return self.family, self.core.dims, self.core.operand, self.core.accumulator

    def size(self, dim: Dim) -> int:
        """The extent of the tiles along a coordinate."""
        return self.core.dims["mnk".index(dim)]

    def __str__(self) -> str:
        m, n, k = self.core.dims
        return f"{m}x{n}x{k} of {self.core.operand} into {self.core.accumulator}"


def _bits(text: str) -> tuple[Bit, ...]:
    return tuple((word[0], int(word[1:])) for word in text.split())


def _rows(
    family: str, dims: tuple[int, int, int], types: str, lanes: int, a: tuple[str, str], b: tuple[str, str], c: tuple[str, str]
) -> tuple[Layout, ...]:
    """A layout for each `in>acc` of `types`. a: the bits of m and of k; b: of k and n; c: of m and n."""
    fragments = (
        Fragment({"m": _bits(a[0]), "k": _bits(a[1])}),
        Fragment({"k": _bits(b[0]), "n": _bits(b[1])}),
        Fragment({"m": _bits(c[0]), "n": _bits(c[1])}),
    )
    return tuple(Layout(family, TensorCore(dims, *pair.split(">")), lanes, *fragments) for pair in types.split())


_NVIDIA_C = ("w2 w3 w4 e1", "e0 w0 w1")
_NVIDIA_K16 = _rows(
    "nvidia", (16, 8, 16), "float16>float32 bfloat16>float32", 32,
    ("w2 w3 w4 e1", "e0 w0 w1 e2"), ("e0 w0 w1 e1", "w2 w3 w4"), _NVIDIA_C,
)  # fmt: skip
_NVIDIA_K8 = _rows("nvidia", (16, 8, 8), "float16>float32", 32, ("w2 w3 w4 e1", "e0 w0 w1"), ("e0 w0 w1", "w2 w3 w4"), _NVIDIA_C)
_NVIDIA_TF32 = _rows("nvidia", (16, 8, 8), "float32>float32", 32, ("w2 w3 w4 e0", "w0 w1 e1"), ("w0 w1 e0", "w2 w3 w4"), _NVIDIA_C)
_RDNA3 = _rows(
    "rdna3", (16, 16, 16), "float16>float32 float16>float16", 32,
    ("w0 w1 w2 w3", "e0 e1 e2 e3"), ("e0 e1 e2 e3", "w0 w1 w2 w3"), ("w4 e0 e1 e2", "w0 w1 w2 w3"),
)  # fmt: skip
_CDNA_C = ("e0 e1 w4 w5", "w0 w1 w2 w3")
_CDNA = _rows(
    "cdna", (16, 16, 16), "float16>float32 bfloat16>float32", 64,
    ("w0 w1 w2 w3", "e0 e1 w4 w5"), ("e0 e1 w4 w5", "w0 w1 w2 w3"), _CDNA_C,
) + _rows("cdna", (16, 16, 4), "float32>float32", 64, ("w0 w1 w2 w3", "w4 w5"), ("w4 w5", "w0 w1 w2 w3"), _CDNA_C)  # fmt: skip
_APPLE = _rows("apple", (8, 8, 8), "float32>float32 float16>float32 float16>float16", 32, *[("w1 w2 w4", "e0 w0 w3")] * 3)

LAYOUTS: tuple[Layout, ...] = (*_NVIDIA_K16, *_NVIDIA_K8, *_NVIDIA_TF32, *_RDNA3, *_CDNA, *_APPLE)
_NAMED = {layout.name: layout for layout in LAYOUTS}


def is_layout(name: object) -> bool:
    """Whether some layout has this name."""
    return isinstance(name, tuple) and name in _NAMED


def layout_named(name: object) -> Layout:
    """The layout of this name. Raises KeyError."""
    return _NAMED[name]  # type: ignore[index]  # any other object is no key


def layouts_of(target: str, arch: str | None, fast_math: bool) -> tuple[Layout, ...]:
    """The instructions of a target at an architecture, perhaps none; those to prefer first.

    tf32 keeps ten bits of what a float32 product promises to take whole, so only fast_math has it.
    """
    if target in ("cuda", "ptx") and arch is not None:
        capability = int("".join(c for c in arch if c.isdigit()))
        ampere = (*_NVIDIA_K16, *_NVIDIA_K8, *(_NVIDIA_TF32 if fast_math else ()))
        return ampere if capability >= 80 else _NVIDIA_K8 if capability >= 75 else ()
    if target == "hip" and arch is not None:
        return _RDNA3 if arch.startswith("gfx11") else _CDNA if arch in ("gfx90a", "gfx942") else ()
    return _APPLE if target == "metal" else ()


def layouts_for(device: DeviceOptions) -> tuple[Layout, ...]:
    """The instructions a request allows, those to prefer first."""
    chosen = device.tensor_cores
    if chosen is False:
        return ()
    found = layouts_of(device.target, device.arch, device.fast_math)
    return found if chosen is True else tuple(layout for core in chosen for layout in found if layout.core == core)
