"""The arguments of a function in this process: copies of the buffers, guards around each, and what they hold after a run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.reference.bounded import Array
from service.device.run import GUARD, GUARD_BYTE, Ran

ALIGNED = 64  # bytes a buffer's start is a multiple of


class Guarded:
    """arguments: as `ctypes` passes them, in the program's order; pointers lead into memory that lives as long as this."""

    def __init__(self, program: Mapping[str, Any], buffers: Mapping[int, Array], values: Mapping[str, int]) -> None:
        self._buffers = buffers
        self._held: dict[int, Array] = {}
        self.arguments: list[Any] = []
        for argument in program["arguments"]:
            if argument["kind"] == "variable":
                self.arguments.append(ctypes.c_int32(values[argument["name"]]))
                continue
            content = np.ascontiguousarray(buffers[argument["index"]]).view(np.uint8)
            raw = np.full(len(content) + 2 * GUARD + ALIGNED, GUARD_BYTE, np.uint8)
            raw = raw[-raw.ctypes.data % ALIGNED :]
            raw[GUARD : GUARD + len(content)] = content
            self._held[argument["index"]] = raw
            self.arguments.append(ctypes.c_void_p(raw.ctypes.data + GUARD))

    def ran(self) -> Ran:
        """What the buffers hold, and which of them were written outside."""
        ran = Ran()
        for number, raw in self._held.items():
            before = self._buffers[number]
            ran.buffers[number] = raw[GUARD : GUARD + before.nbytes].copy().view(before.dtype)
            if (raw[:GUARD] != GUARD_BYTE).any() or (raw[GUARD + before.nbytes :] != GUARD_BYTE).any():
                ran.overrun.append(number)
        return ran
