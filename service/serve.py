"""Serving until told to end: a web server around the app, and what signals mean.

The first SIGTERM or SIGINT: not ready from then on, after `drain_notice_s` no new connections, running work is finished, then
the end. The second: the end, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import ssl
import sys
from pathlib import Path
from types import FrameType

import uvicorn

from service import logs
from service.app import build
from service.connection import Bounds, Config
from service.front import Front
from service.hot import Hot
from service.services import Services
from service.settings import Settings
from service.tracing import NoTracing

KEEP_ALIVE_S = 75  # longer than proxies keep idle connections, so that it is they who close them
BACKLOG = 4096
REPORT = "listening on"


class Server(uvicorn.Server):
    """uvicorn's server, with our meaning of signals."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services
        self._told = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._told += 1
        if self._told > 1:
            end_at_once(128 + sig)
        self._services.phase.draining = True
        self._services.ready()
        notice_s = self._services.settings.drain_notice_s
        if notice_s > 0:
            asyncio.get_event_loop().call_later(notice_s, self._end)
        else:
            self._end()

    def _end(self) -> None:
        self.should_exit = True


def end_at_once(status: int) -> None:
    """Ends this process and its workers, whatever they are doing."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
    os._exit(status)


def serve(settings: Settings) -> int:
    """Serves until a signal ends it. The exit status: 0 after an orderly end."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)  # a line is there when it is written, also through a pipe
    logs.configure(settings.log_level)
    try:
        front, services = build(settings)
    except NoTracing as error:
        raise SystemExit(f"lathe: {error}") from None
    return run(front, services)


def run(front: Front, services: Services) -> int:
    """Serves an app that is built already."""
    settings = services.settings
    allow_many_files()
    config = Config(
        front,
        Bounds(settings.head_bytes, settings.head_seconds, settings.stall_seconds, settings.connections_limit),
        Hot(services).answer,
        settings.trusted_proxies,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        ssl_keyfile_password=settings.tls_key_password or None,
        ssl_ca_certs=settings.tls_client_ca or None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if settings.tls_client_ca else ssl.CERT_NONE,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise SystemExit(f"lathe: the TLS files can't be used: {error}") from None
    server = Server(config, services)
    with _listening(settings) as listener:
        host, port = listener.getsockname()[:2]
        logs.logger("serve").info(REPORT, host=host, port=port)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return 0
    return 0 if server.started else 1


def allow_many_files() -> None:
    """As many open files as the system lets us have: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise SystemExit(f"lathe: {settings.host}:{settings.port}: {error.strerror}") from None
    return listener
