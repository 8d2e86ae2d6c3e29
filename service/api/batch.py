"""`POST /compile/batch`: many kernels in one request, each answered in its own line as soon as there is something to say.

A batch takes a few places at a time, whatever its length: who sends thousands fills no queue, and what waits to be read by a slow client is
no more than these few. A client that goes away takes with it what has not begun.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from core import LatheError, LimitExceeded, WireError, read_json
from service.api.bodies import CALL, acceptable, content, gives, problems, takes
from service.api.examples import BATCHES, PROGRAM_SCHEMA
from service.errors import Defect
from service.logs import logger
from service.origin import dumped
from service.services import Services, services

log = logger("batch")

ROUTER = APIRouter(tags=["compile"])

NDJSON = "application/x-ndjson"

_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["requests"],
    "additionalProperties": False,
    "properties": {
        "requests": {
            "type": "array",
            "items": {},
            "description": "each as for `POST /compile`; one that is none is refused in its own line",
        }
    },
}
_LINE: dict[str, Any] = {
    "type": "object",
    "required": ["index", "status", "result", "links"],
    "properties": {
        "index": {"type": "integer", "description": "which of the requests, from 0"},
        "status": {"type": "integer", "description": "what `POST /compile` would have answered"},
        "result": {"enum": ["hit", "coalesced", "compiled", None]},
        "program": PROGRAM_SCHEMA,
        "problem": {"$ref": "#/components/schemas/Problem"},
        "links": {"type": "array", "items": {"type": "object"}, "description": "the binaries asked for"},
    },
}


@ROUTER.post(
    "/compile/batch",
    operation_id="compile_batch",
    summary="Compile many kernels",
    response_class=StreamingResponse,
    openapi_extra=takes(_BODY, BATCHES),
    responses={
        **gives("One line per request, in the order in which they are done: `program` or `problem`.", _LINE, kind=NDJSON),
        **problems(400, 406, 408, 413, 415, 422),
    },
)
async def batch(request: Request) -> Response:
    """Compiles many kernels at once. Equal ones are compiled once; one that is refused concerns no other."""
    acceptable(request.headers.get("accept"), NDJSON)
    parts = services(request)
    requests = await asyncio.to_thread(requests_in, await content(request), parts)
    return StreamingResponse(_lines(request, parts, requests), 200, {"cache-control": "no-store"}, media_type=NDJSON)


def requests_in(body: bytes, parts: Services) -> list[bytes]:
    """The requests in the body of a batch, each as the body of a compile. Raises WireError or LimitExceeded."""
    limits = parts.limits
    value = read_json(body, replace(limits, nesting=limits.nesting + 2))
    if not isinstance(value, dict):
        raise WireError("", expected="an object with requests", got=value)
    for name in value:
        if name != "requests":
            raise WireError(f"/{name}", expected="no member but requests", got=value[name])
    requests = value.get("requests")
    if not isinstance(requests, list):
        raise WireError("/requests", expected="an array of compile requests", got=requests)
    if len(requests) > parts.settings.batch_requests:
        raise LimitExceeded("/requests", limit="batch_requests", needed=len(requests), allowed=parts.settings.batch_requests)
    return [json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() for one in requests]


async def _lines(request: Request, parts: Services, requests: list[bytes]) -> AsyncIterator[bytes]:
    waiting = iter(enumerate(requests))
    running: set[asyncio.Task[bytes]] = set()
    try:
        while True:
            while len(running) < parts.settings.batch_parallel and (more := next(waiting, None)) is not None:
                running.add(asyncio.ensure_future(_line(request, parts, *more)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()


async def _line(request: Request, parts: Services, index: int, body: bytes) -> bytes:
    """The line that answers one request. Never raises."""
    try:
        done = await parts.flow.compile(body)
    except LatheError as error:
        refused = error
    except Exception as error:
        log.error("a defect", error=repr(error), exc_info=error)
        refused = Defect()
    else:
        links = dumped([recipe.shown(done.answer.key) for recipe in done.asked.binaries])
        return b'{"index":%d,"status":200,"result":"%s","links":%s,"program":%s}\n' % (index, done.result.encode(), links, done.answer.body)
    told = request.scope[CALL].refused(refused)
    return b'{"index":%d,"status":%d,"result":null,"links":[],"problem":%s}\n' % (index, told.status, told.body)
