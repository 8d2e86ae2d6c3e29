"""Kernels that cost workers their lives are left alone for a while, a longer one each time.

One lost worker is bad luck (the machine ran out of memory); a kernel that kills whoever touches it would keep every worker of
the service starting. Offences are kept beside programs, so that one replica's loss warns the others, and remembered here, so that
a store that is down lets none of them through twice.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from service.errors import KernelShunned
from service.store.keys import Key

REMEMBERED = 4096  # kernels; the one that offended longest ago is forgotten first


@dataclass(frozen=True, slots=True)
class Offence:
    """count: how often in a row the kernel has cost workers their lives. until: seconds since the epoch."""

    count: int
    until: float

    def refuse(self, now: float) -> None:
        """Raises KernelShunned while the kernel is to be left alone."""
        left_s = self.until - now
        if left_s > 0:
            raise KernelShunned(f"this kernel has cost workers their lives {self.count} times", retry_after_s=int(left_s) + 1)


class Shun:
    """Which kernels are refused, and until when. first_s doubles with each offence up to most_s."""

    def __init__(self, first_s: float, most_s: float, clock: Callable[[], float] = time.time) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._clock = clock
        self._offences: OrderedDict[Key, Offence] = OrderedDict()

    def refuse(self, key: Key) -> None:
        """Raises KernelShunned while the kernel is to be left alone."""
        known = self._offences.get(key)
        if known is not None:
            known.refuse(self._clock())

    def offended(self, key: Key, known: Offence | None = None) -> Offence:
        """Notes that the kernel has cost workers their lives once more. known: what others know of it."""
        count = max(offence.count if offence is not None else 0 for offence in (known, self._offences.pop(key, None))) + 1
        pause_s = min(self._first_s * 2 ** min(count - 1, 30), self._most_s)
        offence = self._offences[key] = Offence(count, self._clock() + pause_s)
        while len(self._offences) > REMEMBERED:
            self._offences.popitem(last=False)
        return offence

    def absolve(self, key: Key) -> None:
        """Forgets all offences: the kernel has been compiled, or refused for good."""
        self._offences.pop(key, None)
