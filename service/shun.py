"""Kernels that cost workers their lives are left alone for a while, a longer one each time.

One lost worker is bad luck (the machine ran out of memory); a kernel that kills whoever touches it would keep every worker of
the service starting.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.errors import KernelShunned, WorkerLost
from service.store.keys import Key

REMEMBERED = 4096  # kernels; the one that offended longest ago is forgotten first


class Shun:
    """Which kernels are refused, and until when. first_s doubles with each offence up to most_s."""

    def __init__(self, first_s: float, most_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._clock = clock
        self._offences: OrderedDict[Key, tuple[int, float]] = OrderedDict()

    def refuse(self, key: Key) -> None:
        """Raises KernelShunned while the kernel is to be left alone."""
        count, until = self._offences.get(key, (0, 0.0))
        left_s = until - self._clock()
        if left_s > 0:
            raise KernelShunned(f"this kernel has cost workers their lives {count} times", retry_after_s=int(left_s) + 1)

    @contextmanager
    def watching(self, key: Key) -> Iterator[None]:
        """Around an attempt: one that loses its workers is an offence, one that ends otherwise wipes out the others."""
        try:
            yield
        except WorkerLost:
            count = self._offences.pop(key, (0, 0.0))[0] + 1
            pause_s = min(self._first_s * 2 ** min(count - 1, 30), self._most_s)
            self._offences[key] = (count, self._clock() + pause_s)
            while len(self._offences) > REMEMBERED:
                self._offences.popitem(last=False)
            raise
        self._offences.pop(key, None)
