"""`/program/{key}`: what was compiled, by its key. Nothing here ever compiles.

The front answers most of these before they come here, with the same functions.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from core import LimitExceeded, WireError, read_json
from service.answer import Answer, Headers, immutable
from service.api.bodies import JSON, acceptable, answered, content, gives, problems, takes
from service.api.examples import COMPILED_KEY, KEY, LOOKUPS, PROGRAM_SCHEMA
from service.catalog import Catalog
from service.codings import chosen
from service.errors import HttpRefused, Quarantined
from service.services import services
from service.store.keys import Key, as_key

ROUTER = APIRouter(tags=["programs"])

ABSENT = {"cache-control": "no-store"}
ByKey = Annotated[str, Path(examples=[COMPILED_KEY])]


async def held(catalog: Catalog, key: str) -> Answer:
    """The program under a key. Raises 404 where there is none (or the text is no key), 410 where it failed validation."""
    name = as_key(key)
    try:
        found = None if name is None else await catalog.program(name)
    except Quarantined as error:
        raise HttpRefused(410, error.detail, ABSENT) from None
    if found is None:
        raise HttpRefused(404, "there is no program under this key", ABSENT)
    return found


def served(answer: Answer, method: str, headers: dict[bytes, bytes], public: bool) -> tuple[int, Headers, bytes]:
    """Status, headers and body of an answered `GET` or `HEAD`, by the request's headers. public: may anyone's cache keep it?"""
    coding = chosen(headers.get(b"accept-encoding", b""))
    wanted = headers.get(b"if-none-match")
    if wanted is not None and answer.is_tagged(wanted.decode("latin-1")):
        tag = answer.etag(coding).encode()
        return 304, [(b"etag", tag), (b"cache-control", immutable(public)), (b"vary", b"accept-encoding")], b""
    common, body = answer.sent(coding)
    return 200, [*common, (b"cache-control", immutable(public)), *answer.links], b"" if method == "HEAD" else body


async def program(request: Request, key: ByKey) -> Response:
    """The stored program. It never changes: any cache may keep it for ever."""
    acceptable(request.headers.get("accept"), JSON)
    parts = services(request)
    answer = await held(parts.catalog, key)
    status, headers, body = served(answer, request.method, dict(request.scope["headers"]), parts.access.reads_are_public)
    response = Response(body, status)
    response.raw_headers = headers
    return response


_CACHING = {
    "ETag": "strong, one per content coding",
    "Cache-Control": "immutable: what stands under a key never changes; public, or private where reads need a token",
    "Link": "a binary of the program, as far as this process knows of it; may be there several times",
}
for _method, _name in (("GET", "program_by_key"), ("HEAD", "program_is_there")):
    ROUTER.add_api_route(
        "/program/{key}",
        program,
        methods=[_method],
        operation_id=_name,
        summary="A stored program" if _method == "GET" else "Whether a program is stored",
        response_class=Response,
        responses={
            **gives("The program.", PROGRAM_SCHEMA, headers=_CACHING),
            304: {"description": "The client has it already."},
            **problems(404, 406, 410, 422),
        },
    )


@ROUTER.get(
    "/program/{key}/source",
    operation_id="source_by_key",
    summary="A stored program's text",
    response_class=Response,
    responses={
        **gives("The text in the target's language.", {"type": "string"}, kind="text/plain", headers=_CACHING),
        304: {"description": "The client has it already."},
        **problems(404, 406, 410, 422),
    },
)
async def source(request: Request, key: ByKey) -> Response:
    """The text alone, with a file name for its language."""
    acceptable(request.headers.get("accept"), "text/plain")
    parts = services(request)
    answer = await held(parts.catalog, key)
    text = str(answer.program()["source"]).encode()
    tag = f'"{answer.tag}-source"'
    headers = {"etag": tag, "cache-control": immutable(parts.access.reads_are_public).decode()}
    if tag in [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    headers["content-disposition"] = f'inline; filename="{answer.file_name}"'
    return Response(text, 200, headers, media_type="text/plain; charset=utf-8")


_FOUND: dict[str, Any] = {
    "type": "object",
    "required": ["found", "missing"],
    "properties": {
        "found": {"type": "array", "items": KEY},
        "missing": {"type": "array", "items": KEY},
        "programs": {"type": "object", "additionalProperties": PROGRAM_SCHEMA},
    },
}
_WANTED: dict[str, Any] = {
    "type": "object",
    "required": ["keys"],
    "additionalProperties": False,
    "properties": {"keys": {"type": "array", "items": KEY, "maxItems": 1000}, "return": {"enum": ["programs"]}},
}


@ROUTER.post(
    "/programs/lookup",
    operation_id="lookup",
    summary="Which of many programs are stored",
    response_class=Response,
    openapi_extra=takes(_WANTED, LOOKUPS),
    responses={**gives("Which are here.", _FOUND), **problems(400, 406, 408, 413, 415, 422)},
)
async def lookup(request: Request) -> Response:
    """Which of the keys have a program here, and on request the programs. One look at the store, whatever their number."""
    parts = services(request)
    keys, with_programs = looked_for(read_json(await content(request), parts.limits), parts.settings.lookup_keys)
    found = await parts.catalog.programs(list(dict.fromkeys(keys)))
    here = b",".join(b'"%s"' % key.encode() for key in keys if key in found)
    gone = b",".join(b'"%s"' % key.encode() for key in keys if key not in found)
    text = b'{"found":[' + here + b'],"missing":[' + gone + b"]"
    if with_programs:  # as they are stored: nothing is read and written again
        text += b',"programs":{' + b",".join(b'"%s":' % key.encode() + answer.body for key, answer in found.items()) + b"}"
    return answered(request, text + b"}", headers=ABSENT)


def looked_for(value: object, most: int) -> tuple[list[Key], bool]:
    """The keys in the body of a look-up, and whether their programs are wanted. Raises WireError or LimitExceeded."""
    if not isinstance(value, dict):
        raise WireError("", expected="an object with keys", got=value)
    for name in value:
        if name not in ("keys", "return"):
            raise WireError(f"/{name}", expected="no member but keys and return", got=name)
    keys = value.get("keys")
    if not isinstance(keys, list):
        raise WireError("/keys", expected="an array of keys", got=keys)
    if len(keys) > most:
        raise LimitExceeded("/keys", limit="lookup_keys", needed=len(keys), allowed=most)
    if "return" in value and value["return"] != "programs":
        raise WireError("/return", expected='"programs"', got=value["return"])
    read: list[Key] = []
    for i, text in enumerate(keys):
        key = as_key(text) if isinstance(text, str) else None
        if key is None:
            raise WireError(f"/keys/{i}", expected="64 hexadecimal digits", got=text)
        read.append(key)
    return read, "return" in value
