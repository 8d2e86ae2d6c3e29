"""What the client's device is: one field per key of the wire's `device` object, resolved against its target's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DeviceClass = Literal["gpu", "cpu"]
Triple = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class TensorCore:
    """A matrix instruction: D[m, n] = sum over k of A[m, k] * B[k, n] + C[m, n]. dims: M, N, K."""

    dims: tuple[int, int, int]
    operand: str  # dtype of A and B, the wire's "in"
    accumulator: str  # dtype of C and D, the wire's "acc"

    def to_json(self) -> dict[str, object]:
        return {"dims": list(self.dims), "in": self.operand, "acc": self.accumulator}


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """A device as resolved. Limits that are None do not exist; sizes of launches are per axis, x first; memory in bytes."""

    target: str
    device_class: DeviceClass
    arch: str | None
    has_local: bool
    has_shared: bool
    supports_float4: bool
    global_max: Triple | None
    local_max: Triple | None
    lanes_max: int | None
    shared_max: int
    alignment: int
    float16: bool
    float64: bool
    fast_math: bool
    tensor_cores: bool | tuple[TensorCore, ...]

    @property
    def least_shared(self) -> int:
        """Bytes the smallest element of local memory takes: WGSL keeps nothing smaller than a word there."""
        return 4 if self.target == "wgsl" else 1

    def to_json(self) -> dict[str, object]:
        """Every key with its value, as it stands in programs and under the key."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [item.to_json() if isinstance(item, TensorCore) else item for item in value]
    return value
