"""What `bench cache` tells of the levels below memory: programs that Redis has, and kernels that nobody has compiled yet.

The service that is asked holds nothing in memory, so that every look goes to Redis: one at a time, and over many connections at once,
where looks share their round trips. A miss is held against the same work done in this process.
"""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

import uvloop

from bench.kernels import OWN, Case, read_cases
from bench.load import load, request
from bench.processes import Server, ServerTrouble, ask, running
from bench.redis_server import redis_running
from core import Request, compile_kernel, program_key, read_json
from service.origin import dumped

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
    """Per kernel, medians over rounds, in milliseconds of CPU time: the work in this process, from a request's bytes to the program's; a
    miss, by the service and its worker; what it takes beyond, and what it may: a tenth and 1 ms. wall_ms: a miss by the clock on the wall.
    """

    kernels: int
    rounds: int
    work_ms: float
    miss_ms: float
    beyond_ms: float
    allowed_ms: float
    wall_ms: float


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
        return {"redis": far, "misses": {name: _misses(server, rounds, tell) for name, server in servers.items()}}


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


def _misses(server: Server, rounds: int, tell: Callable[[str], None]) -> Misses:
    """Rounds of all kernels here, then all of them there over one connection: each for another device, so that they are new."""
    cases = [case for case in read_cases([OWN], "opencl", "heuristic") if case.id != KERNEL]  # that one has been compiled already
    work: list[float] = []
    miss: list[float] = []
    wall: list[float] = []
    for number in range(rounds + 1):
        bodies = [_variant(case, number) for case in cases]
        cpu = time.process_time()
        for body in bodies:
            _worked(body)
        work.append((time.process_time() - cpu) * 1000 / len(bodies))
        begun, used = time.perf_counter(), server.cpu_ns()
        _missed(server, bodies)
        wall.append((time.perf_counter() - begun) * 1000 / len(bodies))
        time.sleep(SETTLE_S)  # what is done after the last answer belongs to it
        miss.append((server.cpu_ns() - used) / 1e6 / len(bodies))
    tell("misses")
    del work[0], miss[0], wall[0]  # what is done at the first use only, on both sides
    return {
        "kernels": len(cases),
        "rounds": rounds,
        "work_ms": round(statistics.median(work), 3),
        "miss_ms": round(statistics.median(miss), 3),
        "beyond_ms": round(statistics.median(m - w for w, m in zip(work, miss, strict=True)), 3),
        "allowed_ms": round(statistics.median(work) * ALLOWED_PART + ALLOWED_MS, 3),
        "wall_ms": round(statistics.median(wall), 3),
    }


def _variant(case: Case, number: int) -> bytes:
    """The kernel for a device that differs in what no program here depends on."""
    value = json.loads(case.body)
    return json.dumps({**value, "device": {**value["device"], "lanes_max": 1024 + number}}).encode()


def _missed(server: Server, bodies: Sequence[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
    for body in bodies:
        connection.request("POST", "/compile", body, {"content-type": "application/json"})
        response = connection.getresponse()
        response.read()
        if (response.status, response.headers["lathe-result"]) != (200, "compiled"):
            raise ServerTrouble(f"a kernel was to be new, and is {response.status} {response.headers['lathe-result']}")
    connection.close()


def _worked(body: bytes) -> bytes:
    """What the service does in the end: a request's bytes become the program's."""
    request = Request.from_json(read_json(body))
    program_key(request)
    return dumped(compile_kernel(request).to_json())


def text(found: Levels) -> list[str]:
    """The measurement for a terminal."""
    lines = ["", f"{'GET, from Redis':24}{'per second':>12}{'CPU µs each':>22}"]
    lines += [f"  {row['connections']:3} at once{'':12}{row['per_second']:12.0f}{row['cpu_us']:22.1f}" for row in found["redis"]]
    lines += ["", f"{'POST /compile, new':24}{'kernels':>9}{'work':>9}{'miss':>9}{'beyond':>9}{'allowed':>9}{'wall':>9}  ms"]
    lines += [
        f"  store: {name:15}{row['kernels']:9}{row['work_ms']:9.2f}{row['miss_ms']:9.2f}{row['beyond_ms']:9.2f}"
        f"{row['allowed_ms']:9.2f}{row['wall_ms']:9.2f}"
        for name, row in found["misses"].items()
    ]
    return lines
