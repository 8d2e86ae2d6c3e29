"""PTX, NVIDIA's assembly language, as a driver takes it: one module of one kernel for the architecture that `arch` names."""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import FLOAT32, FLOAT64
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import ptx
from core.targets.defaults import GRID, NVIDIA, gpu
from core.targets.target import Target

# The first versions of the language that know an architecture (PTX ISA, "Release Notes"). What is not here 7.8 knows; a low version is
# taken by old drivers too.
_VERSION = "7.8"
_VERSIONS = {
    "sm_90a": "8.0", "sm_100": "8.6", "sm_100a": "8.6", "sm_120": "8.7", "sm_120a": "8.7", "sm_103": "8.8", "sm_103a": "8.8",
    "sm_121": "8.8", "sm_110": "9.0",
}  # fmt: skip

MACHINE = Machine(
    target="ptx",
    vectors=True,
    images=False,
    saturates=True,
    computes_vectors=False,
    total=True,
    software=frozenset(((Op.EXP2, FLOAT64), (Op.LOG2, FLOAT64), (Op.SIN, FLOAT64))),
    rough=frozenset(((Op.LOG2, FLOAT32), (Op.SIN, FLOAT32))),
)


def render(listing: Listing, device: DeviceOptions) -> str:
    """A module of one kernel."""
    return ptx.render(listing, device, _VERSIONS.get(str(device.arch), _VERSION))


_DEFAULTS = gpu("ptx", "sm_80", GRID, (1024, 1024, 64), 1024, 49152, alignment=16, float16=True, float64=True)
PTX = Target(
    name="ptx", file_suffix="ptx", defaults=_DEFAULTS, machine=MACHINE, render=render, called=False, gpu_only=True,
    arches=NVIDIA, binaries=("cubin",),
)  # fmt: skip
