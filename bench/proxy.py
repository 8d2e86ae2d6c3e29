"""A TCP proxy on 127.0.0.1 that does to what passes through it what networks do: hold it back, or break off."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

CHUNK = 1 << 16


class Proxy:
    """In front of a server's port. delay_s: how long each piece is held back, in both directions."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.delay_s = 0.0
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._met, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def reset(self) -> None:
        """Breaks all connections off."""
        for writer in list(self._open):
            cast(asyncio.Transport, writer.transport).abort()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.reset()

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        there: asyncio.StreamWriter | None = None
        try:
            back, there = await asyncio.open_connection("127.0.0.1", self._target)
            self._open.add(there)
            await asyncio.gather(self._passed(reader, there), self._passed(back, writer))
        except OSError:
            pass
        finally:
            for end in (writer, there):
                if end is not None:
                    self._open.discard(end)
                    cast(asyncio.Transport, end.transport).abort()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(CHUNK):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(piece)
                await writer.drain()
        raise ConnectionResetError  # one direction has ended: so does the other
