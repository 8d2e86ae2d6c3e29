"""Traces: what a collector gets from a real service, its workers in processes of their own."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from service.api.examples import COMPILES
from tests.service.process import served

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """The address of a collector, and the spans it has got."""
    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that http.server asks for
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            told = ExportTraceServiceRequest.FromString(body)
            spans.extend(span for of in told.resource_spans for scope in of.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", spans
    server.shutdown()
    server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {item.key: item.value.string_value or item.value.int_value for item in span.attributes}


def test_a_compile_is_a_trace_through_the_worker_under_the_client_s_own_span() -> None:
    body = COMPILES["without a schedule, in C"]
    with collector() as (address, spans), served(["service", "serve"], store="memory://", trace_endpoint=address) as service:
        answers = [
            service.client.post("/compile", json=body, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}),
            service.client.post("/compile", json=body, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"}),
            service.client.post("/compile", json=body),
        ]
        assert [200] * 3 == [answer.status_code for answer in answers]
        assert 0 == service.end()
        ours = [span for span in spans if span.trace_id.hex() == TRACE]
        by_id = {span.span_id: span for span in ours}
        (request,) = [span for span in ours if span.parent_span_id.hex() == PARENT]
        (queue,) = [span for span in ours if span.name == "queue"]
        (work,) = [span for span in ours if span.name == "work"]

        assert ("POST /compile", "compiled", 200) == (
            request.name, attributes(request)["lathe.result"], attributes(request)["http.response.status_code"],
        )  # fmt: skip
        assert answers[0].json()["key"] == attributes(request)["lathe.key"]
        assert request is by_id[queue.parent_span_id] is by_id[work.parent_span_id]
        assert attributes(work)["process.pid"] not in (0, service.process.pid)
        assert {"receive", "lower", "render", "pack"} <= {span.name for span in ours if span.parent_span_id == work.span_id}
        assert queue.start_time_unix_nano <= work.start_time_unix_nano <= work.end_time_unix_nano <= request.end_time_unix_nano
        others = [span for span in spans if span.name == "POST /compile" and span.trace_id.hex() != TRACE]
        assert ["hit"] == [attributes(span)["lathe.result"] for span in others]
        assert others[0].trace_id.hex() in [line.get("trace_id") for line in service.lines]
