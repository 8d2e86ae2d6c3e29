"""One worker process at a time, by way of a pebble pool of one; and how such a pool is ended.

Whatever happens to a process, and to the pipe and the locks that it shares with its pool, concerns this slot alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing import get_context

from pebble import CONSTS, ProcessPool

from service.workers import task

CONSTS.term_timeout = 0.05  # between SIGTERM, which workers ignore, and SIGKILL
CONSTS.sleep_unit = 0.05  # how often pebble looks at its processes; a time limit is kept this exactly


class State(StrEnum):
    """What a slot is doing."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many workers, and what one may take. Times in seconds."""

    workers: int
    tasks: int = 500
    memory_bytes: int = 2 << 30
    start_s: float = 60.0
    job_s: float = 30.0
    queue: int = 512
    client_queue: int = 256
    queue_s: float = 60.0


class Slot:
    """One process at a time, by way of a pebble pool of one."""

    def __init__(self, number: int, sizes: Sizes) -> None:
        self.number = number
        self.state = State.STARTING
        self.failed_starts = 0  # since a process of this slot last answered
        self._sizes = sizes
        self.pool = self._new()

    def _new(self) -> ProcessPool:
        return ProcessPool(
            max_workers=1,
            max_tasks=self._sizes.tasks,
            initializer=task.begin,
            initargs=(self._sizes.memory_bytes,),
            context=get_context("spawn"),
        )

    def renew(self) -> None:
        """Another pool in place of one that is of no use; its process is killed."""
        end(self.pool)
        self.pool = self._new()


def pids_of(pool: ProcessPool) -> list[int]:
    """The process ids of a pebble pool. (It has no name for them of its own in version 5.)"""
    return list(pool._pool_manager.worker_manager.workers)


def end(pool: ProcessPool) -> threading.Thread:
    """Ends a pool: its process at once, its threads and pipes soon, in the thread that is returned."""
    for pid in pids_of(pool):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    thread = threading.Thread(target=_join, args=(pool,), name="pool-end", daemon=True)
    thread.start()
    return thread


def _join(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]  # pebble has types for the rest
    with contextlib.suppress(RuntimeError, OSError, AttributeError):  # the last: pebble's, for a pool that ends twice
        pool.join()
