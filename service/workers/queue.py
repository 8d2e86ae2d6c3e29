"""A queue that is fair between clients: they take turns, and each client's own jobs keep their order.

Who sends a thousand jobs at once waits behind every other client's next one, not they behind the thousand.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Place(Generic[T]):
    """One place in the queue. since: when it was taken, in the caller's clock."""

    client: str
    since: float
    item: T


class FairQueue(Generic[T]):
    """First in, first out for each client; between clients, turn by turn."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Place[T]]] = OrderedDict()  # whose turn is next stands first; none is empty
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Place[T]]:
        for line in self._lines.values():
            yield from line

    def held_by(self, client: str) -> int:
        """How many places a client has."""
        return len(self._lines.get(client, ()))

    def add(self, client: str, item: T, now: float) -> Place[T]:
        """A place at the end of the client's line; a client that had none has its first turn after all others."""
        place = Place(client, now, item)
        self._lines.setdefault(client, deque()).append(place)
        self._length += 1
        return place

    def take(self) -> T | None:
        """The item whose turn it is, or None; its client's next turn comes after everyone else's."""
        if not self._lines:
            return None
        client, line = next(iter(self._lines.items()))
        place = line.popleft()
        self._length -= 1
        if line:
            self._lines.move_to_end(client)
        else:
            del self._lines[client]
        return place.item

    def remove(self, place: Place[T]) -> None:
        """Gives up a place, if it is still there."""
        line = self._lines.get(place.client)
        if line is None or place not in line:
            return
        line.remove(place)
        self._length -= 1
        if not line:
            del self._lines[place.client]

    def oldest(self) -> float | None:
        """Since when the place that was taken first is waiting."""
        return min((line[0].since for line in self._lines.values()), default=None)
