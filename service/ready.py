"""Programs asked for lately, ready to be sent: in this process's memory, within a number of bytes, believed for a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from service.answer import Answer
from service.metrics import Metrics
from service.store.keys import Key


class Ready:
    """most_bytes: of all that is held. seconds: how long an answer is believed before the store is asked again."""

    def __init__(self, metrics: Metrics, most_bytes: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._clock = clock
        self._answers: OrderedDict[Key, tuple[Answer, float, int]] = OrderedDict()  # with until when, and how large; least wanted first
        self._bytes = 0
        self._hits = metrics.cache_operations.labels("memory", "get", "hit")
        self._misses = metrics.cache_operations.labels("memory", "get", "miss")

    def get(self, key: Key) -> Answer | None:
        """The program, if it is held; counted."""
        found = self.look(key)
        if found is None:
            self._misses.inc()
        else:
            self.count()
        return found

    def look(self, key: Key) -> Answer | None:
        """As `get`, and not counted: for whoever may leave the answer to somebody else."""
        held = self._answers.get(key)
        if held is None or held[1] <= self._clock():
            return None
        self._answers.move_to_end(key)
        return held[0]

    def count(self) -> None:
        """Counts one answer that was held."""
        self._hits.inc()

    def hold(self, answer: Answer) -> None:
        """Holds a program, unless it alone is too large; what was not asked for longest goes."""
        self.forget(answer.key)
        size = answer.size
        if size > self._most_bytes:
            return
        self._answers[answer.key] = (answer, self._clock() + self._seconds, size)
        self._bytes += size
        while self._bytes > self._most_bytes:
            self.forget(next(iter(self._answers)))

    def forget(self, key: Key) -> None:
        """Drops the program: the store is asked next time."""
        held = self._answers.pop(key, None)
        if held is not None:
            self._bytes -= held[2]
