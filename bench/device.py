"""An OpenCL device as benchmarks use it: programs built, launched and timed by the device's own clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.workloads import Array


@dataclass(frozen=True, slots=True)
class Timed:
    """Of one launch, milliseconds: device_ms on the device's clock, cpu_ms of all threads of this process."""

    device_ms: float
    cpu_ms: float


class Launch:
    """A program with its buffers bound. Its first run, which some drivers compile in, is done."""

    def __init__(
        self, device: Device, source: str, name: str, items: Sequence[int], group: Sequence[int] | None, buffers: list[Any]
    ) -> None:
        cl = device.cl
        self._device, self._buffers = device, buffers  # a kernel does not keep its buffers alive
        self._kernel = cl.Kernel(cl.Program(device.context, source).build(), name)
        for number, buffer in enumerate(buffers):
            self._kernel.set_arg(number, buffer)
        self._items, self._group = tuple(items), None if group is None else tuple(group)
        self.once()

    def once(self) -> float:
        """Milliseconds of one run on the device's clock."""
        event = self._device.cl.enqueue_nd_range_kernel(self._device.queue, self._kernel, self._items, self._group)
        event.wait()
        return float(event.profile.end - event.profile.start) / 1e6

    def timed(self, seconds: float) -> Timed:
        """The least of as many runs as fit, one at least; of CPU time the mean, since it is counted in ticks."""
        end, cpu = time.perf_counter() + seconds, time.process_time()
        found = [self.once()]
        while time.perf_counter() < end:
            found.append(self.once())
        return Timed(min(found), (time.process_time() - cpu) * 1e3 / len(found))


class Device:
    """The first OpenCL device there is. Raises OSError without one."""

    def __init__(self) -> None:
        import pyopencl as cl  # where it is needed only: loading drivers takes a while

        self.cl = cl
        try:
            self.device = cl.get_platforms()[0].get_devices()[0]
        except (cl.Error, IndexError) as error:
            raise OSError(f"no OpenCL device: {error}") from None
        self.context = cl.Context([self.device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)

    @property
    def name(self) -> str:
        return f"{self.device.name.strip()}, {self.device.platform.version.strip()}"

    def holding(self, array: Array) -> Any:
        flags = self.cl.mem_flags
        return self.cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(array))

    def read(self, buffer: Any, into: Array) -> Array:
        self.cl.enqueue_copy(self.queue, into, buffer)
        self.queue.finish()
        return into
