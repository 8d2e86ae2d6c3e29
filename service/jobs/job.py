"""A job as it is kept and as it is shown: what was asked, how far it has come, what came of it."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from service.store.keys import Key


class State(StrEnum):
    """Where a job is in its life; the last three are its end."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (State.DONE, State.FAILED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class Job:
    """One job at one moment. Times are seconds since the epoch.

    kind: which work it is. client: who asked. owner: the process that does it; beat: when that last said so (0: handed back, for whoever
    is asked next). attempts: how many processes have begun it. result: what came of it; problem: why nothing did.
    """

    id: Key
    kind: str
    client: str
    owner: str
    state: State = State.QUEUED
    created: float = 0.0
    updated: float = 0.0
    beat: float = 0.0
    attempts: int = 1
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None

    @property
    def seconds(self) -> float:
        """From its beginning to what was last heard of it."""
        return round(max(self.updated, self.beat) - self.created, 3)

    def turned(self, state: State, now: float, **more: Any) -> Job:
        """The job in another state."""
        return replace(self, state=state, updated=now, **more)

    def shown(self) -> dict[str, Any]:
        """The job as clients see it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "created_at": _time(self.created),
            "updated_at": _time(self.updated),
            "attempts": self.attempts,
            "result": self.result,
            "problem": self.problem,
            "links": {"self": f"/jobs/{self.id}", "events": f"/jobs/{self.id}/events"},
        }

    def to_bytes(self) -> bytes:
        """The job as it is kept."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(content: bytes) -> Job | None:
        """The job that `to_bytes` wrote; None where another version of the service wrote something else."""
        try:
            value = json.loads(content)
            return Job(**{**value, "state": State(value["state"])})
        except (ValueError, KeyError, TypeError):
            return None


def new_id() -> Key:
    """A name for a job that nobody can guess."""
    return Key(secrets.token_hex(32))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
