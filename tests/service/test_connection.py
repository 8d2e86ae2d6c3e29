"""Connections that are slow, huge or many, by raw sockets against a real server; and TLS with and without certificates of clients."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from tests.service.process import Service, served, until

FAKE = ["tests.service.fake_service"]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with served(FAKE, store="memory://", head_seconds=0.5, body_seconds=0.5, stall_seconds=0.5, body_bytes=100_000_000) as started:
        yield started


@contextlib.contextmanager
def connected(service: Service) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as raw:
        yield raw


def answered(raw: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := raw.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def problem(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("sent", [b"GET", b"GET /healthz HTTP/1.1\r\nhost: x\r\n", b"GET /healthz HTTP/1.1\r\nx: "])
def test_a_head_that_does_not_end_is_not_waited_for(service: Service, sent: bytes) -> None:
    with connected(service) as raw:
        raw.sendall(sent)
        status, told = problem(answered(raw))

    assert (408, "request", "head_seconds") == (status, told["category"], told["limit"])


def test_a_head_that_trickles_is_not_waited_for_either(service: Service) -> None:
    with connected(service) as raw, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for byte in b"GET /healthz HTTP/1.1\r\nx: " + bytes(1000):
            raw.sendall(bytes([byte or 97]))
            time.sleep(0.02)
    with connected(service) as raw:
        assert b"" == answered(raw)  # who says nothing at all is told nothing


@pytest.mark.parametrize("sent", [b"GET /healthz HTTP/1.1\r\nx: ", b"GET /"])
def test_a_head_that_does_not_end_is_not_kept_either(service: Service, sent: bytes) -> None:
    with connected(service) as raw, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        raw.sendall(sent)
        for _ in range(200):
            raw.sendall(b"a" * 65536)
            time.sleep(0.001)
        pytest.fail("the server has taken 13 MB of one head")


def test_a_body_that_trickles_is_not_waited_for(service: Service) -> None:
    with connected(service) as raw:
        raw.sendall(b"POST /compile HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
        status, told = problem(answered(raw))

    assert (408, "request") == (status, told["category"])


def test_a_body_announced_as_too_large_is_refused_before_it_comes(service: Service) -> None:
    with connected(service) as raw:
        raw.sendall(b"POST /compile HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000001\r\n\r\n")
        status, told = problem(answered(raw))

    assert (413, "limit", 100_000_001) == (status, told["category"], told["needed"])


def test_who_reads_no_answer_is_let_go(service: Service) -> None:
    """Many copies of a large answer are asked for on one connection, and none is read."""
    asked = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    with connected(service) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            raw.settimeout(0.5)
            raw.sendall(asked * 2000)
        raw.settimeout(60)

        def gone() -> bool:
            with contextlib.suppress(BlockingIOError):
                try:
                    raw.send(b"x", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                except (ConnectionResetError, BrokenPipeError):
                    return True
            return False

        assert until(gone, "the server has closed")
    assert 200 == service.status("/healthz")


def test_a_connection_that_is_used_again_is_not_cut_short(service: Service) -> None:
    with connected(service) as raw:
        for _ in range(3):
            raw.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b'{"status":"alive"}'):
                answer += raw.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(0.7)  # longer than a head may take


def test_more_connections_than_may_are_turned_away() -> None:
    with served(FAKE, store="memory://", connections_limit=3) as service:
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(connected(service)) for _ in range(3)]
            for raw in held[1:]:
                raw.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            one_more = stack.enter_context(connected(service))
            status, told = problem(answered(one_more))

            assert (503, "overload", "connections_limit") == (status, told["category"], told["limit"])
        assert 200 == until(lambda: service.status("/healthz"), "there is room again")


def paths(folder: Path, authority: trustme.CA) -> dict[str, Any]:
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    return {"tls_cert": folder / "server.pem"}


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_it_serves_tls_of_today(tmp_path: Path) -> None:
    authority = trustme.CA()
    with served(FAKE, store="memory://", verify=trusting(authority), **paths(tmp_path, authority)) as service:
        assert "https" == service.client.base_url.scheme
        assert 200 == service.compile(kernel=1).status_code
        old = trusting(authority)
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://127.0.0.1:{service.port}/healthz", verify=old)
        assert 0 == service.end()


def test_with_an_authority_for_clients_only_its_clients_come_in(tmp_path: Path) -> None:
    authority = trustme.CA()
    known, stranger = trusting(authority), trusting(authority)
    authority.issue_cert("client").configure_cert(known)
    trustme.CA().issue_cert("client").configure_cert(stranger)
    more = {**paths(tmp_path, authority), "tls_client_ca": tmp_path / "authority.pem"}
    with served(FAKE, store="memory://", verify=known, **more) as service:
        assert 200 == service.compile(kernel=1).status_code
        for context in (stranger, trusting(authority)):
            with pytest.raises((httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)):
                httpx.get(f"https://127.0.0.1:{service.port}/healthz", verify=context)


def test_tls_files_that_are_none_are_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text("nothing")
    with pytest.raises(AssertionError, match="the TLS files can't be used"), served(FAKE, tls_cert=tmp_path / "server.pem"):
        pass
