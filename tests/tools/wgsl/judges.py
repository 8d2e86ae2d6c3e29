"""What two implementations of WGSL say of a text: Dawn, which browsers of the Chromium family have, and naga, which Firefox has.

Dawn needs no device: its Null backend parses, checks uniformity and writes nothing. naga is asked by way of wgpu's device on the processor.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

JUDGES = ("dawn", "naga")
BACKEND = "WGPU_BACKEND_TYPE"


@cache
def _device(judge: str) -> tuple[Any, Any]:
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")
    os.environ.pop(BACKEND, None)
    if judge == "dawn":
        os.environ[BACKEND] = "Null"
    wgpu: Any = importlib.import_module("wgpudawn" if judge == "dawn" else "wgpu")
    device = wgpu.gpu.request_adapter_sync().request_device_sync(required_features=["shader-f16"])
    os.environ.pop(BACKEND, None)  # both read it, and naga's knows no Null
    return wgpu, device


def objection(judge: str, source: str, name: str) -> str | None:
    """What the judge has against a module and its entry point; None where it takes both."""
    wgpu, device = _device(judge)
    try:
        module = device.create_shader_module(code=source)
        device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": name})
    except wgpu.GPUError as error:
        return str(error)
    return None
