"""What an attached OpenCL device makes of a program, for that device and its driver alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.binaries.binary import Tool
from service.binaries.compiler import Task, call, written

PROGRAM = Path(__file__).with_name("opencl_program.py")
BYTES_MOST = 1 << 28  # of all buffers together: a program that needs more is not launched, and its first launch compiles for itself


class OpenclDriver:
    """Each attached device is a tool of its own, and an architecture."""

    name = "opencl"

    def find(self, path: str) -> Tool | None:
        return None  # which devices there are is found out where they are attached

    def architectures(self, tool: Tool) -> Sequence[str]:
        return (str(tool.facts["device"]),)

    def options(self, format_: str, arch: str) -> tuple[str, ...]:
        return ()

    def compile(self, task: Task) -> bytes:
        program = task.program
        asked = {"source": task.source, "name": program["name"], "choice": task.tool.facts["choice"], "launch": largest_launch(program)}
        (task.folder / "task.json").write_text(json.dumps(asked))
        call(task, ())
        return written(task, "kernel.clbin")


def attached(device: str, driver: str, choice: tuple[int, int], environment: Mapping[str, str]) -> Tool:
    """The tool for a device. choice: how its driver finds it again. environment: of the service; the driver sees what concerns it."""
    passed = {name: value for name, value in environment.items() if name.startswith(("OCL_", "POCL_")) or name == "LD_LIBRARY_PATH"}
    own = {"PATH": environment.get("PATH", os.defpath), "POCL_CACHE_DIR": "cache", "POCL_KERNEL_CACHE": "1", "PYOPENCL_NO_CACHE": "1"}
    return Tool(driver, (sys.executable, "-P", str(PROGRAM)), {**passed, **own}, {"device": device, "choice": list(choice)})


def largest_launch(program: Mapping[str, Any]) -> dict[str, Any] | None:
    """The largest launch there is, with each variable at its greatest; None where it would take too much memory, or has no work-items."""
    from core.reference import dtype_named, size_at

    variables = {a["name"]: a["max"] for a in program["arguments"] if a["kind"] == "variable"}
    groups, local = program["global_size"], program["local_size"]
    sizes = None if local is None else [size_at(size, variables) for size in local]
    items = [size_at(size, variables) * (1 if sizes is None else sizes[axis]) for axis, size in enumerate(groups)]
    arguments: list[dict[str, Any]] = []
    total = 0
    for argument in program["arguments"]:
        if argument["kind"] == "variable":
            arguments.append({"value": argument["max"]})
        elif "image" in argument:
            arguments.append({"image": argument["image"], "half": argument["dtype"] == "float16"})
        else:
            arguments.append({"bytes": size_at(argument["size"], variables) * dtype_named(argument["dtype"]).itemsize})
            total += arguments[-1]["bytes"]
    return None if 0 in items or total > BYTES_MOST else {"items": items, "group": sizes, "arguments": arguments}


OPENCL = OpenclDriver()
