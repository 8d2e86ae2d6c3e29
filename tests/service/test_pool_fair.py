"""Whose turn it is at the workers, and who is told at once that there is no room. Every process here is a real one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.caller import CALLER, Caller
from service.errors import OverQuota, QueueFull
from tests.service.fake import poll_file
from tests.service.test_pool import Started, job, sizes, started, until

__all__ = ["started"]
pytestmark = pytest.mark.anyio


async def held(started: Started, file: Path) -> asyncio.Task[Any]:
    """The one worker is busy until the file `.go` is there."""
    busy = asyncio.ensure_future(started.made(do="wait", file=str(file)))
    await until(lambda: poll_file(file))
    return busy


def let_go(file: Path) -> None:
    Path(f"{file}.go").touch()


async def asked(started: Started, client: str, order: list[str]) -> None:
    CALLER.set(Caller(client))
    await started.pool.job(job())
    order.append(client)


async def test_clients_take_turns(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "busy"
    busy = await held(started, file)
    order: list[str] = []
    many = [asyncio.ensure_future(asked(started, "many", order)) for _ in range(6)]
    await until(lambda: started.pool.waiting == 6)
    one = [asyncio.ensure_future(asked(started, client, order)) for client in ("one", "two")]
    await until(lambda: started.pool.waiting == 8)
    let_go(file)
    await asyncio.gather(busy, *many, *one)

    assert ["many", "one", "two"] == order[:3]


@sizes(client_queue=2)
async def test_one_client_s_share_of_the_queue_is_bounded_and_the_others_have_theirs(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "busy"
    busy = await held(started, file)
    order: list[str] = []
    many = [asyncio.ensure_future(asked(started, "many", order)) for _ in range(2)]
    await until(lambda: started.pool.waiting == 2)
    with pytest.raises(OverQuota) as over:
        await asked(started, "many", order)
    other = asyncio.ensure_future(asked(started, "other", order))
    await until(lambda: started.pool.waiting == 3)
    let_go(file)
    await asyncio.gather(busy, other, *many)

    assert ("queue_limit_client", 3, 2) == tuple(over.value.facts()[name] for name in ("limit", "needed", "allowed"))
    assert over.value.retry_after_s >= 1


@sizes(queue_s=5.0)
async def test_who_would_wait_in_vain_is_told_at_once(started: Started, tmp_path: Path) -> None:
    """With jobs of a minute each, the second in the queue can't have its turn within five seconds."""
    file = tmp_path / "busy"
    busy = await held(started, file)
    started.pool._mean_s = 60.0
    first = asyncio.ensure_future(started.made())
    await until(lambda: started.pool.waiting == 1)
    with pytest.raises(QueueFull) as full:
        await started.made()
    let_go(file)
    await asyncio.gather(busy, first)

    assert "queue_seconds" == full.value.facts()["limit"]
    assert 60 == full.value.retry_after_s


async def test_whoever_asks_is_told_when_a_worker_has_taken_the_job(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "busy"
    busy = await held(started, file)
    states: list[str] = []

    async def waiting() -> None:
        CALLER.set(Caller(told=states.append))
        await started.pool.job(job())

    second = asyncio.ensure_future(waiting())
    await until(lambda: started.pool.waiting == 1)
    before = list(states)
    let_go(file)
    await asyncio.gather(busy, second)

    assert ([], ["running"]) == (before, states)
