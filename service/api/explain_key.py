"""`POST /explain-key`: what a key is made of, and why two of them differ."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from core import COMPILER, Limits, RequestError, WireError, program_key, read_json
from core import Request as Kernel
from service.api.bodies import JSON, acceptable, answered, content, gives, problems, takes
from service.api.examples import EXPLAINED_KEYS, KEY, KEY_SCHEMA, REQUEST_SCHEMA
from service.api.programs import held
from service.api.validate import within_member
from service.errors import HttpRefused
from service.services import Services, services

ROUTER = APIRouter(tags=["programs"])

MEMBERS = ("request", "requests", "key")
MOST_DIFFERENCES = 32
_BODY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "request": REQUEST_SCHEMA,
        "requests": {"type": "array", "items": REQUEST_SCHEMA, "minItems": 1, "maxItems": 2},
        "key": {**KEY, "description": "of a stored program"},
    },
    "oneOf": [
        {"required": ["request"], "properties": {"requests": False}},
        {"required": ["requests"], "properties": {"request": False, "key": False}},
        {"required": ["key"], "properties": {"request": False, "requests": False}},
    ],
    "description": "one or two requests, or a request and the key of a stored program, or such a key alone",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One key: what it is made of. ast: the canonical AST, whose digest is the part `ast`."""

    key: str
    parts: dict[str, object]
    ast: object

    def shown(self) -> dict[str, Any]:
        """Each part with its value and a digest: SHA-256 over its RFC 8785 JSON (of the AST, `ast_hash` itself)."""
        return {name: {"digest": value if name == "ast" else _digest(value), "value": value} for name, value in self.parts.items()}


@ROUTER.post(
    "/explain-key",
    operation_id="explain_key",
    summary="What a key is made of",
    response_class=Response,
    openapi_extra=takes(_BODY, EXPLAINED_KEYS),
    responses={
        **gives("The parts of each key; of two keys also which differ, and where.", KEY_SCHEMA),
        **problems(400, 404, 406, 408, 410, 413, 415, 422),
    },
)
async def explain_key(request: Request) -> Response:
    """The digest of each part of a key; of two, the parts that differ, and the places. Compiles nothing."""
    acceptable(request.headers.get("accept"), JSON)
    parts = services(request)
    found = await _sides(parts, await content(request))
    answer: dict[str, object] = {"keys": [side.key for side in found], "parts": [side.shown() for side in found]}
    if len(found) == 2:
        one, other = found
        differences = list(_differences(one, other))
        answer["differ"] = list(dict.fromkeys(difference["part"] for difference in differences))
        answer["differences"] = differences
    return answered(request, answer, headers={"cache-control": "no-store"})


async def _sides(parts: Services, body: bytes) -> list[Side]:
    """What is to be explained. Raises WireError where it is neither one key nor two, and what is wrong with a request."""
    value = await asyncio.to_thread(read_json, body, parts.limits)
    if not isinstance(value, dict):
        raise WireError("", expected="an object with request, requests or key", got=value)
    for member in value:
        if member not in MEMBERS:
            raise WireError(f"/{member}", expected=f"no member but {', '.join(MEMBERS)}", got=value[member])
    requests = [("/request", value["request"])] if "request" in value else []
    if "requests" in value:
        if not isinstance(value["requests"], list):
            raise WireError("/requests", expected="an array of requests", got=value["requests"])
        requests += [(f"/requests/{i}", one) for i, one in enumerate(value["requests"])]
    if not 1 <= len(requests) + ("key" in value) <= 2 or ("requests" in value and len(value) > 1):
        raise WireError("", expected="one request or two, or a request and a key, or a key", got=value)
    found = [await asyncio.to_thread(_side, one, parts.limits, at) for at, one in requests]
    if "key" in value:
        found.append(await _stored(parts, value["key"]))
    return found


def _side(value: object, limits: Limits, at: str, compiler: str = COMPILER, key: str | None = None) -> Side:
    try:
        request = Kernel.from_json(value, limits)
    except RequestError as error:
        raise within_member(error, at) from None
    schedule = request.schedule
    parts: dict[str, object] = {
        "ast": request.ast_hash,
        "device": request.device.to_json(),
        "optimize": schedule if isinstance(schedule, str) else [option.to_json() for option in schedule],
        "annotate": request.annotate,
        "compiler": compiler,
    }
    return Side(key or program_key(request), parts, request.canonical_ast())


async def _stored(parts: Services, key: object) -> Side:
    """The side of a stored program: made by its own compiler, which need not be this one."""
    if not isinstance(key, str):
        raise WireError("/key", expected="64 hexadecimal digits", got=key)
    answer = await held(parts.catalog, key)
    kept = await parts.catalog.request(answer.key)
    if kept is None:
        raise HttpRefused(404, "the request that this program was compiled from is kept no longer", {"cache-control": "no-store"})
    compiler = str(answer.program().get("compiler"))
    return await asyncio.to_thread(_side, read_json(kept, parts.limits), parts.limits, "", compiler, answer.key)


def _differences(one: Side, other: Side) -> Iterator[dict[str, Any]]:
    """Where two keys' parts differ: JSON pointers into the part, with both values; the AST's first few."""
    for part in one.parts:
        left, right = (one.ast, other.ast) if part == "ast" else (one.parts[part], other.parts[part])
        for count, (pointer, a, b) in enumerate(_unequal(left, right)):
            if count == MOST_DIFFERENCES:
                break
            yield {"part": part, "pointer": pointer, "values": [a, b]}


def _unequal(left: object, right: object) -> Iterator[tuple[str, object, object]]:
    """The smallest places at which two JSON values differ; null stands for what is absent."""
    waiting: list[tuple[str, object, object]] = [("", left, right)]
    while waiting:
        pointer, a, b = waiting.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            names = sorted(a.keys() | b.keys(), reverse=True)
            waiting += [(f"{pointer}/{name}", a.get(name), b.get(name)) for name in names]
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            waiting += [(f"{pointer}/{i}", a[i], b[i]) for i in reversed(range(len(a)))]
        elif type(a) is not type(b) or a != b:
            yield pointer, a, b


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))  # RFC 8785 for the values there are here
    return hashlib.sha256(text.encode()).hexdigest()
