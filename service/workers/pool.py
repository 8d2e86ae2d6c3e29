"""Worker processes: each job within a time and a memory limit, a lost worker replaced, the rest undisturbed.

Each slot is a pool of pebble's with one process. So whatever happens to one process (and to the pipe and locks it shares with
its pool) concerns one job; and who waits, how long, and what a slot does is known here. A slot whose pool is broken gets
another.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures.process import BrokenProcessPool
from typing import Generic, TypeVar

from pebble import ProcessExpired

from service.caller import CALLER
from service.errors import Draining, OutOfMemory, OverQuota, QueueFull, TimedOut, WorkerLost
from service.flight.local import Abandoned
from service.logs import logger
from service.metrics import Metrics
from service.workers import task
from service.workers.queue import FairQueue
from service.workers.slot import Sizes, Slot, State, end, pids_of

J = TypeVar("J")
R = TypeVar("R")

log = logger("workers")

BEGIN_S = 10.0  # an idle worker begins a job within milliseconds; later, its process is gone and the job with it
GRACE_S = 5.0  # past a time limit, for the kill itself; then the slot is given up
CLOSE_S = 3.0  # longest wait for a pool's threads at the end
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
        self._slots = [Slot(number, sizes) for number in range(sizes.workers)]
        self._idle: deque[Slot] = deque()
        self._queue: FairQueue[asyncio.Future[Slot]] = FairQueue()
        self._starts: set[asyncio.Task[None]] = set()
        self._draining = False
        self._mean_s = 0.1  # of a job, smoothed: how long a queue will take
        self._answered = asyncio.Event()
        self._show_states()

    async def start(self) -> None:
        """Starts the processes; returns at once, `answers` tells when one is there."""
        for slot in self._slots:
            self._warm(slot)

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
        return [pid for slot in self._slots for pid in pids_of(slot.pool)]

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
        self._draining = True
        for start in self._starts:
            start.cancel()
        ends = [end(slot.pool) for slot in self._slots]
        for thread in ends:
            await asyncio.to_thread(thread.join, CLOSE_S)

    def update(self) -> None:
        """Brings the gauges up to date, and replaces idle slots that are of no use any more."""
        self._metrics.queue_depth.set(self.waiting)
        oldest = self._queue.oldest()
        self._metrics.queue_oldest_seconds.set(0.0 if oldest is None else time.monotonic() - oldest)
        for slot in list(self._idle):
            if not slot.pool.active:
                self._idle.remove(slot)
                self._restart(slot, "lost")

    # a slot for a job

    async def _take(self) -> Slot:
        while self._idle:
            slot = self._idle.popleft()
            if slot.pool.active:
                self._turn(slot, State.BUSY)
                return slot
            self._restart(slot, "lost")
        client = CALLER.get().name
        self._check_room(client)
        future: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
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

    def _free(self, slot: Slot) -> None:
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

    async def _on(self, slot: Slot, job: J) -> R:
        """Runs the job on the slot and gives the slot back, shielded: the caller may stop waiting, the work goes on."""
        work = asyncio.ensure_future(self._run_on(slot, job))
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, whoever is left to hear it
        return await asyncio.shield(work)

    async def _run_on(self, slot: Slot, job: J) -> R:
        started = time.monotonic()
        try:
            future = slot.pool.schedule(self._run, args=[job], timeout=self._sizes.job_s)
            ending = asyncio.wrap_future(future)
            async with asyncio.timeout(self._sizes.job_s + self._sizes.start_s + GRACE_S):
                done, _ = await asyncio.wait([ending], timeout=BEGIN_S)
                if not done and not future.running():  # a process killed as it took the job: pebble waits for it for ever
                    raise RuntimeError("the job did not begin")
                result = await ending
        except TimeoutError as error:
            stopped = bool(error.args)  # pebble's own says "Task timeout" and has killed; ours has no words
            self._restart(slot, "time_limit" if stopped else "stuck", renew=not stopped)
            raise TimedOut(limit="compile_seconds", allowed_s=self._sizes.job_s) from None
        except MemoryError:
            self._restart(slot, "memory_limit")
            raise OutOfMemory(allowed=self._sizes.memory_bytes) from None
        except ProcessExpired as error:
            log.warning("worker lost", slot=slot.number, code=error.exitcode)
            self._restart(slot, "lost", renew=False)  # pebble starts the next process by itself
            raise WorkerLost("the worker process was lost while it compiled this", retry_after_s=1) from None
        except (BrokenProcessPool, FutureCancelled, RuntimeError, OSError) as error:
            log.warning("worker lost before it began", slot=slot.number, why=str(error))
            self._restart(slot, "lost")
            raise _NeverBegan from None
        except BaseException:
            self._restart(slot, "lost")
            raise
        self._mean_s += 0.1 * (time.monotonic() - started - self._mean_s)
        self._free(slot)
        return result

    # processes

    def _restart(self, slot: Slot, reason: str, renew: bool = True) -> None:
        """Out of service until its next process has answered. renew: with a pool of its own, not only a process."""
        self._metrics.worker_restarts.labels(reason).inc()
        self._turn(slot, State.STARTING)
        if renew:
            slot.renew()
        self._warm(slot)

    def _warm(self, slot: Slot) -> None:
        start = asyncio.ensure_future(self._start(slot))
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)

    async def _start(self, slot: Slot) -> None:
        pause_s = 0.1
        while True:
            try:
                future = slot.pool.schedule(task.warm, timeout=self._sizes.start_s)
                async with asyncio.timeout(self._sizes.start_s + GRACE_S):
                    await asyncio.wrap_future(future)
                break
            except (TimeoutError, ProcessExpired, BrokenProcessPool, FutureCancelled, RuntimeError, OSError) as error:
                log.error("a worker does not start", slot=slot.number, why=f"{type(error).__name__}: {error}")
                slot.failed_starts += 1
                slot.renew()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, 5.0)
        slot.failed_starts = 0
        self._answered.set()
        self._free(slot)

    def _turn(self, slot: Slot, state: State) -> None:
        slot.state = state
        self._show_states()

    def _show_states(self) -> None:
        for state in State:
            self._metrics.workers.labels(state).set(sum(slot.state is state for slot in self._slots))
