"""Who asks: the client, what it may do, and whom to tell how far its work has come.

It follows a request through the tasks that are started for it, so that the queue can be fair and a job can show its progress without
every function in between handing it along.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What a client may do. `admin`: see metrics and settle other clients' jobs."""

    READ = "read"
    COMPILE = "compile"
    VALIDATE = "validate"
    TUNE = "tune"
    ADMIN = "admin"


EVERYTHING = frozenset(Scope)


def _untold(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Caller:
    """name: a token's, else an address; "" is the service itself. told: hears `running` when a worker has taken the work."""

    name: str = ""
    scopes: frozenset[Scope] = EVERYTHING
    told: Callable[[str], None] = _untold


NOBODY = Caller()
CALLER: ContextVar[Caller] = ContextVar("caller", default=NOBODY)
