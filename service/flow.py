"""A compile request's journey: its key; stored? same work running? compile; store. And the shorter one of a question how.

Everything around this page (HTTP, processes, Redis) is behind the protocols it names.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal, Protocol

from core import LatheError, OptionRefused
from service.access import demand
from service.answer import Answer
from service.asking import Asked
from service.building import Builder, Builds
from service.caller import CALLER, Scope
from service.catalog import Catalog
from service.errors import NotReady
from service.flight.cluster import Cluster
from service.flight.local import Flights, Wanted
from service.metrics import Metrics
from service.supervision import Supervision
from service.use import Use
from service.workers.job import Made, Outcome, Told

Result = Literal["hit", "coalesced", "compiled"]
AVOIDED: frozenset[Result] = frozenset(("hit", "coalesced"))


class Compiler(Builder, Protocol):
    """Reads requests, and compiles or explains them elsewhere."""

    async def read(self, body: bytes) -> Asked:
        """The request in a body. Raises a RequestError where it is none, or asks for what this service does not offer."""

    async def compile(self, asked: Asked, wanted: Wanted) -> tuple[Outcome, float]:
        """What became of it, and the seconds it waited. Raises service errors; gives up what nobody wants before it begins."""

    async def explain(self, asked: Asked, wanted: Wanted) -> tuple[Outcome, float]:
        """As `compile`, of how the program comes about."""


class Validator(Protocol):
    """Answers `"require": "validated"`: by what is known, or by running the program now."""

    async def device_for(self, answer: Answer) -> str:
        """The device the program has run right on. Raises where there is none, or where it ran wrong."""


@dataclass(frozen=True, slots=True)
class Done:
    """An answered compile request: the program, how it came about, and seconds by stage. The binaries it asked for are there."""

    answer: Answer
    asked: Asked
    result: Result
    stages: dict[str, float] = field(default_factory=dict)
    validated: str | None = None


class Flow:
    """Compiles what has not been compiled yet, once, however many ask."""

    def __init__(
        self,
        catalog: Catalog,
        compiler: Compiler,
        flights: Flights[tuple[Answer, dict[str, float], Result]],
        cluster: Cluster,
        supervision: Supervision,
        builds: Builds,
        metrics: Metrics,
    ) -> None:
        self.catalog = catalog
        self.flights = flights
        self.cluster = cluster
        self.use = Use()
        self.validator: Validator | None = None
        self._compiler = compiler
        self._explanations: Flights[bytes] = Flights()
        self.builds = builds
        self._supervision = supervision
        self._metrics = metrics

    async def compile(self, body: bytes) -> Done:
        """The program for the request in a body. Raises whatever says why there is none."""
        started = time.perf_counter()
        target = "none"
        try:
            asked = await self._compiler.read(body)
            target = asked.target
            if asked.require is not None:
                demand(CALLER.get(), Scope.VALIDATE)
            if asked.require is not None and self.validator is None:
                raise OptionRefused("/require", option=asked.require, reason="this service has no device to validate on")
            read_s = time.perf_counter() - started
            self._metrics.stage("read").observe(read_s)
            answer, stages, result = await self._found_or_made(asked)
            device = await self._validated(asked, answer)
            stages |= await self.builds.made(answer, asked.binaries)
        except LatheError as error:
            self._metrics.compile_requests.labels(target, error.category).inc()
            raise
        self.count(answer, result, target)
        return Done(answer, asked, result, {"read": read_s, **stages}, device)

    async def explain(self, asked: Asked) -> bytes:
        """How the program of a request comes about, as JSON. Raises what a compile of it would."""
        explanation, _ = await self._explanations.run(asked.key, lambda wanted: self._explain(asked, wanted))
        return explanation

    async def _explain(self, asked: Asked, wanted: Wanted) -> bytes:
        told, _ = await self._supervision.worked(asked.key, lambda: self._compiler.explain(asked, wanted), asked.body)
        assert isinstance(told, Told)
        return told.explanation

    def count(self, answer: Answer, result: Result, target: str) -> None:
        """Counts one answered request."""
        self._metrics.compile_requests.labels(target, result).inc()
        self.use.count(answer.key)
        if result in AVOIDED:
            self._metrics.compiles_avoided.inc()
            self._metrics.compile_seconds_saved.inc(answer.seconds)

    async def _found_or_made(self, asked: Asked) -> tuple[Answer, dict[str, float], Result]:
        found = await self.catalog.program_or_refusal(asked.key)
        if found is not None:
            return found, {}, "hit"
        (answer, stages, result), led = await self.flights.run(asked.key, lambda wanted: self._found_or_flown(asked, wanted))
        if led:
            return answer, stages, result
        return answer, {}, "hit" if result == "hit" else "coalesced"

    async def _found_or_flown(self, asked: Asked, wanted: Wanted) -> tuple[Answer, dict[str, float], Result]:
        """What one request of this process does for all of its that ask for the same."""
        found = self.catalog.ready(asked.key)  # the flight before this one may have landed since we looked
        if found is not None:
            return found, {}, "hit"
        stages: dict[str, float] = {}
        answer, result = await self.cluster.run(
            asked.key, lambda: self.catalog.program_or_refusal(asked.key), lambda: self._make(asked, wanted, stages), wanted
        )
        return answer, stages, result

    async def _make(self, asked: Asked, wanted: Wanted, stages: dict[str, float]) -> Answer:
        """Compiles and keeps the program. stages: is told what took how long."""
        made, waited_s = await self._supervision.worked(asked.key, lambda: self._compiler.compile(asked, wanted), asked.body)
        assert isinstance(made, Made)
        started = time.perf_counter()
        seconds = sum(made.stages.values())
        answer = await self.catalog.keep(asked.key, made.program, made.packed, made.origin, seconds)
        store_s = time.perf_counter() - started
        self._metrics.stage("store").observe(store_s)
        stages |= {"queue": waited_s, **{f"compile-{name}": s for name, s in made.stages.items()}, "store": store_s}
        return answer

    async def _validated(self, asked: Asked, answer: Answer) -> str | None:
        if asked.require is None:
            return None
        if self.validator is None:
            raise NotReady("no device answers", retry_after_s=5)
        return await self.validator.device_for(answer)
