"""The jobs of this process, and those of others as the store tells of them.

A job runs here as a task. While it does, what it was asked and how far it has come are kept in the store, so that every replica can be
asked for it. A process that ends hands its jobs back; one that dies stops saying that it lives. Either way the job begins anew in a
replica that looks for such jobs or is asked for this one, which for compiles costs nothing that was finished already: programs are kept
under their keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from core import LatheError
from service.caller import CALLER, Caller
from service.catalog import Catalog
from service.errors import Defect, HttpRefused, QueueFull, WorkerLost, problem
from service.jobs.job import Job, State, new_id
from service.jobs.roster import Roster
from service.logs import logger
from service.store.keys import Key, Kind, Name

T = TypeVar("T")
log = logger("jobs")

BEATS = 5  # how often, within the time after which its silence means death, a process says of its jobs that it is still at them
REMEMBERED = 256  # jobs that ended here lately, and need not be asked of the store
ATTEMPTS = 3  # processes that may begin one job


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """One kind of job. run: does it, for the body of a request. told: what came of it, as JSON."""

    run: Callable[[bytes], Coroutine[Any, Any, T]]
    told: Callable[[T], dict[str, Any]]


class Here(Generic[T]):
    """A job that runs in this process. kept: is it in the store, for all to see?"""

    def __init__(self, job: Job, body: bytes, work: Work[T]) -> None:
        self.job = job
        self.body = body
        self.work = work
        self.kept = False
        self._changed = asyncio.Event()
        self.task: asyncio.Task[T] = asyncio.ensure_future(self._run())

    async def _run(self) -> T:
        caller = CALLER.get()
        CALLER.set(Caller(caller.name, caller.scopes, self._told))
        return await self.work.run(self.body)

    def _told(self, state: str) -> None:
        if self.job.state is State.QUEUED:
            self.turn(State(state))

    async def changes(self, seconds: float) -> None:
        """Returns when the job's state changes, at the latest after so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def turn(self, state: State, **more: Any) -> None:
        """Puts the job into a state, and wakes whoever watches it."""
        self.job = self.job.turned(state, time.time(), **more)
        self._changed.set()
        self._changed = asyncio.Event()


class Jobs:
    """most: how many may run here at once. lifetime_s: how long they are kept. kinds: the works there are, by name.

    stale_s: after so long a silence a process is taken for dead.
    """

    def __init__(self, catalog: Catalog, *, most: int, lifetime_s: float, stale_s: float = 10.0) -> None:
        self._catalog = catalog
        self._most = most
        self._lifetime_s = lifetime_s
        self._beat_s = stale_s / BEATS
        self._stale_s = stale_s
        self._owner = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._here: dict[Key, Here[Any]] = {}
        self._lately: OrderedDict[Key, Job] = OrderedDict()
        self._writes: set[asyncio.Task[None]] = set()
        self._beats: set[asyncio.Task[None]] = set()
        self._roster = Roster(catalog, lifetime_s)
        self._look_due = 0.0
        self._draining = False
        self.kinds: dict[str, Work[Any]] = {}

    def begin(self, kind: str, body: bytes) -> Here[Any]:
        """Starts a job in this process. Nobody else knows of it before it is `kept`. Raises QueueFull."""
        if len(self._here) >= self._most:
            raise QueueFull(f"{self._most} jobs run here, as many as may", retry_after_s=5, limit="jobs_limit", allowed=self._most)
        now = time.time()
        job = Job(new_id(), kind, CALLER.get().name, self._owner, created=now, updated=now, beat=now)
        return self._started(Here(job, body, self.kinds[kind]))

    def _started(self, here: Here[Any]) -> Here[Any]:
        self._here[here.job.id] = here
        here.task.add_done_callback(lambda _: self._ended(here))
        return here

    def _ended(self, here: Here[Any]) -> None:
        """The work has ended, one way or another: what came of it is noted, and kept where the job is."""
        del self._here[here.job.id]
        if here.task.cancelled():
            here.turn(here.job.state if here.job.state.ended or here.job.beat == 0.0 else State.CANCELLED)
        elif (error := here.task.exception()) is not None:
            here.turn(State.FAILED, problem=_told(error, here.job))
        else:
            here.turn(State.DONE, result=here.work.told(here.task.result()))
        if here.kept:
            if here.job.state.ended:
                self._lately[here.job.id] = here.job
                if len(self._lately) > REMEMBERED:
                    self._lately.popitem(last=False)
            _beside(self._writes, self._write(here))
            if here.job.state.ended:
                _beside(self._writes, self._roster.strike(here.job.id))

    async def keep(self, here: Here[Any]) -> None:
        """Makes a job known to every replica; from now on its client may go away."""
        here.kept = True
        body = Name(Kind.JOB_BODY, here.job.id)
        await self._catalog.note({body: here.body}, self._lifetime_s)
        await self._write(here)
        await self._roster.enter(here.job.id)
        _beside(self._beats, self._beating(here))

    async def _beating(self, here: Here[Any]) -> None:
        while not here.task.done():
            await asyncio.wait((here.task,), timeout=self._beat_s)
            if here.task.done():
                return
            kept, cancelled = await self._read(here.job.id)
            if cancelled:
                here.turn(State.CANCELLED)
                here.task.cancel()
            elif kept is not None and kept.owner != self._owner:  # we were silent for too long, and another has taken it up
                here.kept = False
                return
            elif not here.task.done():
                await self._write(here)
                await self._roster.enter(here.job.id)

    async def get(self, id_: Key) -> Job | None:
        """The job, wherever it runs. One that nobody is at any more is begun anew here."""
        here = self._here.get(id_)
        if here is not None:
            return here.job
        if id_ in self._lately:
            return self._lately[id_]
        job, cancelled = await self._read(id_)
        if job is None or job.state.ended:
            return job
        if cancelled:
            return job.turned(State.CANCELLED, job.updated)
        if time.time() - job.beat < self._stale_s or self._draining or job.kind not in self.kinds:
            return job
        return await self._taken_up(job)

    async def look(self) -> None:
        """Takes up what other processes have left. To be called about once a second; it looks when it is time to."""
        if self._draining or time.monotonic() < self._look_due:
            return
        self._look_due = time.monotonic() + self._stale_s * random.uniform(0.3, 0.7)  # so that one replica does, and not all at once
        for id_ in await self._roster.ids():
            if id_ in self._here or len(self._here) >= self._most:
                continue
            job = await self.get(id_)
            if job is None or job.state.ended:
                await self._roster.strike(id_)

    async def _taken_up(self, job: Job) -> Job:
        """Begins anew what another process has left."""
        (body,) = await self._catalog.notes([Name(Kind.JOB_BODY, job.id)])
        if job.id in self._here:  # somebody else was asked meanwhile
            return self._here[job.id].job
        if body is None or job.attempts >= ATTEMPTS:
            lost = WorkerLost(f"the processes that worked at this were lost, {job.attempts} times", retry_after_s=5)
            failed = job.turned(State.FAILED, time.time(), problem=_told(lost, job))
            await self._catalog.note({Name(Kind.JOB, job.id): failed.to_bytes()}, self._lifetime_s)
            return failed
        log.info("a job is taken up", job=job.id, kind=job.kind, owner=job.owner, attempts=job.attempts)
        token = CALLER.set(Caller(job.client))
        try:
            now = time.time()
            taken = replace(job, owner=self._owner, state=State.QUEUED, updated=now, beat=now, attempts=job.attempts + 1)
            here = self._started(Here(taken, body, self.kinds[job.kind]))
        finally:
            CALLER.reset(token)
        await self.keep(here)
        return here.job

    async def cancel(self, id_: Key) -> Job | None:
        """Cancels a job, wherever it runs; None where there is none. Raises 409 where it has ended otherwise."""
        job = await self.get(id_)
        if job is None or job.state is State.CANCELLED:
            return job
        if job.state.ended:
            raise HttpRefused(409, f"the job has ended already: {job.state}", {"cache-control": "no-store"})
        await self._catalog.note({Name(Kind.JOB_CANCEL, id_): b"{}"}, self._lifetime_s)
        here = self._here.get(id_)
        if here is None:
            return job.turned(State.CANCELLED, time.time())
        here.turn(State.CANCELLED)
        here.task.cancel()
        return here.job

    async def watch(self, id_: Key) -> AsyncIterator[Job]:
        """The job now and each time something is new, to its end; at least every few seconds."""
        while (job := await self.get(id_)) is not None:
            here = self._here.get(id_)
            yield job
            if job.state.ended:
                return
            if here is None:
                await asyncio.sleep(self._beat_s)
            elif here.job is job:
                await here.changes(self._beat_s)

    async def drain(self) -> None:
        """Hands back what has not begun and returns when the rest has ended. Cancelled, it hands back the rest too."""
        self._draining = True
        try:
            await self._hand_back([here for here in self._here.values() if here.job.state is State.QUEUED])
            while self._here:
                await asyncio.wait([here.task for here in self._here.values()])
        except asyncio.CancelledError:
            await self._hand_back(list(self._here.values()))
            raise
        finally:
            await asyncio.gather(*self._writes, return_exceptions=True)

    async def _hand_back(self, left: list[Here[Any]]) -> None:
        for here in left:
            here.job = replace(here.job, state=State.QUEUED, beat=0.0)
            here.task.cancel()
        await asyncio.gather(*(here.task for here in left), return_exceptions=True)
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def _write(self, here: Here[Any]) -> None:
        if here.job.beat and not here.job.state.ended:
            here.job = replace(here.job, beat=time.time())
        await self._catalog.note({Name(Kind.JOB, here.job.id): here.job.to_bytes()}, self._lifetime_s)

    async def _read(self, id_: Key) -> tuple[Job | None, bool]:
        kept, cancelled = await self._catalog.notes([Name(Kind.JOB, id_), Name(Kind.JOB_CANCEL, id_)])
        return None if kept is None else Job.from_bytes(kept), cancelled is not None


def _beside(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _told(error: BaseException, job: Job) -> dict[str, Any]:
    if not isinstance(error, LatheError):
        log.error("a defect", error=repr(error), job=job.id, exc_info=error)
        error = Defect()
    told: Mapping[str, Any] = json.loads(problem(error, instance=f"/jobs/{job.id}", request_id=job.id).body)
    return dict(told)
