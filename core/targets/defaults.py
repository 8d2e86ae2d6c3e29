"""What target files are made of: default options of a gpu and of a processor, and the architectures of the makers of gpus."""

from __future__ import annotations

from core.device import DeviceOptions, TensorCore, Triple
from core.fragments import layouts_of


def gpu(
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


def cpu(target: str, float16: bool) -> DeviceOptions:
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


GRID: Triple = (2147483647, 65535, 65535)  # work-groups of a launch of CUDA's and HIP's runtimes

# Architectures known by name: they select dtypes and tensor cores.
_SM = "70 72 75 80 86 87 89 90 90a 100 100a 103 103a 110 120 120a 121"
_GFX = "906 908 90a 940 941 942 950 1030 1031 1032 1100 1101 1102 1103 1150 1151 1152 1200 1201"
NVIDIA = tuple(f"sm_{number}" for number in _SM.split())
AMD = tuple(f"gfx{number}" for number in _GFX.split())


def tensor_cores_of(target: str, arch: str | None, fast_math: bool = False) -> tuple[TensorCore, ...]:
    """The matrix instructions of a target at an architecture, perhaps none."""
    return tuple(layout.core for layout in layouts_of(target, arch, fast_math))
