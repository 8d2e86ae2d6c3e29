"""Several services over one store, in this process: what each knows, all know. Only the compiling is not real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from service.errors import TimedOut, WorkerLost
from service.flight.sqlite import SqliteLeases
from service.store.sqlite import SqliteStore
from service.store.sqlite_file import SqliteFile
from tests.service.fake import Running, running, told

pytestmark = pytest.mark.anyio

BODY = {"kernel": 1}


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Running, Running]]:
    async with AsyncExitStack() as stack:
        files = [SqliteFile(tmp_path / "lathe.db", timeout_s=60) for _ in range(2)]
        one, two = [await stack.enter_async_context(running(SqliteStore(file), leases=SqliteLeases(file))) for file in files]
        yield one, two


async def until_waiting(service: Running, many: int = 1) -> None:
    while service.metric("lathe_singleflight_waiters") < many:
        await asyncio.sleep(0.001)


async def test_what_one_compiles_the_others_wait_for_and_say_so(pair: tuple[Running, Running]) -> None:
    one, two = pair
    one.compiler.gate.clear()
    first = asyncio.ensure_future(one.compile(BODY))
    while not one.compiler.compiled:
        await asyncio.sleep(0.001)
    others = [asyncio.ensure_future(two.compile(BODY)) for _ in range(3)]
    await until_waiting(two, 3)
    one.compiler.gate.set()
    answers = await asyncio.gather(first, *others)

    assert ["compiled", *3 * ["coalesced"]] == [answer.headers["lathe-result"] for answer in answers]
    assert 1 == len({answer.content for answer in answers})
    assert [] == two.compiler.compiled
    assert 3 == two.metric("lathe_compiles_avoided_total")
    assert 3 * 0.251 == pytest.approx(two.metric("lathe_compile_seconds_saved_total"))
    assert "hit" == (await two.compile(BODY)).headers["lathe-result"]


async def test_who_asks_together_for_what_is_stored_already_is_told_hit(pair: tuple[Running, Running]) -> None:
    one, two = pair
    await one.compile(BODY)
    two.compiler.gate.clear()  # nobody here may compile
    answers = await asyncio.gather(*(two.compile(BODY) for _ in range(10)))

    assert 10 * ["hit"] == [answer.headers["lathe-result"] for answer in answers]


async def test_a_client_that_goes_away_harms_nobody_in_another_replica(pair: tuple[Running, Running]) -> None:
    one, two = pair
    one.compiler.gate.clear()
    first = asyncio.ensure_future(one.compile(BODY))
    while not one.compiler.compiled:
        await asyncio.sleep(0.001)
    other = asyncio.ensure_future(two.compile(BODY))
    await until_waiting(two)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    one.compiler.gate.set()

    assert (200, "coalesced") == ((await other).status_code, other.result().headers["lathe-result"])


async def test_a_refusal_of_one_is_the_refusal_of_all(pair: tuple[Running, Running]) -> None:
    one, two = pair
    body = {"kernel": 1, "do": "refuse"}
    told(await one.compile(body), 422, "ast")

    assert 3 == told(await two.compile(body), 422, "ast")["node"]
    assert [] == two.compiler.compiled


async def test_a_kernel_that_kills_workers_of_one_is_left_alone_by_all(pair: tuple[Running, Running]) -> None:
    one, two = pair
    one.compiler.raises = WorkerLost("gone")
    told(await one.compile(BODY), 503, "unavailable")
    refused = await two.compile(BODY)

    assert "has cost workers their lives 1 times" in told(refused, 503, "unavailable")["detail"]
    assert 1 <= int(refused.headers["retry-after"]) <= 11
    assert [] == two.compiler.compiled


async def test_who_waits_for_a_kernel_that_kills_workers_does_not_try_it_too(pair: tuple[Running, Running]) -> None:
    one, two = pair
    one.compiler.gate.clear()
    one.compiler.raises = WorkerLost("gone")
    first = asyncio.ensure_future(one.compile(BODY))
    while not one.compiler.compiled:
        await asyncio.sleep(0.001)
    other = asyncio.ensure_future(two.compile(BODY))
    await until_waiting(two)
    one.compiler.gate.set()

    told(await first, 503, "unavailable")
    told(await other, 503, "unavailable")
    assert [] == two.compiler.compiled


async def test_a_compile_past_its_time_limit_is_not_tried_again_for_those_who_waited(pair: tuple[Running, Running]) -> None:
    one, two = pair
    one.compiler.gate.clear()
    one.compiler.raises = TimedOut(limit="compile_seconds", allowed_s=30)
    first = asyncio.ensure_future(one.compile(BODY))
    while not one.compiler.compiled:
        await asyncio.sleep(0.001)
    other = asyncio.ensure_future(two.compile(BODY))
    await until_waiting(two)
    one.compiler.gate.set()

    assert told(await first, 504, "limit")["needed"] == told(await other, 504, "limit")["needed"]
    assert [] == two.compiler.compiled
