"""A fresh client process: fetches programs, and makes them ready to run by its own compiler or by the service's binaries.

    python -m bench.start_client TARGET own|stored PORT < keys      prints a JSON object

Counted from when libraries are imported and a device is there to when the last program could run: for OpenCL, has run once.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from service.binaries.cc import GCC
from service.binaries.nvrtc import NVRTC
from service.binaries.opencl import largest_launch
from service.binaries.opencl_program import given

Json = dict[str, Any]
FORMATS = {"c": "so", "cuda": "cubin", "opencl": "clbin"}
Ready = Callable[[Json, bytes | None], None]  # a program, and its binary where the service has made it


def cpu_s() -> float:
    """Of this process and those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main(words: list[str]) -> None:
    target, way, port = words
    keys = sys.stdin.read().split()
    ready = {"c": shared_object, "cuda": cubin, "opencl": opencl}[target]()
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)

    def got(path: str) -> bytes:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status} {body[:200]!r}")
        return body

    cpu, wall = cpu_s(), time.perf_counter()
    size = 0
    for key in keys:
        program = json.loads(got(f"/program/{key}"))
        binary = got(f"/program/{key}/binary/{FORMATS[target]}") if way == "stored" else None
        size += len(binary or b"")
        ready(program, binary)
    print(json.dumps({"cpu_s": cpu_s() - cpu, "wall_s": time.perf_counter() - wall, "bytes": size}))
    sys.stdout.flush()
    os._exit(0)


def shared_object() -> Ready:
    """As the service calls gcc, and dlopen."""
    folder = Path(tempfile.mkdtemp(prefix="lathe-bench-"))
    options = GCC.options("so", "x86-64")
    held: list[ctypes.CDLL] = []

    def ready(program: Json, binary: bytes | None) -> None:
        file = folder / f"{len(held)}.so"
        if binary is None:
            subprocess.run(["gcc", "-x", "c", "-", "-o", file, *options], input=program["source"], text=True, check=True)
        else:
            file.write_bytes(binary)
        held.append(ctypes.CDLL(str(file)))
        file.unlink()

    return ready


def cubin() -> Ready:
    """Machine code by NVRTC. Nothing is loaded: there is no GPU."""
    from cuda.bindings import nvrtc  # type: ignore[import-not-found, import-untyped, unused-ignore]  # has no types

    tool = NVRTC.find("")
    if tool is None:
        raise SystemExit("NVRTC is not installed: pip install lathe[cuda]")

    def ready(program: Json, binary: bytes | None) -> None:
        if binary is None:
            _, text = nvrtc.nvrtcCreateProgram(program["source"].encode(), b"kernel.cu", 0, [], [])
            options = [*NVRTC.options("cubin", program["device"]["arch"]), f"-I{tool.facts['headers']}"]
            (failed,) = nvrtc.nvrtcCompileProgram(text, len(options), [option.encode() for option in options])
            if failed:
                raise SystemExit(f"NVRTC: {failed}")
            code = bytearray(nvrtc.nvrtcGetCUBINSize(text)[1])
            nvrtc.nvrtcGetCUBIN(text, code)
            nvrtc.nvrtcDestroyProgram(text)

    return ready


def opencl() -> Ready:
    """The first device; each program is launched once, on buffers of zeros."""
    import pyopencl as cl

    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)

    def ready(program: Json, binary: bytes | None) -> None:
        built = cl.Program(context, program["source"]) if binary is None else cl.Program(context, [device], [binary])
        kernel = cl.Kernel(built.build(), program["name"])
        launch = largest_launch(program)
        if launch is not None:
            arguments = [given(cl, queue, argument) for argument in launch["arguments"]]
            kernel.set_args(*arguments)
            cl.enqueue_nd_range_kernel(queue, kernel, launch["items"], launch["group"]).wait()

    return ready


if __name__ == "__main__":
    main(sys.argv[1:])
