"""Programs of the target wgsl on Mesa's lavapipe, by wgpu: the same interface as a device's runner.

The device is asked for no more than WebGPU promises of every one. Each buffer lies between guard zones; the bytes that fill up its last
word are part of the zone behind it. To be used in a process that may die.

Mesa's compiler for the processor leaves every loop of an invocation for good after 65535 turns of all its loops together
(`LP_MAX_TGSI_LOOP_ITERATIONS`), without a word: longer programs don't fit this device.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.reference.bounded import Array
from service.device.run import GUARD, GUARD_BYTE, NotBuilt, Ran, Unfit, bound, launch_of

Json = dict[str, Any]
LEAST = 16  # bytes of a binding: an element of the widest vector
TURNS = 65535
_LOOP = re.compile(r"^( *)for \(var r\d+ = 0; r\d+ < (.*); r\d+\+\+\) \{")
LIMITS = {
    "max-storage-buffers-per-shader-stage": 8, "max-uniform-buffers-per-shader-stage": 12, "max-compute-workgroup-storage-size": 16384,
    "max-compute-invocations-per-workgroup": 256, "max-compute-workgroup-size-x": 256, "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64, "max-compute-workgroups-per-dimension": 65535,
}  # fmt: skip


class WgslRunner:
    """A device of this process."""

    def __init__(self) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")  # else each start says that it is missing
        self._wgpu: Any = importlib.import_module("wgpu")
        adapter = self._wgpu.gpu.request_adapter_sync()
        self._device = adapter.request_device_sync(required_features=["shader-f16"], required_limits=LIMITS)

    def build(self, program: Mapping[str, Any]) -> Any:
        """A pipeline. Raises NotBuilt."""
        try:
            module = self._device.create_shader_module(code=program["source"])
            return self._device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": program["name"]})
        except self._wgpu.GPUError as error:
            raise NotBuilt(str(error)) from None

    def run(self, program: Mapping[str, Any], kernel: Any, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Ran:
        """One launch on copies of the buffers. Raises Unfit where the device has no room for them."""
        values = bound(program["arguments"], variables)
        launch = launch_of(program, values)
        if turns(program["source"], values) > TURNS:
            raise Unfit(f"loops of more than {TURNS} turns")
        assert launch.group is not None
        groups = [items // size for items, size in zip(launch.items, launch.group, strict=True)]
        usage = self._wgpu.BufferUsage
        held: dict[int, tuple[Any, int]] = {}
        entries: list[Json] = []
        for binding, argument in enumerate(program["arguments"]):
            if argument["kind"] == "variable":
                data = np.array([values[argument["name"]], 0, 0, 0], np.int32)
                buffer, offset, size = self._device.create_buffer_with_data(data=data, usage=usage.UNIFORM), 0, data.nbytes
            else:
                content = np.ascontiguousarray(buffers[argument["index"]]).view(np.uint8).reshape(-1)
                size, offset = max(-(-len(content) // 4) * 4, LEAST), GUARD
                if size > 1 << 27:
                    raise Unfit(f"a buffer has {size} bytes; a device need not have more than {1 << 27}")
                raw = np.full(size + 2 * GUARD, GUARD_BYTE, np.uint8)
                raw[GUARD : GUARD + len(content)] = content
                buffer = self._device.create_buffer_with_data(data=raw, usage=usage.STORAGE | usage.COPY_SRC)
                held[argument["index"]] = buffer, len(content)
            entries.append({"binding": binding, "resource": {"buffer": buffer, "offset": offset, "size": size}})
        if all(groups):
            self._launch(kernel, entries, groups)
        ran = Ran()
        for number, (buffer, length) in held.items():
            after = np.frombuffer(self._device.queue.read_buffer(buffer), np.uint8)
            ran.buffers[number] = after[GUARD : GUARD + length].copy().view(buffers[number].dtype)
            if (after[:GUARD] != GUARD_BYTE).any() or (after[GUARD + length :] != GUARD_BYTE).any():
                ran.overrun.append(number)
            buffer.destroy()
        return ran

    def _launch(self, kernel: Any, entries: list[Json], groups: list[int]) -> None:
        encoder = self._device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(kernel)
        if entries:
            work.set_bind_group(0, self._device.create_bind_group(layout=kernel.get_bind_group_layout(0), entries=entries))
        work.dispatch_workgroups(*groups)
        work.end()
        self._device.queue.submit([encoder.finish()])


def turns(source: str, values: Mapping[str, int]) -> int:
    """How often the loops of an invocation turn, all together. values: of the variables, by the names their arguments have."""
    names = {name: str(value) for own, value in values.items() for name in (own, f"arg_{own}")}
    total, around = 0, [1]
    for line in source.splitlines():
        found = _LOOP.match(line)
        if found is None:
            continue
        depth = len(found[1]) // 2
        end = re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word[0], "1"), found[2])
        del around[depth:]
        around += [around[-1]] * (depth - len(around))
        around.append(around[-1] * max(int(eval(end.replace("/", "//"), {"__builtins__": {}})), 0))
        total += around[-1]
    return total
