"""`bench soak`: one service, over Redis, compiles new kernels and answers old ones for as long as it is told; does it grow?

Memory and descriptors of the server and of its workers are read now and then. What is held ready, and Redis, are bounded, so after the
first part of the run nothing has a reason to grow.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

from bench.client import Balanced
from bench.processes import Server, ServerTrouble
from bench.redis_server import redis_running
from bench.replicas import body_of, descriptors, program_of, replicas_running, rss_kib, workers_of

SETTINGS: dict[str, object] = {"workers": 1, "memory_bytes": 32 << 20, "seen_bodies": 4096, "worker_tasks": 5000}
REDIS = ("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
CONNECTIONS = 8
RECENT = 2000  # kernels that are hit: those compiled last
PROVED = 500  # of the new programs, one of so many is held against a compile here
SAMPLES = 40
EVERY_MOST_S = 60.0  # between two samples
BEFORE = 0.25  # of the run, in which caches fill


class Sample(TypedDict):
    """seconds: since the load began. Memory in KiB; workers together."""

    seconds: float
    compiles: int
    hits: int
    server_kib: int
    workers_kib: int
    server_files: int
    worker_files: int


def measure(compiles: int, hits: int, seconds: float | None, tell: Callable[[str], None]) -> dict[str, object]:
    """So many new kernels, and hits of earlier ones among them; what there is by then, where that takes longer than so many seconds."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        redis = stack.enter_context(redis_running(place, *REDIS))
        replicas = stack.enter_context(replicas_running(1, place, {**SETTINGS, "store": redis.url}))
        samples = asyncio.run(_soaked(replicas.servers[0], compiles, hits, seconds, tell))
    settled = samples[round(len(samples) * BEFORE) :]
    return {
        "bench": "soak",
        "compiles": samples[-1]["compiles"],
        "hits": samples[-1]["hits"],
        "seconds": samples[-1]["seconds"],
        "growth": {
            "server_kib": _growth([s["server_kib"] for s in settled]),
            "server_files": _growth([s["server_files"] for s in settled]),
            "workers_kib": _growth([s["workers_kib"] for s in settled]),
            "worker_files": _growth([s["worker_files"] for s in settled]),
        },
        "samples": samples,
    }


def _growth(values: list[int]) -> float:
    """By how much the last third lies above the first, medians."""
    third = max(1, len(values) // 3)
    return statistics.median(values[-third:]) - statistics.median(values[:third])


async def _soaked(server: Server, compiles: int, hits: int, seconds: float | None, tell: Callable[[str], None]) -> list[Sample]:
    client = Balanced([server.port])
    draw = random.Random(1)
    begun = time.monotonic()
    until = math.inf if seconds is None else begun + seconds
    samples: list[Sample] = []
    done = {"compiles": 0, "hits": 0}
    paths: dict[int, tuple[str, bytes]] = {}
    each = hits / compiles
    wrong: list[int] = []

    async def work() -> None:
        while done["compiles"] < compiles and time.monotonic() < until:
            number = done["compiles"]
            done["compiles"] += 1
            answer = await client.ask("POST", "/compile", body_of(number))
            if answer.status != 200 or (number % PROVED == 0 and answer.body != program_of(number)):
                wrong.append(number)
                continue
            paths[number] = (answer.headers["location"], answer.body)
            paths.pop(number - RECENT, None)
            for _ in range(int(each) + (draw.random() < each % 1)):
                old = draw.choice((number, max(paths), min(paths)))
                path, body = paths.get(old, paths[number])
                hit = await client.ask("GET", path)
                done["hits"] += 1
                if (hit.status, hit.body) != (200, body):
                    wrong.append(old)

    def look() -> None:
        workers = workers_of(server)
        samples.append(
            {
                "seconds": round(time.monotonic() - begun, 1),
                "compiles": done["compiles"],
                "hits": done["hits"],
                "server_kib": rss_kib(server.process.pid),
                "workers_kib": sum(map(rss_kib, workers)),
                "server_files": descriptors(server.process.pid),
                "worker_files": sum(map(descriptors, workers)),
            }
        )
        tell(f"{done['compiles']} compiles, {done['hits']} hits, server {samples[-1]['server_kib'] // 1024} MiB")

    async def watch() -> None:
        while True:
            look()
            while done["compiles"] < len(samples) * compiles / SAMPLES and time.monotonic() < begun + len(samples) * EVERY_MOST_S:
                await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    watching.cancel()
    look()
    client.close()
    if wrong:
        raise ServerTrouble(f"{len(wrong)} answers were wrong, the first for kernel {wrong[0]}")
    return samples


def text(found: dict[str, object]) -> str:
    """The curve for a terminal."""
    samples: list[Sample] = found["samples"]  # type: ignore[assignment]  # as `measure` makes them
    growth: dict[str, float] = found["growth"]  # type: ignore[assignment]  # likewise
    lines = [f"{'seconds':>9}{'compiles':>10}{'hits':>10}{'server MiB':>12}{'files':>7}{'workers MiB':>13}{'files':>7}"]
    lines += [
        f"{s['seconds']:9.0f}{s['compiles']:10}{s['hits']:10}{s['server_kib'] / 1024:12.1f}{s['server_files']:7}"
        f"{s['workers_kib'] / 1024:13.1f}{s['worker_files']:7}"
        for s in samples
    ]
    return "\n".join(
        [
            *lines,
            f"since its first quarter the server has grown by {growth['server_kib'] / 1024:+.1f} MiB, {growth['server_files']:+g} files,",
            f"its worker by {growth['workers_kib'] / 1024:+.1f} MiB, {growth['worker_files']:+g} files",
        ]
    )
