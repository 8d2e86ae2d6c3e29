"""What each target is where a request does not say otherwise, and what it has no way to use.

All eight targets of the wire are here.
"""

from __future__ import annotations

from core.device import DeviceOptions, TensorCore, Triple
from core.fragments import layouts_of


def _gpu(
    target: str,
    arch: str | None,
    global_max: Triple | None,
    local_max: Triple | None,
    lanes_max: int,
    shared_max: int,
    alignment: int,
    float16: bool,
    float64: bool,
) -> DeviceOptions:
    return DeviceOptions(
        target=target,
        device_class="gpu",
        arch=arch,
        has_local=True,
        has_shared=True,
        supports_float4=True,
        global_max=global_max,
        local_max=local_max,
        lanes_max=lanes_max,
        shared_max=shared_max,
        alignment=alignment,
        float16=float16,
        float64=float64,
        fast_math=False,
        tensor_cores=True,
    )


def _cpu(target: str, float16: bool) -> DeviceOptions:
    return DeviceOptions(
        target=target,
        device_class="cpu",
        arch=None,
        has_local=False,
        has_shared=False,
        supports_float4=False,
        global_max=None,
        local_max=None,
        lanes_max=None,
        shared_max=0,
        alignment=16,
        float16=float16,
        float64=True,
        fast_math=False,
        tensor_cores=True,
    )


_GRID: Triple = (2147483647, 65535, 65535)

DEFAULTS: dict[str, DeviceOptions] = {
    # target, arch, global_max, local_max, lanes_max, shared_max, alignment, float16, float64
    "opencl": _gpu("opencl", None, None, None, 256, 32768, 128, False, True),
    "cuda": _gpu("cuda", "sm_80", _GRID, (1024, 1024, 64), 1024, 49152, 16, True, True),
    "hip": _gpu("hip", "gfx1100", _GRID, (1024, 1024, 1024), 1024, 65536, 16, True, True),
    "metal": _gpu("metal", None, None, (1024, 1024, 1024), 1024, 32768, 16, True, False),
    "c": _cpu("c", False),
    "llvm": _cpu("llvm", True),
    "ptx": _gpu("ptx", "sm_80", _GRID, (1024, 1024, 64), 1024, 49152, 16, True, True),
    "wgsl": _gpu("wgsl", None, (65535, 65535, 65535), (256, 256, 64), 256, 16384, 16, False, False),
}

CALLED = frozenset(("c", "llvm"))  # a plain function: nothing is launched, so there are no work-items, groups or limits on them
NO_VECTORS = frozenset(("c",))  # plain ISO C has no vector types; its compiler makes vectors of loops
LACKS: dict[str, frozenset[str]] = {  # dtypes a language has not, whatever its device
    "metal": frozenset(("float64",)),
    "wgsl": frozenset(("int64", "uint64", "float64")),
}
FOUR_LANES = frozenset(("cuda", "hip", "metal", "ptx", "wgsl"))  # languages of gpus alone: a cpu's wide values do not exist

# Architectures known by name, where one selects dtypes and tensor cores.
_NVIDIA = "70 72 75 80 86 87 89 90 90a 100 100a 103 103a 110 120 120a 121"
_AMD = "906 908 90a 940 941 942 950 1030 1031 1032 1100 1101 1102 1103 1150 1151 1152 1200 1201"
ARCHES: dict[str, tuple[str, ...]] = {
    "cuda": tuple(f"sm_{number}" for number in _NVIDIA.split()),
    "hip": tuple(f"gfx{number}" for number in _AMD.split()),
}
ARCHES["ptx"] = ARCHES["cuda"]

# Binary formats a target's text can be compiled to; the first is its usual one.
BINARIES: dict[str, tuple[str, ...]] = {
    "opencl": ("clbin", "spirv"),
    "cuda": ("cubin", "ptx"),
    "hip": ("hsaco",),
    "metal": (),
    "c": ("so",),
    "llvm": ("so",),
    "ptx": ("cubin",),
    "wgsl": ("spirv",),
}


def tensor_cores_of(target: str, arch: str | None, fast_math: bool = False) -> tuple[TensorCore, ...]:
    """The matrix instructions of a target at an architecture, perhaps none."""
    return tuple(layout.core for layout in layouts_of(target, arch, fast_math))
