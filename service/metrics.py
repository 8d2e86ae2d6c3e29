"""Every metric of the service: name, unit, labels. Label values come from closed lists, never from what a client sends.

Each app has a registry of its own, so that several can live in one process. docs/metrics.md describes each for operators.
"""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client import disable_created_metrics as _disable_created_metrics
from prometheus_client.exposition import choose_encoder

from service.http_metrics import HttpMetrics

_disable_created_metrics()  # type: ignore[no-untyped-call]  # one more series per counter, which nobody reads

FAST_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
STAGE_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

BREAKER_STATES = {"closed": 0, "half-open": 1, "open": 2}


class Metrics:
    """The metrics, declared once. Whoever counts is handed this object."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        if registry is None:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)
            GCCollector(registry=self.registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, namespace="lathe", registry=self.registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, namespace="lathe", registry=self.registry)

        def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, text, labels, namespace="lathe", registry=self.registry, buckets=buckets)

        self.http = HttpMetrics(STAGE_S)
        self.registry.register(self.http)
        self.compile_requests = counter(
            "compile_requests",
            "Compile requests, by target and result: hit, coalesced, compiled, or an error's category.",
            "target",
            "result",
        )
        self.compile_stage_seconds = histogram(
            "compile_stage_seconds",
            "Time of one stage of a compile: queue, the compiler's own, store.",
            "stage",
            buckets=STAGE_S,
        )
        self._stages = cache(self.compile_stage_seconds.labels)
        self.cache_operations = counter("cache_operations", "Operations on the levels that keep programs.", "level", "operation", "result")
        self.cache_operation_seconds = histogram(
            "cache_operation_seconds", "Time of one operation of the store.", "level", "operation", buckets=FAST_S
        )
        self._store_operations = cache(self.cache_operations.labels)
        self._store_seconds = cache(self.cache_operation_seconds.labels)
        self.singleflight_waiters = gauge("singleflight_waiters", "Requests that wait for a compile another one leads.")
        self.leases = counter("leases", "Leases for compiles: taken, lost, overdue, without.", "result")
        self.compiles_avoided = counter("compiles_avoided", "Compile requests answered without a compile of their own.")
        self.compile_seconds_saved = counter("compile_seconds_saved", "Compile time these would have taken.")
        self.queue_depth = gauge("queue_depth", "Compiles that wait for a worker.")
        self.queue_oldest_seconds = gauge("queue_oldest_seconds", "How long the oldest of them has waited.")
        self.workers = gauge("workers", "Worker processes, by state: starting, idle, busy.", "state")
        self.worker_restarts = counter("worker_restarts", "Workers replaced, by reason: lost, time_limit, memory_limit.", "reason")
        self.binaries = counter(
            "binaries", "Binaries asked for, by format and result: hit, coalesced, compiled, or an error's category.", "format", "result"
        )
        self.device_up = gauge("device_up", "Whether an attached device answers.", "device")
        self.device_jobs = counter("device_jobs", "Jobs run on attached devices.", "device", "kind", "result")
        self.validations = counter("validations", "Validations, by device and verdict.", "device", "verdict")
        self.breaker_state = gauge("breaker_state", "The store's circuit breaker: 0 closed, 1 half-open, 2 open.")
        self.ready = gauge("ready", "Whether this process takes work.")
        self.build_info = gauge("build_info", "Always 1; what is running, as labels.", "version", "compiler")

    # Children are looked up once: looking one up takes longer than counting, and a compile counts in some twenty.

    def stage(self, name: str) -> Histogram:
        """`compile_stage_seconds` of one stage."""
        return self._stages(name)

    def store_operations(self, operation: str, result: str) -> Counter:
        """`cache_operations` of the store."""
        return self._store_operations("store", operation, result)

    def store_seconds(self, operation: str) -> Histogram:
        """`cache_operation_seconds` of the store."""
        return self._store_seconds("store", operation)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics as text, and its media type: OpenMetrics where `accept` asks for it, else Prometheus text."""
        encoder, media_type = choose_encoder(accept)
        return encoder(self.registry), media_type
