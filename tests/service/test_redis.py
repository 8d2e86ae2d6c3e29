"""Redis at its worst: gone, silent, full, locked. Each costs a bounded time and heals by itself."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable

import pytest
import redis as plain_redis

from service.errors import StoreDown
from service.store.breaker import Breaker, State
from service.store.keys import Key, Kind, Name
from service.store.redis import RedisStore
from service.store.store import Entry
from tests.service.conftest import RedisServer

pytestmark = pytest.mark.anyio


def fresh(kind: Kind = Kind.PROGRAM) -> Name:
    return Name(kind, Key(secrets.token_hex(32)))


def patient(url: str) -> RedisStore:
    return RedisStore(url, timeout_s=30, connect_s=30)


async def fill(store: RedisStore) -> None:
    for _ in range(100):
        await store.put(Entry(fresh(), secrets.token_bytes(100_000), 3600.0))


async def test_values_of_one_key_share_a_slot_of_a_cluster_and_prefixes_keep_services_apart(redis_url: str) -> None:
    store = RedisStore(redis_url, prefix="mine")
    name = fresh()

    assert f"mine:{{{name.key}}}:program" == store.spelt(name)
    await store.close()


async def test_a_redis_that_is_gone_fails_and_then_is_left_alone(own_redis: RedisServer) -> None:
    store = RedisStore(own_redis.url, breaker=Breaker(3, 3600.0))
    await store.ping()
    own_redis.kill()
    for _ in range(3):
        with pytest.raises(StoreDown):
            await store.many([fresh()])

    assert State.OPEN is store.breaker.state
    with pytest.raises(StoreDown, match="left alone"):
        await store.many([fresh()])
    await store.close()


async def test_a_redis_that_is_back_is_used_again_without_a_restart(own_redis: RedisServer) -> None:
    store = RedisStore(own_redis.url, timeout_s=5, connect_s=5, breaker=Breaker(1, 0.05))
    await store.ping()
    own_redis.kill()
    with pytest.raises(StoreDown):
        await store.ping()
    own_redis.restart()
    name = fresh()
    for _ in range(400):
        try:
            await store.put(Entry(name, b"v"))
            break
        except StoreDown:
            await asyncio.sleep(0.05)

    assert [b"v"] == await store.many([name])
    assert State.CLOSED is store.breaker.state
    await store.close()


async def test_a_silent_redis_is_not_waited_for(own_redis: RedisServer) -> None:
    store = RedisStore(own_redis.url, timeout_s=0.1, connect_s=0.1, breaker=Breaker(100, 0.05))
    await store.ping()
    own_redis.process.send_signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(20):  # generous; without limits of its own the call would never end
            with pytest.raises(StoreDown):
                await store.many([fresh()])
    finally:
        own_redis.process.send_signal(signal.SIGCONT)
    await store.close()


async def test_a_full_redis_refuses_to_keep_and_still_answers(redis_with: Callable[..., RedisServer]) -> None:
    server = redis_with("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
    store = patient(server.url)
    kept = fresh()
    await store.put(Entry(kept, b"v", 3600.0))
    with pytest.raises(StoreDown, match="OutOfMemory"):
        await fill(store)

    assert [b"v"] == await store.many([kept], renew_s=3600.0)
    assert State.CLOSED is store.breaker.state
    await store.close()


async def test_a_wrong_password_is_a_failure_of_the_store(own_redis: RedisServer) -> None:
    server = own_redis
    with plain_redis.Redis(port=server.port) as client:
        client.config_set("requirepass", "right")
    store = patient(server.url.replace("redis://", "redis://:wrong@"))
    with pytest.raises(StoreDown):
        await store.ping()
    right = patient(server.url.replace("redis://", "redis://:right@"))
    await right.ping()
    await right.close()
    await store.close()


async def test_lifetimes_are_set_and_renewed_where_values_last(redis_url: str) -> None:
    store = patient(redis_url)
    lasting, passing = fresh(), fresh(Kind.REFUSAL)
    await store.put(Entry(lasting, b"v", 100.0), Entry(passing, b"v", 100.0), Entry(fresh(), b"v"))
    await store.many([lasting, passing], renew_s=1000.0)
    with plain_redis.Redis.from_url(redis_url) as client:
        left = [client.ttl(store.spelt(name)) for name in (lasting, passing)]

    assert left[0] > 900 >= 100 >= left[1] > 0
    await store.close()


async def test_something_else_under_a_name_is_a_failure_of_the_store_only(redis_url: str) -> None:
    store = patient(redis_url)
    name = fresh()
    with plain_redis.Redis.from_url(redis_url) as client:
        client.lpush(store.spelt(name), "a list")
        with pytest.raises(StoreDown):
            await store.many([name], renew_s=10.0)
        await store.put(Entry(name, b"v"))

    assert [b"v"] == await store.many([name])
    await store.close()
