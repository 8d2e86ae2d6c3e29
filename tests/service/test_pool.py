"""Worker processes: limits kept, losses made good, nothing else disturbed. Every process here is a real one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from core import Limits
from service.errors import Draining, OutOfMemory, QueueFull, TimedOut, WorkerLost
from service.flight.local import Abandoned
from service.metrics import Metrics
from service.workers.job import Failed, Job, Made, Outcome
from service.workers.pool import Pool
from service.workers.slot import Sizes
from tests.service.fake import poll_file
from tests.service.fake_task import run
from tests.service.process import served

pytestmark = pytest.mark.anyio

LARGE = 1 << 30


def job(**body: Any) -> Job:
    import json

    return Job(json.dumps({"kernel": 1, **body}).encode(), Limits(), "")


class Started:
    """A pool that runs, and its metrics."""

    def __init__(self, **sizes: Any) -> None:
        self.metrics = Metrics()
        values = {"workers": 1, "memory_bytes": LARGE, "job_s": 60.0, **sizes}
        self.pool: Pool[Job, Outcome] = Pool(run, Sizes(**values), self.metrics)

    async def outcome(self, **body: Any) -> Outcome:
        return (await self.pool.job(job(**body)))[0]

    async def made(self, **body: Any) -> Made:
        outcome = await self.outcome(**body)
        assert isinstance(outcome, Made)
        return outcome

    def restarts(self, reason: str) -> float:
        return self.metrics.registry.get_sample_value("lathe_worker_restarts_total", {"reason": reason}) or 0.0


@pytest.fixture
async def started(request: pytest.FixtureRequest) -> AsyncIterator[Started]:
    made = Started(**getattr(request, "param", {}))
    await made.pool.start()
    await made.pool.until_answers()
    yield made
    await made.pool.close()


def sizes(**values: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("started", [values], indirect=True, ids=[" ".join(values)])


async def until(true: Callable[[], Any]) -> Any:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.005)
        return true()


async def test_a_job_comes_back_with_what_it_made(started: Started) -> None:
    made = await started.made(kernel=7)

    assert b'"k_7"' in made.program
    assert {"read", "lower"} == set(made.stages)


async def test_a_failure_is_an_outcome_not_an_exception(started: Started) -> None:
    assert isinstance(await started.outcome(do="refuse"), Failed)


@sizes(job_s=0.3)
async def test_a_job_past_its_time_is_killed_and_the_next_one_works(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(TimedOut):
        await started.outcome(do="spin", file=str(file))
    pid = int(file.read_text())

    await until(lambda: not alive(pid))
    assert 1 == started.restarts("time_limit")
    await started.made()


@sizes(memory_bytes=400 << 20)
async def test_a_job_that_wants_too_much_memory_fails_and_the_next_one_works(started: Started) -> None:
    outcome = await started.outcome(do="eat", allowed=400 << 20)

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, OutOfMemory)
    await started.made()


async def test_memory_that_runs_out_where_nobody_looks_is_the_same_limit(started: Started) -> None:
    with pytest.raises(OutOfMemory):
        await started.outcome(do="eat_unseen")

    assert 1 == started.restarts("memory_limit")
    await started.made()


async def test_a_job_whose_worker_is_killed_is_tried_again_without_a_word(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    running = asyncio.ensure_future(started.made(do="die_once", file=str(file)))
    pid = int(await until(lambda: poll_file(file)))
    os.kill(pid, signal.SIGKILL)

    assert b'"k_1"' in (await running).program
    assert 1 == started.restarts("lost")


async def test_a_job_that_kills_two_workers_is_given_up_and_the_next_one_works(started: Started) -> None:
    with pytest.raises(WorkerLost):
        await started.outcome(do="die")

    assert 2 == started.restarts("lost")
    await started.made()


@sizes(workers=2)
async def test_a_killed_worker_disturbs_no_other(started: Started, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    waiting = asyncio.ensure_future(started.made(do="wait", file=str(one)))
    dying = asyncio.ensure_future(started.made(do="die_once", file=str(two)))
    await until(lambda: poll_file(one))
    os.kill(int(await until(lambda: poll_file(two))), signal.SIGKILL)
    await dying
    Path(f"{one}.go").touch()
    await waiting

    assert 1 == started.restarts("lost")


@sizes(workers=2)
async def test_idle_workers_may_be_killed_at_any_time(started: Started) -> None:
    for _ in range(3):
        await until(lambda: len(started.pool.pids()) == 2)
        for pid in started.pool.pids():
            os.kill(pid, signal.SIGKILL)
        await started.made()


async def test_idle_workers_that_died_are_replaced_before_anybody_asks(started: Started) -> None:
    (pid,) = started.pool.pids()
    os.kill(pid, signal.SIGKILL)
    await until(lambda: started.pool.pids() not in ([], [pid]))

    assert 1 == started.restarts("lost")
    await started.made()


@sizes(workers=2)
async def test_what_workers_are_forked_from_may_be_killed_too(started: Started) -> None:
    """Those there are go on; whoever is started next has it started anew."""
    workers = await until(lambda: started.pool.pids() if len(started.pool.pids()) == 2 else None)
    (seed,) = {parent(pid) for pid in workers}
    os.kill(seed, signal.SIGKILL)
    await until(lambda: not alive(seed))
    await started.made()
    before = started.pool.pids()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    await until(lambda: len(set(started.pool.pids()) - set(workers)) == 2)

    assert workers == before
    await started.made()


@sizes(tasks=3)
async def test_a_worker_is_replaced_after_its_tasks(started: Started, tmp_path: Path) -> None:
    pids: list[str] = []
    for i in range(8):
        file = tmp_path / str(i)
        Path(f"{file}.go").touch()
        await started.made(do="wait", file=str(file))
        pids.append(file.read_text())

    assert len(set(pids)) >= 3
    assert all(pids.count(pid) <= 3 for pid in pids)


@sizes(queue=2)
async def test_more_than_the_queue_holds_are_turned_away_with_the_numbers(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    first = asyncio.ensure_future(started.made(do="wait", file=str(file)))
    await until(lambda: poll_file(file))
    queued = [asyncio.ensure_future(started.made()) for _ in range(2)]
    await until(lambda: started.pool.waiting == 2)
    started.pool.update()
    with pytest.raises(QueueFull) as full:
        await started.made()

    assert ("queue_limit", 3, 2) == tuple(full.value.facts()[name] for name in ("limit", "needed", "allowed"))
    assert full.value.retry_after_s >= 1
    assert 2 == started.metrics.registry.get_sample_value("lathe_queue_depth")
    assert (started.metrics.registry.get_sample_value("lathe_queue_oldest_seconds") or 0) > 0
    Path(f"{file}.go").touch()
    await asyncio.gather(first, *queued)
    await started.made()


@sizes(queue_s=0.05)
async def test_who_waits_too_long_is_turned_away(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    first = asyncio.ensure_future(started.made(do="wait", file=str(file)))
    await until(lambda: poll_file(file))
    with pytest.raises(QueueFull, match="no worker is free"):
        await started.made()
    Path(f"{file}.go").touch()
    await first

    assert 0 == started.pool.waiting


async def test_who_stops_waiting_leaves_the_queue_and_the_work_that_runs_goes_on(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    running = asyncio.ensure_future(started.made(do="wait", file=str(file)))
    await until(lambda: poll_file(file))
    queued = asyncio.ensure_future(started.made())
    await until(lambda: started.pool.waiting == 1)
    queued.cancel()
    running.cancel()
    await asyncio.gather(queued, running, return_exceptions=True)

    assert (0, 1) == (started.pool.waiting, started.pool.running)
    Path(f"{file}.go").touch()
    await started.made()
    assert 0 == started.restarts("lost")


async def test_a_job_nobody_wants_any_more_does_not_begin(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(Abandoned):
        await started.pool.job(job(do="wait", file=str(file)), lambda: False)

    assert not file.exists()
    await started.made()


async def test_draining_finishes_what_was_begun_and_begins_nothing(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    running = asyncio.ensure_future(started.made(do="wait", file=str(file)))
    await until(lambda: poll_file(file))
    queued = asyncio.ensure_future(started.made())
    await until(lambda: started.pool.waiting == 1)
    draining = asyncio.ensure_future(started.pool.drain())
    await asyncio.sleep(0)
    with pytest.raises(Draining):
        await started.made()
    assert not draining.done()
    Path(f"{file}.go").touch()
    await draining

    assert (await running).program == (await queued).program


async def test_closing_ends_the_processes_whatever_they_do(tmp_path: Path) -> None:
    started = Started()
    await started.pool.start()
    file = tmp_path / "pid"
    running = asyncio.ensure_future(started.made(do="spin", file=str(file)))
    pid = int(await until(lambda: poll_file(file)))
    await started.pool.close()
    await until(lambda: not alive(pid))

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_states_of_workers_are_counted(started: Started, tmp_path: Path) -> None:
    def state(name: str) -> float | None:
        return started.metrics.registry.get_sample_value("lathe_workers", {"state": name})

    assert (0, 1, 0) == tuple(state(name) for name in ("starting", "idle", "busy"))
    file = tmp_path / "pid"
    running = asyncio.ensure_future(started.made(do="wait", file=str(file)))
    await until(lambda: poll_file(file))
    assert (0, 0, 1) == tuple(state(name) for name in ("starting", "idle", "busy"))
    Path(f"{file}.go").touch()
    await running


async def test_many_replacements_leave_no_file_open_and_no_thread_behind(started: Started) -> None:
    import threading

    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    async def lose() -> None:
        for pid in started.pool.pids():
            os.kill(pid, signal.SIGKILL)
        await started.made()

    await lose()
    before = held()
    for _ in range(5):
        await lose()
    await until(lambda: held()[0] <= before[0] + 2 and held()[1] <= before[1] + 2)


async def test_a_worker_has_the_compiler_loaded_and_warm_in_memory_it_shares(started: Started) -> None:
    """What a new process has of its own is a small part of what it uses."""
    (pid,) = started.pool.pids()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]}

    assert kib["Private_Dirty"] < kib["Rss"] / 2


async def test_workers_end_when_the_service_has_ended_without_a_word() -> None:
    with served(["tests.service.fake_service"], workers=2, store="memory://") as service:
        seed = next(pid for pid in children(service.process.pid) if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes())
        workers = children(seed)
        service.signal(signal.SIGKILL)
        service.wait()
        await until(lambda: not any(map(alive, [seed, *workers])))

    assert 2 == len(workers)


LEFT = """
import asyncio
from service.metrics import Metrics
from service.workers.pool import Pool
from service.workers.slot import Sizes
from tests.service.fake_task import run


async def leave() -> None:
    pool = Pool(run, Sizes(workers=1), Metrics())
    await pool.start()
    await pool.until_answers()
    print(*pool.pids(), flush=True)


if __name__ == "__main__":
    asyncio.run(leave())
"""


async def test_a_program_that_closes_no_pool_ends_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "left.py"
    file.write_text(LEFT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(file)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    await until(lambda: not alive(int(done.stdout)))

    assert (0, "") == (done.returncode, done.stderr)


def children(pid: int) -> list[int]:
    return [int(child) for thread in Path(f"/proc/{pid}/task").iterdir() for child in (thread / "children").read_text().split()]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False
