"""What `bench faults` does for minutes, here for a moment each: real replicas, a real Redis behind a proxy, real signals."""

from __future__ import annotations

from typing import Any

import pytest

from bench import faults
from bench.__main__ import main

# A worker that is killed twice while it compiles the same kernel is answered with 503, as it should be. At this pace none is.
SECONDS, CALM_S, REPLICAS, RATE, SEED = 2.0, 0.2, 2, 8.0, 1337


def test_whatever_goes_wrong_every_request_is_answered_right_and_all_is_well_again() -> None:
    found = faults.measure(list(faults.FAULTS), SECONDS, CALM_S, REPLICAS, RATE, SEED, lambda _: None)
    phases: dict[str, dict[str, object]] = found["phases"]  # type: ignore[assignment]  # as it is documented

    assert list(faults.FAULTS) == list(phases)
    assert [] == [(name, row) for name, row in phases.items() if row["wrong"] or row["lost"] or row["other"]]
    assert all(int(str(row["answers"])) > 0 and row["back_s"] is not None for row in phases.values())
    assert int(str(found["new"])) > 10


KEPT: dict[str, Any] = {"wrong": 0, "lost": 0, "other": {}, "p99_ms": 50.0, "back_s": 0.3}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({}, []),
        ({"wrong": 2}, ["replica killed: wrong programs: 2, none may be"]),
        ({"lost": 1}, ["replica killed: requests lost: 1, none may be"]),
        ({"other": {"500 x": 1, "503 y": 2}}, ["replica killed: answers that are none: 3, none may be"]),
        ({"back_s": 10.1}, ["replica killed: well again after 10.1 s, 10 s may be"]),
        ({"p99_ms": 6049.0}, []),
        ({"p99_ms": 6051.0}, ["replica killed: p99 of 6051 ms, 6050 ms may be"]),
    ],
    ids=["kept", "wrong", "lost", "other", "back", "slow as it may be", "slow"],
)
def test_each_promise_that_is_broken_is_named(row: dict[str, Any], told: list[str]) -> None:
    assert told == faults.broken({"phases": {"none": KEPT, "replica killed": {**KEPT, **row}}})


def test_what_breaks_a_promise_ends_the_command_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    row = {**KEPT, "answers": 9, "wrong": 1, "median_ms": 1.0, "slowest_ms": 60.0}
    found = {"replicas": 1, "rate": 1.0, "new": 1, "resent": 0, "phases": {"none": row}}
    monkeypatch.setattr(faults, "measure", lambda *_: found)

    assert 1 == main(["faults"])
    said = capsys.readouterr()
    assert "broken: none: wrong programs: 1" in said.out
    assert "none: wrong programs: 1" in said.err
