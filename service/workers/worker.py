"""One worker process: forked from a server that has the compiler loaded, given one job after another over a socket of its own.

The end of the process is the end of that socket, so it is heard of at once, and concerns nobody else.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import pickle
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Generic, TypeVar, cast
from weakref import WeakSet

from service.workers import task
from service.workers.line import Messages, Said, message

J = TypeVar("J")
R = TypeVar("R")

END_S = 3.0  # longest wait for a killed process to be gone

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["service.__main__", "service.workers.seed"])  # the first: `multiprocessing` runs `lathe` in each process
_STARTER = ThreadPoolExecutor(1, "worker-start")  # starting waits for the forking server; `multiprocessing` promises nothing to threads
_STARTED: WeakSet[Worker[Any, Any]] = WeakSet()


@atexit.register
def _kill_all() -> None:
    """At the end of a service that ended none of them: `multiprocessing` would wait for them for ever."""
    for worker in _STARTED:
        with contextlib.suppress(RuntimeError):  # its loop is closed
            worker.kill()


@dataclass(slots=True)
class Lost(Exception):
    """The process has ended. begun: had it taken the job?"""

    begun: bool


class Worker(asyncio.Protocol, Generic[J, R]):
    """ended: called when the process ends while it has no job to do."""

    def __init__(self, run: Callable[[J], R], memory_bytes: int, ended: Callable[[], None]) -> None:
        self._run = run
        self._memory_bytes = memory_bytes
        self._ended = ended
        self._messages = Messages()
        self._process: Any = None  # the context has a type for it that has no name
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[Any] | None = None
        self._begun = False
        self._killed = False
        self.pid: int | None = None
        self.jobs = 0  # that it has done

    async def start(self) -> None:
        """Returns when it can take a job. Raises Lost, OSError or EOFError where nothing comes of it."""
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        ours, theirs = socket.socketpair()
        _STARTED.add(self)
        process = _FORKS.Process(target=task.serve, args=(theirs, self._run, self._memory_bytes), daemon=True)
        with theirs:
            try:
                await loop.run_in_executor(_STARTER, process.start)
            except BaseException:
                ours.close()  # if there is a process, it ends by that
                raise
        if self._killed:
            ours.close()
            raise Lost(begun=False)
        self._process = process
        ours.setblocking(False)
        await loop.connect_accepted_socket(lambda: self, ours)
        await self._answer
        self._answer = None

    @property
    def alive(self) -> bool:
        """Is there a process, as far as anybody has heard?"""
        return self._transport is not None and not self._transport.is_closing()

    async def job(self, job: J) -> R:
        """What comes of a job. Raises what it raised, or Lost. One at a time; after an exception the process is of no use any more."""
        if self._transport is None or self._transport.is_closing():
            raise Lost(begun=False)
        self._begun = False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(message(Said.JOB, pickle.dumps(job, pickle.HIGHEST_PROTOCOL)))
        result: R = await self._answer
        self._answer = None
        self.jobs += 1
        return result

    def kill(self) -> None:
        """Ends the process at once, whatever it does. Nobody is told."""
        self._killed = True
        self._ended = _unheard
        if self._process is not None and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        if self._transport is not None:
            self._transport.abort()

    async def gone(self) -> int | None:
        """How the killed process has ended (as `Process.exitcode` has it), once it has; None where there was none, or it lingers."""
        process, self._process = self._process, None
        if process is None:
            return None
        await asyncio.to_thread(process.join, END_S)
        code: int | None = process.exitcode
        if code is not None:
            process.close()
        return code

    # the line to it, as asyncio tells of it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # a stream's

    def data_received(self, data: bytes) -> None:
        for said, content in self._messages.fed(data):
            if said is Said.BEGUN:
                self._begun = True
            elif self._answer is not None and not self._answer.done():
                if said is Said.READY:
                    self.pid = int(content)
                    self._answer.set_result(None)
                elif said is Said.MADE:
                    self._answer.set_result(pickle.loads(content))
                else:
                    self._answer.set_exception(pickle.loads(content))

    def connection_lost(self, exc: Exception | None) -> None:
        self.pid = None
        if self._answer is None:
            self._ended()
        elif not self._answer.done():
            self._answer.set_exception(Lost(self._begun))


def _unheard() -> None:
    return None
