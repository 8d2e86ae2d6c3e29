"""A circuit breaker: after some failures in a row calls fail at once, until one call, let through now and then, succeeds.

Without it every request would wait out the time limit of a store that is not there.

Written here because no library does it. Of those that were tried, `circuitbreaker` 2.1 and `purgatory` 3.0 let twenty of twenty
waiting calls through at once when the rest is over, each of which would wait out the time limit, and `pybreaker` 1.4 takes no
coroutine without Tornado.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum


class State(StrEnum):
    """closed: calls go through. open: none does. half-open: one is on its way to see whether the store is back."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Breaker:
    """Ask `allows()` before a call, tell `succeeded()` or `failed()` after it.

    on_change: told each new state (for a metric and a line in the log). clock: seconds, never backwards.
    """

    def __init__(
        self,
        failures: int,
        rest_s: float,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[State], None] | None = None,
    ) -> None:
        self._failures = failures
        self._rest_s = rest_s
        self._clock = clock
        self._on_change = on_change
        self._state = State.CLOSED
        self._in_a_row = 0
        self._tried_at = 0.0

    @property
    def state(self) -> State:
        return self._state

    def allows(self) -> bool:
        """May a call be made now? A yes while open makes that call the one that tries."""
        if self._state is State.CLOSED:
            return True
        if self._clock() - self._tried_at < self._rest_s:
            return False
        self._tried_at = self._clock()  # a trial that never reports back is followed by the next one
        self._turn(State.HALF_OPEN)
        return True

    def succeeded(self) -> None:
        self._in_a_row = 0
        self._turn(State.CLOSED)

    def failed(self) -> None:
        self._in_a_row += 1
        if self._state is State.HALF_OPEN or self._in_a_row >= self._failures:
            self._tried_at = self._clock()
            self._turn(State.OPEN)

    def _turn(self, state: State) -> None:
        if state is not self._state:
            self._state = state
            if self._on_change is not None:
                self._on_change(state)
