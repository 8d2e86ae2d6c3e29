"""Single flight within the process: who asks for what is already being made waits for it.

The work runs as a task of its own, so a client that goes away takes nothing from the others. When all have gone away, work
that has not begun may be given up (`wanted` says so); what has begun is finished, for the next one who asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from prometheus_client import Gauge

T = TypeVar("T")

Wanted = Callable[[], bool]


class Abandoned(Exception):
    """Nobody waits for this work any more, and it has not begun."""


@dataclass(slots=True)
class _Flight(Generic[T]):
    waiting: int = 0
    task: asyncio.Task[T] | None = field(default=None)

    def wanted(self) -> bool:
        return self.waiting > 0


class Flights(Generic[T]):
    """The work that is under way, by what it is for. waiters: gauge of those that wait for another's work."""

    def __init__(self, waiters: Gauge | None = None) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._waiters = waiters

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, what: Hashable) -> bool:
        return what in self._flights

    async def run(self, what: Hashable, work: Callable[[Wanted], Awaitable[T]]) -> tuple[T, bool]:
        """The result of `work`, and whether this caller's was the one that ran.

        Work that is under way for an equal `what` is waited for instead. Its exception is raised to everybody who waits.
        """
        flight = self._flights.get(what)
        led = flight is None
        if flight is None:
            flight = self._flights[what] = _Flight()
            flight.task = asyncio.ensure_future(self._fly(what, flight, work))
        task = flight.task
        assert task is not None
        flight.waiting += 1
        if not led and self._waiters is not None:
            self._waiters.inc()
        try:
            return await asyncio.shield(task), led
        finally:
            flight.waiting -= 1
            if not led and self._waiters is not None:
                self._waiters.dec()

    async def _fly(self, what: Hashable, flight: _Flight[T], work: Callable[[Wanted], Awaitable[T]]) -> T:
        try:
            return await work(flight.wanted)
        finally:
            del self._flights[what]

    async def settle(self) -> None:
        """Returns when nothing is under way any more."""
        while self._flights:
            tasks = [flight.task for flight in self._flights.values() if flight.task is not None]
            await asyncio.gather(*tasks, return_exceptions=True)
