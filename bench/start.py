"""`bench start`: what a fresh process pays before its first step, with the device's compiler and with binaries that the service has.

A service compiles some programs and their binaries. Then client processes start one after another, each with nothing cached, and make all
of them ready: by the compiler of the target themselves, or by loading what is stored. How long the service's compilers took is told too.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

from bench.kernels import OWN, read_cases
from bench.processes import ROOT, Server, ServerTrouble, ask, running
from bench.start_client import FORMATS

SERVE = ("service", "serve")
WAYS = ("own", "stored")
_BINARY = re.compile(r"binary-\w+;dur=([0-9.]+)")
CLIENT_S = 600.0
BUILD_SETTINGS: dict[str, object] = {"host": "127.0.0.1", "port": 0, "store": "memory://", "workers": 1, "compile_seconds": 120}


class Started(TypedDict):
    """One target. own_…, stored_…: medians over rounds, of all programs together. made_s: the service's compilers, by the clock."""

    programs: int
    bytes: int
    made_s: float
    own_cpu_s: float
    own_wall_s: float
    stored_cpu_s: float
    stored_wall_s: float


def measure(
    targets: Sequence[str], files: Sequence[Path], sample: int, seed: int, rounds: int, tell: Callable[[str], None]
) -> dict[str, Started]:
    """sample: programs of each target, drawn from the files."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = stack.enter_context(running(SERVE, BUILD_SETTINGS, Path(folder) / "server.log"))
        return {target: _target(server, target, files or [OWN], sample, seed, rounds, tell) for target in targets}


def _target(
    server: Server, target: str, files: Sequence[Path], sample: int, seed: int, rounds: int, tell: Callable[[str], None]
) -> Started:
    keys: list[str] = []
    made_s = 0.0
    for case in read_cases(files, target, "heuristic", sample, seed):
        reply = ask(server.port, "POST", "/compile", json.dumps({**json.loads(case.body), "binary": [FORMATS[target]]}).encode())
        if reply.status == 200:
            keys.append(json.loads(reply.body)["key"])
            made_s += sum(float(ms) for ms in _BINARY.findall(dict(reply.headers)["server-timing"])) / 1000
        elif reply.status != 422:
            raise ServerTrouble(f"{case.id}: {reply.status} {reply.body[:300]!r}")
    if not keys:
        raise ServerTrouble(f"no binary of {target} can be made here")
    tell(f"{target}: {len(keys)} programs")
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else WAYS[::-1]:
            found[way].append(_client(server, target, way, keys))
            tell(f"{target}, {way}: {found[way][-1]['cpu_s']:.2f} s of CPU")

    def median(way: str, what: str) -> float:
        return statistics.median(one[what] for one in found[way])

    return {
        "programs": len(keys), "bytes": round(median("stored", "bytes")), "made_s": made_s,
        "own_cpu_s": median("own", "cpu_s"), "own_wall_s": median("own", "wall_s"),
        "stored_cpu_s": median("stored", "cpu_s"), "stored_wall_s": median("stored", "wall_s"),
    }  # fmt: skip


def _client(server: Server, target: str, way: str, keys: Sequence[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "POCL_CACHE_DIR": cache, "TMPDIR": cache, "PYOPENCL_NO_CACHE": "1"}
        command = [sys.executable, "-X", "faulthandler", "-P", "-m", "bench.start_client", target, way, str(server.port)]
        done = subprocess.run(
            command, env=environment, input="\n".join(keys), capture_output=True, text=True, timeout=CLIENT_S, check=False
        )
    if done.returncode:
        raise ServerTrouble(f"a client ends with status {done.returncode}: {done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def text(found: dict[str, Started]) -> str:
    """A table for a terminal."""
    head = f"{'':8}{'programs':>9}{'own CPU s':>11}{'stored':>9}{'times':>7}{'own wall s':>12}{'stored':>9}{'KiB':>7}{'service wall s':>16}"
    rows = [
        f"{target:8}{one['programs']:9}{one['own_cpu_s']:11.2f}{one['stored_cpu_s']:9.3f}{one['own_cpu_s'] / one['stored_cpu_s']:7.0f}"
        f"{one['own_wall_s']:12.2f}{one['stored_wall_s']:9.3f}{one['bytes'] / 1024:7.0f}{one['made_s']:16.2f}"
        for target, one in found.items()
    ]
    return "\n".join([head, *rows])
