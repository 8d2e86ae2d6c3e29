"""What the connection answers by itself: the same words as the front's, and only where it may. Over real sockets."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest
import zstandard

from service.access import made
from service.caller import Scope
from tests.service.process import Service, served, until

FAKE = ["tests.service.fake_service"]
VARIES = {"date", "x-request-id"}
TO_THE_FRONT = {"content-length": "0"}  # a header that is not plain


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with served(FAKE, store="memory://") as started:
        yield started


@pytest.fixture(scope="module")
def path(service: Service) -> str:
    return service.compile(kernel=1).headers["location"]


def ask(port: int, path: str, version: str = "1.1", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body as they came, no coding undone."""
    lines = [f"GET {path} HTTP/{version}", "host: lathe", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall("\r\n".join([*lines, "", ""]).encode())
        response = HTTPResponse(raw, method="GET")
        response.begin()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


@pytest.mark.parametrize("coding", ["", "gzip", "zstd", "br", "zstd;q=0, gzip", "*"])
def test_an_answer_at_once_is_the_front_s_word_for_word(service: Service, path: str, coding: str) -> None:
    status, headers, body = ask(service.port, path, accept_encoding=coding)
    other_status, other_headers, other_body = ask(service.port, path, accept_encoding=coding, **TO_THE_FRONT)

    assert (200, 200) == (status, other_status)
    assert other_body == body
    assert {n: v for n, v in other_headers.items() if n not in VARIES} == {n: v for n, v in headers.items() if n not in VARIES}
    assert set(other_headers) == set(headers)


NAMED = [
    ({"x_forwarded_for": "203.0.113.7"}, "203.0.113.7"),
    ({"x_forwarded_for": "198.51.100.1, 203.0.113.7"}, "203.0.113.7"),
    ({"x_forwarded_for": "203.0.113.7, 127.0.0.1"}, "203.0.113.7"),
    ({"x_forwarded_for": "203.0.113.7:4711"}, "203.0.113.7"),
    ({"x_forwarded_for": "[2001:db8::7]:4711"}, "2001:db8::7"),
    ({"x_forwarded_for": "198.51.100.1", "X_Forwarded_For": "203.0.113.7"}, "203.0.113.7"),
    ({"x_forwarded_for": ""}, "127.0.0.1"),
    ({}, "127.0.0.1"),
]


@pytest.mark.parametrize(("headers", "client"), NAMED, ids=[" ".join(headers.values()) or "none" for headers, _ in NAMED])
@pytest.mark.parametrize("more", [{}, TO_THE_FRONT], ids=["at once", "by the front"])
def test_the_client_is_the_one_that_a_trusted_proxy_names(
    service: Service, path: str, headers: dict[str, str], client: str, more: dict[str, str]
) -> None:
    _, answered, _ = ask(service.port, path, **headers, **more)

    assert client == line_of(service, answered["x-request-id"])["client"]


def test_each_request_of_a_proxy_s_connection_has_a_client_of_its_own(service: Service, path: str) -> None:
    names = ["203.0.113.1", "203.0.113.2", None]
    found: list[str] = []
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as raw:
        for name in names:
            forwarded = "" if name is None else f"x-forwarded-for: {name}\r\n"
            raw.sendall(f"GET {path} HTTP/1.1\r\nhost: lathe\r\n{forwarded}\r\n".encode())
            response = HTTPResponse(raw, method="GET")
            response.begin()
            response.read()
            found.append(line_of(service, response.headers["x-request-id"])["client"])

    assert ["203.0.113.1", "203.0.113.2", "127.0.0.1"] == found


@pytest.mark.parametrize("more", [{}, TO_THE_FRONT], ids=["at once", "by the front"])
def test_nobody_else_can_name_a_client(more: dict[str, str]) -> None:
    with served(FAKE, store="memory://", trusted_proxies="192.0.2.1,10.0.0.0/8") as service:
        path = service.compile(kernel=1).headers["location"]
        _, answered, _ = ask(service.port, path, x_forwarded_for="203.0.113.7", **more)

        assert "127.0.0.1" == line_of(service, answered["x-request-id"])["client"]


def line_of(service: Service, request_id: str) -> dict[str, Any]:
    """The line of the access log about a request."""
    lines = until(lambda: [line for line in service.logged("request") if line["request_id"] == request_id], "the request is logged")
    return dict(lines[0])


def test_coded_bodies_are_the_program(service: Service, path: str) -> None:
    plain = ask(service.port, path)[2]

    assert plain == gzip.decompress(ask(service.port, path, accept_encoding="gzip")[2])
    assert plain == zstandard.decompress(ask(service.port, path, accept_encoding="zstd")[2])
    assert "k_1" == json.loads(plain)["name"]


def test_what_is_not_plain_is_answered_as_ever(service: Service, path: str) -> None:
    tag = ask(service.port, path)[1]["etag"]

    assert 304 == ask(service.port, path, if_none_match=tag)[0]
    assert 406 == ask(service.port, path, accept="text/html")[0]
    assert 404 == ask(service.port, "/program/" + "0" * 64)[0]
    assert 404 == ask(service.port, "/program/" + "x" * 64)[0]
    assert 404 == ask(service.port, "/programs/" + "0" * 63)[0]
    assert 200 == ask(service.port, f"{path}?x=1")[0]
    assert 200 == ask(service.port, path, version="1.0")[0]
    assert "close" == ask(service.port, path, connection="close")[1]["connection"]


def test_answers_at_once_and_others_on_one_connection_keep_their_order(service: Service, path: str) -> None:
    asked = [path, "/healthz", path, path, "/limits", path, "/program/" + "0" * 64, path]
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as raw:
        raw.sendall("".join(f"GET {one} HTTP/1.1\r\nhost: lathe\r\nx-request-id: n{i}\r\n\r\n" for i, one in enumerate(asked)).encode())
        stream = raw.makefile("rb")
        found: list[tuple[int, str | None]] = []
        for _ in asked:
            status = int(stream.readline().split()[1])
            headers = dict(line.decode().rstrip().split(": ", 1) for line in iter(stream.readline, b"\r\n"))
            stream.read(int(headers["content-length"]))
            found.append((status, headers.get("x-request-id")))

    statuses = [404 if one.endswith("0" * 64) else 200 for one in asked]
    assert [(status, f"n{i}") for i, status in enumerate(statuses)] == found


def test_they_are_counted_and_logged(service: Service, path: str) -> None:
    line = 'lathe_http_requests_total{method="GET",route="/program/{key}",status="200"}'
    before = service.metric(line), service.metric('lathe_cache_operations_total{level="memory",operation="get",result="hit"}')
    trace = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
    body = ask(service.port, path, x_request_id="mine-1", traceparent=trace)[2]
    after = service.metric(line), service.metric('lathe_cache_operations_total{level="memory",operation="get",result="hit"}')
    until(lambda: [entry for entry in service.lines if entry.get("request_id") == "mine-1"], "the line is written")
    (entry,) = [entry for entry in service.lines if entry.get("request_id") == "mine-1"]

    assert (1, 1) == (after[0] - before[0], after[1] - before[1])
    assert (path, 200, len(body), "hit", "127.0.0.1", "ab" * 16, path.rpartition("/")[2]) == tuple(
        entry[name] for name in ("path", "status", "bytes", "result", "client", "trace_id", "key")
    )


def test_who_may_not_read_is_refused_and_who_may_is_answered_privately() -> None:
    shown, token = made("reader", frozenset((Scope.READ, Scope.COMPILE)))
    with served(FAKE, store="memory://", tokens=str(token), anonymous="") as service:
        bearer = f"Bearer {shown}"
        compiled = service.client.post("/compile", json={"kernel": 1}, headers={"authorization": bearer})
        path = compiled.headers["location"]

        assert 401 == ask(service.port, path)[0]
        assert 401 == ask(service.port, path, authorization="Bearer x")[0]
        status, headers, body = ask(service.port, path, authorization=bearer)
        assert (200, compiled.content) == (status, body)
        assert headers["cache-control"].startswith("private")
