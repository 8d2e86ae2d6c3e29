"""What `bench cache` tells of the levels below memory: programs that Redis has, and kernels that nobody has compiled yet.

The service that is asked holds nothing in memory, so that every look goes to Redis: one at a time, and over many connections at once,
where looks share their round trips. A miss is held against the same work done in this process, by the function that a worker runs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

import uvloop

from bench.kernels import OWN, Case, read_cases
from bench.load import load, request
from bench.processes import Server, ServerTrouble, ask, running
from bench.redis_server import redis_running
from core import Limits, Request, program_key, read_json
from service.workers.task import Job, Made, run

SERVE = ("service", "serve")
KERNEL = "softmax-6x64"
TIMEOUT_S = 120.0
SETTLE_S = 0.05
ALLOWED_PART, ALLOWED_MS = 0.10, 1.0  # what a miss may cost beyond the compile itself


class Far(TypedDict):
    """A way to ask Redis: connections at once, answers per second, the server's CPU microseconds each."""

    connections: int
    per_second: float
    cpu_us: float
    rounds_us: list[float]


class Misses(TypedDict):
    """Medians over kernels, in milliseconds: CPU time of the work in this process and of a miss in the service with its worker, the median
    of what the latter takes beyond, and a miss by the clock on the wall. allowed: how many misses took at most a tenth and 1 ms beyond.
    """

    kernels: int
    work_ms: float
    miss_ms: float
    beyond_ms: float
    wall_ms: float
    allowed: int


class Levels(TypedDict):
    redis: list[Far]
    misses: dict[str, Misses]


def measure(requests: int, connections: int, rounds: int, tell: Callable[[str], None]) -> Levels:
    """requests: per round and way."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        redis = stack.enter_context(redis_running(place))
        common = {"host": "127.0.0.1", "port": 0, "workers": 1, "devices": "none"}
        stores: dict[str, dict[str, object]] = {"memory": {"store": "memory://"}, "redis": {"store": redis.url, "memory_bytes": 1}}
        servers = {name: stack.enter_context(running(SERVE, {**common, **more}, place / f"{name}.log")) for name, more in stores.items()}
        far = uvloop.run(_far(servers["redis"], requests, connections, rounds))
        tell("from Redis")
        return {"redis": far, "misses": {name: _misses(server, tell) for name, server in servers.items()}}


async def _far(server: Server, requests: int, connections: int, rounds: int) -> list[Far]:
    (case,) = read_cases([OWN], "opencl", "heuristic", ids=[KERNEL])
    path = dict(_compiled(server, case))["location"]
    body = ask(server.port, "GET", path).body
    found: list[Far] = []
    for at_once in (1, connections):
        count = max(1, requests // (4 if at_once == 1 else 1))
        turns = [await load(server, request("GET", path), body, count, at_once, TIMEOUT_S) for _ in range(rounds + 1)][1:]
        found.append(
            {
                "connections": at_once,
                "per_second": round(statistics.median(t.per_second for t in turns), 1),
                "cpu_us": round(statistics.median(t.cpu_us for t in turns), 2),
                "rounds_us": [round(t.cpu_us, 2) for t in turns],
            }
        )
    return found


def _compiled(server: Server, case: Case) -> list[tuple[str, str]]:
    reply = ask(server.port, "POST", "/compile", case.body)
    if reply.status != 200:
        raise ServerTrouble(f"the service does not compile {case.id}: {reply.body[:500].decode(errors='replace')}")
    return reply.headers


def _misses(server: Server, tell: Callable[[str], None]) -> Misses:
    for case in read_cases([OWN], "opencl", "none"):  # what is done at the first use only, on both sides
        _compiled(server, case)
        _worked(case)
    pairs: list[tuple[float, float]] = []
    wall: list[float] = []
    for case in read_cases([OWN], "opencl", "heuristic"):
        if case.id == KERNEL:
            continue  # it has been compiled already
        work_ms = _worked(case)
        begun, cpu = time.perf_counter(), server.cpu_ns()
        result = dict(_compiled(server, case))["lathe-result"]
        wall.append((time.perf_counter() - begun) * 1000)
        time.sleep(SETTLE_S)  # what is done after the answer belongs to it
        pairs.append((work_ms, (server.cpu_ns() - cpu) / 1e6))
        if result != "compiled":
            raise ServerTrouble(f"{case.id} was to be new, and is a {result}")
    tell("misses")
    work, miss = [work for work, _ in pairs], [miss for _, miss in pairs]
    return {
        "kernels": len(pairs),
        "work_ms": round(statistics.median(work), 3),
        "miss_ms": round(statistics.median(miss), 3),
        "beyond_ms": round(statistics.median(m - w for w, m in pairs), 3),
        "wall_ms": round(statistics.median(wall), 3),
        "allowed": sum(m <= w * (1 + ALLOWED_PART) + ALLOWED_MS for w, m in pairs),
    }


def _worked(case: Case) -> float:
    """CPU milliseconds of one compile, from the request's bytes to the program's."""
    key = program_key(Request.from_json(read_json(case.body)))
    begun = time.process_time()
    outcome = run(Job(case.body, Limits(), key))
    taken_ms = (time.process_time() - begun) * 1000
    if not isinstance(outcome, Made):
        raise ServerTrouble(f"{case.id} does not compile here")
    return taken_ms


def text(found: Levels) -> list[str]:
    """The measurement for a terminal."""
    lines = ["", f"{'GET, from Redis':24}{'per second':>12}{'CPU µs each':>22}"]
    lines += [f"  {row['connections']:3} at once{'':12}{row['per_second']:12.0f}{row['cpu_us']:22.1f}" for row in found["redis"]]
    lines += ["", f"{'POST /compile, new':24}{'kernels':>9}{'work':>9}{'miss':>9}{'beyond':>9}{'wall':>9}{'within':>9}"]
    lines += [
        f"  store: {name:15}{row['kernels']:9}{row['work_ms']:9.2f}{row['miss_ms']:9.2f}{row['beyond_ms']:9.2f}"
        f"{row['wall_ms']:9.2f}{row['allowed']:6}/{row['kernels']}"
        for name, row in found["misses"].items()
    ]
    return lines
