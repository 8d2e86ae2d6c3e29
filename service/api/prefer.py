"""`Prefer: wait=N` (RFC 7240): an answer within N seconds, else 202 and a job that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import Request, Response

from service.api.bodies import ClientGone, Responses, answered, gone, unless_gone
from service.api.examples import JOB_SCHEMA
from service.errors import Draining
from service.jobs.jobs import Here
from service.services import services

ASK_AGAIN_S = 1  # when a job's client is told to look again

ACCEPTED: Responses = {
    202: {
        "description": "It takes longer than `Prefer` allows, and goes on as a job.",
        "headers": {
            "Location": {"description": "where the job can be asked for", "schema": {"type": "string"}},
            "Retry-After": {"description": "seconds after which to ask", "schema": {"type": "string"}},
            "Preference-Applied": {"description": "what was heeded of `Prefer`", "schema": {"type": "string"}},
        },
        "content": {"application/json": {"schema": JOB_SCHEMA}},
    }
}
PREFER: dict[str, Any] = {
    "name": "Prefer",
    "in": "header",
    "description": "`wait=N`: after N seconds the answer is 202 and a job; `respond-async`: at once. Without it, it is waited for.",
    "schema": {"type": "string"},
    "example": "wait=10",
}


def preferred(header: str | None) -> tuple[float, str] | None:
    """How long a client wants to wait, in seconds, and the preference that says so; None: as long as it takes.

    What can't be understood is ignored, as RFC 7240 wants it.
    """
    asynchronous = False
    for part in (header or "").split(","):
        name, _, value = part.partition(";")[0].strip().partition("=")
        value = value.strip().strip('"')
        if name.strip().lower() == "wait" and value.isascii() and value.isdigit() and len(value) < 10:
            return float(value), f"wait={int(value)}"
        asynchronous = asynchronous or name.strip().lower() == "respond-async"
    return (0.0, "respond-async") if asynchronous else None


async def within(request: Request, kind: str, body: bytes, answer: Callable[[Any], Response]) -> Response:
    """The answer to what a job of this kind comes to, or 202 where that takes longer than the client wants to wait.

    Raises what the job raises. A client that goes away before it has an answer takes the job with it.
    """
    jobs = services(request).jobs
    wanted = preferred(request.headers.get("prefer"))
    if wanted is None:
        return answer(await unless_gone(request.receive, jobs.kinds[kind].run(body)))
    here: Here[Any] = jobs.begin(kind, body)
    leaving = asyncio.ensure_future(gone(request.receive))
    try:
        await asyncio.wait((here.task, leaving), timeout=wanted[0], return_when=asyncio.FIRST_COMPLETED)
        if here.task.cancelled():
            raise Draining("this process is about to end", retry_after_s=1)
        if here.task.done():
            return answer(here.task.result())
        if leaving.done():
            raise ClientGone
        await jobs.keep(here)
    finally:
        leaving.cancel()
        if not here.kept:
            here.task.cancel()
    headers = {"location": f"/jobs/{here.job.id}", "retry-after": str(ASK_AGAIN_S), "preference-applied": wanted[1]}
    return answered(request, here.job.shown(), status=202, headers={**headers, "cache-control": "no-store"})
