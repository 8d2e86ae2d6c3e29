"""The shortest way there is: a `GET` of a program that is held ready, answered by the connection that it came on.

It is allowed, answered, counted and logged as by the front, in the same words, and costs less than a server that does nothing needs to
call an application. Whatever is not as plain as that goes on to the front.
"""

from __future__ import annotations

import time

from core import LatheError
from service.api.bodies import JSON, takes_kind
from service.codings import chosen
from service.logs import request_id, trace_id
from service.services import Services
from service.store.keys import Key

PROGRAM = b"/program/"
URL_BYTES = len(PROGRAM) + 64
# Headers that ask for more than the whole program, or bring something along.
NOT_PLAIN = frozenset((b"if-none-match", b"content-length", b"transfer-encoding", b"expect", b"upgrade"))

Headers = list[tuple[bytes, bytes]]


class Hot:
    """Answers for a connection, from what this process holds ready."""

    def __init__(self, services: Services) -> None:
        self._catalog = services.catalog
        self._access = services.access
        self._log = services.access_log
        self._use = services.flow.use
        self._count = services.metrics.http.series("/program/{key}", "GET", 200)
        self._traced = services.tracing is not None
        self._public = services.access.reads_are_public
        self._defaults: Headers | None = None
        self._start = b""

    def answer(self, url: bytes, headers: Headers, address: str, defaults: Headers) -> bytes | None:
        """The whole answer to a GET, as it goes over the wire; None where somebody else has to give it.

        defaults: the headers that the web server adds to every answer.
        """
        if len(url) != URL_BYTES or not url.startswith(PROGRAM) or self._traced:
            return None
        started = time.perf_counter()
        key = Key(url[len(PROGRAM) :].decode("latin-1"))
        found = self._catalog.held_ready(key)
        sent = dict(headers)
        if found is None or not NOT_PLAIN.isdisjoint(sent):
            return None
        accept = sent.get(b"accept")
        if accept is not None and accept != b"*/*" and not takes_kind(accept.decode("latin-1"), JSON):
            return None
        if not self._access.open:
            try:
                address = self._access.admit(sent.get(b"authorization"), address, "/program/").name
            except LatheError:
                return None  # the front has the words for it
        self._catalog.count_ready()
        self._use.count(key)
        if defaults is not self._defaults:  # uvicorn makes a new list every second, for the date
            self._defaults = defaults
            self._start = b"HTTP/1.1 200 OK\r\n" + b"".join(b"%b: %b\r\n" % pair for pair in defaults)
        named = request_id(sent.get(b"x-request-id"))
        head, body = found.whole(chosen(sent.get(b"accept-encoding", b"")), self._public)
        seconds = time.perf_counter() - started
        self._count.add(seconds)
        if self._log.enabled:
            self._log.line(
                method="GET", path=f"/program/{key}", status=200, seconds=seconds, request_id=named,
                trace_id=trace_id(sent.get(b"traceparent")), client=address, key=key, result="hit", size=len(body),
            )  # fmt: skip
        return b"%b%bx-request-id: %b\r\n\r\n%b" % (self._start, head, named.encode(), body)
