"""`/healthz`, `/readyz`, `/metrics`: for those who run the service."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.bodies import answered, gives, problems
from service.errors import NotReady
from service.services import services

ROUTER = APIRouter(tags=["operation"])

NO_STORE = {"cache-control": "no-store"}
_STATUS: dict[str, Any] = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}


@ROUTER.get(
    "/healthz",
    operation_id="alive",
    summary="Is the process alive",
    response_class=Response,
    responses={**gives("The event loop turns.", _STATUS), **problems(406)},
)
async def healthz(request: Request) -> Response:
    """Alive: the event loop turns. Nothing else is touched."""
    return answered(request, {"status": "alive"}, headers=NO_STORE)


@ROUTER.get(
    "/readyz",
    operation_id="ready",
    summary="Does the process take work",
    response_class=Response,
    responses={**gives("It does; `degraded` says what it does without.", _STATUS), **problems(406, 503)},
)
async def readyz(request: Request) -> Response:
    """Ready: started, not about to end, workers answer. Without its store the service works, and says it is degraded."""
    parts = services(request)
    reasons = parts.ready()
    if reasons:
        raise NotReady("; ".join(reasons.values()), retry_after_s=1, checks=reasons)
    degraded = {} if parts.catalog.degraded is None else {"store": parts.catalog.degraded}
    return answered(request, {"status": "degraded" if degraded else "ready", "degraded": degraded}, headers=NO_STORE)


@ROUTER.get(
    "/metrics",
    operation_id="metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus text, or OpenMetrics where `Accept` asks for it.",
            "content": {
                "text/plain": {"schema": {"type": "string"}},
                "application/openmetrics-text": {"schema": {"type": "string"}},
            },
        }
    },
)
async def metrics(request: Request) -> Response:
    """All metrics of this process. docs/metrics.md says what each means."""
    parts = services(request)
    parts.compiler.update()
    parts.ready()
    text, kind = parts.metrics.exposition(request.headers.get("accept", ""))
    return Response(text, 200, {**NO_STORE, "content-type": kind})
