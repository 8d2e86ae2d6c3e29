"""What `bench faults` does for minutes, here for a moment each: real replicas, a real Redis behind a proxy, real signals."""

from __future__ import annotations

from bench import faults

# A worker that is killed twice while it compiles the same kernel is answered with 503, as it should be. At this pace none is.
SECONDS, CALM_S, REPLICAS, RATE, SEED = 2.0, 0.2, 2, 8.0, 1337


def test_whatever_goes_wrong_every_request_is_answered_right_and_all_is_well_again() -> None:
    found = faults.measure(list(faults.FAULTS), SECONDS, CALM_S, REPLICAS, RATE, SEED, lambda _: None)
    phases: dict[str, dict[str, object]] = found["phases"]  # type: ignore[assignment]  # as it is documented

    assert list(faults.FAULTS) == list(phases)
    assert [] == [(name, row) for name, row in phases.items() if row["wrong"] or row["lost"] or row["other"]]
    assert all(int(str(row["answers"])) > 0 and row["back_s"] is not None for row in phases.values())
    assert int(str(found["new"])) > 10
