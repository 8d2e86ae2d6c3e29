"""`/program/{key}/explain` over HTTP: how a program came about, with the real compiler and with one that does as it is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from core import LimitExceeded, Limits, Request, explain
from service.api.examples import COMPILES, EXPLANATION_SCHEMA, SUM
from service.asking import asked_in
from service.binaries.toolchain import Toolchain
from service.errors import TimedOut, WorkerLost
from service.origin import origin_of
from service.store.keys import Key, Kind, Name
from service.store.memory import MemoryStore
from service.workers.job import Failed, Job, Outcome, Told
from service.workers.task import run
from tests.service.fake import FakeCompiler, RealCompiler, Running, key_of, running, told
from tests.service.process import served
from tests.service.test_end_to_end import chain

pytestmark = pytest.mark.anyio
Json = dict[str, Any]

NO_KEY = "0" * 64
KERNEL: Json = {"kernel": 1}
PATH = f"/program/{key_of(KERNEL)}/explain"
SINCE: Json = {"validations": [], "tunings": [], "binaries": []}


@pytest.mark.parametrize("body", COMPILES.values(), ids=list(COMPILES))
async def test_a_program_is_explained_by_its_key(body: Json) -> None:
    async with running(compiler=RealCompiler()) as service:
        compiled = await service.compile(body)
        response = await service.client.get(f"{compiled.headers['location']}/explain")

        assert (200, "application/json", "no-cache") == (
            response.status_code, response.headers["content-type"], response.headers["cache-control"],
        )  # fmt: skip
        assert {**explain(Request.from_json(body)), **SINCE} == response.json()
        assert EXPLANATION_SCHEMA["required"] == list(response.json())


async def test_what_devices_have_said_since_stands_beside_it(service: Running) -> None:
    await service.compile(KERNEL)
    reports: list[Json] = [{"verdict": "right", "device": "d", "seconds": 0.5}, {"verdict": "unfit", "device": "e", "detail": "small"}]
    for report in reports:
        await service.services.catalog.keep_validation(key_of(KERNEL), report)

    assert {**SINCE, "validations": reports} == {name: (await service.client.get(PATH)).json()[name] for name in SINCE}


@pytest.mark.parametrize("key", [NO_KEY, "short", "A" * 64, NO_KEY + "0"])
async def test_what_is_not_here_is_a_404_that_no_cache_keeps(service: Running, key: str) -> None:
    response = await service.client.get(f"/program/{key}/explain")
    told(response, 404, "request")

    assert "no-store" == response.headers["cache-control"]
    assert [] == service.compiler.explained


async def test_what_failed_validation_is_gone(service: Running) -> None:
    await service.compile(KERNEL)
    await service.services.catalog.keep_validation(key_of(KERNEL), {"verdict": "wrong", "device": "d"})

    told(await service.client.get(PATH), 410, "request")


async def test_a_program_whose_request_is_gone_can_not_be_explained() -> None:
    store = MemoryStore(1 << 24)
    async with running(store) as service:
        await service.compile(KERNEL)
        await store.delete(Name(Kind.REQUEST, key_of(KERNEL)))
        response = await service.client.get(PATH)

        assert "kept no longer" in told(response, 404, "request")["detail"]
        assert "no-store" == response.headers["cache-control"]


async def test_a_program_of_another_compiler_is_not_explained_by_this_one() -> None:
    """Its request has another key by now; a worker would take that for changed files, and the service out of use."""
    async with running() as service:
        old = Key("7" * 64)
        await service.services.catalog.keep(old, b"{}", b"", origin_of({"ast": {}, **KERNEL}, "0" * 64), 1.0)
        response = await service.client.get(f"/program/{old}/explain")

        assert "another version of the compiler" in told(response, 404, "request")["detail"]
        assert [] == service.compiler.explained


async def test_a_client_that_takes_no_json_gets_a_406_and_costs_no_work(service: Running) -> None:
    await service.compile(KERNEL)

    told(await service.client.get(PATH, headers={"accept": "text/html"}), 406, "request")
    assert [] == service.compiler.explained


async def test_another_method_is_refused(service: Running) -> None:
    await service.compile(KERNEL)

    told(await service.client.post(PATH), 405, "request")


@pytest.mark.parametrize("coding", ["gzip", "zstd", "identity"])
async def test_it_comes_in_a_coding_the_client_takes(coding: str) -> None:
    async with running(compiler=RealCompiler()) as service:
        path = (await service.compile({"ast": SUM, "device": {"target": "c"}})).headers["location"]
        response = await service.client.get(f"{path}/explain", headers={"accept-encoding": coding})

        assert coding == response.headers.get("content-encoding", "identity")
        assert "accept-encoding" == response.headers["vary"]
        assert set(EXPLANATION_SCHEMA["required"]) == set(response.json())


async def test_its_work_is_measured_as_a_stage(service: Running) -> None:
    await service.compile(KERNEL)
    queued = service.metric("lathe_compile_stage_seconds_count", stage="queue")
    await service.client.get(PATH)

    assert 0.5 == service.metric("lathe_compile_stage_seconds_sum", stage="explain")
    assert queued + 1 == service.metric("lathe_compile_stage_seconds_count", stage="queue")
    assert 1 == service.metric("lathe_http_requests_total", route="/program/{key}/explain", method="GET", status="200")


async def test_many_who_ask_at_once_are_told_by_one_worker(service: Running) -> None:
    await service.compile(KERNEL)
    service.compiler.gate.clear()
    asking = [asyncio.ensure_future(service.client.get(PATH)) for _ in range(8)]
    while not service.compiler.explained:
        await asyncio.sleep(0)
    service.compiler.gate.set()
    answers = await asyncio.gather(*asking)

    assert {(200, answers[0].content)} == {(answer.status_code, answer.content) for answer in answers}
    assert 1 == len(service.compiler.explained)


@pytest.mark.parametrize(
    ("raised", "status", "category"),
    [(TimedOut(limit="compile_seconds", allowed_s=1.0), 504, "limit"), (WorkerLost("lost", retry_after_s=1), 503, "unavailable")],
)
async def test_the_limits_of_a_compile_hold_and_take_nothing_from_the_program(
    service: Running, raised: Exception, status: int, category: str
) -> None:
    location = (await service.compile(KERNEL)).headers["location"]
    service.compiler.raises = raised

    told(await service.client.get(PATH), status, category)
    assert 200 == (await service.client.get(location)).status_code


async def test_a_kernel_that_costs_workers_their_lives_is_left_alone_here_too(service: Running) -> None:
    await service.compile(KERNEL)
    service.compiler.raises = WorkerLost("lost", retry_after_s=1)
    await service.client.get(PATH)
    response = await service.client.get(PATH)

    assert "cost workers their lives" in told(response, 503, "unavailable")["detail"]
    assert 1 == len(service.compiler.explained)


async def test_a_refusal_leaves_the_program_as_it_was() -> None:
    class Strict(FakeCompiler):
        async def _worked(self, job: Job) -> tuple[Outcome, float]:
            if job.explained:
                return Failed(LimitExceeded("/ast", limit="micro_ops", needed=2, allowed=1)), 0.0
            return await super()._worked(job)

    async with running(compiler=Strict()) as service:
        await service.compile(KERNEL)

        assert "micro_ops" == told(await service.client.get(PATH), 422, "limit")["limit"]
        assert "hit" == (await service.compile(KERNEL)).headers["lathe-result"]


def test_a_worker_tells_what_the_compiler_tells() -> None:
    body = COMPILES["row sums in OpenCL"]
    request = Request.from_json(body)
    asked = asked_in(json.dumps(body).encode(), Limits(), Toolchain())
    outcome = run(Job(asked.job, Limits(), asked.key, explained=True))

    assert isinstance(outcome, Told)
    assert explain(request) == json.loads(outcome.explanation)
    assert ["receive", "explain"] == list(outcome.stages)


def test_a_worker_that_takes_too_long_to_tell_is_stopped_and_the_service_goes_on(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'lathe.db'}"
    with served(["service", "serve"], store=store, compile_seconds=300) as service:
        location = service.compile(ast=chain(3000), device={"target": "c"}).headers["location"]
    with served(["service", "serve"], store=store, compile_seconds=0.05) as service:
        late = service.client.get(f"{location}/explain")

        assert (504, "compile_seconds") == (late.status_code, late.json()["limit"])
        assert (200, 200) == (service.status(location), service.status("/readyz"))


def test_a_running_service_explains_what_it_has_compiled() -> None:
    with served(["service", "serve"], store="memory://", compile_seconds=120) as service:
        body = COMPILES["row sums in OpenCL"]
        response = service.client.get(f"{service.compile(**body).headers['location']}/explain")

        assert {**explain(Request.from_json(body)), **SINCE} == response.json()
        assert service.metric('lathe_compile_stage_seconds_count{stage="explain"}') == 1
        assert service.metric('lathe_http_requests_total{method="GET",route="/program/{key}/explain",status="200"}') == 1
