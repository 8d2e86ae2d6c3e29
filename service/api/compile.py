"""`POST /compile`: a kernel goes in, a program comes out."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from service.answer import Answer, Headers
from service.api.bodies import JSON, acceptable, content, gives, problems, takes
from service.api.examples import COMPILES, PROGRAM_SCHEMA, REQUEST_SCHEMA
from service.api.prefer import ACCEPTED, PREFER, within
from service.codings import chosen
from service.flow import Done, Flow
from service.jobs.jobs import Work

ROUTER = APIRouter(tags=["compile"])


KIND = "compile"


def work(flow: Flow) -> Work[Done]:
    """What a compile is as a job."""

    def told(done: Done) -> dict[str, Any]:
        result = {"status": 200, "key": done.answer.key, "result": done.result, "location": f"/program/{done.answer.key}"}
        if done.validated is not None:
            result["validated"] = done.validated
        if done.asked.binaries:
            result["binaries"] = [recipe.shown(done.answer.key) for recipe in done.asked.binaries]
        return result

    return Work(flow.compile, told)


def compiled(answer: Answer, result: bytes, accept_encoding: bytes) -> tuple[Headers, bytes]:
    """Headers and body of an answered compile request, as far as they do not depend on how it was asked."""
    common, body = answer.sent(chosen(accept_encoding))
    return [*common, (b"location", b"/program/" + answer.key.encode()), (b"lathe-result", result)], body


def answered(done: Done, accept_encoding: bytes) -> tuple[Headers, bytes]:
    """All headers and the body of an answered compile request."""
    headers, body = compiled(done.answer, done.result.encode(), accept_encoding)
    return [*headers, *_of(done)], body


@ROUTER.post(
    "/compile",
    operation_id="compile",
    summary="Compile a kernel",
    response_class=Response,
    openapi_extra={**takes(REQUEST_SCHEMA, COMPILES), "parameters": [PREFER]},
    responses={
        **gives(
            "The program.",
            PROGRAM_SCHEMA,
            headers={
                "Location": "where the program can be had again",
                "ETag": "strong, one per content coding",
                "Lathe-Result": "hit: it was stored; coalesced: somebody else's compile was waited for; compiled: it is new",
                "Lathe-Optimize": "tuned or heuristic, where the request said tuned",
                "Link": "each binary that was asked for, with its `type` and `arch`",
                "Lathe-Validated": "the device it ran right on, where the request required that",
                "Server-Timing": "the stages and their milliseconds",
            },
        ),
        **ACCEPTED,
        **problems(400, 406, 408, 413, 415, 422, 429, 500, 503, 504),
    },
)
async def compile_(request: Request) -> Response:
    """The program for a kernel, from the store where it is there. A kernel is compiled once, however many ask for it."""
    acceptable(request.headers.get("accept"), JSON)
    return await within(request, KIND, await content(request), lambda done: _answer(request, done))


def _answer(request: Request, done: Done) -> Response:
    note = request.scope.get("lathe.note")
    if note is not None:
        note(done)
    headers, body = answered(done, request.headers.get("accept-encoding", "").encode("latin-1"))
    response = Response(body)
    response.raw_headers = headers
    return response


def _of(done: Done) -> Headers:
    headers: Headers = [(b"link", recipe.link(done.answer.key).encode("latin-1", "replace")) for recipe in done.asked.binaries]
    if done.asked.tuned:
        headers.append((b"lathe-optimize", b"heuristic"))
    if done.validated is not None:
        headers.append((b"lathe-validated", done.validated.encode("latin-1", "replace")))
    timing = ", ".join(f"{name};dur={seconds * 1000:.3f}" for name, seconds in done.stages.items())
    if timing:
        headers.append((b"server-timing", timing.encode("latin-1", "replace")))
    return headers
