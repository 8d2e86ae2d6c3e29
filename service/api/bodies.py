"""Bodies in and out: what a client sent, checked and inflated; what it gets, in a form and coding it takes.

Also the pieces of OpenAPI that operations share.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict

from service.codings import WORTH_CODING, chosen, encoded, inflated, weight
from service.errors import PROBLEM_JSON, BodyTooLarge, HttpRefused
from service.services import services

T = TypeVar("T")

JSON = "application/json"
INFLATED_AT_ONCE = 16384  # bytes as sent; of more the event loop would notice
CALL = "lathe.call"  # where handlers find the front's account of the request, in the scope
BODY = "lathe.body"  # where `front` leaves a body it has read already, in the scope

Receive = Callable[[], Awaitable[Any]]


async def content(request: Request) -> bytes:
    """The JSON text a client sent, its content coding undone. Refuses other media types (415) and what is too large (413)."""
    settings = services(request).settings
    media_type(request.headers.get("content-type"))
    sent = request.scope.get(BODY)
    if not isinstance(sent, bytes):
        length = request.headers.get("content-length")
        sent = await received(request.receive, length, settings.body_bytes, settings.body_seconds)
    coding = request.headers.get("content-encoding", "")
    if coding and len(sent) > INFLATED_AT_ONCE:
        return await asyncio.to_thread(inflated, sent, coding, settings.inflated_bytes)
    return inflated(sent, coding, settings.inflated_bytes)


def media_type(header: str | None) -> None:
    """Refuses a body that does not say it is JSON in UTF-8. One that says nothing is taken for JSON."""
    if header is None:
        return
    kind, _, parameters = header.partition(";")
    kind = kind.strip().lower()
    charset = next((p.split("=", 1)[1] for p in parameters.split(";") if p.strip().lower().startswith("charset=")), "utf-8")
    if (kind != JSON and not kind.endswith("+json")) or charset.strip().strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
        raise HttpRefused(415, f"the body must be {JSON} in UTF-8", {"accept": JSON}, expected=JSON, got=header[:120])


async def received(receive: Receive, content_length: str | None, most: int, seconds: float) -> bytes:
    """The whole body as it was sent: at most `most` bytes, within `seconds`."""
    if content_length is not None and content_length.isdigit() and int(content_length[:20]) > most:
        raise BodyTooLarge(limit="body_bytes", allowed=most, needed=int(content_length[:20]))
    message = await _message(receive, seconds)
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > most:
            raise BodyTooLarge(limit="body_bytes", allowed=most, needed=len(body))
        return body
    parts = [body]
    held = len(body)
    until = asyncio.get_running_loop().time() + seconds
    while message.get("more_body", False):
        message = await _message(receive, until - asyncio.get_running_loop().time())
        parts.append(message.get("body", b""))
        held += len(parts[-1])
        if held > most:
            raise BodyTooLarge(limit="body_bytes", allowed=most)
    return b"".join(parts)


async def _message(receive: Receive, seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
    except TimeoutError:
        raise HttpRefused(408, "the body did not come in time", {"connection": "close"}) from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message


class ClientGone(HttpRefused):
    """The client closed the connection; nobody reads this answer. The status is the one logs use by custom."""

    def __init__(self) -> None:
        super().__init__(499, "the client went away")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client closes the connection meanwhile."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(gone(receive))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        leaving.cancel()
        task.cancel()


async def gone(receive: Receive) -> None:
    """Returns when the client has closed the connection. Only to be called once the body is read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def acceptable(accept: str | None, offered: str) -> None:
    """Refuses (406) where the header `Accept` rules out the one media type there is."""
    if accept and not takes_kind(accept, offered):
        raise HttpRefused(406, f"this is only to be had as {offered}", expected=offered, got=accept[:120])


@lru_cache(maxsize=256)
def takes_kind(accept: str, offered: str) -> bool:
    """Does the header `Accept` let us answer in the media type `offered`?"""
    kind, _, _ = offered.partition("/")
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, _, parameters = part.partition(";")
        weights[name.strip().lower()] = weight(parameters)
    return next((weights[name] for name in (offered, f"{kind}/*", "*/*") if name in weights), 0.0) > 0


def answered(request: Request, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON value as a response, in a coding the client takes where that is worth it."""
    text = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return coded(request, text, JSON, status=status, headers=headers)


def coded(request: Request, text: bytes, kind: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Bytes as a response of a media type, in a coding the client takes where that is worth it."""
    acceptable(request.headers.get("accept"), kind.partition(";")[0])
    out = dict(headers or {})
    out["vary"] = "accept-encoding"
    coding = chosen(request.headers.get("accept-encoding", "").encode("latin-1")) if len(text) >= WORTH_CODING else "identity"
    if coding != "identity":
        out["content-encoding"] = coding
    return Response(encoded(text, coding), status, out, media_type=kind)


class ProblemDocument(BaseModel):
    """RFC 9457, with the members every error of this service has, and those that apply to some."""

    model_config = ConfigDict(extra="allow", title="Problem")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    category: str
    request_id: str
    pointer: str | None = None
    expected: str | None = None
    got: str | None = None
    limit: str | None = None
    needed: Any = None
    allowed: Any = None
    option: Any = None


WHEN = {
    400: "The body is not one JSON text, or not in the content coding it claims.",
    401: "A token is needed, or the one sent is not known.",
    403: "The token does not have the scope that this needs.",
    404: "It is not here.",
    406: "The media types the client takes do not include the one there is.",
    408: "The body did not come in time.",
    409: "It is too late for that.",
    410: "The program has failed validation and is served no more.",
    413: "The body, as sent or inflated, is too large.",
    415: "The body's media type or content coding is not one that is understood.",
    422: "The request can't be compiled: `wire`, `ast`, `option`, `target` or `limit`, with the place.",
    429: "This client asks for more at once than it may. `Retry-After` says when to ask again.",
    500: "A defect of the service or of the compiler.",
    503: "The queue is full, a worker was lost, or the service is about to end. `Retry-After` says when to ask again.",
    504: "The compile was stopped at its time limit.",
}

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """The error responses of an operation, for its OpenAPI description."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {status: {"description": WHEN[status], "content": {PROBLEM_JSON: {"schema": schema}}} for status in statuses}


def takes(schema: dict[str, Any], examples: Mapping[str, object]) -> dict[str, Any]:
    """The JSON body of an operation, for its OpenAPI description, with examples that can be sent as they are."""
    shown = {name: {"value": value} for name, value in examples.items()}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema, "examples": shown}}}}


def gives(description: str, schema: dict[str, Any], *, kind: str = JSON, headers: Mapping[str, str] | None = None) -> Responses:
    """The ordinary response of an operation, for its OpenAPI description."""
    named = {name: {"description": text, "schema": {"type": "string"}} for name, text in (headers or {}).items()}
    return {200: {"description": description, "headers": named, "content": {kind: {"schema": schema}}}}
