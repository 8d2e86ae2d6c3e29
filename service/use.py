"""How often each program is asked for: counted here, kept in the store now and then, for whoever wants the ones that matter most.

Each process keeps its own count under a name of its own, so that no two write the same; `most_used` adds them up. What a process that died
within the last minute has counted is lost.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable

from service.catalog import Catalog
from service.store.keys import Key, Kind, Name

KEPT = 2000  # keys of which a process keeps its count: those it was asked for most often
COUNTED = 20_000  # keys that are counted at all, before the rarest are dropped
EVERY_S = 60.0
LIFETIME_S = 30 * 86400.0


class Use:
    """What this process was asked for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = Name(Kind.USE, Key(os.urandom(32).hex()))
        self._counts: dict[Key, int] = {}
        self._clock = clock
        self._due = clock() + EVERY_S
        self._changed = False

    def count(self, key: Key) -> None:
        """Counts one answer."""
        self._counts[key] = self._counts.get(key, 0) + 1
        self._changed = True
        if len(self._counts) > COUNTED:
            self._counts = dict(Counter(self._counts).most_common(KEPT))

    async def keep(self, catalog: Catalog, *, now: bool = False) -> None:
        """Keeps the count, if it is time to and there is anything new."""
        if not self._changed or (self._clock() < self._due and not now):
            return
        self._due = self._clock() + EVERY_S
        self._changed = False
        content = json.dumps(dict(Counter(self._counts).most_common(KEPT))).encode()
        await catalog.note({self._name: content}, LIFETIME_S)


async def most_used(catalog: Catalog) -> Counter[Key]:
    """How often each key was asked for, as far as any process has told the store. Raises StoreDown."""
    counts: Counter[Key] = Counter()
    names = [Name(Kind.USE, key) async for key in catalog.keys(Kind.USE)]
    for content in await catalog.notes(names):
        if content is not None:
            counts.update(json.loads(content))
    return counts
