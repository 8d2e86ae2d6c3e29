"""Many clients ask many replicas for the same new kernels at the same moment. Real processes, a real Redis, real signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench.client import Answer, Balanced
from tests.service.fake_task import program
from tests.service.process import Service, served
from tests.service.redis_servers import RedisServer

pytestmark = pytest.mark.anyio

FAKE = ["tests.service.fake_service"]
REPLICAS, CLIENTS, KERNELS = 3, 600, 20
FEW = 7  # kernels; as with 20, three replicas that take turns get each of them


def replicas(stack: ExitStack, store: str, lease_seconds: float = 20) -> list[Service]:
    """Their store is given all the time it wants: here nothing is wrong with it but a busy machine."""
    return [stack.enter_context(served(FAKE, store=store, store_timeout_s=20, lease_seconds=lease_seconds)) for _ in range(REPLICAS)]


async def stampede(client: Balanced, bodies: list[dict[str, Any]], times: int) -> list[Answer]:
    """Each body as often, all at once, in an order that brings equal ones to all replicas."""
    return await asyncio.gather(*(client.ask("POST", "/compile", json.dumps(body).encode()) for _ in range(times) for body in bodies))


def tallied(file: Path) -> list[tuple[int, int]]:
    """Each compile that was begun: the kernel, and the process whose worker it was."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(kernel), int(pid)) for kernel, pid in (line.split() for line in lines)]


def check_right(bodies: list[dict[str, Any]], answers: list[Answer]) -> None:
    assert {200} == {answer.status for answer in answers}
    for i, body in enumerate(bodies):
        assert {program(body)} == {answer.body for answer in answers[i :: len(bodies)]}


@pytest.mark.parametrize("kind", ["redis", "sqlite"])
async def test_a_stampede_costs_one_compile_per_kernel_in_all_replicas_together(kind: str, tmp_path: Path, own_redis: RedisServer) -> None:
    store = own_redis.url if kind == "redis" else f"sqlite:///{tmp_path / 'lathe.db'}"
    tally = tmp_path / "tally"
    bodies = [{"kernel": i, "do": "take", "seconds": 0.05, "tally": str(tally)} for i in range(KERNELS)]
    with ExitStack() as stack:
        services = replicas(stack, store)
        client = Balanced([service.port for service in services])
        answers = await stampede(client, bodies, CLIENTS // KERNELS)
        client.close()
        results = Counter(answer.headers["lathe-result"] for answer in answers)
        counted = sum(service.metric('lathe_compile_requests_total{result="compiled",target="c"}') for service in services)
        avoided = sum(service.metric("lathe_compiles_avoided_total") for service in services)
        waiting = sum(service.metric("lathe_singleflight_waiters") for service in services)

    check_right(bodies, answers)
    assert Counter(range(KERNELS)) == Counter(kernel for kernel, _ in tallied(tally))
    assert (KERNELS, KERNELS, CLIENTS - KERNELS, 0) == (results["compiled"], counted, avoided, waiting)
    assert {"compiled", "coalesced", "hit"} >= set(results)


async def test_when_the_replica_that_compiles_is_killed_another_takes_over(tmp_path: Path, own_redis: RedisServer) -> None:
    tally, gate = tmp_path / "tally", tmp_path / "gate"
    bodies = [{"kernel": i, "do": "wait", "file": str(gate), "tally": str(tally)} for i in range(FEW)]
    with ExitStack() as stack:
        services = replicas(stack, own_redis.url, lease_seconds=3)
        client = Balanced([service.port for service in services])
        asking = asyncio.ensure_future(stampede(client, bodies, 10))
        while not tallied(tally):
            await asyncio.sleep(0.01)
        _, killed = tallied(tally)[0]
        os.kill(killed, signal.SIGKILL)
        Path(f"{gate}.go").touch()
        answers = await asking
        client.close()

    check_right(bodies, answers)
    begun = tallied(tally)
    assert Counter(range(FEW)) == Counter(kernel for kernel, pid in begun if pid != killed)
    assert 1 == sum(pid == killed for _, pid in begun)  # its one worker waited for the gate
