"""`/jobs/{id}`: work that goes on by itself; what has become of it, as it happens, and its end before time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from service.api.bodies import JSON, acceptable, answered, gives, problems
from service.api.examples import JOB_SCHEMA
from service.caller import CALLER, Scope
from service.errors import HttpRefused, Quarantined
from service.jobs.job import Job, State
from service.services import Services, services
from service.store.keys import Key, as_key

ROUTER = APIRouter(tags=["jobs"])

EVENTS = "text/event-stream"
NO_STORE = {"cache-control": "no-store"}
ById = Annotated[str, Path(alias="id", description="as the `Location` of a 202 has it")]


@ROUTER.get(
    "/jobs/{id}",
    operation_id="job",
    summary="What has become of a job",
    response_class=Response,
    responses={**gives("The job: `result` or `problem` are there once it has ended.", JOB_SCHEMA), **problems(404, 406, 422)},
)
async def job(request: Request, name: ById) -> Response:
    """Its state, and its result (a compile's with the program) or problem. Any replica answers for any job of its store."""
    acceptable(request.headers.get("accept"), JSON)
    parts = services(request)
    return await _answer(request, parts, _there(await parts.jobs.get(_id(name))))


@ROUTER.delete(
    "/jobs/{id}",
    operation_id="cancel_job",
    summary="Cancel a job",
    response_class=Response,
    responses={**gives("The job, cancelled.", JOB_SCHEMA), **problems(403, 404, 406, 409, 422)},
)
async def cancel(request: Request, name: ById) -> Response:
    """Cancels it, wherever it runs; cancelling twice is as once. A job that has ended otherwise is left as it is (409)."""
    acceptable(request.headers.get("accept"), JSON)
    parts = services(request)
    caller = CALLER.get()
    found = _there(await parts.jobs.get(_id(name)))
    if caller.name != found.client and Scope.ADMIN not in caller.scopes:
        raise HttpRefused(403, "this job is another client's: cancelling it needs the scope admin", NO_STORE, expected=Scope.ADMIN)
    return await _answer(request, parts, _there(await parts.jobs.cancel(found.id)))


@ROUTER.get(
    "/jobs/{id}/events",
    operation_id="job_events",
    summary="What becomes of a job, as it happens",
    response_class=StreamingResponse,
    responses={
        **gives("Server-sent events named by the job's state, with the job as data.", {"type": "string"}, kind=EVENTS),
        **problems(404, 406, 422),
    },
)
async def events(request: Request, name: ById) -> Response:
    """An event for each state the job comes to, the last of which ends the stream; `progress` with its seconds meanwhile.

    The stream also ends where this process does: a client that asks again (as browsers do by themselves) is told by another.
    """
    acceptable(request.headers.get("accept"), EVENTS)
    parts = services(request)
    first = _there(await parts.jobs.get(_id(name)))
    return StreamingResponse(_told(parts, first), 200, {**NO_STORE, "x-accel-buffering": "no"}, media_type=EVENTS)


async def _told(parts: Services, first: Job) -> AsyncIterator[bytes]:
    last: State | None = None
    async for found in parts.jobs.watch(first.id):
        event = "progress" if found.state is last else found.state.value
        shown = {"state": found.state, "seconds": found.seconds} if found.state is last else found.shown()
        yield format_sse_event(data_str=json.dumps(shown), event=event, id=f"{found.attempts}-{found.state}")
        last = found.state
        if parts.phase.draining:
            return


def _id(name: str) -> Key:
    found = as_key(name)
    if found is None:
        raise HttpRefused(404, "there is no such job", NO_STORE)
    return found


def _there(found: Job | None) -> Job:
    if found is None:
        raise HttpRefused(404, "there is no such job", NO_STORE)
    return found


async def _answer(request: Request, parts: Services, found: Job) -> Response:
    headers = NO_STORE if found.state.ended else {**NO_STORE, "retry-after": "1"}
    text = json.dumps(found.shown(), ensure_ascii=False, separators=(",", ":")).encode()
    key = as_key(str(found.result.get("key", ""))) if found.kind == "compile" and found.result is not None else None
    if key is not None:  # as it is stored: nothing is read and written again
        text = text[:-1] + b',"program":' + await _program(parts, key) + b"}"
    return answered(request, text, headers=headers)


async def _program(parts: Services, key: Key) -> bytes:
    try:
        answer = await parts.catalog.program(key)
    except Quarantined:
        return b"null"
    return b"null" if answer is None else answer.body
