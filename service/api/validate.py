"""`POST /validate`: a program runs on an attached device and is compared with what its kernel means. `GET /devices`: which there are.

Where no device is attached there is no `/validate`: `app` leaves VALIDATE out.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from core import CompilerBug, RequestError, WireError, read_json
from service.answer import Answer
from service.api.bodies import JSON, acceptable, answered, content, gives, problems, takes
from service.api.examples import KEY, REQUEST_SCHEMA, SUM
from service.api.prefer import ACCEPTED, PREFER, within
from service.api.programs import held
from service.device.validation import Report, Validation
from service.errors import refusal_from_json, refusal_to_json
from service.jobs.jobs import Work
from service.services import Services, services

ROUTER = APIRouter(tags=["devices"])
VALIDATE = APIRouter(tags=["devices"])

VALIDATION = "validation"  # the name of the part among the services' extras
KIND = "validate"  # of job
MEMBERS = ("key", "request", "seeds", "special", "device")
SEEDS = (0, 1)
MOST_SEEDS = 16

_BODY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "oneOf": [{"required": ["key"]}, {"required": ["request"]}],
    "properties": {
        "key": KEY,
        "request": REQUEST_SCHEMA,
        "seeds": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 1,
            "maxItems": MOST_SEEDS,
            "default": list(SEEDS),
        },
        "special": {"type": "boolean", "default": False, "description": "NaN, infinities, zeros and the ends of ranges among the inputs"},
        "device": {"type": "string", "description": "a name from `GET /devices`; else any that runs the program's target"},
    },
}
_SUM = {"ast": SUM, "device": {"target": "opencl"}, "optimize": "none"}
VALIDATES = {
    "a kernel": {"request": _SUM},
    "with special values": {"request": _SUM, "seeds": [0, 1, 2], "special": True},
}
_REPORT: dict[str, Any] = {
    "type": "object",
    "required": ["key", "verdict", "why", "detail", "device", "driver", "runs", "seconds", "at"],
    "properties": {
        "key": KEY,
        "verdict": {"enum": ["right", "wrong", "unfit"]},
        "why": {"enum": ["outputs", "inputs", "overrun", "build", "crash", "launch", None]},
        "detail": {"type": ["string", "null"]},
        "device": {"type": "string"},
        "driver": {"type": "string"},
        "runs": {"type": "array", "items": {"type": "object"}},
        "seconds": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
    },
}
_DEVICES: dict[str, Any] = {
    "type": "object",
    "required": ["devices"],
    "properties": {
        "devices": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "driver", "target", "alive", "options"],
                "properties": {
                    "name": {"type": "string"},
                    "driver": {"type": "string"},
                    "target": {"type": "string"},
                    "alive": {"type": "boolean"},
                    "options": {"type": "object", "description": "as `device` of a request"},
                },
            },
        }
    },
}


@VALIDATE.post(
    "/validate",
    operation_id="validate",
    summary="Run a program and see whether it is right",
    response_class=Response,
    openapi_extra={**takes(_BODY, VALIDATES), "parameters": [PREFER]},
    responses={
        **gives("What came of it.", _REPORT),
        **ACCEPTED,
        **problems(400, 404, 406, 408, 410, 413, 415, 422, 429, 500, 503, 504),
    },
)
async def validate(request: Request) -> Response:
    """Runs a program, by key or by request, and compares every element with a reference evaluation.

    What came of it is kept beside the program, whose bytes never change. One that is wrong is served no more.
    """
    acceptable(request.headers.get("accept"), JSON)
    return await within(
        request, KIND, await content(request), lambda report: answered(request, report, headers={"cache-control": "no-store"})
    )


def work(parts: Services) -> Work[Report]:
    """What a validation is as a job."""
    return Work(lambda body: _validated(parts, body), dict)


async def _validated(parts: Services, body: bytes) -> Report:
    validation = parts.extras[VALIDATION]
    assert isinstance(validation, Validation)
    value = read_json(body, parts.limits)
    if not isinstance(value, dict):
        raise WireError("", expected="an object with key or request", got=value)
    runs = runs_of(value)
    name = value.get("device")
    if "device" in value and not isinstance(name, str):
        raise WireError("/device", expected="the name of a device", got=name)
    answer = await _answer(parts, value)
    return await validation.validate(answer, validation.device(answer.target, name, "/device"), runs)


def runs_of(value: dict[str, Any]) -> list[tuple[int, bool]]:
    """The runs that a body asks for. Raises WireError where it is not one."""
    for member in value:
        if member not in MEMBERS:
            raise WireError(f"/{member}", expected=f"no such member: a validation has {', '.join(MEMBERS)}", got=value[member])
    if ("key" in value) == ("request" in value):
        raise WireError("", expected="either key or request", got=value)
    special = value.get("special", False)
    if type(special) is not bool:
        raise WireError("/special", expected="true or false", got=special)
    seeds = value.get("seeds", list(SEEDS))
    if not isinstance(seeds, list) or not 1 <= len(seeds) <= MOST_SEEDS:
        raise WireError("/seeds", expected=f"1 to {MOST_SEEDS} integers", got=seeds)
    for i, seed in enumerate(seeds):
        if type(seed) is not int or not 0 <= seed < 2**63:
            raise WireError(f"/seeds/{i}", expected="an integer from 0 to 9223372036854775807", got=seed)
    return [(seed, special) for seed in seeds]


async def _answer(parts: Services, value: dict[str, Any]) -> Answer:
    """The program that a body names; compiled where it comes as a request."""
    if "key" in value:
        if not isinstance(value["key"], str):
            raise WireError("/key", expected="64 hexadecimal digits", got=value["key"])
        return await held(parts.catalog, value["key"])
    try:
        done = await parts.flow.compile(json.dumps(value["request"]).encode())
    except RequestError as error:
        raise within_member(error, "/request") from None
    return done.answer


def within_member(error: RequestError, at: str) -> RequestError:
    """The same refusal of a request that is a member of a body: its pointer leads there."""
    told = refusal_to_json(error)
    facts = error.facts()
    if "pointer" not in facts or isinstance(error, CompilerBug):
        return error
    return refusal_from_json(told | {"facts": facts | {"pointer": f"{at}{facts['pointer']}"}})


@ROUTER.get(
    "/devices",
    operation_id="devices",
    summary="Which devices are attached",
    response_class=Response,
    responses={**gives("The devices, each with the options that describe it.", _DEVICES), **problems(406)},
)
async def devices(request: Request) -> Response:
    """The attached devices, whether each answers, and the device options of a request that fit it. Empty where there is none."""
    validation = services(request).extras.get(VALIDATION)
    attached = validation.devices if isinstance(validation, Validation) else []
    shown = [
        {
            "name": device.facts.name, "driver": device.facts.driver, "target": device.facts.target, "alive": device.alive,
            "options": device.facts.options,
        }
        for device in attached
    ]  # fmt: skip
    return answered(request, {"devices": shown}, headers={"cache-control": "no-cache"})
