"""`GET /targets` and `GET /limits`: what can be asked for, and how much of it."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from core import COMPILER, TARGETS, describe
from service.api.bodies import answered, gives, problems
from service.services import services
from service.settings import Settings

ROUTER = APIRouter(tags=["about"])

NO_CACHE = {"cache-control": "no-cache"}


@ROUTER.get(
    "/targets",
    operation_id="targets",
    summary="What can be rendered",
    response_class=Response,
    responses={
        **gives(
            "The targets by name, with their defaults, and the `compiler` of keys.",
            {"type": "object", "required": ["compiler", "targets"], "properties": {"targets": {"type": "object"}}},
        ),
        **problems(406),
    },
)
async def targets(request: Request) -> Response:
    """Every target with its default device options, and the compiler's version: enough to compute a key elsewhere.

    binaries: the formats that this service makes of the target, its usual one first; compilers: for each, what makes it.
    """
    made = services(request).compiler.toolchain
    described = {
        name: {**describe(target), "binaries": list(made.formats(name)), "compilers": made.described(name)}
        for name, target in TARGETS.items()
    }
    return answered(request, {"compiler": COMPILER, "targets": described}, headers=NO_CACHE)


@ROUTER.get(
    "/limits",
    operation_id="limits",
    summary="Every limit in force",
    response_class=Response,
    responses={
        **gives("The limits by name.", {"type": "object", "additionalProperties": {"type": "number"}}),
        **problems(406),
    },
)
async def limits(request: Request) -> Response:
    """Every limit, by the name that an error gives it. What exceeds one is refused with 413, 422, 504 or (the queue's) 503."""
    return answered(request, in_force(services(request).settings), headers=NO_CACHE)


# Limits that are settings of the service; those of the compiler are the fields of its Limits.
OF_THE_SERVICE = (
    "body_bytes",
    "inflated_bytes",
    "body_seconds",
    "head_bytes",
    "head_seconds",
    "stall_seconds",
    "connections_limit",
    "lookup_keys",
    "batch_requests",
    "batch_parallel",
    "jobs_limit",
    "compile_seconds",
    "binary_bytes",
    "worker_memory_bytes",
    "queue_limit",
    "queue_limit_client",
    "queue_seconds",
    "run_seconds",
    "run_queue",
    "run_memory_bytes",
    "validate_points",
)


def in_force(settings: Settings) -> dict[str, float]:
    """The limits by name."""
    return {name: getattr(settings, name) for name in OF_THE_SERVICE} | asdict(settings.limits)
