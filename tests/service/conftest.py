"""What tests of the service share: a real Redis, names and values to keep, and the one event loop library they run on."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.service.fake import Running, running

REDIS_VARIABLE = "LATHE_TEST_REDIS"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no setting of whoever runs them."""
    for name in list(os.environ):
        if name.startswith("LATHE_") and name != REDIS_VARIABLE:
            monkeypatch.delenv(name)


@pytest.fixture
async def service() -> AsyncIterator[Running]:
    """A service in this process, with the fake compiler."""
    async with running() as started:
        yield started


class RedisServer:
    """A Redis of a test's own, on a free port, that can be killed and started again."""

    def __init__(self, folder: Path, *more: str) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("redis-server is not on the PATH: install it, or run the tests by ./run test, which does")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._command += ["--dir", str(folder), *more]
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                with redis.Redis(port=self.port, socket_timeout=1) as client:
                    client.ping()
                return process
            except redis.RedisError:
                time.sleep(0.02)
        process.kill()
        pytest.fail("redis-server does not answer within 30 s")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.process = self._start()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Redis that tests share: the one they were given, else one of their own."""
    given = os.environ.get(REDIS_VARIABLE)
    if given:
        yield given
        return
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server.url
    server.kill()


@pytest.fixture
def redis_with(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Starts a Redis with options of one's own, for one test."""
    servers: list[RedisServer] = []

    def start(*options: str) -> RedisServer:
        servers.append(RedisServer(tmp_path, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def own_redis(redis_with: Callable[..., RedisServer]) -> RedisServer:
    """A Redis for one test, to be treated badly."""
    return redis_with()
