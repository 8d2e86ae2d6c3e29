"""The service as a process: workers killed under it, limits, restarts with each store, Redis killed under load, the end.

Real uvicorn, real worker processes, real stores; only the compiling is not (`test_end_to_end` has that).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.fake import key_of, poll_file
from tests.service.process import Service, served, until
from tests.service.redis_servers import RedisServer

FAKE = ["tests.service.fake_service"]


def in_background(call: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    return thread, results


def test_a_worker_killed_in_the_middle_of_a_compile_costs_nobody_anything(tmp_path: Path) -> None:
    with served(FAKE, store="memory://") as service:
        file = tmp_path / "pid"
        thread, results = in_background(lambda: service.compile(kernel=1, do="die_once", file=str(file)))
        os.kill(int(until(lambda: poll_file(file), "the compile has begun")), signal.SIGKILL)
        thread.join(60)

        assert (200, "compiled") == (results[0].status_code, results[0].headers["lathe-result"])
        assert 1 == service.metric('lathe_worker_restarts_total{reason="lost"}')


def test_a_kernel_that_kills_every_worker_is_one_clear_error_and_then_left_alone() -> None:
    with served(FAKE, store="memory://") as service:
        lost = service.compile(kernel=1, do="die")
        shunned = service.compile(kernel=1, do="die")
        other = service.compile(kernel=2)

        assert (503, "unavailable", "1") == (lost.status_code, lost.json()["category"], lost.headers["retry-after"])
        assert (503, "unavailable") == (shunned.status_code, shunned.json()["category"])
        assert int(shunned.headers["retry-after"]) > 1
        assert 2 == service.metric('lathe_worker_restarts_total{reason="lost"}')
        assert 200 == other.status_code


def test_a_compile_past_its_time_limit_is_a_504_and_the_next_one_works(tmp_path: Path) -> None:
    with served(FAKE, store="memory://", compile_seconds=0.3) as service:
        slow = service.compile(kernel=1, do="spin", file=str(tmp_path / "pid"))

        assert (504, "limit", "compile_seconds", 0.3) == (
            slow.status_code,
            *(slow.json()[n] for n in ("category", "limit", "allowed")),
        )
        assert 200 == service.compile(kernel=2).status_code


def test_a_compile_past_its_memory_limit_is_a_422_and_the_next_one_works() -> None:
    most = 400 << 20
    with served(FAKE, store="memory://", worker_memory_bytes=most) as service:
        for do in ("eat", "eat_unseen"):
            large = service.compile(kernel=1, do=do, allowed=most)

            assert (422, "limit", "worker_memory_bytes", most) == (
                large.status_code,
                *(large.json()[name] for name in ("category", "limit", "allowed")),
            )
            assert 200 == service.compile(kernel=2).status_code


def test_a_full_queue_is_a_503_that_says_when_to_come_back(tmp_path: Path) -> None:
    with served(FAKE, store="memory://", queue_limit=0) as service:
        file = tmp_path / "pid"
        thread, results = in_background(lambda: service.compile(kernel=1, do="wait", file=str(file)))
        until(lambda: poll_file(file), "the compile has begun")
        refused = service.compile(kernel=2)
        Path(f"{file}.go").touch()
        thread.join(60)

        assert (503, "overload") == (refused.status_code, refused.json()["category"])
        assert int(refused.headers["retry-after"]) >= 1
        assert 200 == results[0].status_code


def test_a_client_that_hangs_up_harms_no_other(tmp_path: Path) -> None:
    with served(FAKE, store="memory://") as service:
        file = tmp_path / "pid"
        body = {"kernel": 1, "do": "wait", "file": str(file)}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{service.client.base_url}/compile", json=body, timeout=0.3)
        thread, results = in_background(lambda: service.compile(**body))
        until(lambda: poll_file(file), "the compile has begun")
        Path(f"{file}.go").touch()
        thread.join(60)

        assert 200 == results[0].status_code
        assert results[0].headers["lathe-result"] in ("coalesced", "compiled", "hit")


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_every_program_is_still_there_after_a_restart(kind: str, tmp_path: Path, redis_url: str) -> None:
    store = redis_url if kind == "redis" else f"sqlite:///{tmp_path / 'lathe.db'}"
    prefix = f"restart-{os.getpid()}"
    with served(FAKE, store=store, store_prefix=prefix, store_timeout_s=20) as service:
        first = [service.compile(kernel=i) for i in range(20)]
        assert 0 == service.end()
    with served(FAKE, store=store, store_prefix=prefix, store_timeout_s=20) as service:
        for compiled in first:
            again = service.client.get(compiled.headers["location"])
            assert (200, compiled.content) == (again.status_code, again.content)
        assert ["hit"] * 20 == [service.compile(kernel=i).headers["lathe-result"] for i in range(20)]


def test_with_redis_killed_under_load_every_request_is_answered_right(own_redis: RedisServer) -> None:
    with served(FAKE, store=own_redis.url, breaker_seconds=0.2, memory_seconds=0.05) as service:
        stop = threading.Event()
        answers: list[tuple[int, int, bytes]] = []

        def load(number: int) -> None:
            with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
                i = 0
                while not stop.is_set():
                    i += 1
                    kernel = number * 100_000 + i if i % 3 == 0 else number
                    response = client.post("/compile", json={"kernel": kernel})
                    answers.append((kernel, response.status_code, response.content))

        threads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()

        def more(than: int) -> None:
            until(lambda: len(answers) > than, "requests are answered")

        more(50)
        for _ in range(2):
            own_redis.kill()
            more(len(answers) + 150)
            until(lambda: "store" in service.client.get("/readyz").json()["degraded"], "it says it is degraded")
            assert 200 == service.status("/readyz")
            own_redis.restart()
            until(lambda: service.client.get("/readyz").json()["status"] == "ready", "it heals by itself")
            more(len(answers) + 50)
        stop.set()
        for thread in threads:
            thread.join(60)

        assert {200} == {status for _, status, _ in answers}
        assert all(b'"k_%d"' % kernel in content for kernel, _, content in answers)
        assert 0 == service.metric("lathe_breaker_state")


def test_it_starts_without_its_redis_and_uses_it_once_it_is_there(own_redis: RedisServer) -> None:
    own_redis.kill()
    with served(FAKE, store=own_redis.url, breaker_seconds=0.1) as service:
        assert "degraded" == service.client.get("/readyz").json()["status"]
        assert 200 == service.compile(kernel=1).status_code
        own_redis.restart()
        until(lambda: service.client.get("/readyz").json()["status"] == "ready", "it heals by itself")
        assert 200 == service.compile(kernel=2).status_code


def test_a_program_damaged_in_redis_is_compiled_again(own_redis: RedisServer) -> None:
    import redis

    with served(FAKE, store=own_redis.url, memory_seconds=0.001, store_timeout_s=20) as service:
        first = service.compile(kernel=1)
        name = f"lathe:{{{key_of({'kernel': 1})}}}:program"
        with redis.Redis(port=own_redis.port) as client:
            value = bytearray(client.get(name) or b"")
            value[len(value) // 2] ^= 4
            client.set(name, bytes(value))
        again = service.compile(kernel=1)

        assert (200, "compiled", first.content) == (again.status_code, again.headers["lathe-result"], again.content)
        assert 1 <= service.metric('lathe_cache_operations_total{level="store",operation="get",result="damaged"}')


def test_told_to_end_it_is_not_ready_finishes_its_work_and_ends_in_order(tmp_path: Path) -> None:
    with served(FAKE, store="memory://", drain_notice_s=1.0) as service:
        file = tmp_path / "pid"
        thread, results = in_background(lambda: service.compile(kernel=1, do="wait", file=str(file)))
        until(lambda: poll_file(file), "the compile has begun")
        service.signal(signal.SIGTERM)
        until(lambda: service.status("/readyz") in (503, 0), "it is not ready")
        Path(f"{file}.go").touch()
        thread.join(60)

        assert 200 == results[0].status_code
        assert 0 == service.wait()
        assert [] != service.logged("ended")


def test_told_twice_it_ends_at_once_and_takes_its_workers_along(tmp_path: Path) -> None:
    with served(FAKE, store="memory://") as service:
        file = tmp_path / "pid"
        in_background(lambda: quietly(lambda: service.compile(kernel=1, do="spin", file=str(file))))
        worker = int(until(lambda: poll_file(file), "the compile has begun"))
        service.signal(signal.SIGTERM)
        service.signal(signal.SIGTERM)
        while service.process.poll() is None:
            service.signal(signal.SIGTERM)

        assert 128 + signal.SIGTERM == service.wait()
        until(lambda: not running(worker), "the worker has ended")


def test_workers_end_when_the_service_is_killed(tmp_path: Path) -> None:
    with served(FAKE, store="memory://") as service:
        file = tmp_path / "pid"
        in_background(lambda: quietly(lambda: service.compile(kernel=1, do="spin", file=str(file))))
        worker = int(until(lambda: poll_file(file), "the compile has begun"))
        service.process.kill()
        service.wait()

        until(lambda: not running(worker), "the worker has ended")


def test_its_log_is_json_with_the_ids_of_each_request() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    with served(FAKE, store="memory://") as service:
        headers = {"x-request-id": "my-request", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        service.client.post("/compile", json={"kernel": 1}, headers=headers)
        service.client.post("/compile", json={"kernel": 1, "do": "bug"}, headers=headers)
        service.end()

        lines = [line for line in service.logged("request") if line.get("request_id") == "my-request"]
        assert [(200, "compiled", trace), (500, "internal", trace)] == [(x["status"], x["result"], x["trace_id"]) for x in lines]
        assert key_of({"kernel": 1}) == lines[0]["key"]
        defects = [line for line in service.lines if line["level"] == "error"]
        assert defects
        assert all((line["request_id"], line["trace_id"]) == ("my-request", trace) for line in defects)
        assert [] == service.other


def test_a_port_in_use_is_said_plainly() -> None:
    with served(FAKE, store="memory://") as service, pytest.raises(AssertionError, match="Address already in use"):
        Service(FAKE, {"store": "memory://", "port": service.port})


def test_a_store_file_that_is_no_database_keeps_it_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, by far" * 50)
    service = Service(FAKE, {"store": f"sqlite:///{file}"})

    assert 0 != service.wait()
    assert "not a database" in str(service.lines)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def quietly(call: Any) -> None:
    with contextlib.suppress(httpx.HTTPError):
        call()
