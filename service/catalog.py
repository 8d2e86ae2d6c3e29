"""What this service knows about keys: programs, the requests they came from, refusals, and what devices said of them.

Over a `Store` that may fail or hand back damaged bytes at any time: a failure counts as a miss here and nowhere matters, so
callers need not think of it. Programs asked for lately are held ready to be sent, in bounded memory.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from core import RequestError
from service.answer import Answer
from service.binaries.binary import Binary, Recipe, entries_in
from service.errors import Quarantined, StoreDown, refusal_from_json, refusal_to_json
from service.logs import logger
from service.metrics import Metrics
from service.origin import Origin, ast_hash_in, dumped, request_of
from service.ready import Ready
from service.renewed import Renewed
from service.shun import Offence
from service.store.keys import Key, Kind, Name, as_key
from service.store.record import Damaged, Record, seal, unseal
from service.store.store import Entry, Store

T = TypeVar("T")
log = logger("catalog")

OFFENCE_REMEMBERED_S = 3600.0  # how long after a pause the next offence still counts as one more
RENEW_PART = 0.1  # of a lifetime: a program that is asked for all the time is renewed so often by each process

OF_A_PROGRAM = (Kind.PROGRAM, Kind.VALIDATION, Kind.BINARIES)  # what is read before one is answered

WRONG = "wrong"  # the verdict that puts a program into quarantine


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long things are kept in the store, in seconds; and how long a ready answer is believed before the store is asked."""

    program_s: float = 90 * 86400.0
    refusal_s: float = 60.0
    ready_s: float = 300.0


class Catalog:
    """The programs and what is known of them. All that is kept carries the `secret`'s MAC, if there is one."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        *,
        ready_bytes: int,
        lifetimes: Lifetimes | None = None,
        secret: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._lifetimes = lifetimes or Lifetimes()
        self._secret = secret
        self._ready = Ready(metrics, ready_bytes, self._lifetimes.ready_s, clock)
        self._renewed = Renewed(RENEW_PART * self._lifetimes.program_s, clock)
        self._renewals: set[asyncio.Task[None]] = set()
        self.degraded: str | None = None  # why the store's last call failed; None: it answered

    # programs

    def ready(self, key: Key) -> Answer | None:
        """The program, if it is held ready in this process. Never waits."""
        return self._ready.get(key)

    def held_ready(self, key: Key) -> Answer | None:
        """As `ready`, and not counted: for whoever may leave the answer to somebody else."""
        return self._ready.look(key)

    def count_ready(self) -> None:
        """Counts one answer that was held ready."""
        self._ready.count()

    async def program(self, key: Key) -> Answer | None:
        """The program, or None where there is none. Raises Quarantined where a device has found it wrong."""
        found = self.ready(key)
        if found is not None:
            return found
        return self._believed(key, *await self._many([Name(kind, key) for kind in OF_A_PROGRAM]))

    async def program_or_refusal(self, key: Key) -> Answer | None:
        """As `program`, and raises what is kept in its place: a refusal, or that the kernel is to be left alone. All in one look."""
        found = self.ready(key)
        if found is not None:
            return found
        *program, refusal, offence = await self._many([Name(kind, key) for kind in (*OF_A_PROGRAM, Kind.REFUSAL, Kind.OFFENCE)])
        answer = self._believed(key, *program)
        if answer is None:
            _raise(refusal, offence)
        return answer

    async def programs(self, keys: list[Key]) -> dict[Key, Answer]:
        """Those of the programs that are here and not in quarantine, in one round trip."""
        found: dict[Key, Answer] = {}
        asked: list[Key] = []
        for key in keys:
            answer = self.ready(key)
            if answer is None:
                asked.append(key)
            else:
                found[key] = answer
        names = [Name(kind, key) for key in asked for kind in OF_A_PROGRAM]
        values = await self._many(names) if names else []
        for i, key in enumerate(asked):
            try:
                answer = self._believed(key, *values[len(OF_A_PROGRAM) * i : len(OF_A_PROGRAM) * (i + 1)])
            except Quarantined:
                continue
            if answer is not None:
                found[key] = answer
        return found

    async def keep(self, key: Key, program: bytes, packed: bytes, origin: Origin, seconds: float) -> Answer:
        """Keeps a program, as JSON, beside what it was compiled from; usable whatever the store does."""
        answer = Answer(key, Record(program, packed, seconds))
        name, rest, ast = Name(Kind.PROGRAM, key), Name(Kind.REQUEST, key), Name(Kind.AST, Key(origin.ast_hash))
        lifetime_s = self._lifetimes.program_s
        await self._put(
            Entry(name, seal(name, program, packed=packed, seconds=seconds, secret=self._secret), lifetime_s),
            Entry(rest, seal(rest, origin.rest, secret=self._secret), lifetime_s),
            Entry(ast, seal(ast, origin.ast, secret=self._secret), lifetime_s),
        )
        self._renewed.is_due(key)
        self._ready.hold(answer)
        return answer

    async def request(self, key: Key) -> bytes | None:
        """The canonical request (JSON) the program was compiled from, or None. Raises StoreDown where the store can't say."""
        rest = (await self._many((Name(Kind.REQUEST, key),)))[0]
        ast = None
        if rest is not None:
            ast = (await self._many((Name(Kind.AST, Key(ast_hash_in(rest.content))),)))[0]
        if ast is None and self.degraded is not None:
            raise StoreDown(self.degraded)
        return None if ast is None or rest is None else request_of(ast.content, rest.content)

    async def keep_refusal(self, key: Key, refusal: RequestError) -> None:
        """Keeps a refusal for a short time: the same request would be refused the same way."""
        name = Name(Kind.REFUSAL, key)
        content = json.dumps(refusal_to_json(refusal), default=str).encode()
        await self._put(Entry(name, seal(name, content, secret=self._secret), self._lifetimes.refusal_s))

    async def offence(self, key: Key) -> Offence | None:
        """What the kernel has cost workers, as far as the store knows."""
        record = (await self._many((Name(Kind.OFFENCE, key),)))[0]
        return None if record is None else _offence(record)

    async def keep_offence(self, key: Key, offence: Offence) -> None:
        """Lets all who share the store know that the kernel is to be left alone."""
        name = Name(Kind.OFFENCE, key)
        content = json.dumps({"count": offence.count, "until": offence.until}).encode()
        lifetime_s = max(0.0, offence.until - time.time()) + OFFENCE_REMEMBERED_S
        await self._put(Entry(name, seal(name, content, secret=self._secret), lifetime_s))

    # device binaries, each under a key of its own

    async def binary_or_refusal(self, key: Key) -> Binary | None:
        """The binary, or None where there is none. Raises what is kept in its place, as for a program."""
        binary, refusal, offence = await self._many([Name(kind, key) for kind in (Kind.BINARY, Kind.REFUSAL, Kind.OFFENCE)])
        found = None if binary is None else Binary.from_bytes(key, binary.content)
        if found is None:
            _raise(refusal, offence)
        elif self._renewed.is_due(key):
            self._renew(key, [Name(Kind.BINARY, key)])
        return found

    async def binaries(self, program: Key) -> list[dict[str, object]]:
        """What is told of each binary of a program: JSON objects with the members of a recipe, `bytes` and `sha256`."""
        record = (await self._many((Name(Kind.BINARIES, program),)))[0]
        return [] if record is None else entries_in(record.content)

    async def keep_binary(self, binary: Binary) -> None:
        """Keeps a binary, and tells of it beside its program.

        Two replicas that do so at the same moment may lose one entry; it is written again when somebody asks for that binary.
        """
        await self.note({Name(Kind.BINARY, binary.recipe.key(binary.program)): binary.to_bytes()}, self._lifetimes.program_s)
        await self.tell_of_binary(binary)

    async def tell_of_binary(self, binary: Binary) -> None:
        """Sees to it that the binary is told of beside its program."""
        known = await self.binaries(binary.program)
        entry = json.loads(dumped(binary.entry()))
        if entry not in known:
            known = [*(old for old in known if Recipe.from_json(old) != binary.recipe), entry]
            await self.note({Name(Kind.BINARIES, binary.program): dumped(known)}, self._lifetimes.program_s)
        held = self.held_ready(binary.program)
        if held is not None:
            held.link(_links(binary.program, known))

    # what devices have said

    async def validations(self, key: Key) -> list[dict[str, object]]:
        """What runs of the program on devices have said, the latest last: JSON objects with `verdict` and `device` at least."""
        record = (await self._many((Name(Kind.VALIDATION, key),)))[0]
        return [] if record is None else _reports(record)

    async def keep_validation(self, key: Key, report: Mapping[str, object], most: int = 16) -> None:
        """Adds what one run has said; the last `most` are kept. A `wrong` verdict puts the program into quarantine at once.

        Two replicas that add at the same moment may lose one report; a `wrong` one is written again by whoever sees it next.
        """
        name = Name(Kind.VALIDATION, key)
        reports = [*await self.validations(key), dict(report)]
        wrong = [old for old in reports[:-most] if old.get("verdict") == WRONG][-1:]
        content = json.dumps([*wrong, *reports[-most:]], default=str).encode()
        await self._put(Entry(name, seal(name, content, secret=self._secret), self._lifetimes.program_s))
        if report.get("verdict") == WRONG:
            self.forget_ready(key)

    # what other parts of the service keep

    def keys(self, kind: Kind) -> AsyncIterator[Key]:
        """The keys under which the store has something of this kind. Raises StoreDown."""
        return self._store.keys(kind)

    async def notes(self, names: list[Name]) -> list[bytes | None]:
        """The contents under these names, in one round trip; None where there is none, or the store can't say."""
        return [None if record is None else record.content for record in await self._many(names)]

    async def note(self, contents: Mapping[Name, bytes], lifetime_s: float) -> None:
        """Keeps contents under names, as well as the store can."""
        await self._put(*(Entry(name, seal(name, content, secret=self._secret), lifetime_s) for name, content in contents.items()))

    def forget_ready(self, key: Key) -> None:
        """Drops the program from this process's memory: the store is asked next time."""
        self._ready.forget(key)

    # the store, whatever it does

    async def ping(self) -> bool:
        """Does the store answer?"""
        try:
            await self._store.ping()
        except StoreDown as error:
            self._failed("ping", error)
            return False
        self._answered()
        return True

    async def check(self) -> None:
        """Raises StoreDown where the store did not take what it was last given, or does not answer now."""
        if self.degraded is not None or not await self.ping():
            raise StoreDown(self.degraded or "the store does not answer")

    async def close(self) -> None:
        if self._renewals:
            await asyncio.wait(self._renewals)
        await self._store.close()

    async def _many(self, names: tuple[Name, ...] | list[Name]) -> list[Record | None]:
        values = await self._timed("get", lambda: self._store.many(names))
        if values is None:
            self._count("get", "error")
            return [None] * len(names)
        records: list[Record | None] = []
        damaged: list[Name] = []
        for name, value in zip(names, values, strict=True):
            record = None
            if value is not None:
                try:
                    record = unseal(name, value, secret=self._secret)
                except Damaged as error:
                    damaged.append(name)
                    self._count("get", "damaged")
                    log.warning("damaged value", name=str(name), why=str(error))
            if name.kind is Kind.PROGRAM and name not in damaged:
                self._count("get", "miss" if record is None else "hit")
            records.append(record)
        if damaged:
            await self._timed("delete", lambda: self._store.delete(*damaged))
        return records

    async def _put(self, *entries: Entry) -> None:
        async def put() -> bool:
            await self._store.put(*entries)
            return True

        done = await self._timed("put", put)
        self._count("put", "error" if done is None else "ok")

    async def _timed(self, operation: str, work: Callable[[], Awaitable[T]]) -> T | None:
        started = time.perf_counter()
        try:
            result = await work()
        except StoreDown as error:
            self._failed(operation, error)
            return None
        finally:
            self._metrics.store_seconds(operation).observe(time.perf_counter() - started)
        self._answered()
        return result

    def _answered(self) -> None:
        if self.degraded is not None:
            log.info("the store answers again")
        self.degraded = None

    def _failed(self, operation: str, error: StoreDown) -> None:
        if self.degraded is None:
            log.warning("the store fails", operation=operation, why=error.detail)
        self.degraded = error.detail

    def _count(self, operation: str, result: str) -> None:
        self._metrics.store_operations(operation, result).inc()

    def _believed(
        self, key: Key, program: Record | None = None, validation: Record | None = None, binaries: Record | None = None
    ) -> Answer | None:
        if validation is not None and any(report.get("verdict") == WRONG for report in _reports(validation)):
            raise Quarantined(key)
        if program is None:
            return None
        answer = Answer(key, program, [] if binaries is None else _links(key, entries_in(binaries.content)))
        self._ready.hold(answer)
        if self._renewed.is_due(key):
            ast_hash = as_key(str(answer.program().get("ast_hash")))
            names = [Name(Kind.PROGRAM, key), Name(Kind.REQUEST, key), Name(Kind.BINARIES, key)]
            self._renew(key, names if ast_hash is None else [*names, Name(Kind.AST, ast_hash)])
        return answer

    # lifetimes that slide

    def _renew(self, key: Key, names: list[Name]) -> None:
        """In a task of its own: nobody has to wait for it."""
        renewal = asyncio.ensure_future(self._renewed_now(key, names))
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)

    async def _renewed_now(self, key: Key, names: list[Name]) -> None:
        async def renew() -> bool:
            await self._store.renew(names, self._lifetimes.program_s)
            return True

        done = await self._timed("renew", renew)
        self._count("renew", "error" if done is None else "ok")
        if done is None:
            self._renewed.failed(key)


def _links(program: Key, entries: list[dict[str, object]]) -> list[str]:
    return [Recipe.from_json(entry).link(program) for entry in entries]


def _raise(refusal: Record | None, offence: Record | None) -> None:
    """Raises what is kept in place of something, if anything is."""
    kept = None if refusal is None else _refusal(refusal)
    if kept is not None:
        raise kept
    offended = None if offence is None else _offence(offence)
    if offended is not None:
        offended.refuse(time.time())


def _refusal(record: Record) -> RequestError | None:
    try:
        return refusal_from_json(json.loads(record.content))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # written by another version of the service


def _offence(record: Record) -> Offence | None:
    try:
        value = json.loads(record.content)
        return Offence(int(value["count"]), float(value["until"]))
    except (ValueError, KeyError, TypeError):
        return None  # written by another version of the service


def _reports(record: Record) -> list[dict[str, object]]:
    try:
        reports = json.loads(record.content)
    except ValueError:
        return []
    return [report for report in reports if isinstance(report, dict)] if isinstance(reports, list) else []
