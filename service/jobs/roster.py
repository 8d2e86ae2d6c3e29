"""The ids of all jobs that have not ended, of all processes that share a store: so that what one has left is found without being asked for.

One list that every process writes and nobody locks. An entry that another's write has lost is there again with the next sign of life of its
owner; at worst a job is taken up when it is asked for, and not before.
"""

from __future__ import annotations

import json
from hashlib import sha256

from service.catalog import Catalog
from service.store.keys import Key, Kind, Name, as_key

MOST = 10_000  # ids in the list; the oldest go first
ROSTER = Name(Kind.JOBS, Key(sha256(b"jobs").hexdigest()))


class Roster:
    """lifetime_s: of the list, after it was last written."""

    def __init__(self, catalog: Catalog, lifetime_s: float) -> None:
        self._catalog = catalog
        self._lifetime_s = lifetime_s

    async def ids(self) -> list[Key]:
        """The jobs that have not ended, as far as the store knows; some may have, lately."""
        (content,) = await self._catalog.notes([ROSTER])
        if content is None:
            return []
        try:
            found = [as_key(str(id_)) for id_ in json.loads(content)]
        except (ValueError, TypeError):  # written by another version of the service
            return []
        return [id_ for id_ in found if id_ is not None]

    async def enter(self, id_: Key) -> None:
        """Sees to it that the job is in the list."""
        ids = await self.ids()
        if id_ not in ids:
            await self._write([*ids, id_])

    async def strike(self, *ended: Key) -> None:
        """Takes jobs off the list."""
        ids = await self.ids()
        left = [id_ for id_ in ids if id_ not in ended]
        if len(left) < len(ids):
            await self._write(left)

    async def _write(self, ids: list[Key]) -> None:
        await self._catalog.note({ROSTER: json.dumps(ids[-MOST:]).encode()}, self._lifetime_s)
