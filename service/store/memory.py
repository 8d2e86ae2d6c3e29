"""A store in this process: bounded in bytes, the least recently used value goes first. Gone when the process ends."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence

from service.store.keys import Key, Kind, Name
from service.store.store import Entry

ENTRY_BYTES = 300  # what Python needs for one entry besides its bytes


class MemoryStore:
    """Keeps at most `most_bytes` bytes of values.

    clock: seconds from anywhere, never backwards; tests hand in their own.
    """

    def __init__(self, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._entries: OrderedDict[Name, tuple[bytes, float | None]] = OrderedDict()
        self._bytes = 0

    @property
    def bytes_held(self) -> int:
        return self._bytes

    async def many(self, names: Sequence[Name]) -> list[bytes | None]:
        return [self.look(name) for name in names]

    def look(self, name: Name) -> bytes | None:
        """`many` of one name, without a wait."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        value, until = entry
        if until is not None and until <= self._clock():
            self._drop(name)
            return None
        self._entries.move_to_end(name)
        return value

    async def put(self, *entries: Entry) -> None:
        for entry in entries:
            self.keep(entry)

    def keep(self, entry: Entry) -> None:
        """`put` of one entry without a wait."""
        self._drop(entry.name)
        if _size(entry.value) > self._most_bytes:
            return
        until = None if entry.lifetime_s is None else self._clock() + entry.lifetime_s
        self._entries[entry.name] = (entry.value, until)
        self._bytes += _size(entry.value)
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._entries)))

    async def renew(self, names: Sequence[Name], lifetime_s: float) -> None:
        for name in names:
            value = self.look(name)
            if value is not None:
                self._entries[name] = (value, self._clock() + lifetime_s)

    async def delete(self, *names: Name) -> None:
        for name in names:
            self._drop(name)

    async def keys(self, kind: Kind) -> AsyncIterator[Key]:
        for name in [name for name in self._entries if name.kind is kind]:
            if self.look(name) is not None:
                yield name.key

    async def ping(self) -> None:
        return None

    async def close(self) -> None:
        self._entries.clear()
        self._bytes = 0

    def _drop(self, name: Name) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._bytes -= _size(entry[0])


def _size(value: bytes) -> int:
    return len(value) + ENTRY_BYTES
