"""A store in Redis, shared by replicas. Slow or absent, it costs at most its time limit, then a breaker leaves it alone.

Names are `prefix:{key}:kind`: the braces put all that belongs to one key into one slot of a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from service.errors import StoreDown
from service.store.breaker import Breaker
from service.store.keys import LASTING, Name
from service.store.store import Entry

T = TypeVar("T")


class RedisStore:
    """Keeps values in the Redis at `url` (`redis://[user:password@]host:port/db`, `rediss://…`, `unix://…`).

    timeout_s, connect_s: longest wait for an answer and for a connection. breaker: decides when not to ask at all.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "lathe",
        timeout_s: float = 0.2,
        connect_s: float = 0.25,
        connections: int = 32,
        breaker: Breaker | None = None,
    ) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=connections,
            timeout=timeout_s,
            socket_timeout=timeout_s,
            socket_connect_timeout=connect_s,
            retry=Retry(NoBackoff(), 1),  # one: a connection that a restarted server has forgotten is noticed by its use
        )
        self._redis: Redis = Redis(connection_pool=pool)
        self._prefix = prefix
        self._deadline_s = timeout_s + connect_s
        self._breaker = breaker or Breaker(failures=3, rest_s=1.0)

    @property
    def breaker(self) -> Breaker:
        return self._breaker

    def spelt(self, name: Name) -> str:
        """The name as Redis has it."""
        return f"{self._prefix}:{{{name.key}}}:{name.kind}"

    async def many(self, names: Sequence[Name], renew_s: float | None = None) -> list[bytes | None]:
        if not names:
            return []
        if renew_s is None or not any(name.kind in LASTING for name in names):
            values = await self._call(lambda: self._plainly(names))
        else:
            px = _milliseconds(renew_s)
            values = await self._call(lambda: self._renewing(names, px))
        return [value if isinstance(value, bytes) else None for value in values]

    async def _plainly(self, names: Sequence[Name]) -> list[object]:
        return list(await self._redis.mget([self.spelt(name) for name in names]))

    async def _renewing(self, names: Sequence[Name], px: int) -> list[object]:
        async with self._redis.pipeline(transaction=False) as line:
            for name in names:
                if name.kind in LASTING:
                    line.getex(self.spelt(name), px=px)
                else:
                    line.get(self.spelt(name))
            answers: list[object] = await line.execute()
            return answers

    async def put(self, *entries: Entry) -> None:
        async def send() -> None:
            async with self._redis.pipeline(transaction=False) as line:
                for entry in entries:
                    px = None if entry.lifetime_s is None else _milliseconds(entry.lifetime_s)
                    line.set(self.spelt(entry.name), entry.value, px=px)
                await line.execute()

        await self._call(send)

    async def delete(self, *names: Name) -> None:
        if names:
            await self._call(lambda: self._redis.delete(*(self.spelt(name) for name in names)))

    async def ping(self) -> None:
        await self._call(lambda: self._redis.ping())

    async def close(self) -> None:
        await self._redis.aclose()

    async def _call(self, ask: Callable[[], Awaitable[T]]) -> T:
        if not self._breaker.allows():
            raise StoreDown("Redis is left alone after failures in a row")
        try:
            async with asyncio.timeout(self._deadline_s):
                answer = await ask()
        except (AuthenticationError, NoPermissionError) as error:
            self._breaker.failed()
            raise StoreDown(f"Redis does not let us in: {_said(error)}") from error
        except ResponseError as error:  # it answers, and refuses this one call: full, read-only, loading
            self._breaker.succeeded()
            raise StoreDown(f"Redis refuses: {_said(error)}") from error
        except (RedisError, OSError, TimeoutError) as error:
            self._breaker.failed()
            raise StoreDown(f"Redis: {_said(error)}") from error
        except asyncio.CancelledError:
            raise  # the client went away; this says nothing about Redis
        self._breaker.succeeded()
        return answer


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _said(error: Exception) -> str:
    """An error in words. A pipeline's repeats the command, value and all: of that only what went wrong is told."""
    _, _, cause = str(error).rpartition("caused error: ")
    return f"{type(error).__name__}: {cause}"[:300]
