"""Several services over one store, as processes that can be ended and replaced; and kernels enough to keep them busy."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bench.processes import Server, running
from core import Request, compile_kernel
from service.origin import dumped

SERVE = ("service", "serve")


class Replicas:
    """Services with the same settings. `servers`: those that are to answer now."""

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self._folder = folder
        self._settings = {"host": "127.0.0.1", "port": 0, "devices": "none", "access_log": "false", **settings}
        self._made = 0
        self._stack = ExitStack()
        self.servers: list[Server] = []

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self) -> Server:
        """Another one, once it is ready."""
        self._made += 1
        server = self._stack.enter_context(running(SERVE, self._settings, self._folder / f"replica-{self._made}.log"))
        self.servers.append(server)
        return server

    def end(self, server: Server, number: signal.Signals) -> None:
        """Sends a signal that ends it. It counts as gone at once."""
        self.servers.remove(server)
        server.process.send_signal(number)


@contextmanager
def replicas_running(count: int, folder: Path, settings: Mapping[str, object]) -> Iterator[Replicas]:
    """So many of them, ended in the end whatever happened."""
    with Replicas(folder, settings) as replicas:
        for _ in range(count):
            replicas.add()
        yield replicas


def workers_of(server: Server) -> list[int]:
    """The ids of the processes that compile: they are forked from a server that is a child of the service."""
    return [worker for child in _children(server.process.pid) if b"forkserver" in _command(child) for worker in _children(child)]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def rss_kib(pid: int) -> int:
    """Resident memory of a process; 0 where it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return 0


def descriptors(pid: int) -> int:
    """Open file descriptors of a process; 0 where it has ended."""
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def body_of(number: int) -> bytes:
    """The request for kernel `number`: each is another program, of one of a few forms."""
    rows, columns = 4 + number % 13, 8 + number // 13 % 29
    view = {"shape": [rows, columns], "strides": [columns, 1], "offset": 0}
    nodes: list[dict[str, object]] = [
        {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [view]},
        {"op": "CONST", "value": number, "dtype": "float32", "views": [{"shape": [rows, columns], "strides": [0, 0], "offset": 0}]},
        {"op": "MUL", "src": [0, 1]},
    ]
    kept = {"shape": [rows, columns], "strides": [columns, 1], "offset": 0}
    if number % 3 == 0:
        nodes.append({"op": "REDUCE_SUM", "src": [2], "axes": [1]})
        kept = {"shape": [rows, 1], "strides": [1, 0], "offset": 0}
    nodes.append({"op": "STORE", "buffer": 0, "dtype": "float32", "views": [kept], "src": [len(nodes) - 1]})
    ast = {"version": 1, "variables": [], "nodes": nodes, "outputs": [len(nodes) - 1]}
    return json.dumps({"ast": ast, "device": {"target": "opencl"}}).encode()


def program_of(number: int) -> bytes:
    """What a service has to answer to `body_of(number)`."""
    return dumped(compile_kernel(Request.from_json(json.loads(body_of(number)))).to_json())
