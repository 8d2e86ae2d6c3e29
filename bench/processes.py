"""Servers in processes of their own: started, found ready, their CPU time read, ended."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTENING = "listening on"  # the message of the line in which a server tells its port
START_S = 60.0
END_S = 20.0
POLL_S = 0.02


class ServerTrouble(Exception):
    """A server does not start, or does not answer as it should."""


@dataclass(frozen=True, slots=True)
class Server:
    """port: on 127.0.0.1."""

    process: subprocess.Popen[bytes]
    port: int

    def cpu_ns(self) -> int:
        """CPU nanoseconds that the server and the processes it started have used."""
        return sum(_cpu_ns(pid) for pid in _family(self.process.pid))


@contextmanager
def running(words: Sequence[str], settings: Mapping[str, object], log: Path) -> Iterator[Server]:
    """`python -m WORDS` with the environment's settings, once `/readyz` says so; ended, in the end, whatever happened.

    log: the file that gets what it prints. Raises ServerTrouble, with that text, where it does not get ready.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LATHE_")}
    environment |= {f"LATHE_{name.upper()}": str(value) for name, value in settings.items()}
    environment["PYTHONPATH"] = str(ROOT)
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-P", "-m", *words], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield Server(process, _ready(process, log))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ready(process: subprocess.Popen[bytes], log: Path) -> int:
    end = time.monotonic() + START_S
    port: int | None = None
    while time.monotonic() < end and process.poll() is None:
        port = port or _port(log)
        if port is not None:
            with suppress(OSError, http.client.HTTPException):
                if ask(port, "GET", "/readyz").status == 200:
                    return port
        time.sleep(POLL_S)
    raise ServerTrouble(f"a server does not start: {log.read_text(errors='replace')[-2000:]}")


def _port(log: Path) -> int | None:
    for line in log.read_bytes().splitlines():
        with suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict) and told.get("message") == LISTENING:
                return int(told["port"])
    return None


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


def ask(port: int, method: str, path: str, body: bytes | None = None) -> Reply:
    """One request, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        connection.request(method, path, body, {} if body is None else {"content-type": "application/json"})
        response = connection.getresponse()
        return Reply(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def _family(pid: int) -> list[int]:
    """A process and all that stem from it."""
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def _cpu_ns(pid: int) -> int:
    """From the scheduler's own count where the kernel keeps one, else from clock ticks, which are a hundredth of a second."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        try:
            return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)
        except FileNotFoundError:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) * 10**9 // os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0  # it has ended meanwhile
