"""The contract of leases: one suite for all that keep them, Redis and its cluster real ones."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.address import address_in
from service.flight.leases import LANDED, Leases, Standing
from service.flight.redis import TOKEN_CHARS, RedisLeases
from service.flight.sqlite import SqliteLeases
from service.store.keys import Key, Kind, Name
from service.store.redis import RedisStore
from service.store.redis_link import Link
from service.store.sqlite import SqliteStore
from service.store.sqlite_file import SqliteFile
from service.store.store import Entry, Store

pytestmark = pytest.mark.anyio

OURS, THEIRS = "a" * TOKEN_CHARS, "b" * TOKEN_CHARS


@dataclass(frozen=True, slots=True)
class Shared:
    store: Store
    leases: Leases


@pytest.fixture(params=["sqlite", "redis", "redis cluster"])
async def shared(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shared]:
    if request.param == "sqlite":
        file = SqliteFile(tmp_path / "lathe.db")
        made = Shared(SqliteStore(file), SqliteLeases(file))
    else:
        url = request.getfixturevalue("redis_url" if request.param == "redis" else "redis_cluster")
        link, prefix = Link(address_in(url), timeout_s=10), f"t{secrets.token_hex(4)}"
        store = RedisStore(link, prefix=prefix)
        made = Shared(store, RedisLeases(link, store, prefix=prefix))
    yield made
    await made.store.close()


@pytest.fixture
def key() -> Key:
    return Key(secrets.token_hex(32))


async def test_a_lease_is_one_process_s_until_it_gives_it_up(shared: Shared, key: Key) -> None:
    leases = shared.leases

    assert Standing(None) == await leases.standing(key)
    assert Standing(OURS) == await leases.take(key, OURS, 60.0)
    assert Standing(OURS) == await leases.take(key, THEIRS, 60.0) == await leases.standing(key)
    await leases.release(key, OURS)
    assert Standing(THEIRS) == await leases.take(key, THEIRS, 60.0)


async def test_a_call_sent_twice_takes_the_lease_once(shared: Shared, key: Key) -> None:
    await shared.leases.take(key, OURS, 60.0)

    assert Standing(OURS) == await shared.leases.take(key, OURS, 60.0)


async def test_of_many_who_ask_at_once_one_gets_it(shared: Shared, key: Key) -> None:
    tokens = [secrets.token_hex(TOKEN_CHARS // 2) for _ in range(50)]
    standings = await asyncio.gather(*(shared.leases.take(key, token, 60.0) for token in tokens))

    assert 1 == len({standing.holder for standing in standings})
    assert standings[0].holder in tokens


async def test_nobody_gives_up_or_renews_a_lease_of_another(shared: Shared, key: Key) -> None:
    await shared.leases.take(key, OURS, 60.0)
    await shared.leases.release(key, THEIRS, b"{}")

    assert not await shared.leases.renew(key, THEIRS, 60.0)
    assert Standing(OURS) == await shared.leases.standing(key)


async def test_a_lease_that_is_not_renewed_runs_out(shared: Shared, key: Key) -> None:
    await shared.leases.take(key, OURS, 0.05)
    for _ in range(1000):
        if (await shared.leases.standing(key)).holder is None:
            break
        await asyncio.sleep(0.01)

    assert not await shared.leases.renew(key, OURS, 60.0)
    assert Standing(THEIRS) == await shared.leases.take(key, THEIRS, 60.0)


async def test_a_lease_that_is_renewed_lives_on(shared: Shared, key: Key) -> None:
    await shared.leases.take(key, OURS, 1.0)
    assert await shared.leases.renew(key, OURS, 3600.0)
    await asyncio.sleep(1.1)

    assert Standing(OURS) == await shared.leases.standing(key)


async def test_a_failure_is_told_with_the_token_of_who_failed(shared: Shared, key: Key) -> None:
    await shared.leases.take(key, OURS, 60.0)
    await shared.leases.release(key, OURS, b'{"why":"\xc3\xa9"}')
    told = (OURS, b'{"why":"\xc3\xa9"}')

    assert Standing(None, False, told) == await shared.leases.standing(key)
    taken = await shared.leases.take(key, THEIRS, 60.0)
    assert (THEIRS, told) == (taken.holder, taken.failed)


@pytest.mark.parametrize("kind", list(Kind))
async def test_what_others_can_go_by_counts_as_landed(shared: Shared, key: Key, kind: Kind) -> None:
    await shared.store.put(Entry(Name(kind, key), b"v", 60.0))

    assert (kind in LANDED) == (await shared.leases.standing(key)).landed
    assert (kind in LANDED) == (await shared.leases.take(key, OURS, 60.0)).landed


@pytest.mark.parametrize("shared", ["redis", "redis cluster"], indirect=True)
async def test_who_listens_hears_of_a_lease_given_up(shared: Shared, key: Key) -> None:
    heard: asyncio.Queue[Key] = asyncio.Queue()
    listening = asyncio.ensure_future(shared.leases.listen(heard.put_nowait))
    while heard.empty():  # nothing tells when the channel is there
        await shared.leases.take(key, OURS, 60.0)
        await shared.leases.release(key, OURS)
        await asyncio.sleep(0.01)
    listening.cancel()

    assert key == heard.get_nowait()
