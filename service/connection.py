"""One connection of a client, and what it may cost: uvicorn's protocol with bounds of its own.

uvicorn waits for ever for a request's head, keeps one of any size, and waits for ever for a client that reads no more. So does none here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from core import LatheError
from service.errors import PROBLEM_JSON, HttpRefused, QueueFull, problem
from service.logs import request_id


@dataclass(frozen=True, slots=True)
class Bounds:
    """head_bytes: of a request line and its headers. head_s: longest time these may take. stall_s: longest time in which a client makes no
    room for more of an answer. connections: most at once."""

    head_bytes: int
    head_s: float
    stall_s: float
    connections: int


# The whole answer to a GET: its URL, its headers, the client's address, what goes with every answer. None: the application has to be asked.
AtOnce = Callable[[bytes, list[tuple[bytes, bytes]], str, list[tuple[bytes, bytes]]], bytes | None]


class Config(uvicorn.Config):
    """uvicorn's, with the bounds of connections, and what can be answered without the application.

    trusted_proxies: addresses and networks whose `X-Forwarded-For` is believed, with commas between.
    """

    def __init__(self, app: Any, bounds: Bounds, at_once: AtOnce | None = None, trusted_proxies: str = "", **more: Any) -> None:
        super().__init__(app, http=Connection, proxy_headers=False, **more)
        self.bounds = bounds
        self.at_once = at_once
        self.proxies = ProxyHeadersMiddleware(app, trusted_proxies).trusted_hosts  # the connection asks it, for all ways of a request


class Connection(HttpToolsProtocol):
    """Every method here is one of the protocol or of the parser, called by them."""

    config: Config
    _bounds: Bounds
    _head: int | None  # bytes of the head that is being read; None between a head and the next request
    _head_timer: asyncio.TimerHandle | None = None
    _is_answered = False  # the request that is being read, at once
    _stall_timer: asyncio.TimerHandle | None = None
    _is_proxied = False  # does it come from a proxy that is believed?

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._bounds = self.config.bounds
        self._is_proxied = self.client is not None and self.client[0] in self.config.proxies
        self._head = 0
        self._head_timer = self.loop.call_later(self._bounds.head_s, self._head_is_late)
        if len(self.connections) > self._bounds.connections:
            self._refuse(QueueFull("too many connections", retry_after_s=1, limit="connections_limit", allowed=self._bounds.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_ended()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        super().data_received(data)
        if self._head is not None:  # there is more of it to come
            if self._head > self._bounds.head_bytes:
                self._refuse(HttpRefused(431, "the head of the request is too large", limit="head_bytes", allowed=self._bounds.head_bytes))
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(self._bounds.head_s, self._head_is_late)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head is None:
            self._head = 0

    def on_headers_complete(self) -> None:
        self._head_ended()
        client = self._named_client() if self._is_proxied else self.client
        answer = self._at_once(client[0] if client else "")
        if answer is None:
            self.scope["client"] = client
            super().on_headers_complete()
            return
        self._is_answered = True
        self.transport.write(answer)

    def on_message_complete(self) -> None:
        if not self._is_answered:
            super().on_message_complete()
            return
        self._is_answered = False
        self.on_response_complete()

    def _named_client(self) -> tuple[str, int] | None:
        """Whose request it is, by a proxy's word: the last address in `X-Forwarded-For` that is not a believed proxy's own."""
        named = b",".join(value for name, value in self.headers if name == b"x-forwarded-for")
        if not named:
            return self.client
        client = self.config.proxies.get_trusted_client_address(named.decode("latin-1"))
        return client if client[0] else self.client

    def _at_once(self, client: str) -> bytes | None:
        """The whole answer, where there is one without the application."""
        parser = self.parser
        if (
            self.config.at_once is None
            or self._answering
            or self.flow.write_paused
            or self.transport.is_closing()
            or parser.get_method() != b"GET"
            or parser.get_http_version() != "1.1"
            or not parser.should_keep_alive()
        ):
            return None
        return self.config.at_once(self.url, self.headers, client, self.server_state.default_headers)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(self._bounds.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    @property
    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _head_ended(self) -> None:
        self._head = None
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._head == 0:  # nothing was asked, so nothing is answered
            self.transport.close()
            return
        self._refuse(HttpRefused(408, "the head of the request did not come in time", limit="head_seconds", allowed=self._bounds.head_s))

    def _refuse(self, error: LatheError) -> None:
        """Answers with a problem and closes; in the middle of another answer on this connection it only closes."""
        if self.transport.is_closing():
            return
        if self._answering:
            self.transport.abort()
            return
        told = problem(error, instance="", request_id=request_id(None))
        lines = [
            f"HTTP/1.1 {told.status} Refused",
            f"content-type: {PROBLEM_JSON}",
            f"content-length: {len(told.body)}",
            "connection: close",
        ]
        lines += [f"{name}: {value}" for name, value in told.headers.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + told.body)
        self.transport.close()
