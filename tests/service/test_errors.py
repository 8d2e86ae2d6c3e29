"""Errors become problem documents: the status by the table, the same members for all."""

from __future__ import annotations

import json

import pytest

from core import (
    CompilerBug,
    KernelError,
    LatheError,
    LimitExceeded,
    NotJson,
    OptionRefused,
    RequestError,
    TargetError,
    TextRejected,
    WireError,
)
from service.errors import (
    TITLES,
    BodyTooLarge,
    Draining,
    HttpRefused,
    KernelShunned,
    OutOfMemory,
    Quarantined,
    QueueFull,
    TimedOut,
    WorkerLost,
    from_status,
    problem,
    refusal_from_json,
    refusal_to_json,
    status_of,
)

ERRORS: list[tuple[LatheError, int, str]] = [
    (NotJson("", expected="one JSON text", got="{"), 400, "wire"),
    (WireError("/ast", expected="an object", got=3), 422, "wire"),
    (KernelError("/ast/nodes/1", expected="float32", got="int32", node=1), 422, "ast"),
    (OptionRefused("/optimize/2", option={"op": "UPCAST"}, reason="9 does not divide 32", axes="32 32"), 422, "option"),
    (TargetError("/ast/nodes/1", target="c", feature="images", node=1), 422, "target"),
    (LimitExceeded("/ast", limit="nodes", needed=9, allowed=8), 422, "limit"),
    (OutOfMemory(allowed=1), 422, "limit"),
    (BodyTooLarge(limit="body_bytes", allowed=1), 413, "limit"),
    (TimedOut(limit="compile_seconds", allowed_s=1.5), 504, "limit"),
    (QueueFull("full", retry_after_s=3), 503, "overload"),
    (WorkerLost("lost"), 503, "unavailable"),
    (KernelShunned("shunned", retry_after_s=40), 503, "unavailable"),
    (Draining("ending"), 503, "unavailable"),
    (HttpRefused(404, "not here"), 404, "request"),
    (HttpRefused(410, "gone"), 410, "request"),
    (CompilerBug("lower", "no such axis", "listing"), 500, "internal"),
    (TextRejected("opencl", "error: …"), 500, "compiler"),
    (Quarantined("a" * 64), 500, "internal"),
    (from_status(405, "Method Not Allowed", {"allow": "POST"}), 405, "request"),
    (from_status(500, "oh"), 500, "internal"),
]


@pytest.mark.parametrize(("error", "status", "category"), ERRORS, ids=lambda value: type(value).__name__)
def test_every_error_has_its_status_and_all_members(error: LatheError, status: int, category: str) -> None:
    told = problem(error, instance="/compile", request_id="r1")
    body = json.loads(told.body)

    assert (status, category) == (told.status, body["category"]) == (status_of(error), category)
    expected: dict[str, object] = {"type": f"/docs/problems#{category}", "title": TITLES[category], "status": status}
    expected |= {"instance": "/compile", "request_id": "r1"}
    assert expected == {name: body[name] for name in expected}
    assert error.detail == body["detail"]
    assert "no-store" == told.headers["cache-control"]


def test_facts_are_members() -> None:
    body = json.loads(problem(ERRORS[3][0], instance="/", request_id="r").body)

    assert ("/optimize/2", {"op": "UPCAST"}, "32 32") == (body["pointer"], body["option"], body["axes"])


def test_a_listing_of_the_compilers_inside_is_not_told() -> None:
    assert b"listing" not in problem(CompilerBug("lower", "no such axis", "listing"), instance="/", request_id="r").body


@pytest.mark.parametrize("error", [error for error, status, _ in ERRORS if status == 503])
def test_what_may_work_later_says_when(error: LatheError) -> None:
    headers = problem(error, instance="/", request_id="r").headers

    assert int(headers["retry-after"]) >= 1


def test_a_body_that_is_too_large_ends_the_connection() -> None:
    assert "close" == problem(BodyTooLarge(limit="body_bytes", allowed=1), instance="/", request_id="r").headers["connection"]


def test_headers_of_a_refusal_go_along() -> None:
    assert "POST" == problem(from_status(405, "no", {"allow": "POST"}), instance="/", request_id="r").headers["allow"]


def test_whatever_a_client_sent_can_be_told_back() -> None:
    error = WireError("/ast\ud800", expected="x", got='\udfff\x00\n"')

    json.loads(problem(error, instance="/\ud800", request_id="r").body)


REFUSALS = [error for error, _, _ in ERRORS if isinstance(error, RequestError)]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda value: type(value).__name__)
def test_a_refusal_that_is_kept_comes_back_the_same(error: RequestError) -> None:
    back = refusal_from_json(json.loads(json.dumps(refusal_to_json(error))))

    assert status_of(error) == status_of(back)
    assert (error.category, error.detail, error.facts()) == (back.category, back.detail, back.facts())


NO_REFUSALS = [
    {},
    {"kind": "OSError", "detail": "", "facts": {}},
    {"kind": "WireError", "detail": 1, "facts": {}},
    {"kind": "WireError", "detail": "", "facts": []},
]


@pytest.mark.parametrize("value", NO_REFUSALS)
def test_what_is_no_refusal_is_not_made_one(value: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        refusal_from_json(value)
