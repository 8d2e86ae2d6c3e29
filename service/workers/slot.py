"""A place for one worker process at a time, and what such a process may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from service.workers.worker import Worker

J = TypeVar("J")
R = TypeVar("R")


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


class Slot(Generic[J, R]):
    """new: makes the next process for it."""

    def __init__(self, number: int, new: Callable[[Slot[J, R]], Worker[J, R]]) -> None:
        self.number = number
        self.state = State.STARTING
        self.failed_starts = 0  # since a process of this slot last answered
        self._new = new
        self.worker = new(self)

    def renew(self) -> Worker[J, R]:
        """Another process in place of this one, which is killed and returned."""
        old, self.worker = self.worker, self._new(self)
        old.kill()
        return old
