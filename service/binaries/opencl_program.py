"""An OpenCL device's binary of one program: run as a program of its own, since drivers may end the process they are loaded into.

It imports nothing of ours. It reads `task.json` in the current folder and writes `kernel.clbin` there; a text that is refused ends it with
status 1 and the driver's log.

PoCL compiles a kernel for the size of a work-group, and whether the grid is small, when it is launched. So it is launched, on buffers of
zeros, and what is compiled by then is in the binary; nobody waits for the kernel's end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

CACHE = "cache"  # PoCL's folder, whose name is part of its binaries: relative, so that it is the same everywhere
LOOK_S = 0.002
POCL = "Portable Computing Language"
# PoCL compiles from a file with a name made up at random, which stays in its bitcode: as bytes and in fields of seven bits.
MADE_UP, FIXED = b"tempfile_", b"kernel"
WIDTHS = (7, 8)


def main() -> int:
    """The exit status."""
    import pyopencl as cl

    task = json.loads(Path("task.json").read_bytes())
    platform, number = task["choice"]
    device = cl.get_platforms()[platform].get_devices()[number]
    context = cl.Context([device])
    try:
        program = cl.Program(context, task["source"]).build()
    except cl.Error as error:
        print(error)
        return 1
    is_pocl = device.platform.name == POCL
    if is_pocl and task["launch"] is not None:
        launched(cl, context, program, task["name"], task["launch"])
    binary = bytes(program.get_info(cl.program_info.BINARIES)[0])
    Path("kernel.clbin").write_bytes(without_made_up_names(binary) if is_pocl else binary)
    sys.stdout.flush()
    os._exit(0)  # the kernel may still run


def launched(cl: Any, context: Any, program: Any, name: str, launch: dict[str, Any]) -> None:
    """Returns when the kernel is compiled for this launch, or can't be launched here."""
    try:
        kernel = cl.Kernel(program, name)
        queue = cl.CommandQueue(context)
        arguments = [given(cl, queue, argument) for argument in launch["arguments"]]  # which must live as long as the kernel runs
        kernel.set_args(*arguments)
        event = cl.enqueue_nd_range_kernel(queue, kernel, launch["items"], launch["group"])
    except cl.Error:
        return
    while event.command_execution_status > cl.command_execution_status.COMPLETE and not compiled(name):
        time.sleep(LOOK_S)


def given(cl: Any, queue: Any, argument: dict[str, Any]) -> Any:
    """An argument of a launch: a variable's value, or memory that holds nothing but zeros."""
    import numpy as np

    if "value" in argument:
        return np.int32(argument["value"])
    if "image" not in argument:
        buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, max(argument["bytes"], 1))
        cl.enqueue_fill_buffer(queue, buffer, np.uint8(0), 0, buffer.size)
        return buffer
    kind = cl.channel_type.HALF_FLOAT if argument["half"] else cl.channel_type.FLOAT
    height, width, _ = argument["image"]
    image = cl.create_image(queue.context, cl.mem_flags.READ_WRITE, cl.ImageFormat(cl.channel_order.RGBA, kind), shape=(width, height))
    cl.enqueue_fill_image(queue, image, np.zeros(4, np.float32), (0, 0), (width, height))
    return image


def compiled(name: str) -> bool:
    """Has PoCL linked the kernel for the size of a work-group?"""
    return any(file.parent.name != "0-0-0" for file in Path(CACHE).glob(f"*/*/{name}/*/*.so"))


def without_made_up_names(binary: bytes) -> bytes:
    """The binary with one name in place of each that was made up: as long, and without a meaning."""
    bits = f"{int.from_bytes(binary, 'little'):0{8 * len(binary)}b}"[::-1]
    for width in WIDTHS:
        mark, fixed = packed(MADE_UP, width), packed(FIXED, width)
        parts = bits.split(mark)
        bits = mark.join([parts[0], *(fixed + part[len(fixed) :] for part in parts[1:])])
    return int(bits[::-1], 2).to_bytes(len(binary), "little")


def packed(text: bytes, width: int) -> str:
    """The text's characters in fields of `width` bits, the lowest first, as digits."""
    return "".join(f"{character:0{width}b}"[::-1] for character in text)


if __name__ == "__main__":
    sys.exit(main())
