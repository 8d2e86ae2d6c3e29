"""The contract of every store: one suite, all of them, Redis a real one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.address import address_in
from service.store.keys import Key, Kind, Name
from service.store.memory import MemoryStore
from service.store.redis import RedisStore
from service.store.redis_link import Link
from service.store.sqlite import SqliteStore
from service.store.sqlite_file import SqliteFile
from service.store.store import Entry, Store

pytestmark = pytest.mark.anyio

KINDS = ("memory", "sqlite", "redis", "redis cluster")


def fresh(kind: Kind = Kind.PROGRAM) -> Name:
    return Name(kind, Key(secrets.token_hex(32)))


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    match request.param:
        case "memory":
            made = MemoryStore(64 << 20)
        case "sqlite":
            made = SqliteStore(SqliteFile(tmp_path / "lathe.db"))
        case _:
            url = request.getfixturevalue("redis_url" if request.param == "redis" else "redis_cluster")
            made = RedisStore(Link(address_in(url), timeout_s=10), prefix=f"t{secrets.token_hex(4)}")
    yield made
    await made.close()


async def get(store: Store, name: Name) -> bytes | None:
    return (await store.many([name]))[0]


async def test_what_was_put_is_there(store: Store) -> None:
    name = fresh()
    await store.put(Entry(name, b"value"))

    assert b"value" == await get(store, name)


async def test_what_was_not_put_is_not_there(store: Store) -> None:
    assert await get(store, fresh()) is None


async def test_the_last_value_put_is_the_one_that_is_there(store: Store) -> None:
    name = fresh()
    await store.put(Entry(name, b"one"))
    await store.put(Entry(name, b"two"))

    assert b"two" == await get(store, name)


async def test_several_entries_are_put_in_one_call(store: Store) -> None:
    names = [fresh(), fresh(Kind.REQUEST), fresh(Kind.VALIDATION)]
    await store.put(*(Entry(name, str(name).encode()) for name in names))

    assert [str(name).encode() for name in names] == await store.many(names)


async def test_many_answers_in_the_order_asked_and_says_none_for_what_is_missing(store: Store) -> None:
    names = [fresh() for _ in range(600)]
    await store.put(*(Entry(name, name.key.encode()) for name in names[::2]))
    expected = [name.key.encode() if i % 2 == 0 else None for i, name in enumerate(names)]

    assert expected == await store.many(names)
    assert expected[::-1] == await store.many(names[::-1])


async def test_many_of_nothing_is_nothing(store: Store) -> None:
    assert [] == await store.many([])


async def test_one_name_asked_for_twice_is_answered_twice(store: Store) -> None:
    name = fresh()
    await store.put(Entry(name, b"value"))

    assert [b"value", b"value"] == await store.many([name, name])


async def test_kinds_under_one_key_are_apart(store: Store) -> None:
    key = fresh().key
    await store.put(Entry(Name(Kind.PROGRAM, key), b"program"), Entry(Name(Kind.REFUSAL, key), b"refusal"))
    await store.delete(Name(Kind.REFUSAL, key))

    assert [b"program", None] == await store.many([Name(Kind.PROGRAM, key), Name(Kind.REFUSAL, key)])


async def test_what_was_deleted_is_gone(store: Store) -> None:
    one, two = fresh(), fresh()
    await store.put(Entry(one, b"1"), Entry(two, b"2"))
    await store.delete(one)

    assert [None, b"2"] == await store.many([one, two])


async def test_deleting_what_is_not_there_does_nothing(store: Store) -> None:
    await store.delete(fresh(), fresh())
    await store.delete()


async def test_any_bytes_come_back_as_they_were(store: Store) -> None:
    name = fresh()
    for value in (b"", bytes(range(256)), b"\x00" * 1000, secrets.token_bytes(3 << 20)):
        await store.put(Entry(name, value))
        assert value == await get(store, name)


@pytest.mark.parametrize("kind", list(Kind))
async def test_a_value_is_gone_when_its_lifetime_is_over(store: Store, kind: Kind) -> None:
    name = fresh(kind)
    await store.put(Entry(name, b"value", 0.02))
    for _ in range(1000):
        if await get(store, name) is None:
            break
        await asyncio.sleep(0.01)

    assert await get(store, name) is None


async def test_a_long_lifetime_is_not_over_at_once(store: Store) -> None:
    name = fresh()
    await store.put(Entry(name, b"value", 3600.0))

    assert b"value" == await get(store, name)


async def test_what_is_renewed_lives_longer_and_nothing_else_does(store: Store) -> None:
    renewed, other, absent = fresh(), fresh(), fresh()
    await store.put(Entry(renewed, b"1", 0.2), Entry(other, b"2", 0.2))
    await store.renew([renewed, absent], 3600.0)
    for _ in range(1000):
        if await get(store, other) is None:
            break
        await asyncio.sleep(0.01)

    assert [b"1", None, None] == await store.many([renewed, other, absent])


async def test_calls_may_be_made_all_at_once(store: Store) -> None:
    names = [fresh() for _ in range(100)]
    await asyncio.gather(*(store.put(Entry(name, name.key.encode())) for name in names))
    values = await asyncio.gather(*(get(store, name) for name in names))

    assert [name.key.encode() for name in names] == list(values)


async def test_a_call_that_is_cancelled_leaves_the_store_in_order(store: Store) -> None:
    name = fresh()
    await store.put(Entry(name, b"value"))
    for _ in range(20):
        task = asyncio.ensure_future(get(store, name))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert b"value" == await get(store, name)


async def test_it_answers(store: Store) -> None:
    await store.ping()


async def test_all_keys_of_a_kind_are_found_and_no_others(store: Store) -> None:
    programs = [fresh() for _ in range(2500)]
    await store.put(*(Entry(name, b"x", 60.0) for name in programs), Entry(fresh(Kind.REQUEST), b"y"), Entry(fresh(), b"z", 0.001))
    await asyncio.sleep(0.05)

    assert {name.key for name in programs} == {key async for key in store.keys(Kind.PROGRAM)}
    assert [] == [key async for key in store.keys(Kind.JOB)]
