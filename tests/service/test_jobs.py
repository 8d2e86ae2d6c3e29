"""Jobs: what takes longer than a client wants to wait goes on, can be asked for anywhere, and survives its process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from service.api.prefer import preferred
from service.jobs.job import Job, State
from service.jobs.roster import ROSTER, Roster
from service.store.keys import Key, Kind, Name
from tests.service.fake import Running, SharedStore, running, told

pytestmark = pytest.mark.anyio


async def begun(service: Running, wait: str = "wait=0", **body: Any) -> httpx.Response:
    service.compiler.gate.clear()
    response = await service.compile({"kernel": 1, **body}, prefer=wait)
    assert 202 == response.status_code
    return response


async def until(service: Running, path: str, true: Callable[[Any], bool]) -> Any:
    async with asyncio.timeout(60):
        while True:
            job = (await service.client.get(path)).json()
            if true(job):
                return job
            await asyncio.sleep(0.01)


def ended(job: Any) -> bool:
    return job["state"] in ("done", "failed", "cancelled")


def quick(service: Running, stale_s: float = 0.3) -> None:
    """A service whose jobs are looked after often."""
    service.services.jobs._beat_s = 0.02
    service.services.jobs._stale_s = stale_s


async def test_what_is_done_in_time_is_answered_as_ever(service: Running) -> None:
    response = await service.compile({"kernel": 1}, prefer="wait=30")

    assert (200, "compiled") == (response.status_code, response.headers["lathe-result"])


async def test_what_takes_longer_goes_on_as_a_job(service: Running) -> None:
    response = await begun(service)
    path = response.headers["location"]

    assert ("1", "wait=0", "no-store") == tuple(response.headers[name] for name in ("retry-after", "preference-applied", "cache-control"))
    assert (f"/jobs/{response.json()['id']}", "compile", None) == (path, response.json()["kind"], response.json()["result"])
    service.compiler.gate.set()
    job = await until(service, path, ended)

    assert ("done", "compiled", "k_1") == (job["state"], job["result"]["result"], job["program"]["name"])
    assert job["program"] == (await service.client.get(job["result"]["location"])).json()


async def test_a_job_that_is_refused_has_the_problem_that_the_compile_would_have_had(service: Running) -> None:
    path = (await begun(service, do="refuse")).headers["location"]
    service.compiler.gate.set()
    job = await until(service, path, ended)

    assert ("failed", 422, "ast", "/ast/nodes/3") == (job["state"], *(job["problem"][name] for name in ("status", "category", "pointer")))


async def test_a_refusal_in_time_is_a_refusal(service: Running) -> None:
    told(await service.compile({"kernel": 1, "do": "refuse"}, prefer="wait=30"), 422, "ast")


async def test_the_events_tell_the_states_and_end_with_the_last(service: Running) -> None:
    path = (await begun(service)).headers["location"]
    asking = asyncio.ensure_future(service.client.get(f"{path}/events"))
    await asyncio.sleep(0.05)
    service.compiler.gate.set()
    response = await asking
    events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in response.text.split("\n\n") if event]

    assert "text/event-stream" == response.headers["content-type"].partition(";")[0]
    assert ("queued", "done") == (events[0]["event"], events[-1]["event"])
    assert ("done", "compiled") == (lambda job: (job["state"], job["result"]["result"]))(json.loads(events[-1]["data"]))


async def test_the_events_of_a_job_that_lasts_tell_how_long_it_has() -> None:
    async with running() as service:
        quick(service)
        path = (await begun(service)).headers["location"]
        asking = asyncio.ensure_future(service.client.get(f"{path}/events"))
        await asyncio.sleep(0.2)
        service.compiler.gate.set()

        assert "event: progress\n" in (await asking).text


async def test_a_cancelled_job_is_cancelled_everywhere_and_cancelling_is_idempotent(service: Running) -> None:
    path = (await begun(service)).headers["location"]
    cancelled = await service.client.delete(path)

    assert (200, "cancelled") == (cancelled.status_code, cancelled.json()["state"])
    assert 200 == (await service.client.delete(path)).status_code
    assert "cancelled" == (await service.client.get(path)).json()["state"]


async def test_a_job_that_has_ended_is_not_cancelled(service: Running) -> None:
    path = (await begun(service)).headers["location"]
    service.compiler.gate.set()
    await until(service, path, ended)

    told(await service.client.delete(path), 409, "request")


@pytest.mark.parametrize("path", [f"/jobs/{'0' * 64}", "/jobs/x", f"/jobs/{'0' * 64}/events"])
async def test_a_job_that_is_not_there_is_a_404(service: Running, path: str) -> None:
    told(await service.client.get(path), 404, "request")


async def test_more_jobs_than_may_are_refused_before_they_begin() -> None:
    async with running(jobs_limit=1) as service:
        await begun(service)
        body = told(await service.compile({"kernel": 2}, prefer="wait=0"), 503, "overload")
        service.compiler.gate.set()

        assert "jobs_limit" == body["limit"]


async def test_every_replica_answers_for_every_job() -> None:
    store = SharedStore(1 << 24)
    async with running(store) as one, running(store) as two:
        path = (await begun(one)).headers["location"]

        assert "queued" == (await two.client.get(path)).json()["state"]
        one.compiler.gate.set()
        await until(one, path, ended)
        assert "k_1" == (await until(two, path, ended))["program"]["name"]
        assert [] == two.compiler.compiled


async def test_a_job_can_be_cancelled_where_it_does_not_run() -> None:
    store = SharedStore(1 << 24)
    async with running(store) as one, running(store) as two:
        quick(one)
        path = (await begun(one)).headers["location"]

        assert "cancelled" == (await two.client.delete(path)).json()["state"]
        assert "cancelled" == (await until(one, path, ended))["state"]
        assert "cancelled" == (await two.client.get(path)).json()["state"]


async def test_a_process_that_ends_hands_its_jobs_back() -> None:
    store = SharedStore(1 << 24)
    async with running(store) as two:
        async with running(store) as one:
            path = (await begun(one)).headers["location"]
            await one.services.jobs.drain()
        job = await until(two, path, ended)

        assert ("done", 2) == (job["state"], job["attempts"])


async def test_a_job_whose_process_says_nothing_any_more_begins_anew() -> None:
    store = SharedStore(1 << 24)
    async with running(store) as two:
        quick(two)
        lost = Job(Key("1" * 64), "compile", "", "a process that died", State.RUNNING, created=1.0, updated=1.0, beat=1.0)
        await two.services.catalog.note({Name(Kind.JOB, lost.id): lost.to_bytes(), Name(Kind.JOB_BODY, lost.id): b'{"kernel": 1}'}, 60)
        job = await until(two, f"/jobs/{lost.id}", ended)

        assert ("done", 2) == (job["state"], job["attempts"])


async def test_what_is_left_is_taken_up_by_whoever_looks() -> None:
    store = SharedStore(1 << 24)
    async with running(store) as service:
        catalog = service.services.catalog
        left, done = (
            Job(Key(digit * 64), "compile", "", "a process that died", state, created=1.0, updated=1.0, beat=1.0)
            for digit, state in (("1", State.RUNNING), ("2", State.DONE))
        )
        kept = {Name(Kind.JOB, job.id): job.to_bytes() for job in (left, done)}
        await catalog.note({**kept, Name(Kind.JOB_BODY, left.id): b'{"kernel": 1}'}, 60)
        roster = Roster(catalog, 60)
        for id_ in (left.id, done.id, Key("3" * 64)):
            await roster.enter(id_)
        service.services.jobs._look_due = 0.0
        await service.services.jobs.look()
        job = await until(service, f"/jobs/{left.id}", ended)
        async with asyncio.timeout(60):
            while await roster.ids():
                await asyncio.sleep(0.01)

        assert ("done", 2) == (job["state"], job["attempts"])


@pytest.mark.parametrize("content", [b"[]", b"no JSON", b"{}", b"[1, null]"])
async def test_a_list_that_somebody_has_spoilt_is_whole_again_with_the_next_sign_of_life(content: bytes) -> None:
    store = SharedStore(1 << 24)
    async with running(store) as service:
        quick(service)
        path = (await begun(service)).headers["location"]
        roster = Roster(service.services.catalog, 60)
        before = await roster.ids()
        await service.services.catalog.note({ROSTER: content}, 60)
        async with asyncio.timeout(60):
            while await roster.ids() != before:
                await asyncio.sleep(0.01)
        service.compiler.gate.set()
        await until(service, path, ended)

        assert [path.removeprefix("/jobs/")] == before


@pytest.mark.parametrize(("attempts", "body"), [(3, b'{"kernel": 1}'), (1, None)])
async def test_a_job_that_keeps_losing_its_process_or_its_body_fails(attempts: int, body: bytes | None) -> None:
    async with running() as service:
        lost = Job(Key("1" * 64), "compile", "", "a process that died", State.RUNNING, beat=1.0, attempts=attempts)
        await service.services.catalog.note({Name(Kind.JOB, lost.id): lost.to_bytes()}, 60)
        if body is not None:
            await service.services.catalog.note({Name(Kind.JOB_BODY, lost.id): body}, 60)
        job = (await service.client.get(f"/jobs/{lost.id}")).json()

        assert ("failed", 503, "unavailable") == (job["state"], job["problem"]["status"], job["problem"]["category"])
        assert [] == service.compiler.compiled


async def test_who_was_taken_for_dead_leaves_the_job_to_the_other() -> None:
    store = SharedStore(1 << 24)
    async with running(store) as one, running(store) as two:
        quick(one)
        path = (await begun(one)).headers["location"]
        key = Key(path.removeprefix("/jobs/"))
        here = one.services.jobs._here[key]
        quick(two, stale_s=-1.0)
        two.compiler.gate.clear()
        await two.client.get(path)
        async with asyncio.timeout(60):
            while here.kept:
                await asyncio.sleep(0.01)
        one.compiler.gate.set()
        await here.task
        quick(two)

        assert "queued" == (await two.client.get(path)).json()["state"]
        two.compiler.gate.set()
        assert "done" == (await until(two, path, ended))["state"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None), ("", None), ("wait=5", 5.0), ("respond-async, wait=10", 10.0), ("respond-async", 0.0), ('wait="7"', 7.0),
        ("return=minimal", None), ("wait=x", None), ("wait=-1", None), ("wait", None), ("WAIT=3; foo", 3.0), ("wait=" + "9" * 20, None),
        ("handling=lenient, wait=2, respond-async", 2.0),
    ],
)  # fmt: skip
async def test_preferences_are_read_as_they_are_written(header: str | None, seconds: float | None) -> None:
    found = preferred(header)

    assert seconds == (None if found is None else found[0])


async def test_what_another_version_has_kept_is_no_job() -> None:
    assert None is Job.from_bytes(b"{}")
    assert None is Job.from_bytes(b"[")
    assert None is Job.from_bytes(b'{"state": "sleeping"}')
