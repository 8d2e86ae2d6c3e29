"""NVIDIA's runtime compiler, from wheels: no GPU, no driver. What it accepts is assembled too, inline PTX included."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_QUIET = "Architectures prior to"  # what it says of each text for such an architecture


@dataclass(frozen=True, slots=True)
class Compiled:
    """cubin: bytes of machine code, 0 where the text is refused. log: what the compiler says."""

    cubin: int
    log: str

    @property
    def is_clean(self) -> bool:
        """Accepted without a word."""
        return self.cubin > 0 and not [line for line in self.log.splitlines() if line and _QUIET not in line]


def compiled(source: str, arch: str) -> Compiled:
    """The text for an architecture, with no option but that and where the headers of 16-bit floats are."""
    nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
    headers = Path(next(iter(importlib.import_module("nvidia.cuda_runtime").__path__))) / "include"
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    options = [f"--gpu-architecture={arch}".encode(), f"-I{headers}".encode()]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytearray(size)  # written to: bytes of length 1 are one object for the whole process
    nvrtc.nvrtcGetProgramLog(program, log)
    cubin = 0 if failed else int(nvrtc.nvrtcGetCUBINSize(program)[1])
    nvrtc.nvrtcDestroyProgram(program)
    return Compiled(cubin, log.decode().strip("\0 \n"))


def ptx(source: str, arch: str) -> bytes:
    """The text as PTX for the virtual architecture of the same number."""
    nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
    headers = Path(next(iter(importlib.import_module("nvidia.cuda_runtime").__path__))) / "include"
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"another name.cu", 0, [], [])
    options = [f"--gpu-architecture={arch.replace('sm', 'compute')}".encode(), f"-I{headers}".encode()]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert not failed
    text = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(text).rstrip(b"\0")
