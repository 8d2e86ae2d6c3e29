"""Redis at its worst: gone, silent, full, locked. Each costs a bounded time and heals by itself."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis as plain_redis

from service.address import address_in
from service.errors import StoreDown
from service.flight.redis import TOKEN_CHARS, RedisLeases
from service.store.breaker import Breaker, State
from service.store.keys import Key, Kind, Name
from service.store.redis import RedisStore
from service.store.redis_link import Link
from service.store.store import Entry
from tests.service.redis_servers import RedisServer

pytestmark = pytest.mark.anyio


# as docs/store.md tells operators
COMMANDS = ["+get", "+mget", "+set", "+del", "+exists", "+pexpire", "+eval", "+publish", "+subscribe", "+ping"]


def fresh(kind: Kind = Kind.PROGRAM) -> Name:
    return Name(kind, Key(secrets.token_hex(32)))


def linked(url: str, **values: Any) -> RedisStore:
    return RedisStore(Link(address_in(url), **values))


def patient(url: str) -> RedisStore:
    return linked(url, timeout_s=30)


async def fill(store: RedisStore) -> None:
    for _ in range(100):
        await store.put(Entry(fresh(), secrets.token_bytes(100_000), 3600.0))


async def test_values_of_one_key_share_a_slot_of_a_cluster_and_prefixes_keep_services_apart(redis_url: str) -> None:
    store = RedisStore(Link(address_in(redis_url)), prefix="mine")
    name = fresh()

    assert f"mine:{{{name.key}}}:program" == store.spelt(name)
    await store.close()


async def test_a_redis_that_is_gone_fails_and_then_is_left_alone(own_redis: RedisServer) -> None:
    breaker = Breaker(3, 3600.0)
    store = linked(own_redis.url, breaker=breaker)
    await store.ping()
    own_redis.kill()
    for _ in range(3):
        with pytest.raises(StoreDown):
            await store.many([fresh()])

    assert State.OPEN is breaker.state
    with pytest.raises(StoreDown, match="left alone"):
        await store.many([fresh()])
    await store.close()


async def test_a_redis_that_is_back_is_used_again_without_a_restart(own_redis: RedisServer) -> None:
    breaker = Breaker(1, 0.05)
    store = linked(own_redis.url, timeout_s=5, breaker=breaker)
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
    assert State.CLOSED is breaker.state
    await store.close()


async def test_a_silent_redis_is_not_waited_for(own_redis: RedisServer) -> None:
    store = linked(own_redis.url, timeout_s=0.1, breaker=Breaker(100, 0.05))
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
    breaker = Breaker(1, 3600.0)
    store = linked(server.url, timeout_s=30, breaker=breaker)
    kept = fresh()
    await store.put(Entry(kept, b"v", 3600.0))
    with pytest.raises(StoreDown, match="OutOfMemory"):
        await fill(store)

    assert [b"v"] == await store.many([kept])
    assert State.CLOSED is breaker.state
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


async def test_something_else_under_a_name_is_nothing_and_is_overwritten(redis_url: str) -> None:
    store = patient(redis_url)
    name = fresh()
    with plain_redis.Redis.from_url(redis_url) as client:
        client.lpush(store.spelt(name), "a list")
        assert [None] == await store.many([name])
        await store.put(Entry(name, b"v"))

    assert [b"v"] == await store.many([name])
    await store.close()


async def test_looks_made_at_once_share_their_round_trips(own_redis: RedisServer) -> None:
    store = patient(own_redis.url)
    names = [fresh() for _ in range(200)]
    await store.put(*(Entry(name, name.key.encode(), 3600.0) for name in names))
    with plain_redis.Redis(port=own_redis.port) as client:
        before = client.info("commandstats").get("cmdstat_mget", {"calls": 0})["calls"]
        values = await asyncio.gather(*(store.many([name]) for name in names))
        asked = client.info("commandstats")["cmdstat_mget"]["calls"] - before

    assert [[name.key.encode()] for name in names] == values
    assert 1 == asked
    await store.close()


async def test_who_goes_away_takes_nothing_from_those_who_look_along(redis_url: str) -> None:
    store = patient(redis_url)
    name = fresh()
    await store.put(Entry(name, b"v"))
    looks = [asyncio.ensure_future(store.many([name])) for _ in range(5)]
    await asyncio.sleep(0)
    looks[0].cancel()
    values = await asyncio.gather(*looks, return_exceptions=True)

    assert isinstance(values[0], asyncio.CancelledError)
    assert 4 * [[b"v"]] == values[1:]
    await store.close()


async def test_time_in_which_the_process_itself_stood_still_is_not_held_against_redis(redis_url: str) -> None:
    store = linked(redis_url, timeout_s=0.15)
    await store.ping()
    look = asyncio.ensure_future(store.many([fresh()]))
    await asyncio.sleep(0.001)
    time.sleep(0.4)  # the answer has come long ago, and the clock has rung too

    assert [None] == await look
    await store.close()


async def test_a_user_that_may_touch_only_our_names_is_enough(own_redis: RedisServer) -> None:
    with plain_redis.Redis(port=own_redis.port) as client:
        client.execute_command(*["ACL", "SETUSER", "kernels", "on", ">p@ss:word", "~lathe:*", "&lathe:*", "-@all"], *COMMANDS)
    url = own_redis.url.replace("redis://", "redis://kernels:p%40ss%3Aword@")
    link = Link(address_in(url), timeout_s=30)
    store, name = RedisStore(link), fresh()
    await store.put(Entry(name, b"v", 100.0))
    await store.renew([name], 200.0)
    leases = RedisLeases(link, store)
    token = "a" * TOKEN_CHARS
    heard: asyncio.Queue[str] = asyncio.Queue()
    listening = asyncio.ensure_future(leases.listen(heard.put_nowait))
    while heard.empty():  # until the channel is there
        await leases.take(name.key, token, 60.0)
        assert await leases.renew(name.key, token, 60.0)
        await leases.release(name.key, token)
        await asyncio.sleep(0.01)
    listening.cancel()

    assert name.key == heard.get_nowait()
    assert [b"v"] == await store.many([name])
    await store.delete(name)
    await store.ping()
    with pytest.raises(StoreDown, match="NoPermission"):
        await RedisStore(link, prefix="other").put(Entry(name, b"v"))
    await store.close()
