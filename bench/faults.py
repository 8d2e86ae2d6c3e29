"""`bench faults`: replicas under a steady load of hits and misses, while one thing after another goes wrong around them.

Every answer is held against a compile in this process. Redis lies behind a proxy, so that the network between can fail too. After each
fault the load goes on until all replicas say that they are ready and not degraded: that is how long it took to be back. What is promised of
all that is in `broken`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.client import Balanced, Lost
from bench.processes import ServerTrouble
from bench.proxy import Proxy
from bench.redis_server import RedisServer, redis_running
from bench.replicas import Replicas, body_of, program_of, replicas_running, workers_of
from bench.report import quantile

STORED = 40  # kernels that are compiled before the load begins: the hits
NEW_PART = 0.25  # of the requests are for kernels that nobody has asked for
BACK_S = 60.0  # longest wait for all to be well again
LEASE_S = 5.0
SETTINGS: dict[str, object] = {"workers": 1, "memory_seconds": 1, "lease_seconds": LEASE_S, "drain_notice_s": 0.5}


@dataclass(slots=True)
class Seen:
    """What came of the requests of one phase. seconds: of each answer. other: statuses that are not 200, with their count."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    lost: int = 0
    other: dict[str, int] = field(default_factory=dict)
    back_s: float | None = None

    def to_json(self) -> dict[str, object]:
        times = sorted(self.seconds) or [0.0]
        return {
            "answers": len(self.seconds),
            "wrong": self.wrong,
            "lost": self.lost,
            "other": self.other,
            "median_ms": round(quantile(times, 0.5) * 1000, 1),
            "p99_ms": round(quantile(times, 0.99) * 1000, 1),
            "slowest_ms": round(times[-1] * 1000, 1),
            "back_s": None if self.back_s is None else round(self.back_s, 2),
        }


class Load:
    """A steady load. Each request is begun on time, whatever became of those before it."""

    def __init__(self, client: Balanced, rate: float, draw: random.Random) -> None:
        self.seen = Seen()
        self._client = client
        self._rate = rate
        self._draw = draw
        self._stored: dict[int, tuple[str, str]] = {}  # path and digest
        self._new = 1000
        self._unproved: list[tuple[int, str, Seen]] = []
        self._running: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()

    async def prepare(self) -> None:
        """Compiles what is to be hit."""
        for number in range(STORED):
            answer = await self._client.ask("POST", "/compile", body_of(number))
            digest = _digest(program_of(number))
            if answer.status != 200 or _digest(answer.body) != digest:
                raise ServerTrouble(f"kernel {number} is not compiled right before anything went wrong: {answer.status}")
            self._stored[number] = (answer.headers["location"], digest)

    async def run(self) -> None:
        """Until `stop`; returns when all that was begun has its answer."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._stop.is_set():
            due += 1 / self._rate
            await asyncio.sleep(max(0.0, due - loop.time()))
            task = asyncio.create_task(self._one(self.seen))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        while self._running:
            await asyncio.wait(self._running)

    def stop(self) -> None:
        self._stop.set()

    async def _one(self, seen: Seen) -> None:
        new = self._draw.random() < NEW_PART
        number = self._draw.choice(list(self._stored))
        if new:
            number = self._new = self._new + 1
        begun = time.perf_counter()
        try:
            if new or self._draw.random() < 0.5:
                answer = await self._client.ask("POST", "/compile", body_of(number))
            else:
                answer = await self._client.ask("GET", self._stored[number][0])
        except Lost:
            seen.lost += 1
            return
        seen.seconds.append(time.perf_counter() - begun)
        gone = answer.status == 404 and not new  # a look never compiles: what Redis has lost may be missing
        if answer.status != 200 and not gone:
            what = f"{answer.status} {answer.body[:300].decode(errors='replace')}"
            seen.other[what] = seen.other.get(what, 0) + 1
        elif not gone and new:
            self._unproved.append((number, _digest(answer.body), seen))
        elif not gone:
            seen.wrong += _digest(answer.body) != self._stored[number][1]

    def prove(self) -> int:
        """Holds the new programs against a compile here, and counts the wrong ones where they were seen. How many there were."""
        for number, digest, seen in self._unproved:
            seen.wrong += digest != _digest(program_of(number))
        return len(self._unproved)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Stage:
    """What faults happen to."""

    redis: RedisServer
    proxy: Proxy
    replicas: Replicas
    client: Balanced
    draw: random.Random


Act = Callable[[Stage, float], Awaitable[None]]  # takes so many seconds, and has cleared up after itself when it returns


async def nothing(stage: Stage, seconds: float) -> None:
    await asyncio.sleep(seconds)


async def redis_killed(stage: Stage, seconds: float) -> None:
    stage.redis.kill()
    await asyncio.sleep(seconds / 2)
    await asyncio.to_thread(stage.redis.start)
    await asyncio.sleep(seconds / 2)


async def redis_paused(stage: Stage, seconds: float) -> None:
    assert stage.redis.process is not None
    stage.redis.process.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        stage.redis.process.send_signal(signal.SIGCONT)


async def redis_full(stage: Stage, seconds: float) -> None:
    await asyncio.to_thread(stage.redis.ask, "CONFIG", "SET", "maxmemory", "1")
    await asyncio.sleep(seconds)
    await asyncio.to_thread(stage.redis.ask, "CONFIG", "SET", "maxmemory", "0")


async def connections_reset(stage: Stage, seconds: float) -> None:
    for _ in range(max(1, round(seconds / 0.2))):
        stage.proxy.reset()
        await asyncio.sleep(0.2)


async def network_slow(stage: Stage, seconds: float) -> None:
    stage.proxy.delay_s = 2.0
    await asyncio.sleep(seconds)
    stage.proxy.delay_s = 0.0
    stage.proxy.reset()


async def bits_flipped(stage: Stage, seconds: float) -> None:
    """One bit of a random value, forty times a second."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.to_thread(_flip, stage)
        await asyncio.sleep(0.025)


FLIP = """local n = redis.call('RANDOMKEY')
if not n or redis.call('TYPE', n).ok ~= 'string' then return 0 end
local v = redis.call('GET', n)
local i = 1 + tonumber(ARGV[1]) % #v
redis.call('SETRANGE', n, i - 1, string.char(bit.bxor(string.byte(v, i), 2 ^ (tonumber(ARGV[1]) % 8))))
return 1"""


def _flip(stage: Stage) -> None:
    stage.redis.ask("EVAL", FLIP, "0", str(stage.draw.randrange(1 << 20)))


async def workers_killed(stage: Stage, seconds: float) -> None:
    """One each second, of any replica."""
    for _ in range(max(1, round(seconds))):
        workers = workers_of(stage.draw.choice(stage.replicas.servers))
        if workers:
            with suppress(ProcessLookupError):
                os.kill(stage.draw.choice(workers), signal.SIGKILL)
        await asyncio.sleep(1)


async def rolling_restart(stage: Stage, seconds: float) -> None:
    """Every replica is told to end, once another is there in its place; as long as that takes."""
    for old in list(stage.replicas.servers):
        new = await asyncio.to_thread(stage.replicas.add)
        stage.client.ports.append(new.port)
        stage.replicas.end(old, signal.SIGTERM)
        await asyncio.sleep(0.25)  # within the notice, as a proxy that asks `/readyz` would
        stage.client.ports.remove(old.port)
        await asyncio.to_thread(old.process.wait)
    await nothing(stage, seconds / 4)


async def replica_killed(stage: Stage, seconds: float) -> None:
    """At once, in the middle of whatever it does; the client finds out by itself."""
    old = stage.draw.choice(stage.replicas.servers)
    stage.replicas.end(old, signal.SIGKILL)
    await asyncio.sleep(seconds / 2)
    new = await asyncio.to_thread(stage.replicas.add)
    stage.client.ports[stage.client.ports.index(old.port)] = new.port
    await asyncio.sleep(seconds / 2)


@dataclass(frozen=True, slots=True)
class Fault:
    """costs_s: by how much it may put off an answer, by the deadlines that the service keeps to."""

    act: Act
    costs_s: float


REDIS_S = 4 * (0.2 + 0.25)  # the calls to it that a request makes in a row at most, each with its limit and what a stalled process may add
WORKER_S = 2.0  # a compile that is lost, a process that is forked, the compile again
RESENT_S = 1.0  # a broken connection is found, and the request sent to another replica
NONE = "none"

FAULTS: dict[str, Fault] = {
    NONE: Fault(nothing, 0.0),
    "redis killed and started again": Fault(redis_killed, REDIS_S),
    "redis paused": Fault(redis_paused, REDIS_S),
    "redis full": Fault(redis_full, REDIS_S),
    "connections reset": Fault(connections_reset, REDIS_S),
    "network slow by 2 s": Fault(network_slow, REDIS_S),
    "bits flipped": Fault(bits_flipped, REDIS_S),
    "workers killed": Fault(workers_killed, WORKER_S),
    "rolling restart": Fault(rolling_restart, RESENT_S),
    "replica killed": Fault(replica_killed, LEASE_S + RESENT_S),
}

BACK_MOST_S = 10.0  # until all is well again


def broken(found: Mapping[str, object]) -> list[str]:
    """What a measurement shows to be other than promised: the fault, the bound and the figure, in words; nothing where all is kept.

    p99 is held against that of the undisturbed load, which is the machine's, and what the fault may cost.
    """
    phases: dict[str, dict[str, float]] = found["phases"]  # type: ignore[assignment]  # as `Seen.to_json` makes them
    usual_ms = phases[NONE]["p99_ms"] if NONE in phases else 0.0
    told: list[str] = []
    for name, row in phases.items():
        other: dict[str, int] = row["other"]  # type: ignore[assignment]  # likewise
        for what, count in (
            ("wrong programs", row["wrong"]),
            ("requests lost", row["lost"]),
            ("answers that are none", sum(other.values())),
        ):
            if count:
                told.append(f"{name}: {what}: {count}, none may be")
        if row["back_s"] > BACK_MOST_S:
            told.append(f"{name}: well again after {row['back_s']:.1f} s, {BACK_MOST_S:g} s may be")
        allowed_ms = usual_ms + FAULTS[name].costs_s * 1000
        if name != NONE and row["p99_ms"] > allowed_ms:
            told.append(f"{name}: p99 of {row['p99_ms']:.0f} ms, {allowed_ms:.0f} ms may be")
    return told


def measure(
    names: Sequence[str], seconds: float, calm_s: float, replicas: int, rate: float, seed: int, tell: Callable[[str], None]
) -> dict[str, object]:
    """Each fault for so many seconds, and a calm after it; first none, to hold the others against. rate: requests per second in all."""
    names = [NONE, *(name for name in names if name != NONE)]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        redis = stack.enter_context(redis_running(Path(folder), "--maxmemory-policy", "noeviction"))
        return asyncio.run(_measured(Path(folder), redis, names, seconds, calm_s, replicas, rate, seed, tell))


async def _measured(
    place: Path,
    redis: RedisServer,
    names: Sequence[str],
    seconds: float,
    calm_s: float,
    count: int,
    rate: float,
    seed: int,
    tell: Callable[[str], None],
) -> dict[str, object]:
    draw = random.Random(seed)
    async with _stage(place, redis, count, draw) as stage:
        load = Load(stage.client, rate, draw)
        await load.prepare()
        running = asyncio.create_task(load.run())
        phases: dict[str, Seen] = {}
        for name in names:
            phases[name] = load.seen = Seen()
            await FAULTS[name].act(stage, seconds)
            phases[name].back_s = await _back(stage)
            await asyncio.sleep(calm_s)
            tell(name)
        load.stop()
        await running
        proved = load.prove()
    return {
        "bench": "faults",
        "replicas": count,
        "rate": rate,
        "seconds": seconds,
        "new": proved,
        "resent": stage.client.resent,
        "phases": {name: seen.to_json() for name, seen in phases.items()},
    }


@asynccontextmanager
async def _stage(place: Path, redis: RedisServer, count: int, draw: random.Random) -> AsyncIterator[Stage]:
    proxy = Proxy(redis.port)
    await proxy.start()
    starting = replicas_running(count, place, {**SETTINGS, "store": f"redis://127.0.0.1:{proxy.port}/0"})
    replicas = await asyncio.to_thread(starting.__enter__)
    client = Balanced([server.port for server in replicas.servers])
    try:
        yield Stage(redis, proxy, replicas, client, draw)
    finally:
        client.close()
        await asyncio.to_thread(starting.__exit__, None, None, None)
        await proxy.close()


async def _back(stage: Stage) -> float:
    """Seconds until every replica is ready and not degraded."""
    begun = time.monotonic()
    states: list[str] = []
    while time.monotonic() < begun + BACK_S:
        states = [await _state(server.port) for server in stage.replicas.servers]
        if set(states) == {"ready"}:
            return time.monotonic() - begun
        await asyncio.sleep(0.1)
    raise ServerTrouble(f"the replicas are not well again after {BACK_S:g} s: {states}")


async def _state(port: int) -> str:
    client = Balanced([port])
    try:
        return str(json.loads((await client.ask("GET", "/readyz")).body).get("status"))
    except Lost:
        return "gone"
    finally:
        client.close()


def text(found: dict[str, object]) -> str:
    """The measurement for a terminal."""
    lines = [
        f"{found['replicas']} replicas, {found['rate']:g} requests a second, {found['new']} new kernels, {found['resent']} sent again",
        f"{'':32}{'answers':>9}{'wrong':>7}{'lost':>6}{'other':>7}{'median':>9}{'p99':>9}{'slowest':>9}  ms{'back':>8} s",
    ]
    phases: dict[str, dict[str, float]] = found["phases"]  # type: ignore[assignment]  # as `Seen.to_json` makes them
    for name, row in phases.items():
        other: dict[str, int] = row["other"]  # type: ignore[assignment]  # likewise
        lines.append(
            f"{name:32}{row['answers']:9}{row['wrong']:7}{row['lost']:6}{sum(other.values()):7}{row['median_ms']:9.1f}{row['p99_ms']:9.1f}"
            f"{row['slowest_ms']:9.1f}    {row['back_s']:8.2f}"
        )
        lines += [f"    {many} × {what}" for what, many in other.items()]
    return "\n".join([*lines, *(f"broken: {what}" for what in broken(found))])
