"""`bench cache`: programs that are stored already, by the second, beside a bare server that sends the same bytes.

Lathe is served as its users serve it (`serve`, store in memory), once more without its access log, and the bare app by the same
web server with the same settings. All of them run all the time; each round asks every one of them for every call, in turns.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench import levels
from bench.kernels import OWN, read_cases
from bench.load import Loaded, load, request
from bench.processes import Reply, Server, ServerTrouble, ask, running
from core import COMPILER

SERVE = ("service", "serve")
SETTINGS: dict[str, object] = {"host": "127.0.0.1", "port": 0, "store": "memory://", "workers": 1}
LATHES: dict[str, dict[str, object]] = {"lathe": {}, "lathe, no access log": {"access_log": "false"}}
BARE = "bare"
KERNEL = "softmax-6x64"
TIMEOUT_S = 120.0  # for one turn; it ends by its count long before
PER_CALL = ("date", "x-request-id")  # headers that are made anew for each answer: the first by the web server


@dataclass(frozen=True, slots=True)
class Call:
    """sent: the request's bytes. reply: what Lathe says to it once the program is stored."""

    name: str
    path: str
    sent: bytes
    reply: Reply


Turns = dict[str, dict[str, list[Loaded]]]  # by call and server


def measure(requests: int, connections: int, rounds: int, tell: Callable[[str], None]) -> dict[str, object]:
    """The whole measurement, as it is stored. requests: per round, call and server."""
    (case,) = read_cases([OWN], "opencl", "heuristic", ids=[KERNEL])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        servers = {name: stack.enter_context(running(SERVE, {**SETTINGS, **more}, place / f"{name}.log")) for name, more in LATHES.items()}
        calls = [_calls(server, case.body) for server in servers.values()].pop()
        recorded = {call.path: {"headers": _repeatable(call.reply), "body": call.reply.body.decode()} for call in calls}
        (place / "answers.json").write_text(json.dumps(recorded))
        servers[BARE] = stack.enter_context(running(("bench.bare", str(place / "answers.json")), {}, place / "bare.log"))
        for call in calls:
            _check_same(servers[BARE], call, case.body)
        turns = uvloop.run(_rounds(servers, calls, requests, connections, rounds, tell))
    return {
        "bench": "cache",
        "requests": requests,
        "connections": connections,
        "rounds": rounds,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cores": len(os.sched_getaffinity(0)),
        "compiler": COMPILER,
        "kernel": KERNEL,
        "bytes": {call.name: {"sent": len(call.sent), "body": len(call.reply.body)} for call in calls},
        "calls": {name: _call_json(by_server) for name, by_server in turns.items()},
        "levels": levels.measure(requests, connections, rounds, tell),
    }


def _calls(server: Server, body: bytes) -> list[Call]:
    """What is asked for, with the program compiled and stored."""
    first = ask(server.port, "POST", "/compile", body)
    if first.status != 200:
        raise ServerTrouble(f"the service does not compile {KERNEL}: {first.body[:500].decode(errors='replace')}")
    hit = ask(server.port, "POST", "/compile", body)
    path = dict(hit.headers)["location"]
    stored = ask(server.port, "GET", path)
    return [
        Call("GET /program/{key}", path, request("GET", path), stored),
        Call("POST /compile", "/compile", request("POST", "/compile", body), hit),
    ]


def _repeatable(reply: Reply) -> list[tuple[str, str]]:
    """The headers for the bare app to repeat; all but the date, which its web server sends too."""
    return [(name, value) for name, value in reply.headers if name != "date"]


def _check_same(server: Server, call: Call, body: bytes) -> None:
    method = call.sent.split(b" ", 1)[0].decode()
    reply = ask(server.port, method, call.path, body if method == "POST" else None)
    if (reply.status, reply.body) != (call.reply.status, call.reply.body):
        raise ServerTrouble(f"the bare app does not send what Lathe sends to {call.name}")
    ours, theirs = ({name: value for name, value in r.headers if name not in PER_CALL} for r in (call.reply, reply))
    if ours != theirs or len(call.reply.headers) != len(reply.headers):
        raise ServerTrouble(f"the bare app's headers differ: {theirs}, not {ours}")


async def _rounds(
    servers: dict[str, Server],
    calls: Sequence[Call],
    requests: int,
    connections: int,
    rounds: int,
    tell: Callable[[str], None],
) -> Turns:
    turns: Turns = {call.name: {name: [] for name in servers} for call in calls}
    order = [(call, name) for call in calls for name in servers]
    for call, name in order:
        await load(servers[name], call.sent, call.reply.body, max(1, requests // 4), connections, TIMEOUT_S)
    for number in range(rounds):
        for call, name in order if number % 2 == 0 else reversed(order):
            turn = await load(servers[name], call.sent, call.reply.body, requests, connections, TIMEOUT_S)
            turns[call.name][name].append(turn)
        tell(f"round {number + 1} of {rounds}")
    return turns


def _call_json(by_server: dict[str, list[Loaded]]) -> dict[str, object]:
    """Each server's rounds with their medians, and beside the bare one the median of each round's ratio."""
    bare = by_server[BARE]
    found: dict[str, object] = {}
    for name, turns in by_server.items():
        found[name] = {
            "per_second": round(statistics.median(t.per_second for t in turns), 1),
            "cpu_us": round(statistics.median(t.cpu_us for t in turns), 2),
            "p99_of_median": round(statistics.median(t.p99_of_median for t in turns), 2),
            "p99_of_bare": round(statistics.median(t.p99_of_median / b.p99_of_median for t, b in zip(turns, bare, strict=True)), 2),
            "per_second_of_bare": round(statistics.median(t.per_second / b.per_second for t, b in zip(turns, bare, strict=True)), 4),
            "cpu_of_bare": round(statistics.median(t.cpu_us / b.cpu_us for t, b in zip(turns, bare, strict=True)), 4),
            "rounds": [{"per_second": round(t.per_second, 1), "cpu_us": round(t.cpu_us, 2)} for t in turns],
        }
    return found


def text(found: dict[str, object]) -> str:
    """The measurement for a terminal."""
    lines = [
        f"{found['requests']} requests a turn over {found['connections']} connections, median of {found['rounds']} rounds",
        f"{found['python']}, {found['cores']} cores, shared by servers and client",
    ]
    calls: dict[str, dict[str, dict[str, float]]] = found["calls"]  # type: ignore[assignment]  # as `_call_json` makes them
    for call, by_server in calls.items():
        lines += ["", f"{call:24}{'per second':>12}{'of bare':>9}{'CPU µs each':>13}{'of bare':>9}{'p99/median':>12}{'of bare':>9}"]
        lines += [
            f"  {name:22}{row['per_second']:12.0f}{row['per_second_of_bare']:8.2f}×{row['cpu_us']:13.1f}{row['cpu_of_bare']:8.2f}×"
            f"{row['p99_of_median']:12.1f}{row['p99_of_bare']:8.2f}×"
            for name, row in by_server.items()
        ]
    return "\n".join([*lines, *levels.text(found["levels"])])  # type: ignore[arg-type]  # as `measure` makes them
