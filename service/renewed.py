"""Which lifetimes this process has renewed lately: what is asked for all the time need not be renewed each time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from service.store.keys import Key

REMEMBERED_MOST = 65536  # keys whose last renewal is remembered


class Renewed:
    """every_s: how long a renewal does for a key."""

    def __init__(self, every_s: float, clock: Callable[[], float]) -> None:
        self._every_s = every_s
        self._clock = clock
        self._at: OrderedDict[Key, float] = OrderedDict()

    def is_due(self, key: Key) -> bool:
        """Was the key's last renewal too long ago, or never? If so, it counts as renewed now."""
        now = self._clock()
        at = self._at.get(key)
        if at is not None and now < at + self._every_s:
            return False
        self._at[key] = now
        self._at.move_to_end(key)
        if len(self._at) > REMEMBERED_MOST:
            self._at.popitem(last=False)
        return True

    def failed(self, key: Key) -> None:
        """The renewal came to nothing: it is due again."""
        self._at.pop(key, None)
