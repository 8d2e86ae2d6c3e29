"""What tests of the service share: a real Redis, names and values to keep, and the one event loop library they run on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.service.fake import Running, running
from tests.service.redis_servers import RedisServer, cluster_of

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


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of three."""
    with cluster_of(3, tmp_path_factory.mktemp("cluster")) as servers:
        yield f"redis+cluster://127.0.0.1:{servers[0].port},127.0.0.1:{servers[1].port}"


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
