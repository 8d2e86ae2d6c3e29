"""`GET /program/{key}/explain`: how a stored program came about, and what was learnt of it since."""

from __future__ import annotations

import asyncio
import json

from fastapi import APIRouter, Request, Response

from service.api.bodies import JSON, acceptable, answered, gives, problems, unless_gone
from service.api.examples import EXPLANATION_SCHEMA
from service.api.programs import ABSENT, ByKey, held
from service.asking import Asked
from service.errors import HttpRefused
from service.services import Services, services
from service.store.keys import Key

ROUTER = APIRouter(tags=["programs"])


@ROUTER.get(
    "/program/{key}/explain",
    operation_id="explanation_by_key",
    summary="How a stored program came about",
    response_class=Response,
    responses={**gives("How it came about.", EXPLANATION_SCHEMA), **problems(404, 406, 410, 422, 500, 503, 504)},
)
async def explanation(request: Request, key: ByKey) -> Response:
    """The canonical AST, axes after each option, decisions with reasons, micro-ops with their nodes, estimates, proofs; what was learnt.

    Compiles the stored request once more, watched, under the limits of any compile.
    """
    acceptable(request.headers.get("accept"), JSON)
    parts = services(request)
    answer = await held(parts.catalog, key)
    told = await unless_gone(request.receive, parts.flow.explain(await _asked(parts, answer.key)))
    validations, binaries = await parts.catalog.validations(answer.key), await parts.catalog.binaries(answer.key)
    since = json.dumps({"validations": validations, "tunings": [], "binaries": binaries}).encode()
    text = told[:-1] + b"," + since[1:]  # it may have megabytes: nothing of it is read again, and it is coded in a thread
    return await asyncio.to_thread(answered, request, text, headers={"cache-control": "no-cache"})


async def _asked(parts: Services, key: Key) -> Asked:
    """The request a stored program was compiled from. Raises 404 where nobody can tell any more how that went."""
    kept = await parts.catalog.request(key)
    if kept is None:
        raise HttpRefused(404, "the request that this program was compiled from is kept no longer: how it came about can't be told", ABSENT)
    asked = await parts.compiler.read(kept)
    if asked.key != key:
        raise HttpRefused(404, "another version of the compiler made this program: how it came about can't be told by this one", ABSENT)
    return asked
