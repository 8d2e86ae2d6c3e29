"""OpenCL devices through pyopencl. Drivers are loaded in other processes only, so that a broken one can't take the service down."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from service.device.device import DeviceBusy, DeviceLost, Facts, RunTimedOut, Trial, Verdict
from service.logs import logger

log = logger("device")

GRACE_S = 5.0  # past a time limit, for the kill itself
START_S = 60.0  # for a process to load its driver and run a first kernel
TASKS = 200  # runs after which a process is replaced
ORPHAN_CHECK_S = 1.0
TRIES = 2  # a program that ends its process is tried once more before it is called wrong


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a run may take. cache: a folder for what drivers compile; memory_bytes: address space of a device's process."""

    run_s: float = 60.0
    waiting: int = 16
    memory_bytes: int = 16 << 30
    cache: str = ""


def discover(cache: str = "", timeout_s: float = START_S) -> list[Facts]:
    """The OpenCL devices there are, found by a program of its own. An empty list where the driver is missing or breaks."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("probe.py"))]
    try:
        done = subprocess.run(command, env=os.environ | environment(cache), capture_output=True, text=True, timeout=timeout_s, check=True)
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        why = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        log.warning("no OpenCL device", why=str(why)[-400:])
        return []
    return [Facts(one["name"], one["driver"], "opencl", one["options"], tuple(one["choice"])) for one in found]


def environment(cache: str) -> dict[str, str]:
    """What a process that loads drivers finds in its environment beside what is there."""
    folder = cache or os.environ.get("POCL_CACHE_DIR") or str(Path(tempfile.gettempdir()) / f"lathe-pocl-{os.getuid()}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    return {"POCL_CACHE_DIR": folder, "PYOPENCL_NO_CACHE": "1"}


def begin(cache: str, memory_bytes: int) -> None:
    """Runs first in a device's process, before any driver is loaded."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # so that a process that hangs in a driver can be ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service decides when this process ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.environ.update(environment(cache))
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_CHECK_S)
    os._exit(1)


def _pool(cache: str, tasks: int, memory_bytes: int) -> ProcessPool:
    return ProcessPool(max_workers=1, max_tasks=tasks, initializer=begin, initargs=(cache, memory_bytes), context=get_context("spawn"))


# What it looks like when a process is lost, in its own words or in those of its pool.
LOST = (ProcessExpired, BrokenProcessPool, FutureCancelled, RuntimeError, OSError)

_runners: dict[tuple[int, int], Any] = {}  # in a device's process: made once, used for each run


def judged(choice: tuple[int, int], trial: Trial) -> Verdict:
    """Runs in the device's process."""
    from service.device.judge import judge
    from service.device.run import Runner

    if choice not in _runners:
        _runners[choice] = Runner(choice)
    return judge(_runners[choice], trial)


class OpenclDevice:
    """One device, by way of a pebble pool of one process. Runs wait for each other."""

    def __init__(self, facts: Facts, conditions: Conditions) -> None:
        self._facts = facts
        self._conditions = conditions
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._alive = False
        self._runs = 0  # of the present process
        self._pool = self._new()

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def alive(self) -> bool:
        return self._alive

    def _new(self) -> ProcessPool:
        return _pool(self._conditions.cache, TASKS, self._conditions.memory_bytes)

    async def start(self) -> bool:
        async with self._turn:
            await self._warm()
        return self._alive

    async def judge(self, trial: Trial) -> Verdict:
        if self._waiting >= self._conditions.waiting:
            raise DeviceBusy(
                f"{self._waiting} runs wait for {self._facts.name}, as many as may",
                retry_after_s=5,
                limit="run_queue",
                allowed=self._conditions.waiting,
                needed=self._waiting + 1,
            )
        self._waiting += 1
        try:
            async with self._turn:
                return await self._judge(trial)
        finally:
            self._waiting -= 1

    async def _warm(self) -> None:
        """Sees to it that the process is there and its driver loaded, so that no run's time goes into that."""
        if 0 < self._runs < TASKS:
            return
        self._runs = 0
        try:
            verdict = await self._run(KNOWN, START_S)
            self._alive = verdict.verdict == "right"
        except (*LOST, TimeoutError, MemoryError) as error:
            log.warning("a device does not answer", device=self._facts.name, why=f"{type(error).__name__}: {error}")
            self._renew()
            self._alive = False

    async def _judge(self, trial: Trial) -> Verdict:
        seconds = self._conditions.run_s
        for left in reversed(range(TRIES)):
            await self._warm()
            if not self._alive:
                raise DeviceLost(f"{self._facts.name} does not answer", retry_after_s=10)
            try:
                verdict = await self._run(trial, seconds)
            except TimeoutError:
                self._renew()
                raise RunTimedOut(f"the run was stopped at its time limit of {seconds:g} s", limit="run_seconds", allowed=seconds) from None
            except LOST as error:
                self._renew()
                if not left:
                    code = f" (exit code {error.exitcode})" if isinstance(error, ProcessExpired) else ""
                    return Verdict("wrong", "crash", f"the program ended its process {TRIES} times{code}")
                continue
            if verdict.suspect:
                self._renew()
            return verdict
        raise AssertionError("unreachable")

    async def _run(self, trial: Trial, seconds: float) -> Verdict:
        self._runs += 1
        future = self._pool.schedule(judged, args=[self._facts.choice, trial], timeout=seconds)
        async with asyncio.timeout(seconds + START_S + GRACE_S):
            verdict: Verdict = await asyncio.wrap_future(future)
        return verdict

    def _renew(self) -> None:
        """Another process, with a pool of its own: whatever has happened to this one concerns nobody else."""
        self._end()
        self._runs = 0
        self._pool = self._new()

    def _end(self) -> None:
        pool = self._pool
        for pid in list(pool._pool_manager.worker_manager.workers):  # pebble has no name of its own for the ids
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pool.stop()  # type: ignore[no-untyped-call]  # pebble's
        threading.Thread(target=pool.join, daemon=True).start()

    async def close(self) -> None:
        await asyncio.to_thread(self._end)


_KNOWN_AST: Mapping[str, Any] = {
    "version": 1,
    "variables": [],
    "nodes": [
        {"op": "LOAD", "buffer": 1, "dtype": "int32", "views": [{"shape": [8], "strides": [1]}]},
        {"op": "NEG", "src": [0]},
        {"op": "STORE", "buffer": 0, "dtype": "int32", "views": [{"shape": [8], "strides": [1]}], "src": [1]},
    ],
    "outputs": [2],
}
KNOWN = Trial(
    program={
        "name": "known",
        "source": "kernel void known(global int *a, const global int *b) { int i = get_global_id(0); a[i] = -b[i]; }",
        "device": {},
        "global_size": [2, 1, 1],
        "local_size": [4, 1, 1],
        "shared_bytes": 0,
        "proofs": {"open": []},
        "arguments": [
            {"kind": "buffer", "index": 0, "dtype": "int32", "size": 8},
            {"kind": "buffer", "index": 1, "dtype": "int32", "size": 8},
        ],
    },
    request={"ast": _KNOWN_AST, "device": {"target": "opencl"}, "optimize": "none"},
    runs=((0, False),),
)
