"""What the front counts of every request, in plain numbers.

Prometheus' own counters take a lock for each step, several of them per request; here the event loop's thread alone counts and reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class _Times:
    """How long the requests of one route took: how many in each bucket, and all together."""

    __slots__ = ("bounds", "buckets", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.seconds = 0.0


class Series:
    """The requests of one route, method and status."""

    __slots__ = ("_times", "count")

    def __init__(self, times: _Times) -> None:
        self.count = 0
        self._times = times

    def add(self, seconds: float) -> None:
        """Counts one request that took so long."""
        times = self._times
        self.count += 1
        times.buckets[bisect_left(times.bounds, seconds)] += 1
        times.seconds += seconds


class HttpMetrics(Collector):
    """`lathe_http_requests_total` and `lathe_http_request_seconds`. bounds: of the buckets, in seconds, ascending."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._series: dict[tuple[str, str, int], Series] = {}
        self._times: dict[str, _Times] = {}

    def series(self, route: str, method: str, status: int) -> Series:
        """The series with these labels."""
        found = self._series.get((route, method, status))
        if found is None:
            times = self._times.setdefault(route, _Times(self._bounds))
            found = self._series[route, method, status] = Series(times)
        return found

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("lathe_http_requests", "Requests answered.", labels=("route", "method", "status"))
        for (route, method, status), series in self._series.items():
            if series.count:
                requests.add_metric((route, method, str(status)), series.count)
        yield requests
        seconds = HistogramMetricFamily(
            "lathe_http_request_seconds", "Time from a request's headers to the end of its answer.", labels=("route",)
        )
        for route, times in self._times.items():
            total = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip((*self._bounds, float("inf")), times.buckets, strict=True):
                total += count
                buckets.append((floatToGoString(bound), total))  # type: ignore[no-untyped-call]  # it takes a float and gives text
            if total:
                seconds.add_metric((route,), buckets, times.seconds)
        yield seconds
