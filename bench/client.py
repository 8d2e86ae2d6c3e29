"""A client of several servers that offer the same: it spreads requests over them, as a proxy in front of them does.

Small on purpose, since it shares the machine with the servers: HTTP/1.1 over connections that are kept, bodies by their length.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

ROUNDS = 20  # how often all servers are tried for one request, before it counts as lost
PAUSE_S = 0.1  # between two rounds


@dataclass(frozen=True, slots=True)
class Answer:
    """headers: names in lower case. port: whose it is."""

    status: int
    headers: dict[str, str]
    body: bytes
    port: int


class Lost(Exception):
    """No server answered a request."""


class Balanced:
    """Servers on ports of 127.0.0.1, which may be changed at any time.

    A request whose connection breaks before the answer is whole is sent again, to the next server: every call here may be.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = list(ports)
        self.resent = 0
        self._turns = itertools.count()
        self._idle: dict[int, list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = {}

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """The answer of the server whose turn it is, or the next one that gives one. Raises Lost where none does."""
        first = next(self._turns)
        for round_ in range(ROUNDS):
            for step in range(len(self.ports)):
                try:
                    return await self._asked(self.ports[(first + step) % len(self.ports)], method, path, body)
                except (OSError, EOFError, ValueError):
                    self.resent += 1
            await asyncio.sleep(PAUSE_S * (round_ + 1))
        raise Lost(f"{method} {path}")

    async def _asked(self, port: int, method: str, path: str, body: bytes) -> Answer:
        idle = self._idle.setdefault(port, [])
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        kept = False
        try:
            head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:-2])}
            content = await reader.readexactly(int(headers.get("content-length", "0")))
            kept = headers.get("connection", "").lower() != "close"
            return Answer(int(lines[0].split(" ", 2)[1]), headers, content, port)
        finally:
            if kept:
                idle.append((reader, writer))
            else:
                cast(asyncio.Transport, writer.transport).abort()

    def close(self) -> None:
        """Ends all connections."""
        for idle in self._idle.values():
            for _, writer in idle:
                cast(asyncio.Transport, writer.transport).abort()
        self._idle.clear()
