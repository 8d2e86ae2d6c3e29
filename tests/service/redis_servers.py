"""Real Redis servers for tests: one, a cluster, or a master with a replica and Sentinels. On free ports, ended by their own ids."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

PATIENCE_S = 60.0


def free_port() -> int:
    """One that is free now, and whose number plus 10000, which a cluster's servers talk by, exists."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port < 55000:
            return port


class RedisServer:
    """A Redis of a test's own, on a free port, that can be killed and started again."""

    def __init__(self, folder: Path, *more: str, config: str | None = None) -> None:
        """more: options. config: text of a configuration file, which a Sentinel writes to; with it none of our own."""
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("redis-server is not on the PATH: install it, or run the tests by ./run test, which does")
        self.port = free_port()
        own = folder / str(self.port)
        own.mkdir()
        if config is None:
            self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
            self._command += ["--dir", str(own), *more]
        else:
            file = own / "redis.conf"
            file.write_text(f"port {self.port}\nbind 127.0.0.1\ndir {own}\n{config}")
            self._command = [program, str(file), *more]
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                self.ask("PING")
                return process
            except redis.AuthenticationError:
                return process
            except redis.RedisError:
                time.sleep(0.02)
        process.kill()
        pytest.fail(f"redis-server does not answer within {PATIENCE_S:g} s")

    def ask(self, *command: object) -> Any:
        with redis.Redis(port=self.port, socket_timeout=5) as client:
            return client.execute_command(*command)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.process = self._start()


def until(true: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(redis.RedisError):
            if true():
                return
        time.sleep(0.05)
    pytest.fail(f"not within {PATIENCE_S:g} s: {what}")


@contextmanager
def cluster_of(count: int, folder: Path) -> Iterator[list[RedisServer]]:
    """Servers that share the slots among them evenly, and agree on it."""
    with ExitStack() as stack:
        servers: list[RedisServer] = []
        for _ in range(count):
            servers.append(RedisServer(folder, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
            stack.callback(servers[-1].kill)
        bounds = [16384 * i // count for i in range(count + 1)]
        for i, server in enumerate(servers):
            server.ask("CLUSTER", "ADDSLOTSRANGE", bounds[i], bounds[i + 1] - 1)
            server.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            server.ask("CLUSTER", "MEET", "127.0.0.1", servers[0].port)
        for server in servers:
            until(partial(_is_complete, server, count), "the cluster is complete")
        yield servers


def _is_complete(server: RedisServer, count: int) -> bool:
    told = server.ask("CLUSTER", "INFO")
    return b"cluster_state:ok" in told and f"cluster_known_nodes:{count}\r".encode() in told


@contextmanager
def sentinels_over(folder: Path) -> Iterator[tuple[list[RedisServer], list[RedisServer]]]:
    """A master `lathe` and its replica; three Sentinels that find a dead master within about a second."""
    with ExitStack() as stack:

        def started(*more: str, config: str | None = None) -> RedisServer:
            server = RedisServer(folder, *more, config=config)
            stack.callback(server.kill)
            return server

        master = started()
        replica = started("--replicaof", "127.0.0.1", str(master.port))
        watch = (
            f"sentinel monitor lathe 127.0.0.1 {master.port} 2\nsentinel down-after-milliseconds lathe 500\n"
            "sentinel failover-timeout lathe 3000\n"
        )
        watchers = [started("--sentinel", config=watch) for _ in range(3)]
        until(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up", "the replica follows")
        for watcher in watchers:
            until(partial(_knows_all, watcher), "the Sentinels know each other")
        yield [master, replica], watchers


def _knows_all(watcher: RedisServer) -> bool:
    told = watcher.ask("INFO", "sentinel")["master0"]
    return (int(told["slaves"]), int(told["sentinels"])) == (1, 3)
