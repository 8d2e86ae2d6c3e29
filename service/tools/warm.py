"""Programs compiled before anybody asks for them: the requests of a file, or of those the service was asked for most often.

`replay` is for an upgrade: the new version compiles what the old one was asked for, keeps it under the new keys (a key depends on the
compiler, so what is served meanwhile stays), and tells what has changed before anybody is switched over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import COMPILER, LatheError
from service.errors import Quarantined, ServiceError
from service.origin import dumped
from service.services import Services
from service.store.keys import Key
from service.use import most_used

COMPARED = ("source", "global_size", "local_size", "arguments", "shared_bytes", "applied", "proofs")
PATIENCE = 5  # how often a request is made again that the service can't answer just now
PAUSE_S = 1.0


@dataclass(slots=True)
class Tally:
    """How requests ended: `hit`, `coalesced`, `compiled`, or the category of an error."""

    results: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, result: str, problem: str | None = None) -> None:
        self.results[result] = self.results.get(result, 0) + 1
        if problem is not None:
            self.problems.append(problem)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one program. change: same, changed, refused, gone (nobody can tell what it was compiled from). what: which members."""

    key: Key
    used: int
    change: str
    what: list[str] = field(default_factory=list)
    new_key: str | None = None
    problem: str | None = None


def requests_in(file: Path) -> list[bytes]:
    """The requests in a file: one JSON text, an array of them, or one on each line. Raises ValueError and OSError."""
    text = file.read_text(encoding="utf-8")
    try:
        value = json.loads(text)
        return [dumped(one) for one in (value if isinstance(value, list) else [value])]
    except json.JSONDecodeError:
        return [dumped(json.loads(line)) for line in text.splitlines() if line.strip()]


async def warm(services: Services, requests: list[bytes], told: Callable[[], None]) -> Tally:
    """Compiles and keeps every request that is not there yet, as many at once as there are workers, and a few more to wait."""
    tally = Tally()

    async def one(number: int, body: bytes) -> None:
        try:
            tally.add((await _patiently(services, body)).result)
        except LatheError as error:
            tally.add(error.category, f"request {number}: {error.category}: {error}")
        told()

    await _together(services, (one(number, body) for number, body in enumerate(requests)))
    return tally


async def replay(services: Services, most: int, told: Callable[[Change], None]) -> list[Change]:
    """Compiles anew the programs asked for most often, and compares each with what stands under its old key. Raises StoreDown."""
    counts = (await most_used(services.catalog)).most_common()
    changes: list[Change] = []

    async def one(key: Key, used: int) -> None:
        change = await _replayed(services, key, used)
        if change is not None:
            changes.append(change)
            told(change)

    old = [(key, used) async for key, used in _of_other_compilers(services, counts, most)]
    await _together(services, (one(key, used) for key, used in old))
    return sorted(changes, key=lambda change: (-change.used, change.key))


async def _of_other_compilers(services: Services, counts: list[tuple[Key, int]], most: int) -> AsyncIterator[tuple[Key, int]]:
    found = 0
    for key, used in counts:
        program = await _program(services, key)
        if program is None or program.get("compiler") == COMPILER:
            continue
        yield key, used
        found += 1
        if found == most:
            return


async def _replayed(services: Services, key: Key, used: int) -> Change | None:
    old = await _program(services, key)
    request = await services.catalog.request(key)
    if old is None or request is None:
        return Change(key, used, "gone")
    try:
        done = await _patiently(services, request)
    except LatheError as error:
        return Change(key, used, "refused", problem=f"{error.category}: {error}")
    new = done.answer.program()
    what = [name for name in COMPARED if old.get(name) != new.get(name)]
    return Change(key, used, "changed" if what else "same", what, str(new["key"]))


async def _program(services: Services, key: Key) -> dict[str, Any] | None:
    try:
        answer = await services.catalog.program(key)
    except Quarantined:
        return None
    return None if answer is None else answer.program()


async def _patiently(services: Services, body: bytes) -> Any:
    for _ in range(PATIENCE):
        try:
            return await services.flow.compile(body)
        except ServiceError as error:
            await asyncio.sleep(min(PAUSE_S, error.retry_after_s))
    return await services.flow.compile(body)


async def _together(services: Services, works: Iterable[Any]) -> None:
    """All of them, but only so many at once that the workers have enough to do."""
    turns = asyncio.Semaphore(2 * services.settings.workers)

    async def one(work: Any) -> None:
        async with turns:
            await work

    await asyncio.gather(*(one(work) for work in works))
