"""What goes wrong with device compilers: none there, refusing, hanging, dying, too large; and with what is kept of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from typer.testing import CliRunner

from service.__main__ import cli
from service.api.examples import SUM
from service.app import build
from service.services import Services
from service.store.keys import Key
from service.workers.compiler import CoreCompiler
from tests.service.compilers import Toolbox
from tests.service.fake import settings, told
from tests.service.process import until
from tests.service.redis_servers import RedisServer

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
SO: Json = {"ast": SUM, "device": {"target": "c"}, "binary": ["so"]}


@pytest.fixture
def toolbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    """A `gcc` of the test's own is the first on the PATH, and folders for temporary files are made where the test can look."""
    made = Toolbox(tmp_path / "tools").gcc()
    monkeypatch.setenv("PATH", made.path)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return made


class Running:
    """A service in this process with workers in others, and a client of it."""

    def __init__(self, services: Services, client: httpx.AsyncClient) -> None:
        self.services = services
        self.client = client

    async def compile(self, body: Json) -> httpx.Response:
        return await self.client.post("/compile", json=body)

    def metric(self, name: str, **labels: str) -> float:
        return self.services.metrics.registry.get_sample_value(name, labels) or 0.0

    def workers(self) -> list[int]:
        compiler = self.services.compiler
        assert isinstance(compiler, CoreCompiler)
        return compiler._pool.pids()


@asynccontextmanager
async def running(**values: Any) -> AsyncIterator[Running]:
    front, services = build(settings(**{"devices": "none", "compile_seconds": 120, **values}))
    transport = httpx.ASGITransport(front, raise_app_exceptions=False)
    async with front.life(), httpx.AsyncClient(transport=transport, base_url="http://lathe", timeout=120) as client:
        yield Running(services, client)


# ---- no compiler -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for package in ("cuda", "cuda.bindings", "nvidia.cuda_nvcc"):
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.usefixtures("nothing_installed")
async def test_where_no_compiler_is_installed_binaries_are_refused_by_name() -> None:
    async with running() as service:
        for target, format_, wanted in (("c", "so", "gcc or clang"), ("cuda", "cubin", "nvrtc"), ("opencl", "clbin", "opencl")):
            problem = told(await service.compile({"ast": SUM, "device": {"target": target}, "binary": True}), 422, "target")
            assert ("/binary", f"{target} has no compiler for the binary format {format_} on this host: {wanted} would do") == (
                problem["pointer"],
                problem["detail"].partition(": ")[2],
            )
        plain = await service.compile({"ast": SUM, "device": {"target": "c"}})
        targets = (await service.client.get("/targets")).json()["targets"]

        assert 200 == plain.status_code
        assert [([], {})] * 3 == [(targets[name]["binaries"], targets[name]["compilers"]) for name in ("c", "cuda", "opencl")]
        assert "/program/{key}/binary/{format}" not in (await service.client.get("/openapi.json")).json()["paths"]
        assert 404 == (await service.client.get(f"{plain.headers['location']}/binary/so")).status_code


async def test_binaries_can_be_switched_off(toolbox: Toolbox) -> None:
    async with running(binaries="none") as service:
        told(await service.compile(SO), 422, "target")

        assert [] == toolbox.calls()


# ---- compilers that fail ---------------------------------------------------------------------------------------------------------


async def test_a_text_the_compiler_refuses_is_a_defect_that_shows_what_it_said(toolbox: Toolbox) -> None:
    toolbox.gcc("print('kernel.c:1:1: error: unknown type name', file=sys.stderr); sys.exit(1)")
    async with running() as service:
        problem = told(await service.compile(SO), 500, "compiler")

        assert ("kernel.c:1:1: error: unknown type name", "the c compiler rejects our text") == (problem["log"], problem["detail"])
        assert 1 == service.metric("lathe_binaries_total", format="so", result="compiler")


async def test_what_a_compiler_says_is_told_within_bounds(toolbox: Toolbox) -> None:
    toolbox.gcc("print('error ' * 100_000); sys.exit(1)")
    async with running() as service:
        problem = told(await service.compile(SO), 500, "compiler")

        assert 8001 == len(problem["log"])


async def test_a_compiler_that_does_not_end_is_stopped_with_all_it_has_started(toolbox: Toolbox, tmp_path: Path) -> None:
    toolbox.gcc(f"child = subprocess.Popen(['sleep', '600']); open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid)); child.wait()")
    async with running(compile_seconds=4) as service:
        workers = service.workers()
        problem = told(await service.compile(SO), 504, "limit")

        assert ("compile_seconds", 4) == (problem["limit"], problem["allowed"])
        assert workers == service.workers()  # it cost no worker
    pids = toolbox.calls()[0], int((tmp_path / "child").read_text())
    until(lambda: all(ended(pid) for pid in pids), "the compiler and its child have ended")


async def test_a_compiler_that_wants_too_much_memory_is_refused_by_the_limit(toolbox: Toolbox) -> None:
    toolbox.gcc("print('cc1: out of memory allocating 65536 bytes after a total of 2147483648 bytes', file=sys.stderr); sys.exit(1)")
    async with running() as service:
        assert "worker_memory_bytes" == told(await service.compile(SO), 422, "limit")["limit"]


async def test_workers_bound_the_memory_of_what_they_start(toolbox: Toolbox) -> None:
    """Its address space is the worker's."""
    toolbox.gcc("import resource; print(resource.getrlimit(resource.RLIMIT_AS)); sys.exit(1)")
    async with running(worker_memory_bytes=1 << 30) as service:
        assert f"({1 << 30}, {1 << 30})" == told(await service.compile(SO), 500, "compiler")["log"]


async def test_a_binary_that_is_too_large_is_refused_by_the_limit_and_not_made_again(toolbox: Toolbox) -> None:
    async with running(binary_bytes=1000) as service:
        problems = [told(await service.compile(SO), 422, "limit") for _ in range(2)]

        assert [("binary_bytes", 1000)] * 2 == [(problem["limit"], problem["allowed"]) for problem in problems]
        assert problems[0]["needed"] > 1000
        assert 1 == len(toolbox.calls())


async def test_a_lost_worker_takes_its_compiler_along_and_another_one_makes_the_binary(toolbox: Toolbox) -> None:
    toolbox.gcc("time.sleep(600) if calls == 1 else real()")
    async with running() as service:
        asked = asyncio.ensure_future(service.compile(SO))
        await eventually(toolbox.calls, "the compiler runs")
        (worker,) = service.workers()
        os.kill(worker, signal.SIGKILL)

        assert (200, 2) == ((await asked).status_code, len(toolbox.calls()))
        await eventually(lambda: ended(toolbox.calls()[0]), "the first compiler has ended")


async def test_a_program_whose_compiler_kills_workers_is_left_alone_and_the_program_is_served(toolbox: Toolbox) -> None:
    toolbox.gcc("os.kill(os.getppid(), 9); time.sleep(600)")
    async with running() as service:
        problem = told(await service.compile(SO), 503, "unavailable")
        again = told(await service.compile(SO), 503, "unavailable")

        assert 2 == len(toolbox.calls())
        assert problem["detail"] != again["detail"]
        assert 200 == (await service.compile({"ast": SUM, "device": {"target": "c"}})).status_code


# ---- once, and kept --------------------------------------------------------------------------------------------------------------


async def test_a_binary_is_made_once_however_many_ask(toolbox: Toolbox) -> None:
    async with running(workers=2) as service:
        answers = await asyncio.gather(*(service.compile(SO) for _ in range(8)))

        assert [200] * 8 == [answer.status_code for answer in answers]
        assert 1 == len(toolbox.calls())
        assert 1 == service.metric("lathe_binaries_total", format="so", result="compiled")


@pytest.fixture(params=["sqlite", "redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, redis_with: Callable[..., RedisServer]) -> tuple[str, Callable[[], int]]:
    """The address of a store, and how to change a byte in each binary that it keeps; that tells how many."""
    if request.param == "redis":
        server = redis_with()

        def in_redis() -> int:
            with redis.Redis(port=server.port) as client:
                names = list(client.scan_iter("lathe:*:binary"))
                for name in names:
                    client.setrange(name, 200, bytes([client.getrange(name, 200, 200)[0] ^ 1]))
                return len(names)

        return server.url, in_redis
    file = tmp_path / "lathe.db"

    def in_file() -> int:
        with sqlite3.connect(file) as db:
            rows = db.execute("SELECT key, value FROM entries WHERE kind='binary'").fetchall()
            for key, value in rows:
                changed = value[:200] + bytes([value[200] ^ 1]) + value[201:]
                db.execute("UPDATE entries SET value=? WHERE kind='binary' AND key=?", (changed, key))
        db.close()
        return len(rows)

    return f"sqlite:///{file}", in_file


async def test_a_damaged_binary_is_never_served_and_made_again(toolbox: Toolbox, kept: tuple[str, Callable[[], int]]) -> None:
    store, damage = kept
    async with running(store=store) as first:
        made = await first.compile(SO)
        path = f"{made.headers['location']}/binary/so"
        whole = await first.client.get(path)
    assert 1 == damage()
    async with running(store=store) as second:
        damaged = await second.client.get(path)
        again = await second.compile(SO)
        served = await second.client.get(path)

        assert (200, 404, 200, 200) == (whole.status_code, damaged.status_code, again.status_code, served.status_code)
        assert (whole.content, 2) == (served.content, len(toolbox.calls()))
        assert 1 == second.metric("lathe_cache_operations_total", level="store", operation="get", result="damaged")


async def test_a_stored_binary_outlives_the_process_and_is_not_made_again(toolbox: Toolbox, kept: tuple[str, Callable[[], int]]) -> None:
    store, _ = kept
    async with running(store=store) as first:
        made = await first.compile(SO)
        whole = await first.client.get(f"{made.headers['location']}/binary/so")
    async with running(store=store) as second:
        program = await second.client.get(made.headers["location"])
        served = await second.client.get(f"{made.headers['location']}/binary/so")
        again = await second.compile(SO)

        assert (whole.content, made.headers["link"]) == (served.content, program.headers["link"])
        assert ("hit", 1) == (again.headers["lathe-result"], len(toolbox.calls()))


async def test_a_store_can_be_warmed_with_binaries(toolbox: Toolbox, tmp_path: Path) -> None:
    store, file = f"sqlite:///{tmp_path / 'lathe.db'}", tmp_path / "requests.json"
    file.write_text(json.dumps(SO))
    warmed = await asyncio.to_thread(CliRunner().invoke, cli, ["warm", str(file), "--store", store])
    async with running(store=store) as service:
        assert (0, 200) == (warmed.exit_code, (await service.compile(SO)).status_code)
        assert 1 == len(toolbox.calls())


async def test_another_version_of_a_compiler_makes_another_binary(toolbox: Toolbox, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'lathe.db'}"
    async with running(store=store) as first:
        await first.compile(SO)
    toolbox.gcc(version="2")
    async with running(store=store) as second:
        program = await second.compile(SO)
        served = await second.client.get(f"{program.headers['location']}/binary/so")
        known = (await second.client.get(f"{program.headers['location']}/explain")).json()["binaries"]

        assert 2 == len(toolbox.calls())
        assert served.headers["lathe-compiler-version"].startswith("gcc (test) 2;")
        assert ["gcc (test) 1", "gcc (test) 2"] == [entry["version"].partition(";")[0] for entry in known]


async def test_a_service_without_the_compiler_serves_what_another_has_made(
    toolbox: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path / 'lathe.db'}"
    async with running(store=store) as first:
        made = await first.compile(SO)
        whole = await first.client.get(f"{made.headers['location']}/binary/so")
    monkeypatch.setenv("PATH", str(tmp_path))  # NVIDIA's compiler stays, so there are binaries
    async with running(store=store) as second:
        served = await second.client.get(f"{made.headers['location']}/binary/so")

        assert (200, whole.content) == (served.status_code, served.content)
        told(await second.compile(SO), 422, "target")


async def test_without_a_store_binaries_are_made_and_served(own_redis: RedisServer, toolbox: Toolbox) -> None:
    own_redis.kill()
    async with running(store=own_redis.url) as service:
        made = await service.compile(SO)

        assert 200 == made.status_code
        assert 200 == (await service.client.get(made.headers["link"].partition(">")[0][1:])).status_code


async def test_a_program_that_failed_validation_has_no_binary_any_more(toolbox: Toolbox) -> None:
    async with running() as service:
        made = await service.compile(SO)
        await service.services.catalog.keep_validation(Key(made.json()["key"]), {"verdict": "wrong", "device": "none"})

        assert 410 == (await service.client.get(f"{made.headers['location']}/binary/so")).status_code


# ---- folders ---------------------------------------------------------------------------------------------------------------------


async def test_nothing_is_left_in_the_folder_for_temporary_files(toolbox: Toolbox, tmp_path: Path) -> None:
    toolbox.gcc("open('left', 'w').write('x'); os.kill(os.getppid(), 9) if calls == 1 else real()")
    async with running() as service:
        assert 200 == (await service.compile(SO)).status_code
        (own,) = (tmp_path / "scratch").glob("lathe-binaries-*")
        assert ["owner"] == [file.name for file in own.iterdir()]
    assert [] == list((tmp_path / "scratch").iterdir())


async def eventually(true: Callable[[], Any], what: str) -> None:
    for _ in range(6000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not within a minute: {what}")


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
