"""The process whose OpenCL device is Oclgrind: runs each job of a file, and keeps what was logged meanwhile beside its outputs.

python -m tests.tools.simulate JOBS.json OCLGRIND.log
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from service.device.run import bound, launch_of

Json = dict[str, Any]

# Its compiler otherwise splits a store of a vector that was put together into a store with gaps and stores of the missing elements; the
# first then counts as one of uninitialized values (Oclgrind 21.10).
BUILD = ("-cl-opt-disable",)


def main() -> None:
    """All jobs of the file."""
    jobs, log = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    context = cl.Context(cl.get_platforms()[0].get_devices()[:1])
    queue = cl.CommandQueue(context)
    seen = 0
    for job in jobs:
        run(job, context, queue)
        logged = log.read_bytes() if log.exists() else b""
        (Path(job["folder"]) / "log").write_bytes(logged[seen:])
        seen = len(logged)


def run(job: Json, context: cl.Context, queue: cl.CommandQueue) -> None:
    """One launch on buffers of exactly the size that is needed; its outputs as files."""
    folder, program = Path(job["folder"]), job["program"]
    values = bound(program["arguments"], job["variables"])
    kernel = cl.Kernel(cl.Program(context, program["source"]).build(list(BUILD)), program["name"])
    held: dict[int, tuple[Any, np.ndarray[Any, Any]]] = {}
    arguments: list[Any] = []
    for argument in program["arguments"]:
        if argument["kind"] == "variable":
            arguments.append(np.int32(values[argument["name"]]))
            continue
        content = np.load(folder / f"in{argument['index']}.npy")
        memory = image(context, content, argument) if argument.get("image") else buffer(context, content)
        held[argument["index"]] = memory, content
        arguments.append(memory)
    launch = launch_of(program, values)
    if 0 not in launch.items:
        kernel.set_args(*arguments)
        cl.enqueue_nd_range_kernel(queue, kernel, launch.items, launch.group)
    for number in job["outputs"]:
        memory, content = held[number]
        result = np.empty_like(content)
        if isinstance(memory, cl.Image):
            height, width, _ = next(a["image"] for a in program["arguments"] if a.get("index") == number)
            texels = result.reshape(height, width, 4)
            cl.enqueue_copy(queue, texels, memory, origin=(0, 0), region=(width, height))
        elif result.nbytes:
            cl.enqueue_copy(queue, result, memory)
        queue.finish()
        np.save(folder / f"out{number}.npy", result)


def buffer(context: cl.Context, content: np.ndarray[Any, Any]) -> cl.Buffer:
    """Memory of just these bytes; a device has none of no bytes."""
    bytes_ = np.ascontiguousarray(content).view(np.uint8) if content.nbytes else np.zeros(1, np.uint8)
    return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=bytes_)


def image(context: cl.Context, content: np.ndarray[Any, Any], argument: Json) -> cl.Image:
    """An image of four channels with these texels."""
    height, width, _ = argument["image"]
    kind = cl.channel_type.HALF_FLOAT if argument["dtype"] == "float16" else cl.channel_type.FLOAT
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR  # what is copied later counts as uninitialized
    form = cl.ImageFormat(cl.channel_order.RGBA, kind)
    return cl.create_image(context, flags, form, shape=(width, height), hostbuf=np.ascontiguousarray(content))


if __name__ == "__main__":
    main()
