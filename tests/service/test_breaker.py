"""The circuit breaker: opens after failures in a row, lets one call try, closes when that one succeeds."""

from __future__ import annotations

from service.store.breaker import Breaker, State


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(3, 1.0, clock)
    for _ in range(3):
        assert breaker.allows()
        breaker.failed()
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = opened(Clock())

    assert State.OPEN is breaker.state
    assert not breaker.allows()


def test_a_success_between_failures_keeps_it_closed() -> None:
    breaker = Breaker(3, 1.0, Clock())
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()

    assert breaker.allows()


def test_after_its_rest_one_call_alone_tries() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now = 1.1

    assert [True, False, False] == [breaker.allows() for _ in range(3)]


def test_a_trial_that_succeeds_closes_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now = 1.1
    breaker.allows()
    breaker.succeeded()

    assert State.CLOSED is breaker.state
    assert all(breaker.allows() for _ in range(3))


def test_a_trial_that_fails_opens_it_for_another_rest() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now = 1.1
    breaker.allows()
    breaker.failed()
    clock.now = 2.0
    assert not breaker.allows()
    clock.now = 2.2

    assert breaker.allows()


def test_a_trial_that_never_reports_back_is_followed_by_another() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now = 1.1
    assert breaker.allows()
    clock.now = 2.2

    assert breaker.allows()


def test_every_turn_is_told_once() -> None:
    clock = Clock()
    turns: list[State] = []
    breaker = Breaker(1, 1.0, clock, turns.append)
    breaker.failed()
    breaker.failed()
    clock.now = 2.0
    breaker.allows()
    breaker.succeeded()
    breaker.succeeded()

    assert [State.OPEN, State.HALF_OPEN, State.CLOSED] == turns
