"""What single flight between processes asks of whatever the processes share: a lease per key, and word of how it ended.

A lease is a hint, not a lock: it can be lost (a stalled process, a failover of Redis), and then a kernel is compiled twice. Both
compiles give the same bytes, so nothing else comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from service.store.keys import Key, Kind

LANDED = (Kind.PROGRAM, Kind.BINARY, Kind.REFUSAL, Kind.OFFENCE)  # what a compile may leave behind that others can go by


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand with a key.

    holder: the token of who compiles it; None: nobody. landed: something of the kinds LANDED is kept. failed: the token whose compile
    failed lately, with the failure as JSON, which is for those who waited for that one.
    """

    holder: str | None
    landed: bool = False
    failed: tuple[str, bytes] | None = None


class Leases(Protocol):
    """All calls raise StoreDown where what is shared does not answer."""

    async def take(self, key: Key, token: str, lease_s: float) -> Standing:
        """Takes the lease where nobody has it. The standing after that: it is ours where the holder is `token`."""

    async def renew(self, key: Key, token: str, lease_s: float) -> bool:
        """Has the lease live so long from now, if it is still ours; whether it is."""

    async def release(self, key: Key, token: str, failure: bytes | None = None) -> None:
        """Gives the lease up, if it is still ours, and tells those who wait. failure: why nothing was made, for them."""

    async def standing(self, key: Key) -> Standing:
        """How things stand, in one round trip."""

    async def listen(self, heard: Callable[[Key], None]) -> None:
        """Never returns: calls `heard` when a lease was given up, as far as it gets to know. Whoever waits has to look anyway."""
