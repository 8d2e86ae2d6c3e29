"""Memory of a launch: buffers, and the shared arrays of each block. Whatever a device may answer with anything is a Fault.

That is an access outside its array or not aligned as a whole, two threads that store to one place at once, shared bytes that are read
before they are written, or by one thread and written by another with no barrier between, and a buffer that is read as constant and written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.linear.interpret import Fault

Array = Any
_BUFFER = 40  # bits of an address within a buffer
NOBODY, SEVERAL = -1, -2


class Memory:
    """sizes: of the shared arrays in bytes. starts: where each begins, in every block alike."""

    def __init__(self, blocks: int, threads: int, sizes: Mapping[str, int]) -> None:
        self.blocks, self.threads = blocks, threads
        self.starts: dict[str, int] = {}
        total = 0
        for name, size in sizes.items():
            self.starts[name] = total
            total += -(-size // 16) * 16
        self.ends = {self.starts[name]: self.starts[name] + size for name, size in sizes.items()}
        self.shared = np.zeros((blocks, max(total, 16)), np.uint8)
        self.is_written = np.zeros(self.shared.shape, bool)
        self.writer = np.full(self.shared.shape, NOBODY, np.int64)
        self.reader = np.full(self.shared.shape, NOBODY, np.int64)
        self.buffers: list[Array] = []
        self.bases: list[int] = []
        self.constant: set[int] = set()
        self.stored: set[int] = set()

    def add(self, buffer: Array, alignment: int) -> int:
        """The address of a buffer, which is a multiple of just so many bytes."""
        self.buffers.append(buffer)
        self.bases.append((len(self.buffers) << _BUFFER) + alignment)
        return self.bases[-1]

    def barrier(self, blocks: Array) -> None:
        """What was done before and what comes after are in order, in these blocks."""
        self.writer[blocks], self.reader[blocks] = NOBODY, NOBODY

    # ---- buffers -----------------------------------------------------------------------------------------------------------

    def load(self, address: Array, lanes: int, dtype: Any, *, constant: bool) -> list[Array]:
        return [self._of_buffer(address + np.uint64(k * dtype.itemsize), dtype, None, constant) for k in self._whole(address, lanes, dtype)]

    def store(self, address: Array, values: list[Array], dtype: Any) -> None:
        for k in self._whole(address, len(values), dtype):
            self._of_buffer(address + np.uint64(k * dtype.itemsize), dtype, values[k], False)

    def _whole(self, address: Array, lanes: int, dtype: Any) -> range:
        if (address % np.uint64(lanes * dtype.itemsize)).any():
            raise Fault(f"an access of {lanes * dtype.itemsize} bytes is not aligned to them")
        return range(lanes)

    def _of_buffer(self, address: Array, dtype: Any, values: Array | None, constant: bool) -> Array:
        numbers = (address >> np.uint64(_BUFFER)).astype(np.int64) - 1
        if not len(numbers):
            return np.zeros(0, dtype)
        number = int(numbers[0])
        if (numbers != number).any() or not 0 <= number < len(self.buffers):
            raise Fault("an address that leads to no buffer")
        buffer = self.buffers[number]
        offset = address.astype(np.int64) - self.bases[number]
        if (offset < 0).any() or (offset + dtype.itemsize > len(buffer)).any():
            raise Fault(f"an access outside of buffer {number}, at {int(offset.min())} to {int(offset.max())} of {len(buffer)} bytes")
        place = offset // dtype.itemsize
        held = buffer.view(dtype)
        (self.constant if constant else self.stored if values is not None else set()).add(number)
        if number in self.constant and number in self.stored:
            raise Fault(f"buffer {number} is read as constant and written")
        if values is None:
            return held[place]
        if len(np.unique(place)) < len(place):
            raise Fault("two threads store to one place at once")
        held[place] = values
        return None

    # ---- shared arrays -----------------------------------------------------------------------------------------------------

    def load_shared(self, thread: Array, address: Array, lanes: int, dtype: Any) -> list[Array]:
        found = []
        for k in self._whole(address.astype(np.uint64), lanes, dtype):
            block, number, at = self._shared_place(thread, address.astype(np.int64) + k * dtype.itemsize, dtype.itemsize)
            if not self.is_written[block, at].all():
                raise Fault("a shared element is read before it is written")
            writer = self.writer[block, at]
            if ((writer != NOBODY) & (writer != number)).any():
                raise Fault("a shared element is read that another thread has written, with no barrier between")
            reader = self.reader[block, at]
            self.reader[block, at] = np.where((reader == NOBODY) | (reader == number), number, SEVERAL)
            if len(number) > 1:  # several of these threads may read one element
                self._read_by_several(block, number, at)
            found.append(self.shared.reshape(-1).view(dtype)[(block * self.shared.shape[1] + at) // dtype.itemsize])
        return found

    def _read_by_several(self, block: Array, number: Array, at: Array) -> None:
        differs = self.reader[block, at] != number
        self.reader[block[differs], at[differs]] = SEVERAL

    def store_shared(self, thread: Array, address: Array, values: list[Array], dtype: Any) -> None:
        for k in self._whole(address.astype(np.uint64), len(values), dtype):
            block, number, at = self._shared_place(thread, address.astype(np.int64) + k * dtype.itemsize, dtype.itemsize)
            for other in (self.writer[block, at], self.reader[block, at]):
                if ((other != NOBODY) & (other != number)).any():
                    raise Fault("a shared element is written that another thread has used, with no barrier between")
            place = (block * self.shared.shape[1] + at) // dtype.itemsize
            if len(np.unique(place)) < len(place):
                raise Fault("two threads store to one place at once")
            self.writer[block, at] = number
            self.is_written[block, at] = True
            self.shared.reshape(-1).view(dtype)[place] = values[k]

    def _shared_place(self, thread: Array, at: Array, size: int) -> tuple[Array, Array, Array]:
        """The block, the thread within it, and the byte of its shared memory."""
        inside = np.zeros(len(at), bool)
        for start, end in self.ends.items():
            inside |= (at >= start) & (at + size <= end)
        if not inside.all():
            raise Fault("an access outside of a shared array")
        return thread // self.threads, thread % self.threads, at
