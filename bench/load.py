"""A client that asks for one thing, over and over, on a few connections, a counted number of times.

As little as it can be, since it shares the machine with the server: an answer is over when as many bytes came as its head and
the known body have, and has to end with that body.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import cast

from bench.processes import Server, ServerTrouble
from bench.report import quantile

HEAD_END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 "


@dataclass(frozen=True, slots=True)
class Loaded:
    """per_second: answers, by the clock on the wall. cpu_us: the server's CPU microseconds per answer. p99_of_median: how long the slowest
    answers but one in a hundred took, in median times."""

    per_second: float
    cpu_us: float
    p99_of_median: float


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if method == "POST":
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class _Work:
    """What the connections share: what is left to send, and what is still to come."""

    def __init__(self, sent: bytes, body: bytes, count: int) -> None:
        self.sent = sent
        self.body = body
        self.unsent = count
        self.unanswered = count
        self.seconds: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(ServerTrouble(why))


class _Connection(asyncio.Protocol):
    def __init__(self, work: _Work) -> None:
        self._work = work
        self._came = b""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # a stream's: the only kind a TCP connection has

    def connection_lost(self, exc: Exception | None) -> None:
        self._work.fail(f"the server closed a connection: {exc}")

    def send(self) -> None:
        if self._work.unsent:
            self._work.unsent -= 1
            self._sent_at = time.perf_counter()
            self._transport.write(self._work.sent)

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        work = self._work
        came = self._came = self._came + data if self._came else data
        head = came.find(HEAD_END)
        if head < 0 or len(came) < head + len(HEAD_END) + len(work.body):
            if not came.startswith(OK[: len(came)]):
                work.fail(f"not the answer that was expected: {came[:200]!r}")
            return
        if not (came.startswith(OK) and came.endswith(work.body) and len(came) == head + len(HEAD_END) + len(work.body)):
            work.fail(f"not the answer that was expected: {came[:200]!r}")
            return
        self._came = b""
        work.seconds.append(time.perf_counter() - self._sent_at)
        work.unanswered -= 1
        if work.unsent:
            self.send()
        elif not work.unanswered and not work.done.done():
            work.done.set_result(None)


async def load(server: Server, sent: bytes, body: bytes, count: int, connections: int, timeout_s: float) -> Loaded:
    """Asks `count` times. body: what each answer ends with. Raises ServerTrouble for another, and after `timeout_s`."""
    work = _Work(sent, body, count)
    loop = asyncio.get_running_loop()
    opened = [
        (await loop.create_connection(lambda: _Connection(work), "127.0.0.1", server.port))[1] for _ in range(min(connections, count))
    ]
    try:
        cpu, begun = server.cpu_ns(), time.perf_counter()
        for connection in opened:
            connection.send()
        async with asyncio.timeout(timeout_s):
            await work.done
        seconds, used = time.perf_counter() - begun, server.cpu_ns() - cpu
    except TimeoutError:
        raise ServerTrouble(f"{work.unanswered} of {count} answers are missing after {timeout_s:g} s") from None
    finally:
        for connection in opened:
            connection.close()
    return Loaded(count / seconds, used / 1000 / count, quantile(work.seconds, 0.99) / quantile(work.seconds, 0.5))
