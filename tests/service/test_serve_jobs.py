"""Jobs in real processes over one Redis: what a replica that ends, or is killed, leaves behind is finished by the other."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.service.fake import poll_file
from tests.service.process import Service, served, until

FAKE = ["tests.service.fake_service"]


def begun(service: Service, **body: Any) -> str:
    response = service.client.post("/compile", json=body, headers={"prefer": "wait=0"})
    assert 202 == response.status_code, response.text
    return response.headers["location"]


def state(service: Service, path: str) -> str:
    return str(service.client.get(path).json()["state"])


@pytest.fixture
def both(redis_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"store": redis_url, "store_prefix": tmp_path.name.replace("_", "-"), "job_stale_s": 0.5, "drain_seconds": 1}


def test_a_replica_that_is_told_to_end_hands_back_its_jobs(both: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "busy"
    with served(FAKE, **both) as one, served(FAKE, **both) as two:
        running = begun(one, kernel=1, do="wait", file=str(file))
        until(lambda: poll_file(file), "the first job has begun")
        queued = begun(one, kernel=2)
        until(lambda: state(two, running) == "running", "the other replica knows")
        assert "queued" == state(two, queued)
        assert 0 == one.end()

        assert "done" == until(lambda: state(two, queued) if state(two, queued) == "done" else None, "the queued job is done elsewhere")
        (Path(f"{file}.go")).touch()
        assert until(lambda: state(two, running) == "done", "so is the one that had begun")


def test_a_job_of_a_replica_that_is_killed_begins_anew(both: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "busy"
    with served(FAKE, **both) as one, served(FAKE, **both) as two:
        path = begun(one, kernel=1, do="wait", file=str(file))
        until(lambda: poll_file(file), "the job has begun")
        one.signal(signal.SIGKILL)
        one.wait()
        (Path(f"{file}.go")).touch()

        assert until(lambda: state(two, path) == "done", "the job is done elsewhere")
        assert 2 == two.client.get(path).json()["attempts"]
        assert "k_1" == two.client.get(path).json()["program"]["name"]


def test_a_job_of_a_replica_that_is_killed_is_done_though_nobody_asks_for_it(both: dict[str, Any], tmp_path: Path) -> None:
    """A file tells that it is compiled again; only then is anybody asked."""
    file, tally = tmp_path / "busy", tmp_path / "tally"
    with served(FAKE, **both) as one, served(FAKE, **both) as two:
        path = begun(one, kernel=1, do="wait", file=str(file), tally=str(tally))
        until(lambda: poll_file(file), "the job has begun")
        one.signal(signal.SIGKILL)
        one.wait()
        until(lambda: len((poll_file(tally) or "").splitlines()) == 2, "the other replica has begun it")
        (Path(f"{file}.go")).touch()
        until(lambda: state(two, path) == "done", "the job is done")

        assert [f"1 {one.process.pid}", f"1 {two.process.pid}"] == tally.read_text().splitlines()
        assert 2 == two.client.get(path).json()["attempts"]


def test_a_job_that_was_handed_back_is_done_though_nobody_asks_for_it(both: dict[str, Any], tmp_path: Path) -> None:
    file, tally = tmp_path / "busy", tmp_path / "tally"
    with served(FAKE, **both) as one, served(FAKE, **both) as two:
        begun(one, kernel=1, do="wait", file=str(file))
        until(lambda: poll_file(file), "the first job has begun")
        begun(one, kernel=2, tally=str(tally))
        assert 0 == one.end()
        (Path(f"{file}.go")).touch()
        until(lambda: poll_file(tally), "the other replica has begun the queued one")

        assert [f"2 {two.process.pid}"] == tally.read_text().splitlines()


def test_the_events_of_a_job_are_told_by_a_replica_where_it_does_not_run(both: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "busy"
    with served(FAKE, **both) as one, served(FAKE, **both) as two:
        path = begun(one, kernel=1, do="wait", file=str(file))
        until(lambda: poll_file(file), "the job has begun")
        events = []
        with two.client.stream("GET", f"{path}/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    events.append(line.removeprefix("event: "))
                    (Path(f"{file}.go")).touch()

        assert events[0] in ("queued", "running")
        assert "done" == events[-1]
