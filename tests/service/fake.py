"""Compilers for tests of the service. Of the fake one, requests say what is to happen to them: `{"kernel": 7}` is simply compiled.

`do` names something else: see `run` in `fake_task`. What the service does with outcomes is real; only the compiling is not.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

import service.asking
import service.workers.task
from core import Limits, WireError, read_json
from service.answer import Answer
from service.app import build_app
from service.asking import Asked
from service.binaries.binary import Recipe
from service.binaries.toolchain import Toolchain
from service.flight.leases import Leases
from service.front import Front
from service.metrics import Metrics
from service.services import Services
from service.settings import Settings
from service.store.keys import Key
from service.store.memory import MemoryStore
from service.store.store import Store
from service.workers.job import Job, Outcome
from service.workers.pool import Pool
from tests.service.fake_task import run

Json = dict[str, Any]


def key_of(body: Json) -> Key:
    """The key of a request of this compiler: what is asked for beside compiling does not count, nor the AST that is kept with it."""
    counted = {name: value for name, value in body.items() if name not in ("ast", "require", "tuned")}
    return Key(hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest())


def asked_in(body: bytes) -> Asked:
    value = read_json(body)
    if not isinstance(value, dict) or "kernel" not in value:
        raise WireError("/kernel", expected="a number", got=value)
    return Asked(key_of(value), "c", body, body, bool(value.get("tuned", False)), value.get("require"))


class FakeCompiler:
    """Compiles in this process, at once or when `gate` is set; counts what it does."""

    run = staticmethod(run)

    def __init__(self) -> None:
        self.toolchain = Toolchain()
        self.compiled: list[Key] = []
        self.explained: list[Key] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answering = True
        self.draining = False
        self.raises: Exception | None = None

    async def read(self, body: bytes) -> Asked:
        return asked_in(body)

    async def compile(self, asked: Asked, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        self.compiled.append(asked.key)
        return await self._worked(Job(asked.job, Limits(), asked.key))

    async def explain(self, asked: Asked, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        self.explained.append(asked.key)
        return await self._worked(Job(asked.job, Limits(), asked.key, explained=True))

    async def build(self, answer: Answer, recipe: Recipe, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        raise AssertionError("nothing is installed here")

    def attach(self, target: str, device: str, driver: str, choice: tuple[int, int]) -> None:
        return None

    async def _worked(self, job: Job) -> tuple[Outcome, float]:
        await self.gate.wait()
        if self.raises is not None:
            raise self.raises
        return self.run(job), 0.001

    async def start(self) -> None:
        return None

    @property
    def answers(self) -> bool:
        return self.answering

    def update(self) -> None:
        return None

    async def drain(self) -> None:
        self.draining = True

    async def close(self) -> None:
        return None


class RealCompiler(FakeCompiler):
    """Compiles for real, in this process."""

    run = staticmethod(service.workers.task.run)

    async def read(self, body: bytes) -> Asked:
        return service.asking.asked_in(body, Limits(), self.toolchain)


class FakePool:
    """The same compiler in the processes of a real pool."""

    def __init__(self, pool: Pool[Job, Outcome]) -> None:
        self._pool = pool
        self.toolchain = Toolchain()

    async def read(self, body: bytes) -> Asked:
        return asked_in(body)

    async def compile(self, asked: Asked, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        return await self._pool.job(Job(asked.job, Limits(), asked.key), wanted)

    async def build(self, answer: Answer, recipe: Recipe, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        raise AssertionError("nothing is installed here")

    def attach(self, target: str, device: str, driver: str, choice: tuple[int, int]) -> None:
        return None

    async def explain(self, asked: Asked, wanted: Callable[[], bool]) -> tuple[Outcome, float]:
        return await self._pool.job(Job(asked.job, Limits(), asked.key, explained=True), wanted)

    async def start(self) -> None:
        await self._pool.start()

    @property
    def answers(self) -> bool:
        return self._pool.answers

    def update(self) -> None:
        self._pool.update()

    async def drain(self) -> None:
        await self._pool.drain()

    async def close(self) -> None:
        await self._pool.close()


def settings(**values: Any) -> Settings:
    """Settings for a test: memory for a store, little of everything."""
    return Settings(**{"store": "memory://", "workers": 1, "access_log": False, **values})


class Running:
    """A service in this process, and a client of it."""

    def __init__(self, front: Front, services: Services, compiler: FakeCompiler, client: httpx.AsyncClient) -> None:
        self.front = front
        self.services = services
        self.compiler = compiler
        self.client = client

    async def compile(self, body: Json, **headers: str) -> httpx.Response:
        return await self.client.post("/compile", json=body, headers=headers)

    def metric(self, name: str, **labels: str) -> float:
        return self.services.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def running(
    store: Store | None = None, compiler: FakeCompiler | None = None, leases: Leases | None = None, **values: Any
) -> AsyncIterator[Running]:
    """A service with the fake compiler (or another) in this process, started and in the end drained."""
    compiler = compiler or FakeCompiler()
    front, services = build_app(settings(**values), store or MemoryStore(1 << 24), compiler, Metrics(), leases=leases)
    transport = httpx.ASGITransport(front, raise_app_exceptions=False)
    async with front.life(), httpx.AsyncClient(transport=transport, base_url="http://lathe") as client:
        try:
            yield Running(front, services, compiler, client)
        finally:
            compiler.gate.set()


class SharedStore(MemoryStore):
    """A store for several services in this process: it stays when one of them ends."""

    async def close(self) -> None:
        return None


def told(response: httpx.Response, status: int, category: str) -> Json:
    """The problem document of a response, after looking at what all of them have."""
    body: Json = response.json()
    assert (status, "application/problem+json") == (response.status_code, response.headers["content-type"])
    assert (status, category) == (body["status"], body["category"])
    assert {"type", "title", "status", "detail", "instance", "category", "request_id"} <= set(body)
    assert response.headers["x-request-id"] == body["request_id"]
    assert response.request.url.path == body["instance"]
    return body


def poll_file(path: Path) -> str | None:
    """What a worker has written, once it has."""
    try:
        return path.read_text() or None
    except FileNotFoundError:
        return None
