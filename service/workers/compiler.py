"""The compiler as the service uses it: requests are read here, compiled and explained in worker processes.

Reading is short for ordinary requests and done at once; a large body is read in a thread, so that the event loop turns
meanwhile, and equal bodies that arrive together are read once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from core import Limits
from service.answer import Answer
from service.asking import Asked, asked_in
from service.binaries.binary import Recipe
from service.binaries.scratch import Scratch
from service.binaries.toolchain import Toolchain
from service.errors import CompilerReplaced, QueueFull
from service.flight.local import Flights
from service.workers.job import Build, Failed, Job, Outcome
from service.workers.pool import Pool

READ_AT_ONCE = 8192  # bytes of body; about a millisecond's reading
READINGS_MOST = 64  # large bodies that may be read or wait for it; the largest takes about a second


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one binary may take: the time that any job may, and bytes."""

    seconds: float = 30.0
    most_bytes: int = 16 << 20


class CoreCompiler:
    """`core`, within limits, in the processes of a pool; and device compilers there. find: look for these when it starts."""

    def __init__(self, pool: Pool[Job | Build, Outcome], limits: Limits, bounds: Bounds | None = None, *, find: bool = False) -> None:
        self.toolchain = Toolchain()
        self._pool = pool
        self._limits = limits
        self._bounds = bounds or Bounds()
        self._find = find
        self._scratch = Scratch()
        self._readings: Flights[Asked] = Flights()
        self._replaced = False  # the compiler's files have changed under this process: it is of no use any more

    async def read(self, body: bytes) -> Asked:
        if len(body) <= READ_AT_ONCE:
            return asked_in(body, self._limits, self.toolchain)
        digest = hashlib.blake2b(body, digest_size=32).digest()
        if digest not in self._readings and len(self._readings) >= READINGS_MOST:
            raise QueueFull("too many large bodies are being read", retry_after_s=2)
        asked, _ = await self._readings.run(digest, lambda _: asyncio.to_thread(asked_in, body, self._limits, self.toolchain))
        return asked

    async def compile(self, asked: Asked, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        return await self._worked(Job(asked.job, self._limits, asked.key), wanted)

    async def explain(self, asked: Asked, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        return await self._worked(Job(asked.job, self._limits, asked.key, explained=True), wanted)

    async def build(self, answer: Answer, recipe: Recipe, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        tool = self.toolchain.tool(answer.target, recipe)
        folder = self._scratch.folder()
        try:
            return await self._worked(Build(answer.body, recipe, tool, folder, self._bounds.seconds, self._bounds.most_bytes), wanted)
        finally:
            await asyncio.to_thread(self._scratch.remove, folder)

    async def _worked(self, job: Job | Build, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        outcome, waited_s = await self._pool.job(job, wanted)
        self._replaced = isinstance(outcome, Failed) and isinstance(outcome.error, CompilerReplaced)
        return outcome, waited_s

    async def start(self) -> None:
        await self._pool.start()
        if self._find:
            await asyncio.to_thread(self.toolchain.find, os.environ)

    def attach(self, target: str, device: str, driver: str, choice: tuple[int, int]) -> None:
        if self._find:
            self.toolchain.attach(target, device, driver, choice, os.environ)

    @property
    def answers(self) -> bool:
        return self._pool.answers and not self._replaced

    def update(self) -> None:
        self._pool.update()

    async def drain(self) -> None:
        await self._pool.drain()

    async def close(self) -> None:
        await self._pool.close()
        await asyncio.to_thread(self._scratch.close)
