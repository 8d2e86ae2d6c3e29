from __future__ import annotations

import pytest

from bench.compare import change, compared, noise
from bench.run import Refused
from tests.bench.runs import kernel, run


def test_the_noise_is_twice_the_way_from_the_least_repeat_to_the_median() -> None:
    assert 0.2 == pytest.approx(noise([1.1, 1.0, 5.0]))


def test_a_change_within_the_noise_is_not_told() -> None:
    assert not change("lower", [1.0, 1.1, 1.3], [1.15, 1.2, 1.2]).is_told


def test_a_change_beyond_the_noise_is_told() -> None:
    assert change("lower", [1.0, 1.01, 1.3], [1.15, 1.2, 1.2]).is_told


def test_the_stage_that_changed_is_named_and_the_other_is_not() -> None:
    old = run(kernel("a", (1.0, 4.0), (1.0, 4.0), (1.0, 4.0)))
    new = run(kernel("a", (1.0, 8.0), (1.0, 8.0), (1.0, 8.0)))

    said = compared(old, new)

    assert "lower                           4.000 →      8.000 ms  +100.0%" in said
    assert "\nread " not in said


def test_nothing_is_told_of_two_equal_runs() -> None:
    one = run(kernel("a", (1.0, 4.0), (1.1, 4.1), (1.0, 4.0)))

    said = compared(one, one)

    assert "no stage changed by more than the noise" in said
    assert "0 slower, 0 faster" in said


def test_a_slower_machine_is_not_slower_code() -> None:
    old = run(kernel("a", *[(1.0, 4.0)] * 3), yardstick_ms=2.0)
    new = run(kernel("a", *[(1.5, 6.0)] * 3), yardstick_ms=3.0)

    said = compared(old, new)

    assert "scaled" in said
    assert "no stage changed by more than the noise" in said


def test_only_kernels_in_both_runs_are_compared() -> None:
    old = run(kernel("a", *[(1.0, 4.0)] * 3), kernel("gone", *[(9.0, 9.0)] * 3))
    new = run(kernel("a", *[(1.0, 4.0)] * 3), kernel("new", *[(9.0, 9.0)] * 3))

    assert compared(old, new).startswith("1 kernels in both")


def test_a_kernel_that_is_refused_now_is_named() -> None:
    old = run(kernel("a", *[(1.0, 4.0)] * 3), kernel("b", *[(1.0, 4.0)] * 3))
    new = run(kernel("a", *[(1.0, 4.0)] * 3), refused=(Refused("b", "limit", "too many"),))

    assert "refused now: b: too many" in compared(old, new)


def test_runs_of_other_work_are_not_compared() -> None:
    times = kernel("a", *[(1.0, 4.0)] * 3)

    with pytest.raises(ValueError, match="not the same work"):
        compared(run(times), run(times, target="c"))
