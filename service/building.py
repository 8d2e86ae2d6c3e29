"""A binary's way: is it stored? does the same work run? else a worker's device compiler, and store.

It begins where a program is there, and goes as a program's does (`flow`): one compile for all who ask, in whichever process.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Literal, Protocol

from core import LatheError, TargetError
from service.answer import Answer
from service.binaries.binary import Binary, Offers, Recipe
from service.catalog import Catalog
from service.flight.cluster import Cluster
from service.flight.local import Flights, Wanted
from service.metrics import Metrics
from service.store.keys import Key, Kind, Name
from service.store.memory import MemoryStore
from service.store.store import Entry
from service.supervision import Supervision
from service.workers.job import Built, Outcome

Way = Literal["hit", "coalesced", "compiled"]


class Builder(Protocol):
    """Makes binaries elsewhere."""

    @property
    def toolchain(self) -> Offers:
        """Which binaries it makes."""

    async def build(self, answer: Answer, recipe: Recipe, wanted: Wanted) -> tuple[Outcome, float]:
        """What became of it, and the seconds it waited. Raises service errors; gives up what nobody wants before it begins."""


class Builds:
    """The binaries of programs. memory_bytes: what is held of them in this process; memory_s: how long that is believed."""

    def __init__(
        self,
        catalog: Catalog,
        builder: Builder,
        cluster: Cluster,
        supervision: Supervision,
        metrics: Metrics,
        *,
        memory_bytes: int = 64 << 20,
        memory_s: float = 300.0,
    ) -> None:
        self.flights: Flights[tuple[Binary, dict[str, float], Way]] = Flights(metrics.singleflight_waiters)
        self._catalog = catalog
        self._builder = builder
        self._cluster = cluster
        self._supervision = supervision
        self._metrics = metrics
        self._held = MemoryStore(memory_bytes)
        self._memory_s = memory_s

    async def made(self, answer: Answer, recipes: Sequence[Recipe]) -> dict[str, float]:
        """Sees to it that each binary of the program is there; seconds by stage. Raises why one can't be."""
        stages: dict[str, float] = {}
        for recipe in recipes:
            try:
                more, way = await self._found_or_made(answer, recipe)
            except LatheError as error:
                self._metrics.binaries.labels(recipe.format, error.category).inc()
                raise
            self._metrics.binaries.labels(recipe.format, way).inc()
            stages |= more
        return stages

    async def stored(self, answer: Answer, format_: str, arch: str | None) -> Binary | None:
        """A binary of the program that was made before, here or elsewhere; of several, the one this service would make. Makes none."""
        own: Recipe | None = None
        with contextlib.suppress(TargetError):  # others who share the store may have made it all the same
            own = self._builder.toolchain.recipe(answer.target, format_, arch or answer.arch, "")
        if own is not None:
            found = await self._kept(own.key(answer.key))
            if found is not None:
                return found
        for entry in reversed(await self._catalog.binaries(answer.key)):
            recipe = Recipe.from_json(entry)
            if recipe.format == format_ and arch in (None, recipe.arch) and recipe != own:
                found = await self._kept(recipe.key(answer.key))
                if found is not None:
                    return found
        return None

    async def _found_or_made(self, answer: Answer, recipe: Recipe) -> tuple[dict[str, float], Way]:
        key = recipe.key(answer.key)
        if self._looked(key) is not None:
            return {}, "hit"
        (binary, stages, way), led = await self.flights.run(key, lambda wanted: self._found_or_flown(answer, recipe, key, wanted))
        self._hold(key, binary)
        if led:
            return stages, way
        return {}, "hit" if way == "hit" else "coalesced"

    async def _found_or_flown(self, answer: Answer, recipe: Recipe, key: Key, wanted: Wanted) -> tuple[Binary, dict[str, float], Way]:
        found = await self._catalog.binary_or_refusal(key)
        if found is not None:
            await self._catalog.tell_of_binary(found)
            return found, {}, "hit"
        stages: dict[str, float] = {}
        binary, way = await self._cluster.run(
            key, lambda: self._catalog.binary_or_refusal(key), lambda: self._make(answer, recipe, key, wanted, stages), wanted
        )
        return binary, stages, way

    async def _make(self, answer: Answer, recipe: Recipe, key: Key, wanted: Wanted, stages: dict[str, float]) -> Binary:
        """Compiles and keeps the binary. stages: is told what took how long."""
        built, waited_s = await self._supervision.worked(key, lambda: self._builder.build(answer, recipe, wanted), answer.body)
        assert isinstance(built, Built)
        started = time.perf_counter()
        binary = Binary(answer.key, recipe, built.content, sum(built.stages.values()))
        await self._catalog.keep_binary(binary)
        store_s = time.perf_counter() - started
        stages |= {f"{recipe.format}-queue": waited_s, **built.stages, f"{recipe.format}-store": store_s}
        return binary

    # what this process holds

    async def _kept(self, key: Key) -> Binary | None:
        found = self._looked(key)
        if found is None:
            try:
                found = await self._catalog.binary_or_refusal(key)
            except LatheError:
                return None
            if found is not None:
                self._hold(key, found)
        return found

    def _looked(self, key: Key) -> Binary | None:
        kept = self._held.look(Name(Kind.BINARY, key))
        return None if kept is None else Binary.from_bytes(key, kept)

    def _hold(self, key: Key, binary: Binary) -> None:
        self._held.keep(Entry(Name(Kind.BINARY, key), binary.to_bytes(), self._memory_s))
