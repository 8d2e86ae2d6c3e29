"""The service's own errors, and the one table that turns any error into an HTTP status and a problem document (RFC 9457).

`core` raises facts; here they become `application/problem+json` with a status. Every error a client can see goes through
`problem`, the framework's own included, so that all of them have the same members.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar, TypeVar

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

E = TypeVar("E", bound=LatheError)

PROBLEM_JSON = "application/problem+json"
PROBLEM_PAGE = "/docs/problems"  # `type` of a problem is this page and its category as fragment

# What a client may be told of an error's facts. The rest (a listing of micro-ops) is for the log.
TOLD = (
    "pointer", "expected", "got", "limit", "needed", "allowed", "option", "reason", "axes", "node", "target", "feature",
    "stage", "log", "checks", "retry_after_s",
)  # fmt: skip


class ServiceError(LatheError):
    """unavailable: nobody's fault; the same request may be answered later, `retry_after_s` says when to ask again."""

    category: ClassVar[str] = "unavailable"

    def __init__(self, detail: str, *, retry_after_s: int = 1, **facts: object) -> None:
        super().__init__(detail, retry_after_s=retry_after_s, **facts)

    @property
    def retry_after_s(self) -> int:
        value = self.facts().get("retry_after_s", 1)
        return value if isinstance(value, int) else 1


class QueueFull(ServiceError):
    """overload: more requests wait for a worker than the queue may hold, or one has waited too long."""

    category: ClassVar[str] = "overload"


class OverQuota(ServiceError):
    """overload: one client asks for more at once than it may (HTTP 429); others are served meanwhile."""

    category: ClassVar[str] = "overload"


class WorkerLost(ServiceError):
    """unavailable: the worker process died while it compiled this, and so did the one that tried again."""


class KernelShunned(ServiceError):
    """unavailable: this kernel has cost workers their lives again and again; it is not tried again before `retry_after_s`."""


class Draining(ServiceError):
    """unavailable: this process was told to end and starts nothing new."""


class CompilerReplaced(ServiceError):
    """unavailable: a worker that was started lately has another compiler than the service; nothing is kept under wrong keys."""


class NotReady(ServiceError):
    """unavailable: what `/readyz` answers while the service can't do its work."""


class StoreDown(ServiceError):
    """unavailable: the store did not answer in time, or not in order. No client sees it: compiling goes on without a store."""


class TimedOut(LatheError):
    """limit: a compile was stopped at its time limit. Never kept: a quieter machine may manage."""

    category: ClassVar[str] = "limit"

    def __init__(self, *, limit: str, allowed_s: float) -> None:
        super().__init__(
            f"the compile was stopped at its time limit of {allowed_s:g} s",
            limit=limit,
            allowed=allowed_s,
            needed=f"more than {allowed_s:g} s",
        )


class OutOfMemory(LatheError):
    """limit: a compile asked for more memory than a worker may have. Never kept: it depends on the worker's past."""

    category: ClassVar[str] = "limit"

    def __init__(self, *, allowed: int) -> None:
        super().__init__(
            f"the compile needs more memory than the {allowed} bytes a worker may have",
            limit="worker_memory_bytes",
            allowed=allowed,
            needed=f"more than {allowed}",
        )


class BodyTooLarge(LatheError):
    """limit: the body, as it was sent or inflated, is larger than allowed (HTTP 413)."""

    category: ClassVar[str] = "limit"

    def __init__(self, *, limit: str, allowed: int, needed: int | None = None) -> None:
        super().__init__(f"the body is larger than {limit} allows", limit=limit, allowed=allowed, needed=needed or f"more than {allowed}")


class HttpRefused(LatheError):
    """request: what was asked for, how, or by whom: a status of HTTP's own, with the headers that belong to it."""

    category: ClassVar[str] = "request"

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **facts: object) -> None:
        super().__init__(detail, **facts)
        self.status = status
        self.headers = dict(headers or {})


class Defect(CompilerBug):
    """internal: an exception nobody foresaw. Its trace is in the log already; the client learns no more than that."""

    def __init__(self) -> None:
        super().__init__("http", "the service has met a defect of its own")


class Quarantined(CompilerBug):
    """internal: the stored program gave wrong results on a device; it is served no more."""

    def __init__(self, key: str) -> None:
        super().__init__("validate", f"the program {key} has failed validation on a device; a corrected compiler gives it another key")


# The status of each kind of error; the nearest base class listed decides.
STATUS: Mapping[type[LatheError], int] = {
    NotJson: 400,
    WireError: 422,
    KernelError: 422,
    OptionRefused: 422,
    TargetError: 422,
    LimitExceeded: 422,
    RequestError: 422,
    OutOfMemory: 422,
    BodyTooLarge: 413,
    TimedOut: 504,
    OverQuota: 429,
    ServiceError: 503,
    TextRejected: 500,
    CompilerBug: 500,
    LatheError: 500,
}

TITLES: Mapping[str, str] = {
    "wire": "The body is not a request of the wire format",
    "ast": "The kernel is well formed and can't be compiled",
    "option": "An option can't be applied",
    "target": "The target can't express what was asked for",
    "limit": "A limit was exceeded",
    "request": "The call can't be answered as it was made",
    "overload": "Too much is being asked of the service",
    "unavailable": "The service can't do this now",
    "compiler": "The target's compiler rejects our text",
    "internal": "A defect of the service",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as it goes over the wire: status, body, and the headers that go with it."""

    status: int
    category: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def status_of(error: LatheError) -> int:
    """The HTTP status of an error, from the table."""
    if isinstance(error, HttpRefused):
        return error.status
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(error: LatheError, *, instance: str, request_id: str) -> Problem:
    """The problem document of an error, for the request `request_id` to the path `instance`."""
    status = status_of(error)
    facts = error.facts()
    members: dict[str, object] = {
        "type": f"{PROBLEM_PAGE}#{error.category}",
        "title": TITLES.get(error.category, HTTPStatus(status).phrase),
        "status": status,
        "detail": error.detail,
        "instance": instance,
        "category": error.category,
        "request_id": request_id,
    }
    members |= {name: facts[name] for name in TOLD if name in facts}
    headers: dict[str, str] = {"cache-control": "no-store"}
    if isinstance(error, HttpRefused):
        headers |= error.headers
    if isinstance(error, ServiceError):
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, BodyTooLarge):
        headers["connection"] = "close"  # what is left of the body is not worth reading
    return Problem(status, error.category, json.dumps(members, ensure_ascii=False, default=str).encode(errors="replace"), headers)


def from_status(status: int, detail: str, headers: Mapping[str, str] | None = None) -> LatheError:
    """The framework's own refusal as one of ours: the same members, the category `request` (or `internal` from 500 on)."""
    if status >= 500:
        return CompilerBug("http", detail)
    return HttpRefused(status, detail, headers)


def refusal_to_json(error: RequestError) -> dict[str, object]:
    """A refusal as a JSON value, to be kept under the key of the request: its class by name, its sentence and its facts."""
    return {"kind": type(error).__name__, "detail": error.detail, "facts": error.facts()}


KEPT: Mapping[str, type[RequestError]] = {
    kind.__name__: kind for kind in (WireError, NotJson, KernelError, OptionRefused, TargetError, LimitExceeded, RequestError)
}
# Never kept, but true of the one compile that all who waited for it had a part in.
SHARED: Mapping[str, type[LatheError]] = {kind.__name__: kind for kind in (TimedOut, OutOfMemory, CompilerBug, TextRejected)}


def failure_to_json(error: LatheError) -> dict[str, object] | None:
    """A failure as a JSON value for those who waited for the same work elsewhere, without what only the log is told.

    None where they had better try for themselves (a full queue, a lost worker), or find a refusal kept.
    """
    if type(error) not in SHARED.values():
        return None
    facts = error.facts()
    return {"kind": type(error).__name__, "detail": error.detail, "facts": {name: facts[name] for name in TOLD if name in facts}}


def failure_from_json(text: bytes) -> LatheError | None:
    """The failure that `failure_to_json` wrote; None where it is none."""
    try:
        return _error_in(json.loads(text), SHARED)
    except (ValueError, KeyError, TypeError):
        return None


def refusal_from_json(value: Mapping[str, object]) -> RequestError:
    """The refusal that `refusal_to_json` wrote. Raises KeyError or TypeError where the value is none."""
    return _error_in(value, KEPT)


def _error_in(value: Mapping[str, object], kinds: Mapping[str, type[E]]) -> E:
    kind, detail, facts = kinds[str(value["kind"])], value["detail"], value["facts"]
    if not isinstance(detail, str) or not isinstance(facts, dict):
        raise TypeError("not an error that was kept")
    error = kind.__new__(kind)
    LatheError.__init__(error, detail, **facts)
    return error
