"""A Redis of our own for a while: on a free port of 127.0.0.1, nothing kept on disk."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import START_S, ServerTrouble


@dataclass(slots=True)
class RedisServer:
    """port: on 127.0.0.1. It may be killed and started again. more: options of its command line."""

    folder: Path
    more: Sequence[str] = ()
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Returns once it answers. Raises ServerTrouble where there is none to start, or it does not."""
        program = shutil.which("redis-server")
        if program is None:
            raise ServerTrouble("redis-server is not on the PATH")
        if not self.port:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = int(probe.getsockname()[1])
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        self.process = subprocess.Popen([*command, *self.more], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            with suppress(OSError):
                if self.ask("PING").startswith(b"+PONG"):
                    return
            time.sleep(0.02)
        raise ServerTrouble("redis-server does not start")

    def ask(self, *words: str) -> bytes:
        """What it answers to a command, as it came, up to 64 KiB."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as raw:
            raw.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w.encode()), w.encode()) for w in words))
            return raw.recv(1 << 16)

    def kill(self) -> None:
        """Ends it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def redis_running(folder: Path, *more: str) -> Iterator[RedisServer]:
    """A Redis, ended in the end whatever happened."""
    server = RedisServer(folder, more)
    try:
        server.start()
        yield server
    finally:
        server.kill()
