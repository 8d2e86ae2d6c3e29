"""Traces by OpenTelemetry, where a collector is named: a span for each request, under it the wait in the queue and the work in a worker
process, with its stages.

Workers reach no network: they say when they began and what took how long, and their spans are made here. With no collector nothing is made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

NAME = "lathe"
_PROPAGATOR = TraceContextTextMapPropagator()


class NoTracing(ValueError):
    """Traces are wanted, and what they need is not installed."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A request's span, and what makes it the current one."""

    span: Span
    token: Any

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self.span.get_span_context().trace_id)


class Tracing:
    """Spans go to the collector at an OTLP/HTTP address; ratio: which part of the traces that begin here is kept."""

    def __init__(self, endpoint: str, ratio: float, version: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
        except ImportError as error:
            raise NoTracing(f"trace_endpoint needs the extra `tracing` of the package: {error}") from None
        resource = Resource.create({"service.name": NAME, "service.version": version})
        self._provider = TracerProvider(resource=resource, sampler=ParentBasedTraceIdRatio(ratio))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=5)))
        self._tracer = self._provider.get_tracer(NAME)
        trace.set_tracer_provider(self._provider)

    def begin(self, method: str, headers: Mapping[bytes, bytes]) -> Begun:
        """The span of a request, under the one its `traceparent` names; the current one until it ends."""
        carrier = {name: headers[name.encode()].decode("latin-1") for name in ("traceparent", "tracestate") if name.encode() in headers}
        span = self._tracer.start_span(method, _PROPAGATOR.extract(carrier, context.Context()), SpanKind.SERVER)
        return Begun(span, context.attach(trace.set_span_in_context(span)))

    def end(self, begun: Begun, method: str, route: str, status: int, facts: Mapping[str, str | None]) -> None:
        """Ends a request's span. Names and attributes are those of OpenTelemetry's conventions for HTTP servers."""
        span = begun.span
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
        span.set_attributes({f"lathe.{name}": value for name, value in facts.items() if value is not None})
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()
        context.detach(begun.token)

    def close(self) -> None:
        """Sends what there is, and ends."""
        self._provider.shutdown()


def worked(began_ns: int, pid: int, stages: Mapping[str, float], waited_s: float) -> None:
    """The spans of a job that a worker has done just now, under the current one. began_ns: since the epoch; stages: seconds, in order."""
    if not trace.get_current_span().is_recording():
        return
    tracer = trace.get_tracer(NAME)
    queued_ns = began_ns - round(waited_s * 1e9)
    tracer.start_span("queue", start_time=queued_ns).end(began_ns)
    work = tracer.start_span("work", start_time=began_ns, attributes={"process.pid": pid})
    within = trace.set_span_in_context(work)
    at_ns = began_ns
    for name, seconds in stages.items():
        stage = tracer.start_span(name, within, start_time=at_ns)
        at_ns += round(seconds * 1e9)
        stage.end(at_ns)
    work.end(min(at_ns, time.time_ns()))
