"""Ids of requests and traces, and the line of each request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.logs import AccessLog, request_id, trace_id

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@given(st.one_of(st.none(), st.binary(max_size=100)))
def test_a_request_id_is_always_short_and_plain(sent: bytes | None) -> None:
    chosen = request_id(sent)

    assert 0 < len(chosen) <= 64
    assert chosen.isascii()
    assert not set(chosen) & set('"\\\r\n\t ,;')


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"00-{TRACE}-00f067aa0ba902b7-00", TRACE),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"01-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7-01-more", None),
        ("", None),
    ],
)
def test_the_trace_is_read_where_there_is_a_sane_one(header: str, expected: str | None) -> None:
    assert expected == trace_id(header.encode())


def line(**changed: Any) -> dict[str, Any]:
    return {
        "method": "GET", "path": "/", "status": 200, "seconds": 0.0015, "request_id": "r", "trace_id": None, "client": "::1",
        "key": None, "result": None, "size": 7, **changed,
    }  # fmt: skip


@given(path=st.text(max_size=300), method=st.text(max_size=10))
def test_whatever_a_client_sends_stays_on_its_line(path: str, method: str) -> None:
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        AccessLog(True).line(**line(path=path, method=method))

    assert out.getvalue().endswith("\n")
    assert 1 == out.getvalue().count("\n")
    read = json.loads(out.getvalue())
    assert (path[:200], 1.5, 7) == (read["path"], read["ms"], read["bytes"])


def test_nothing_is_written_where_nothing_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    AccessLog(False).line(**line())

    assert "" == capsys.readouterr().out
