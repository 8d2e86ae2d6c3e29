"""What programs are rendered in: one Target per language, by the name the wire gives it."""

from core.targets.c import C
from core.targets.cuda import CUDA
from core.targets.hip import HIP
from core.targets.llvm import LLVM
from core.targets.metal import METAL
from core.targets.opencl import OPENCL
from core.targets.ptx import PTX
from core.targets.target import Target
from core.targets.wgsl import WGSL

TARGETS: dict[str, Target] = {target.name: target for target in (OPENCL, C, CUDA, HIP, LLVM, METAL, PTX, WGSL)}

__all__ = ["TARGETS", "Target"]
