"""NVIDIA's runtime compiler as it comes in wheels (extra `cuda`): no GPU, no driver, no other compiler. Loaded by the worker."""

from __future__ import annotations

import importlib
import resource
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core import TargetError
from service.binaries.binary import Tool
from service.binaries.compiler import Task
from service.errors import OutOfMemory

LIBRARY, HEADERS = "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12"
OUT_OF_MEMORY = 1  # NVRTC_ERROR_OUT_OF_MEMORY


class Nvrtc:
    """Machine code for a real architecture, PTX for the virtual one of the same number."""

    name = "nvrtc"

    def find(self, path: str) -> Tool | None:
        try:
            headers = find_spec("nvidia.cuda_runtime") if find_spec("cuda.bindings") else None
            if headers is None or not headers.submodule_search_locations:
                return None
            told = f"{version(LIBRARY)}, headers {version(HEADERS)}"
        except (ImportError, PackageNotFoundError):
            return None
        return Tool(told, facts={"headers": str(Path(headers.submodule_search_locations[0]) / "include")})

    def architectures(self, tool: Tool) -> Sequence[str]:
        return ()

    def options(self, format_: str, arch: str) -> tuple[str, ...]:
        return (f"--gpu-architecture={arch.replace('sm_', 'compute_') if format_ == 'ptx' else arch}",)

    def compile(self, task: Task) -> bytes:
        nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
        arch = task.recipe.arch
        known = [f"sm_{number}" for number in nvrtc.nvrtcGetSupportedArchs()[1]]
        if arch.rstrip("af") not in known:
            raise TargetError(
                "/device/arch", target="cuda", feature=f"architecture {arch} in this version of NVRTC, which knows {', '.join(known)}"
            )
        _, program = nvrtc.nvrtcCreateProgram(task.source.encode(), b"kernel.cu", 0, [], [])
        options = [*task.recipe.options, f"-I{task.tool.facts['headers']}"]
        (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if int(failed) == OUT_OF_MEMORY:
            raise OutOfMemory(allowed=resource.getrlimit(resource.RLIMIT_AS)[0])
        if failed:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = bytearray(size)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise task.rejected(log.decode(errors="replace").strip("\0 \n") or str(failed))
        size_of, get = ("nvrtcGetPTXSize", "nvrtcGetPTX") if task.recipe.format == "ptx" else ("nvrtcGetCUBINSize", "nvrtcGetCUBIN")
        _, size = getattr(nvrtc, size_of)(program)
        if size > task.most_bytes:
            raise task.too_large(size)
        binary = bytearray(size)
        getattr(nvrtc, get)(program, binary)
        nvrtc.nvrtcDestroyProgram(program)
        return bytes(binary).rstrip(b"\0") if task.recipe.format == "ptx" else bytes(binary)


NVRTC = Nvrtc()
