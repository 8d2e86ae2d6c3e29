"""Structured logs: one JSON object a line on standard output, with the ids of the request and its trace on each."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import sys
import time

import structlog

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_TRACEPARENT = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")

GATHERED = 128  # lines of the access log that are written at once
GATHERED_S = 0.05  # longest time a line waits for others

_PROCESS = os.urandom(6).hex()
_COUNT = itertools.count(1)


def configure(level: str = "info") -> None:
    """Sends every log of this process, the libraries' included, through one JSON formatter to standard output."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _without_colour,
                structlog.processors.format_exc_info,
                structlog.processors.EventRenamer("message"),
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # what it says of its own life we say ourselves


def _without_colour(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    event.pop("color_message", None)
    return event


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of one part of the service."""
    made: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return made


def request_id(sent: bytes | None) -> str:
    """The client's own id of a request, where it sent a sane one, else a new one (unique per process and request)."""
    if sent is not None and _REQUEST_ID.fullmatch(sent):
        return sent.decode("ascii")
    return f"{_PROCESS}-{next(_COUNT):x}"


def trace_id(traceparent: bytes | None) -> str | None:
    """The trace a request belongs to (W3C Trace Context, version 00), or None."""
    found = None if traceparent is None else _TRACEPARENT.fullmatch(traceparent)
    return None if found is None or found[1] == b"0" * 32 else found[1].decode("ascii")


class AccessLog:
    """One line per request, written without the machinery of `logging`: it is on the path of every hit.

    Lines are gathered for a moment and written together; `flush` writes what there is.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self._lines: list[str] = []
        self._second = 0
        self._stamp = ""

    def line(
        self,
        *,
        method: str,
        path: str,
        status: int,
        seconds: float,
        request_id: str,
        trace_id: str | None,
        client: str,
        key: str | None,
        result: str | None,
        size: int,
    ) -> None:
        """Notes the line of one request. What comes from the client is written as a JSON string, whatever is in it."""
        if not self.enabled:
            return
        now = time.time()
        more = "" if key is None else f', "key": "{key}"'
        if result is not None:
            more += f', "result": "{result}"'
        if trace_id is not None:
            more += f', "trace_id": "{trace_id}"'
        self._lines.append(
            f'{{"message": "request", "level": "info", "logger": "access", "time": "{self._time(now)}", "method": {_quoted(method)}, '
            f'"path": {_quoted(path[:200])}, "status": {status}, "ms": {seconds * 1000:.3f}, "bytes": {size}, '
            f'"request_id": "{request_id}", "client": {_quoted(client)}{more}}}\n'
        )
        if len(self._lines) == 1:
            self._soon()
        elif len(self._lines) >= GATHERED:
            self.flush()

    def flush(self) -> None:
        """Writes the lines there are."""
        if self._lines:
            text = "".join(self._lines)
            self._lines.clear()
            sys.stdout.write(text)
            sys.stdout.flush()

    def _soon(self) -> None:
        try:
            asyncio.get_running_loop().call_later(GATHERED_S, self.flush)
        except RuntimeError:  # no loop runs
            self.flush()

    def _time(self, now: float) -> str:
        second = int(now)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int((now - second) * 1e6):06d}Z"


_quoted = json.encoder.encode_basestring_ascii  # the JSON string of a text
