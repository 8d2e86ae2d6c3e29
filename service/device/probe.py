"""Which OpenCL devices are there: run as a program of its own, since loading a broken driver may end the process. Prints JSON.

It imports nothing of ours, so that it is quick. One object per device: name, driver, options (those of the wire that describe it), choice
(numbers of platform and device).
"""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

NEEDS_LINKER = "Portable Computing Language"  # PoCL ends the process where there is no `ld`


def found() -> list[dict[str, object]]:
    """Every device that can compile. Whatever goes wrong with a driver goes wrong here."""
    import pyopencl as cl

    devices: list[dict[str, object]] = []
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return []
    for p, platform in enumerate(platforms):
        if platform.name == NEEDS_LINKER and shutil.which("ld") is None:
            continue
        for d, device in enumerate(platform.get_devices()):
            if device.compiler_available and device.available:
                taken = [str(other["name"]) for other in devices]
                facts = {"name": name_of(platform.name, device.name, taken), "driver": f"{platform.name} {device.driver_version}"}
                devices.append({**facts, "options": options_of(device), "choice": [p, d]})
    return devices


def name_of(platform: str, device: str, taken: list[str]) -> str:
    """A short name of letters, digits and dashes, unlike those taken."""
    vendor = "pocl" if platform == NEEDS_LINKER else platform.split()[0].lower()
    words = "".join(c if c.isalnum() and c.isascii() else "-" for c in f"{vendor}-{device.removeprefix('pthread-')}".lower())
    name = "-".join(word for word in words.split("-") if word)[:48].rstrip("-")
    return next(candidate for n in range(len(taken) + 1) if (candidate := f"{name}-{n + 1}" if n else name) not in taken)


def options_of(device: Any) -> dict[str, object]:
    """The wire's device options that describe an OpenCL device."""
    import pyopencl as cl

    return {
        "target": "opencl",
        "device_class": "cpu" if device.type & cl.device_type.CPU else "gpu",
        "has_local": True,
        "has_shared": True,
        "local_max": [int(size) for size in device.max_work_item_sizes[:3]],
        "lanes_max": int(device.max_work_group_size),
        "shared_max": int(device.local_mem_size),
        "alignment": int(device.mem_base_addr_align) // 8,
        "float16": "cl_khr_fp16" in device.extensions.split(),
        "float64": bool(device.double_fp_config),
    }


if __name__ == "__main__":
    json.dump(found(), sys.stdout)
