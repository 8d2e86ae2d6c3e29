"""The way to Redis: one server, the master that Sentinels name, or a cluster. Slow or absent, it costs at most its time limit.

Whatever goes wrong comes out as StoreDown. After failures in a row a breaker leaves Redis alone, until a call that is let through
now and then finds it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from redis.asyncio import ConnectionPool, Redis, RedisCluster, Sentinel, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisClusterException, RedisError, ResponseError

from service.address import Address, Manner
from service.errors import StoreDown
from service.store.breaker import Breaker

T = TypeVar("T")

Client = Any  # Redis or RedisCluster: they share their commands' names, and no type that has them

STALL_S = 0.01  # a clock that rings later than this tells that the process itself stood still
STALLS_MOST_S = 0.25  # so much standing still, in one call, is not held against Redis

SCANNED = 1000  # names that Redis looks at before it answers, where it is asked for all there are
SCAN_S = 30.0  # longest wait for one such answer


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for TLS. authority: whom to believe, in place of the system's list. certificate, key: who we are."""

    authority: str = ""
    certificate: str = ""
    key: str = ""


class Link:
    """Calls to the Redis at an address.

    timeout_s: the longest that one call may take, its waiting for a connection and connecting included; time in which this
    process itself stood still is not counted. connections: how many calls may be on their way at once.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float = 0.2,
        connections: int = 32,
        tls: Tls | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.is_cluster = address.manner is Manner.CLUSTER
        self.client: Client = _client(address, timeout_s, connections, tls or Tls())
        self.breaker = breaker or Breaker(failures=3, rest_s=1.0)
        self._timeout_s = timeout_s
        self._turns = asyncio.Semaphore(connections)

    async def call(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """What Redis answers. Raises StoreDown where it does not answer in time, refuses, or is left alone."""
        if not self.breaker.allows():
            raise StoreDown("Redis is left alone after failures in a row")
        try:
            answer = await _within(self._timeout_s, self._asked(ask))
        except (AuthenticationError, NoPermissionError) as error:
            self.breaker.failed()
            raise StoreDown(f"Redis does not let us in: {_said(error)}") from error
        except ResponseError as error:  # it answers, and refuses this one call: full, read-only
            self.breaker.succeeded()
            raise StoreDown(f"Redis refuses: {_said(error)}") from error
        except (RedisError, RedisClusterException, OSError, TimeoutError) as error:
            self.breaker.failed()
            raise StoreDown(f"Redis: {_said(error)}") from error
        self.breaker.succeeded()  # a call whose client went away ends above, and says nothing about Redis
        return answer

    async def scan(self, pattern: str) -> AsyncIterator[str]:
        """The names that fit a pattern, for tools of operators: it goes through all there are. Raises StoreDown."""
        found = self.client.scan_iter(match=pattern, count=SCANNED)
        try:
            while True:
                async with asyncio.timeout(SCAN_S):
                    name = await anext(found)
                yield name.decode()
        except StopAsyncIteration:
            return
        except (RedisError, RedisClusterException, OSError, TimeoutError) as error:
            raise StoreDown(f"Redis: {_said(error)}") from error

    async def _asked(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        async with self._turns:
            return await ask(self.client)

    async def close(self) -> None:
        await self.client.aclose()


async def _within(seconds: float, work: Awaitable[T]) -> T:
    """The result of the work. Raises TimeoutError after so many seconds in which this process could have heard of it."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    stalled_s = 0.0

    def ring() -> None:
        nonlocal due, stalled_s
        late_s = loop.time() - due
        stalled_s += late_s
        if late_s < STALL_S or stalled_s > STALLS_MOST_S:
            limit.reschedule(loop.time())
            return
        due = loop.time() + late_s  # the answer may have come while nobody could listen: as long again is waited for it
        timers.append(loop.call_at(due, ring))

    timers = [loop.call_at(due, ring)]
    try:
        async with asyncio.timeout(None) as limit:
            return await work
    finally:
        timers[-1].cancel()


def _client(address: Address, timeout_s: float, connections: int, tls: Tls) -> Client:
    retry = Retry(NoBackoff(), 1)  # one: a connection that a restarted server has forgotten is noticed by its use
    common: dict[str, Any] = {
        "username": address.user,
        "password": address.password,
        "socket_timeout": None,  # `_within` is the time limit; the library's own would count a stall of ours too
        "socket_connect_timeout": timeout_s,
        "protocol": 2,
        "driver_info": None,  # telling our name takes two more round trips for each connection
    }
    secure: dict[str, Any] = {}
    if address.tls:
        secure = {"ssl_ca_certs": tls.authority or None, "ssl_certfile": tls.certificate or None, "ssl_keyfile": tls.key or None}
    if address.manner is Manner.CLUSTER:
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        cluster = {"max_connections": connections, "retry": retry, "ssl": address.tls, **common, **secure}
        return RedisCluster(startup_nodes=nodes, **cluster)
    common |= {"retry": retry, "db": address.db}
    if address.manner is Manner.SENTINEL:
        of_ours = {**common, **secure, "ssl": address.tls}
        of_theirs = {**of_ours, "db": 0, "username": address.sentinel_user, "password": address.sentinel_password}
        sentinel = Sentinel(list(address.hosts), sentinel_kwargs=of_theirs, **of_ours)  # type: ignore[no-untyped-call]
        return sentinel.master_for(address.service, max_connections=connections)
    if address.path:
        common |= {"connection_class": UnixDomainSocketConnection, "path": address.path}
    else:
        ((host, port),) = address.hosts
        common |= {"host": host, "port": port}
        if address.tls:
            common |= {"connection_class": SSLConnection, **secure}
    return Redis(connection_pool=ConnectionPool(max_connections=connections, **common))


def _said(error: Exception) -> str:
    """An error in words. A pipeline's repeats the command, value and all: of that only what went wrong is told."""
    _, _, cause = str(error).rpartition("caused error: ")
    return f"{type(error).__name__}: {cause}"[:300]
