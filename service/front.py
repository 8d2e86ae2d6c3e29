"""The outermost layer: every request gets its id, its line in the log and its count here, and every error its problem document.

It is also a hot path: `GET` and `HEAD` of a stored program, and a `POST /compile` without preferences or codings, are answered here, ahead
of the framework, with the same headers as behind it. (Most `GET`s of a program do not come this far: see `hot`.)
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog
from fastapi import FastAPI

from core import CompilerBug, LatheError
from service.answer import Answer, Headers
from service.api.bodies import BODY, CALL, JSON, received, takes_kind, unless_gone
from service.api.compile import answered, compiled
from service.api.programs import held, served
from service.caller import CALLER, Caller
from service.errors import PROBLEM_JSON, Defect, Problem, Quarantined, problem
from service.flow import Done
from service.logs import logger, request_id, trace_id
from service.services import Services
from service.store.keys import Key

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

log = logger("http")

PROGRAM = "/program/"
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
NOT_PLAIN = frozenset((b"prefer", b"content-encoding"))  # headers of a `POST /compile` that the framework's handler understands
PLAIN_JSON = frozenset((b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8"))


class Call:
    """One request on its way through, and what its line in the log will say."""

    __slots__ = (
        *("scope", "send_on", "started", "method", "path", "headers", "request_id", "trace_id"),
        *("status", "size", "ended", "key", "result", "caller"),
    )

    def __init__(self, scope: Scope, send: Send) -> None:
        self.started = time.perf_counter()
        self.scope = scope
        self.send_on = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.request_id = request_id(self.headers.get(b"x-request-id"))
        self.trace_id = trace_id(self.headers.get(b"traceparent"))
        self.status = 0
        self.size = 0
        self.ended = False
        self.key: str | None = None
        self.result: str | None = None
        self.caller: Caller | None = None  # None: whoever it is, everything is allowed

    @property
    def client(self) -> str:
        """Whose it is: the name of a token, else the address it came from."""
        if self.caller is not None:
            return self.caller.name
        client = self.scope.get("client")
        return client[0] if client else ""

    def takes_json(self) -> bool:
        accept = self.headers.get(b"accept")
        return accept is None or accept == b"*/*" or takes_kind(accept.decode("latin-1"), JSON)

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """Sends a whole answer. `headers` is not changed."""
        self.status = status
        self.size = len(body)
        await self.send_on(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*headers, (b"x-request-id", self.request_id.encode())],
            }
        )
        await self.send_on({"type": "http.response.body", "body": body})

    async def send(self, message: Message) -> None:
        """Passes on what the framework sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.ended = not message.get("more_body", False)
        await self.send_on(message)

    def refused(self, error: LatheError) -> Problem:
        """The problem document of an error, which is noted for the log; a defect of ours has a line there of its own."""
        self.result = error.category
        if isinstance(error, CompilerBug) and not isinstance(error, (Quarantined, Defect)):
            log.error("a defect", error=str(error), facts=error.facts(), request_id=self.request_id)
        return problem(error, instance=self.path, request_id=self.request_id)

    async def fail(self, error: LatheError) -> None:
        """Answers with the problem document of an error."""
        told = self.refused(error)
        headers: Headers = [(b"content-type", PROBLEM_JSON.encode()), (b"content-length", str(len(told.body)).encode())]
        headers += [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in told.headers.items()]
        await self.answer(told.status, headers, b"" if self.method == "HEAD" else told.body)


class Seen:
    """Bodies that were answered before: the digest of what was sent leads to the key. Bounded; the oldest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: OrderedDict[bytes, Key] = OrderedDict()

    def key(self, digest: bytes) -> Key | None:
        found = self._keys.get(digest)
        if found is not None:
            self._keys.move_to_end(digest)
        return found

    def add(self, digest: bytes, key: Key) -> None:
        self._keys[digest] = key
        if len(self._keys) > self._most:
            self._keys.popitem(last=False)


class Front:
    """The ASGI application around the framework's."""

    def __init__(self, app: FastAPI, services: Services) -> None:
        self._app = app
        self._services = services
        self._seen = Seen(services.settings.seen_bodies)
        self._access = services.access
        self._tracing = services.tracing

    def life(self) -> AbstractAsyncContextManager[object]:
        """The app's life, for whoever serves it without a server: start on entering, drain and end on leaving."""
        return self._app.router.lifespan_context(self._app)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description of the app."""
        return self._app.openapi()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = Call(scope, send)
        route: str | None = None
        begun = None if self._tracing is None else self._tracing.begin(call.method, call.headers)
        if begun is not None:
            call.trace_id = begun.trace_id
        try:
            if not self._access.open:
                call.caller = self._access.admit(call.headers.get(b"authorization"), call.client, call.path)
            if call.path == "/compile" and call.method == "POST":
                route = "/compile"
                await self._compile(call, receive)
            elif len(call.path) == 73 and call.path.startswith(PROGRAM) and call.method in ("GET", "HEAD"):
                route = "/program/{key}"
                await self._program(call, receive)
            else:
                await self._behind(call, receive)
        except LatheError as error:
            await call.fail(error)
        except Exception as error:  # a defect of ours; the client learns no more than that
            log.error("a defect", error=repr(error), trace=traceback.format_exc(), request_id=call.request_id)
            if call.status and not call.ended:
                raise  # half an answer is out: the connection must break, so that nobody takes it for a whole one
            if not call.status:
                await call.fail(Defect())
        finally:
            self._account(call, route or _route(scope))
            if begun is not None and self._tracing is not None:
                facts = {"key": call.key, "result": call.result, "request_id": call.request_id}
                self._tracing.end(begun, call.method, route or _route(scope), call.status, facts)

    async def _program(self, call: Call, receive: Receive) -> None:
        if not call.takes_json():
            await self._behind(call, receive)
            return
        key = call.path[len(PROGRAM) :]
        answer = self._services.catalog.ready(Key(key)) or await held(self._services.catalog, key)
        self._services.flow.use.count(answer.key)
        call.key, call.result = key, "hit"
        await call.answer(*served(answer, call.method, call.headers, self._access.reads_are_public))

    async def _compile(self, call: Call, receive: Receive) -> None:
        settings = self._services.settings
        length = call.headers.get(b"content-length")
        body = await received(receive, None if length is None else length.decode("latin-1"), settings.body_bytes, settings.body_seconds)
        digest = hashlib.blake2b(body, digest_size=16, person=call.headers.get(b"content-encoding", b"")[:16]).digest()
        plain = call.headers.get(b"content-type", b"application/json").lower() in PLAIN_JSON and call.takes_json()
        answer = await self._seen_before(digest) if plain else None
        if answer is not None:
            call.key, call.result = answer.key, "hit"
            self._services.flow.count(answer, "hit", answer.target)
            await call.answer(200, *compiled(answer, b"hit", call.headers.get(b"accept-encoding", b"")))
            return

        def note(done: Done) -> None:
            call.key, call.result = done.answer.key, done.result
            if done.asked.plain:
                self._seen.add(digest, done.asked.key)

        if plain and NOT_PLAIN.isdisjoint(call.headers):
            self._enter(call)
            done = await unless_gone(receive, self._services.flow.compile(body))
            note(done)
            await call.answer(200, *answered(done, call.headers.get(b"accept-encoding", b"")))
            return
        call.scope[BODY] = body
        call.scope["lathe.note"] = note
        await self._behind(call, receive)

    async def _seen_before(self, digest: bytes) -> Answer | None:
        key = self._seen.key(digest)
        if key is None:
            return None
        return self._services.catalog.ready(key) or await self._services.catalog.program(key)

    async def _behind(self, call: Call, receive: Receive) -> None:
        self._enter(call)
        await self._app(call.scope, receive, call.send)

    def _enter(self, call: Call) -> None:
        """From here on, whatever is done for the request knows whose it is."""
        structlog.contextvars.bind_contextvars(request_id=call.request_id)
        if call.trace_id is not None:
            structlog.contextvars.bind_contextvars(trace_id=call.trace_id)
        call.scope[CALL] = call
        CALLER.set(call.caller or Caller(call.client))

    def _account(self, call: Call, route: str) -> None:
        seconds = time.perf_counter() - call.started
        method = call.method if call.method in METHODS else "other"
        self._services.metrics.http.series(route, method, call.status).add(seconds)
        if self._services.access_log.enabled:
            self._services.access_log.line(
                method=call.method, path=call.path, status=call.status, seconds=seconds, request_id=call.request_id,
                trace_id=call.trace_id, client=call.client, key=call.key, result=call.result, size=call.size,
            )  # fmt: skip


def _route(scope: Scope) -> str:
    """The path of the route that answered, as it is declared; "other" where there was none."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "other"
