"""One store over another: a near, bounded one answers what it holds, the far one has the last word.

Only values that never change are kept near; a refusal, or what devices have said, is always asked of the far store, where
another replica may have written meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.store.keys import LASTING, Name
from service.store.memory import MemoryStore
from service.store.store import Entry, Store


class Layers:
    """`near` over `far`. What `near` holds it believes for `near_s` seconds, then the far store is asked again."""

    def __init__(self, near: MemoryStore, far: Store, near_s: float) -> None:
        self._near = near
        self._far = far
        self._near_s = near_s

    async def many(self, names: Sequence[Name], renew_s: float | None = None) -> list[bytes | None]:
        values = [self._near.look(name) if name.kind in LASTING else None for name in names]
        asked = [i for i, value in enumerate(values) if value is None]
        if asked:
            for i, value in zip(asked, await self._far.many([names[i] for i in asked], renew_s), strict=True):
                values[i] = value
                if value is not None:
                    self._hold(names[i], value, None)
        return values

    async def put(self, *entries: Entry) -> None:
        for entry in entries:
            self._hold(entry.name, entry.value, entry.lifetime_s)
        await self._far.put(*entries)

    async def delete(self, *names: Name) -> None:
        await self._near.delete(*names)
        await self._far.delete(*names)

    async def ping(self) -> None:
        await self._far.ping()

    async def close(self) -> None:
        await self._near.close()
        await self._far.close()

    def _hold(self, name: Name, value: bytes, lifetime_s: float | None) -> None:
        if name.kind in LASTING:
            near_s = self._near_s if lifetime_s is None else min(self._near_s, lifetime_s)
            self._near.keep(Entry(name, value, near_s))
