"""What the service asks of a store: bytes under names, each for a while. Whoever keeps this promise can be plugged in.

A store may forget whatever it likes (it is a cache), and may fail with `StoreDown` whenever it likes; it never answers with
a value that was put under another name. Values are checked by whoever reads them (`record`), not by the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from service.store.keys import Key, Kind, Name


@dataclass(frozen=True, slots=True)
class Entry:
    """One value to keep: under which name, and for how many seconds (None: as long as there is room)."""

    name: Name
    value: bytes
    lifetime_s: float | None = None


class Store(Protocol):
    """Keeps bytes. All calls may be made at once from one event loop."""

    async def many(self, names: Sequence[Name]) -> list[bytes | None]:
        """The values in the order of the names, in one round trip; None where there is none."""

    async def put(self, *entries: Entry) -> None:
        """Keeps the entries, in one round trip; what stood under their names is replaced."""

    async def renew(self, names: Sequence[Name], lifetime_s: float) -> None:
        """What is kept under these names is kept for so many seconds from now."""

    async def delete(self, *names: Name) -> None:
        """Forgets the values under these names, where there are any."""

    def keys(self, kind: Kind) -> AsyncIterator[Key]:
        """The keys under which there is something of this kind, in any order; one that comes or goes meanwhile may be among them."""

    async def ping(self) -> None:
        """Returns when the store answers; raises StoreDown when it does not."""

    async def close(self) -> None:
        """Lets go of files and connections. No call may follow."""
