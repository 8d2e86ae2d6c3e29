"""A service in a process of its own, as an operator would run it: started, asked, signalled, waited for."""

from __future__ import annotations

import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0  # generous: nothing here depends on how quick the machine is


def until(true: Callable[[], Any], what: str) -> Any:
    """The first true answer. Fails after a minute."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        answer = true()
        if answer:
            return answer
        time.sleep(0.01)
    raise AssertionError(f"not within {PATIENCE_S:g} s: {what}")


class Service:
    """The process, and a client of it. `lines`: what it has logged so far."""

    def __init__(self, module: list[str], settings: dict[str, object], verify: ssl.SSLContext | None = None) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LATHE_")}
        asked = {"port": 0, "workers": 1, "devices": "none", **settings}
        environment |= {f"LATHE_{name.upper()}": str(value) for name, value in asked.items()}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile every source anew
        environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "lathe-tests-pycache")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self.other: list[str] = []
        self._ports: queue.Queue[int] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = self._port()
        scheme = "http" if verify is None else "https"
        self.client = httpx.Client(base_url=f"{scheme}://127.0.0.1:{self.port}", timeout=PATIENCE_S, verify=verify or True)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            try:
                line = json.loads(text)
            except ValueError:
                self.other.append(text)
                continue
            self.lines.append(line)
            if line.get("message") == "listening on":
                self._ports.put(line["port"])

    def _port(self) -> int:
        def said() -> int | None:
            if self.process.poll() is not None:
                self._reader.join(PATIENCE_S)
                raise AssertionError(f"the service has ended: {self.lines} {''.join(self.other)}")
            return None if self._ports.empty() else self._ports.get()

        return int(until(said, "the service listens"))

    def ready(self) -> Service:
        until(lambda: self.status("/readyz") == 200, "the service is ready")
        return self

    def status(self, path: str) -> int:
        """The status a call gets; 0 where there is no answer."""
        try:
            return self.client.get(path).status_code
        except httpx.HTTPError:
            return 0

    def compile(self, **body: Any) -> httpx.Response:
        return self.client.post("/compile", json=body)

    def metric(self, line: str) -> float:
        """The value of a series, as the exposition spells it; 0 where it is not there."""
        for text in self.client.get("/metrics").text.splitlines():
            if text.startswith(f"{line} "):
                return float(text.rpartition(" ")[2])
        return 0.0

    def logged(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["message"] == message]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit status, once the process has ended and all it logged is read."""
        status = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return status

    def end(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()


@contextmanager
def served(module: list[str], verify: ssl.SSLContext | None = None, **settings: object) -> Iterator[Service]:
    """The service that `python -m module` serves, ready; killed in the end where it still runs."""
    service = Service(module, settings, verify)
    try:
        yield service.ready()
    finally:
        service.client.close()
        if service.process.poll() is None:
            service.process.kill()
        service.wait()
