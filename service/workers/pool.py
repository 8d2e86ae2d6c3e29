"""Worker processes: each job within a time and a memory limit, a lost worker replaced, the rest undisturbed.

Whatever happens to one process concerns one job. Who waits, how long, and what each process does is known here.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from service.caller import CALLER
from service.errors import Draining, OutOfMemory, OverQuota, QueueFull, TimedOut, WorkerLost
from service.flight.local import Abandoned
from service.logs import logger
from service.metrics import Metrics
from service.workers.queue import FairQueue
from service.workers.slot import Sizes, Slot, State
from service.workers.worker import END_S, Lost, Worker

J = TypeVar("J")
R = TypeVar("R")

log = logger("workers")

MISSES = 3  # how often, beyond once per slot, a job may find its worker gone before it begins
TRIES = 2  # a job whose worker dies is tried once more


class _NeverBegan(Exception):
    """The worker process was lost before it took the job."""


class Pool(Generic[J, R]):
    """Runs jobs of one kind, `run(job)`, in worker processes; as many at once as there are workers, the rest queues.

    run: a function that can be imported by name in another process. Jobs and results are pickled between processes of ours.
    """

    def __init__(self, run: Callable[[J], R], sizes: Sizes, metrics: Metrics) -> None:
        self._run = run
        self._sizes = sizes
        self._metrics = metrics
        self._slots = [Slot(number, self._new) for number in range(sizes.workers)]
        self._idle: deque[Slot[J, R]] = deque()
        self._queue: FairQueue[asyncio.Future[Slot[J, R]]] = FairQueue()
        self._beside: set[asyncio.Task[None]] = set()  # processes that start and end
        self._draining = False
        self._closed = False
        self._mean_s = 0.1  # of a job, smoothed: how long a queue will take
        self._answered = asyncio.Event()
        self._states = {state: metrics.workers.labels(state) for state in State}
        for state, gauge in self._states.items():
            gauge.set(sum(slot.state is state for slot in self._slots))

    async def start(self) -> None:
        """Starts the processes; returns at once, `answers` tells when one is there."""
        for slot in self._slots:
            self._later(self._start(slot))

    @property
    def answers(self) -> bool:
        """Is there a worker that can take a job, now, when it has done its present one or when it has been replaced?"""
        return self._answered.is_set() and any(slot.failed_starts == 0 for slot in self._slots)

    async def until_answers(self) -> None:
        """Returns when the first worker has answered."""
        await self._answered.wait()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return sum(slot.state is State.BUSY for slot in self._slots)

    def pids(self) -> list[int]:
        """The ids of the worker processes there are."""
        return [slot.worker.pid for slot in self._slots if slot.worker.pid is not None]

    async def job(self, job: J, wanted: Callable[[], bool] = lambda: True) -> tuple[R, float]:
        """The result of a job, and how many seconds it waited for a worker.

        wanted: asked when a worker is free; a no raises Abandoned. Raises QueueFull, OverQuota, TimedOut, OutOfMemory, WorkerLost
        (a worker died, and the next one too) or Draining. Once begun, a job runs to its end whoever stops waiting for it.
        """
        if self._draining:
            raise Draining("this process is about to end and starts no compile", retry_after_s=1)
        waited_s = 0.0
        tries = missed = 0
        while True:
            asked = time.monotonic()
            slot = await self._take()
            waited_s += time.monotonic() - asked
            if not wanted():
                self._free(slot)
                raise Abandoned
            CALLER.get().told("running")
            try:
                return await self._on(slot, job), waited_s
            except _NeverBegan:  # the process was gone already: no fault of this job
                missed += 1
                if missed > MISSES + len(self._slots):
                    raise WorkerLost("worker processes are lost as soon as they start", retry_after_s=5) from None
            except WorkerLost:
                tries += 1
                if tries == TRIES:
                    raise

    async def drain(self) -> None:
        """Starts nothing new and returns when what runs and waits has ended."""
        self._draining = True
        while self.running or self.waiting:
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Ends all processes, working or not."""
        self._draining = self._closed = True
        for slot in self._slots:
            slot.worker.kill()
        await asyncio.gather(*(slot.worker.gone() for slot in self._slots))
        if self._beside:
            await asyncio.wait(self._beside, timeout=END_S)

    def update(self) -> None:
        """Brings the gauges up to date."""
        self._metrics.queue_depth.set(self.waiting)
        oldest = self._queue.oldest()
        self._metrics.queue_oldest_seconds.set(0.0 if oldest is None else time.monotonic() - oldest)

    # a slot for a job

    async def _take(self) -> Slot[J, R]:
        if self._idle:
            slot = self._idle.popleft()
            self._turn(slot, State.BUSY)
            return slot
        client = CALLER.get().name
        self._check_room(client)
        future: asyncio.Future[Slot[J, R]] = asyncio.get_running_loop().create_future()
        place = self._queue.add(client, future, time.monotonic())
        try:
            return await asyncio.wait_for(future, self._sizes.queue_s)
        except TimeoutError:
            raise self._too_long(self._sizes.queue_s) from None
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._free(future.result())
            raise
        finally:
            self._queue.remove(place)

    def _check_room(self, client: str) -> None:
        """Raises where one more job would have to wait in vain, so that its client learns it now and not at a time limit."""
        sizes = self._sizes
        if self.waiting >= sizes.queue:
            raise QueueFull(
                f"{self.waiting} compiles wait for a worker, as many as may",
                retry_after_s=self._clears_in_s(),
                limit="queue_limit",
                allowed=sizes.queue,
                needed=self.waiting + 1,
            )
        if self._queue.held_by(client) >= sizes.client_queue:
            raise OverQuota(
                f"{sizes.client_queue} compiles of this client wait for a worker, as many as may",
                retry_after_s=self._clears_in_s(),
                limit="queue_limit_client",
                allowed=sizes.client_queue,
                needed=sizes.client_queue + 1,
            )
        expected_s = self.waiting * self._mean_s / len(self._slots)
        if expected_s > sizes.queue_s:
            raise self._too_long(expected_s)

    def _too_long(self, seconds: float) -> QueueFull:
        return QueueFull(
            f"no worker is free within {self._sizes.queue_s:g} s",
            retry_after_s=self._clears_in_s(),
            limit="queue_seconds",
            allowed=self._sizes.queue_s,
            needed=round(seconds, 3),
        )

    def _free(self, slot: Slot[J, R]) -> None:
        while (future := self._queue.take()) is not None:
            if not future.done():
                self._turn(slot, State.BUSY)
                future.set_result(slot)
                return
        self._turn(slot, State.IDLE)
        self._idle.append(slot)

    def _clears_in_s(self) -> int:
        return max(1, round(self.waiting * self._mean_s / len(self._slots)))

    # a job on a slot

    async def _on(self, slot: Slot[J, R], job: J) -> R:
        """Runs the job on the slot and gives the slot back, shielded: the caller may stop waiting, the work goes on."""
        work = asyncio.ensure_future(self._run_on(slot, job))
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, whoever is left to hear it
        return await asyncio.shield(work)

    async def _run_on(self, slot: Slot[J, R], job: J) -> R:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._sizes.job_s):
                result = await slot.worker.job(job)
        except TimeoutError:
            self._restart(slot, "time_limit")
            raise TimedOut(limit="compile_seconds", allowed_s=self._sizes.job_s) from None
        except MemoryError:
            self._restart(slot, "memory_limit")
            raise OutOfMemory(allowed=self._sizes.memory_bytes) from None
        except Lost as lost:
            self._restart(slot, "lost")
            if lost.begun:
                raise WorkerLost("the worker process was lost while it compiled this", retry_after_s=1) from None
            raise _NeverBegan from None
        except BaseException:
            self._restart(slot, "lost")
            raise
        self._mean_s += 0.1 * (time.monotonic() - started - self._mean_s)
        if not slot.worker.alive:
            self._restart(slot, "lost")
        elif slot.worker.jobs >= self._sizes.tasks:
            self._renew(slot)
        else:
            self._free(slot)
        return result

    # processes

    def _new(self, slot: Slot[J, R]) -> Worker[J, R]:
        return Worker(self._run, self._sizes.memory_bytes, lambda: self._lost_idle(slot))

    def _lost_idle(self, slot: Slot[J, R]) -> None:
        if slot.state is State.IDLE:  # else whoever is about to give it a job will find out
            self._idle.remove(slot)
            self._restart(slot, "lost")

    def _restart(self, slot: Slot[J, R], reason: str) -> None:
        """Out of service until its next process has answered."""
        self._metrics.worker_restarts.labels(reason).inc()
        self._renew(slot, reason)

    def _renew(self, slot: Slot[J, R], reason: str | None = None) -> None:
        self._turn(slot, State.STARTING)
        if self._closed:
            return
        self._later(self._gone(slot.renew(), slot.number, reason))
        self._later(self._start(slot))

    async def _gone(self, worker: Worker[J, R], number: int, reason: str | None) -> None:
        code = await worker.gone()
        if reason is not None:
            log.warning("a worker was replaced", slot=number, reason=reason, code=code)

    async def _start(self, slot: Slot[J, R]) -> None:
        pause_s = 0.1
        while True:
            try:
                async with asyncio.timeout(self._sizes.start_s):
                    await slot.worker.start()
                break
            except Exception as error:  # a process, its line, the server that forks: whatever it is, it is tried again
                if self._closed:
                    return
                log.error("a worker does not start", slot=slot.number, why=f"{type(error).__name__}: {error}")
                slot.failed_starts += 1
                self._later(self._gone(slot.renew(), slot.number, None))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, 5.0)
        slot.failed_starts = 0
        self._answered.set()
        self._free(slot)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _turn(self, slot: Slot[J, R], state: State) -> None:
        self._states[slot.state].dec()
        self._states[state].inc()
        slot.state = state
