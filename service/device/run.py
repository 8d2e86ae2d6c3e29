"""One program on one OpenCL device, in this very process: start a process of its own for it.

Every buffer lies between guard zones, so that a near miss shows; what the program may only read is compared afterwards; sizes are
evaluated and checked against what was declared before anything is launched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.reference import size_at

GUARD = 4096  # bytes before and after each buffer: a multiple of every device's base alignment
GUARD_BYTE = 0xA5
CHANNELS = 4

Elements = NDArray[Any]


class Unfit(Exception):
    """The device can't run this program: it lacks something, or has too little of it."""


class BadLaunch(Exception):
    """The program's own sizes contradict each other or what was declared."""


class NotBuilt(Exception):
    """The device's compiler rejects the text; carries its log."""


@dataclass(slots=True)
class Ran:
    """What a run left behind.

    buffers: every buffer by number, elements as stored. overrun: buffers beside which something was written. nanoseconds: on the device.
    """

    buffers: dict[int, Elements] = field(default_factory=dict)
    overrun: list[int] = field(default_factory=list)
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched: work-items per axis, x first, and the size of a group (None: the runtime's choice). No items: nothing is."""

    items: tuple[int, ...]
    group: tuple[int, ...] | None


def bound(arguments: Sequence[Mapping[str, Any]], variables: Mapping[str, int]) -> dict[str, int]:
    """The values of a program's variables, each within its declared bounds. Raises BadLaunch."""
    values: dict[str, int] = {}
    for argument in arguments:
        if argument["kind"] == "variable":
            name = argument["name"]
            if name not in variables:
                raise BadLaunch(f"no value for the variable {name}")
            if not argument["min"] <= variables[name] <= argument["max"]:
                raise BadLaunch(f"{name} = {variables[name]} is outside of {argument['min']}..{argument['max']}")
            values[name] = variables[name]
    return values


def launch_of(program: Mapping[str, Any], variables: Mapping[str, int]) -> Launch:
    """The launch for these values. Raises BadLaunch for sizes that are none."""
    groups, local = program["global_size"], program["local_size"]
    if groups is None or len(groups) != 3 or (local is not None and len(local) != 3):
        raise BadLaunch(f"global_size {groups} and local_size {local} are not three sizes each")
    counts = tuple(size_at(size, variables) for size in groups)
    sizes = None if local is None else tuple(size_at(size, variables) for size in local)
    if any(count < 0 for count in counts) or any(size < 1 for size in sizes or ()):
        raise BadLaunch(f"global_size {counts} or local_size {sizes} is out of range")
    if sizes is None:
        return Launch(counts, None)
    return Launch(tuple(count * size for count, size in zip(counts, sizes, strict=True)), sizes)


class Runner:
    """A context and a queue on one device. choice: number of the platform, and of the device on it."""

    def __init__(self, choice: tuple[int, int]) -> None:
        import pyopencl as cl  # in the run's own process only: loading drivers is what may go wrong

        self._cl = cl
        self.device = cl.get_platforms()[choice[0]].get_devices()[choice[1]]
        self._context = cl.Context([self.device])
        self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)

    def build(self, program: Mapping[str, Any]) -> Any:
        """The kernel, compiled. Raises NotBuilt."""
        cl = self._cl
        try:
            return cl.Kernel(cl.Program(self._context, program["source"]).build(), program["name"])
        except cl.Error as error:
            raise NotBuilt(str(error)) from None

    def fits(self, program: Mapping[str, Any], kernel: Any, launch: Launch) -> None:
        """Raises Unfit where the device has too little of something for this launch."""
        cl, device = self._cl, self.device
        local = max(program["shared_bytes"], kernel.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, device))
        if local > device.local_mem_size:
            raise Unfit(f"a work-group needs {local} bytes of local memory; the device has {device.local_mem_size}")
        if launch.group is not None:
            lanes = math.prod(launch.group)
            most = min(device.max_work_group_size, kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device))
            if lanes > most:
                raise Unfit(f"a work-group has {lanes} work-items; the device takes {most}")
            for axis, (size, limit) in enumerate(zip(launch.group, device.max_work_item_sizes, strict=False)):
                if size > limit:
                    raise Unfit(f"axis {axis} of a work-group has {size} work-items; the device takes {limit}")
        if any(argument.get("dtype") == "float64" for argument in program["arguments"]) and not device.double_fp_config:
            raise Unfit("the device has no double precision")

    def run(self, program: Mapping[str, Any], kernel: Any, buffers: Mapping[int, Elements], variables: Mapping[str, int]) -> Ran:
        """Runs the program once on copies of the buffers. Raises BadLaunch, or Unfit where the device or its driver refuses."""
        try:
            return self._ran(program, kernel, buffers, variables)
        except self._cl.Error as error:
            raise Unfit(f"the driver refuses the run: {error}") from None

    def _ran(self, program: Mapping[str, Any], kernel: Any, buffers: Mapping[int, Elements], variables: Mapping[str, int]) -> Ran:
        cl = self._cl
        values = bound(program["arguments"], variables)
        launch = launch_of(program, values)
        self.fits(program, kernel, launch)
        held: dict[int, _Held] = {}
        arguments: list[Any] = []
        for argument in program["arguments"]:
            if argument["kind"] == "variable":
                arguments.append(np.int32(values[argument["name"]]))
                continue
            number = argument["index"]
            shape = argument.get("image")
            held[number] = self._image(buffers[number], shape, argument) if shape else self._buffer(buffers[number])
            arguments.append(held[number].argument)
        ran = Ran()
        if 0 not in launch.items:
            kernel.set_args(*arguments)
            event = cl.enqueue_nd_range_kernel(self._queue, kernel, launch.items, launch.group)
            event.wait()
            ran.nanoseconds = event.profile.end - event.profile.start
        for number, memory in held.items():
            ran.buffers[number], intact = memory.fetch()
            if not intact:
                ran.overrun.append(number)
        return ran

    def _buffer(self, elements: Elements) -> _Held:
        cl = self._cl
        content = np.ascontiguousarray(elements).view(np.uint8).reshape(-1)
        raw = np.full(len(content) + 2 * GUARD + -len(content) % 128, GUARD_BYTE, np.uint8)
        raw[GUARD : GUARD + len(content)] = content
        memory = cl.Buffer(self._context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=raw)
        within = memory.get_sub_region(GUARD, max(len(content), 1))

        def fetch() -> tuple[Elements, bool]:
            after = np.empty_like(raw)
            cl.enqueue_copy(self._queue, after, memory)
            inside = slice(GUARD, GUARD + len(content))
            intact = (after[: inside.start] == GUARD_BYTE).all() and (after[inside.stop :] == GUARD_BYTE).all()
            return after[inside].copy().view(elements.dtype), bool(intact)

        return _Held(within, fetch)

    def _image(self, elements: Elements, shape: Sequence[int], argument: Mapping[str, Any]) -> _Held:
        cl = self._cl
        height, width, _ = shape
        if not self.device.image_support or width > self.device.image2d_max_width or height > self.device.image2d_max_height:
            raise Unfit(f"the device has no image of {width} by {height} texels")
        kind = cl.channel_type.HALF_FLOAT if argument["dtype"] == "float16" else cl.channel_type.FLOAT
        image = cl.create_image(self._context, cl.mem_flags.READ_WRITE, cl.ImageFormat(cl.channel_order.RGBA, kind), shape=(width, height))
        texels = np.ascontiguousarray(elements).reshape(height, width, CHANNELS)
        cl.enqueue_copy(self._queue, image, texels, origin=(0, 0), region=(width, height))

        def fetch() -> tuple[Elements, bool]:
            after = np.empty_like(texels)
            cl.enqueue_copy(self._queue, after, image, origin=(0, 0), region=(width, height))
            return after.reshape(-1), True

        return _Held(image, fetch)


@dataclass(frozen=True, slots=True)
class _Held:
    """Memory of the device: what the kernel is given, and how to have its elements back (and whether the guards are as they were)."""

    argument: Any
    fetch: Any
