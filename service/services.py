"""What one running service consists of: the parts that `app` plugged together, as handlers see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from fastapi import Request

from core import Limits
from service.access import Access
from service.catalog import Catalog
from service.flow import Compiler, Flow
from service.jobs.jobs import Jobs
from service.logs import AccessLog
from service.metrics import Metrics
from service.settings import Settings
from service.tracing import Tracing


class CompilerService(Compiler, Protocol):
    """A compiler with a life of its own: processes that start, answer, are looked after and end."""

    async def start(self) -> None:
        """Starts what it needs; need not wait until it answers."""

    def attach(self, target: str, device: str, driver: str, choice: tuple[int, int]) -> None:
        """Counts an attached device among the compilers of binaries. choice: how its driver finds it."""

    @property
    def answers(self) -> bool:
        """Can it take work?"""

    def update(self) -> None:
        """Called about once a second, and before metrics are read: looks after its processes and gauges."""

    async def drain(self) -> None:
        """Starts nothing new; returns when all that was begun has ended."""

    async def close(self) -> None:
        """Ends everything at once."""


@dataclass(slots=True)
class Phase:
    """Where in its life the process is."""

    started: bool = False
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one app. `extras`: parts that a router of its own brought along, by name."""

    settings: Settings
    metrics: Metrics
    catalog: Catalog
    compiler: CompilerService
    flow: Flow
    jobs: Jobs
    access: Access
    access_log: AccessLog
    tracing: Tracing | None = None
    phase: Phase = field(default_factory=Phase)
    extras: dict[str, object] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        return self.settings.limits

    def ready(self) -> dict[str, str]:
        """What keeps the process from taking work: reasons by name; empty when it is ready."""
        reasons: dict[str, str] = {}
        if not self.phase.started:
            reasons["start"] = "still starting"
        if self.phase.draining:
            reasons["drain"] = "about to end"
        if not self.compiler.answers:
            reasons["workers"] = "no worker answers"
        self.metrics.ready.set(0 if reasons else 1)
        return reasons


def services(request: Request) -> Services:
    """The services of the app that handles a request."""
    found = request.app.state.services
    assert isinstance(found, Services)
    return found
