"""Single flight between processes: one of those that share a store compiles, the others wait for what comes of it.

Who gets the lease compiles, and renews it while the work runs. The others are told when it is given up, and look now and then in
case they were not. A lease that runs out (its holder was killed, or cut off) is taken by one of those who wait. Nobody waits for
ever: past a deadline, or where the store has not answered for a while, a process compiles for itself. So a lost lease costs a
second compile of the same bytes, never an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, TypeVar

from core import LatheError
from service.errors import StoreDown, failure_from_json, failure_to_json
from service.flight.leases import Leases, Standing
from service.flight.local import Abandoned, Wanted
from service.logs import logger
from service.metrics import Metrics
from service.store.keys import Key

T = TypeVar("T")
Way = Literal["hit", "coalesced", "compiled"]

log = logger("leases")

TAKES = 2  # tries to take a lease from a store that fails, before one goes on without
RENEWALS = 4  # in a lease's life: three may come too late
FIRST_LOOK_S = 0.02
LOOK_MOST_S = 0.25  # between two looks, however long one waits
SILENT_S = 1.0  # a store that has not answered one who waits for so long is not waited for


class Cluster:
    """Runs work once among all processes that share `leases`; None: nobody shares anything.

    lease_s: life of a lease that is not renewed. wait_s: longest wait for another process.
    """

    def __init__(self, leases: Leases | None, metrics: Metrics, *, lease_s: float = 5.0, wait_s: float = 60.0) -> None:
        self._leases = leases
        self._metrics = metrics
        self._lease_s = lease_s
        self._wait_s = wait_s
        self._landings: dict[Key, asyncio.Event] = {}
        self._held: dict[str, Key] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to listen for leases that others give up."""
        if self._leases is not None:
            self._listening = asyncio.create_task(self._leases.listen(self._heard))

    async def close(self) -> None:
        """Gives back the leases that are held: whoever waits for them need not wait until they run out."""
        if self._listening is not None:
            self._listening.cancel()
        for token, key in list(self._held.items()):
            self._release(key, token, None)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SILENT_S)

    async def run(
        self, key: Key, look: Callable[[], Awaitable[T | None]], work: Callable[[], Awaitable[T]], wanted: Wanted
    ) -> tuple[T, Way]:
        """What `look` finds or `work` makes, and which way it came. Called for a key by one task of the process at a time.

        look: what another process has made, or None; raises what it was refused with. wanted: asked while waiting for another
        process; a no raises Abandoned. Raises what `work` raises, here or in the process that was waited for.
        """
        if self._leases is None:
            return await work(), "compiled"
        until = time.monotonic() + self._wait_s
        token = secrets.token_hex(16)
        waited = False
        while True:
            standing = await self._take(self._leases, key, token)
            if standing is None:
                self._count("without")
                try:
                    return await work(), "compiled"
                finally:  # a call that was given up may have been heard all the same
                    self._later(self._leases.release(key, token))
            if standing.holder == token:
                return await self._lead(key, token, standing, look, work, waited)
            waited = True
            found = await self._wait(self._leases, key, standing, look, until, wanted)
            if found is not None:
                return found, "coalesced"
            if time.monotonic() >= until:
                self._count("overdue")
                log.warning("another process takes too long", key=key, waited_s=self._wait_s)
                return await work(), "compiled"

    async def _take(self, leases: Leases, key: Key, token: str) -> Standing | None:
        for _ in range(TAKES):
            with contextlib.suppress(StoreDown):
                return await leases.take(key, token, self._lease_s)
        return None

    # the one who compiles

    async def _lead(
        self,
        key: Key,
        token: str,
        standing: Standing,
        look: Callable[[], Awaitable[T | None]],
        work: Callable[[], Awaitable[T]],
        waited: bool,
    ) -> tuple[T, Way]:
        self._count("taken")
        self._held[token] = key
        renewing = asyncio.create_task(self._renewing(key, token))
        failure: bytes | None = None
        try:
            if standing.landed:  # by another, since this process last looked
                found = await look()
                if found is not None:
                    return found, "coalesced" if waited else "hit"
            return await work(), "compiled"
        except LatheError as error:
            told = failure_to_json(error)
            failure = None if told is None else json.dumps(told, default=str).encode()
            raise
        finally:
            renewing.cancel()
            self._release(key, token, failure)

    async def _renewing(self, key: Key, token: str) -> None:
        assert self._leases is not None
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS)
            with contextlib.suppress(StoreDown):
                if not await self._leases.renew(key, token, self._lease_s):
                    self._count("lost")
                    log.warning("a lease was lost: another process may compile the same", key=key)
                    return

    def _release(self, key: Key, token: str, failure: bytes | None) -> None:
        """In a task of its own: nobody has to wait for it, and a client that goes away does not stop it."""
        assert self._leases is not None
        if self._held.pop(token, None) is not None:
            self._later(self._leases.release(key, token, failure))

    def _later(self, call: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(StoreDown):  # then it runs out by itself
                await call

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # the others

    async def _wait(
        self,
        leases: Leases,
        key: Key,
        standing: Standing,
        look: Callable[[], Awaitable[T | None]],
        until: float,
        wanted: Wanted,
    ) -> T | None:
        """What the holder made; None where the lease is free again, the store silent, or it is `until`."""
        holders = {standing.holder}
        landing = self._landings.setdefault(key, asyncio.Event())
        pause_s = FIRST_LOOK_S
        answered = time.monotonic()
        self._metrics.singleflight_waiters.inc()
        try:
            while True:
                if standing.landed:
                    found = await look()
                    if found is not None:
                        return found
                if standing.failed is not None and standing.failed[0] in holders:
                    failure = failure_from_json(standing.failed[1])
                    if failure is not None:
                        raise failure
                if standing.holder is None or time.monotonic() - answered > SILENT_S:
                    return None
                if not wanted():
                    raise Abandoned
                left_s = until - time.monotonic()
                if left_s <= 0:
                    return None
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(landing.wait(), min(left_s, pause_s * random.uniform(0.5, 1.0)))
                landing.clear()  # before looking: what lands while we look is looked for again at once
                pause_s = min(2 * pause_s, LOOK_MOST_S)
                with contextlib.suppress(StoreDown):
                    standing = await leases.standing(key)
                    answered = time.monotonic()
                    holders.add(standing.holder)
        finally:
            self._metrics.singleflight_waiters.dec()
            self._landings.pop(key, None)

    def _heard(self, key: Key) -> None:
        landing = self._landings.get(key)
        if landing is not None:
            landing.set()

    def _count(self, what: str) -> None:
        self._metrics.leases.labels(what).inc()
