"""A store in Redis, shared by replicas.

Names are `prefix:{key}:kind`: the braces put all that belongs to one key into one slot of a cluster. Looks that are made while
others are on their way go together, so that a busy service asks seldom and for much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from service.store.keys import Key, Kind, Name
from service.store.redis_link import Client, Link
from service.store.store import Entry

LOOKS = 2  # looks on their way at once; what is asked for meanwhile waits for the next
TOGETHER = 2000  # names in one look


@dataclass(slots=True)
class _Look:
    """Names that are asked for together, and who waits for how many of them, in their order."""

    names: list[Name] = field(default_factory=list)
    waiting: list[tuple[int, asyncio.Future[list[bytes | None]]]] = field(default_factory=list)


class RedisStore:
    """Keeps values in Redis."""

    def __init__(self, link: Link, *, prefix: str = "lathe") -> None:
        self._link = link
        self._prefix = prefix
        self._waiting: deque[_Look] = deque()
        self._looking: set[asyncio.Task[None]] = set()

    def spelt(self, name: Name) -> str:
        """The name as Redis has it."""
        return f"{self._prefix}:{{{name.key}}}:{name.kind}"

    async def many(self, names: Sequence[Name]) -> list[bytes | None]:
        if not names:
            return []
        if not self._waiting or len(self._waiting[-1].names) + len(names) > TOGETHER:
            self._waiting.append(_Look())
            asyncio.get_running_loop().call_soon(self._begin)  # not at once: who asks in this turn of the loop comes along
        look = self._waiting[-1]
        answer: asyncio.Future[list[bytes | None]] = asyncio.get_running_loop().create_future()
        look.names += names
        look.waiting.append((len(names), answer))
        return await answer

    def _begin(self) -> None:
        while self._waiting and len(self._looking) < LOOKS:
            task = asyncio.get_running_loop().create_task(self._look(self._waiting.popleft()))
            self._looking.add(task)
            task.add_done_callback(self._looked)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looking.discard(task)
        self._begin()

    async def _look(self, look: _Look) -> None:
        names = look.names
        try:
            values = await self._link.call(lambda client: self._values(client, names))
        except asyncio.CancelledError:
            for _, answer in look.waiting:
                answer.cancel()
            raise
        except Exception as error:
            for _, answer in look.waiting:
                if not answer.done():
                    answer.set_exception(error)
            return
        first = 0
        for count, answer in look.waiting:
            if not answer.done():  # else whoever asked has gone away
                answer.set_result(values[first : first + count])
            first += count

    async def _values(self, client: Client, names: Sequence[Name]) -> list[bytes | None]:
        if not self._link.is_cluster:
            return list(await client.execute_command("MGET", *map(self.spelt, names)))  # as its method does, in a tenth more of the time
        of_key: dict[Key, list[int]] = {}
        for i, name in enumerate(names):
            of_key.setdefault(name.key, []).append(i)
        async with client.pipeline() as line:
            for places in of_key.values():
                line.execute_command("MGET", *(self.spelt(names[i]) for i in places))  # its method refuses keys of a cluster
            answers = await line.execute()
        values: list[bytes | None] = [None] * len(names)
        for places, answer in zip(of_key.values(), answers, strict=True):
            for i, value in zip(places, answer, strict=True):
                values[i] = value
        return values

    async def put(self, *entries: Entry) -> None:
        async def send(client: Client) -> None:
            async with client.pipeline(transaction=False) as line:
                for entry in entries:
                    px = None if entry.lifetime_s is None else _milliseconds(entry.lifetime_s)
                    line.set(self.spelt(entry.name), entry.value, px=px)
                await line.execute()

        await self._link.call(send)

    async def renew(self, names: Sequence[Name], lifetime_s: float) -> None:
        async def send(client: Client) -> None:
            async with client.pipeline(transaction=False) as line:
                for name in names:
                    line.pexpire(self.spelt(name), _milliseconds(lifetime_s))
                await line.execute()

        await self._link.call(send)

    async def delete(self, *names: Name) -> None:
        async def send(client: Client) -> None:
            async with client.pipeline(transaction=False) as line:
                for name in names:
                    line.delete(self.spelt(name))
                await line.execute()

        if names:
            await self._link.call(send)

    async def keys(self, kind: Kind) -> AsyncIterator[Key]:
        async for spelt in self._link.scan(f"{self._prefix}:{{*}}:{kind}"):
            yield Key(spelt[len(self._prefix) + 2 : -len(kind) - 2])

    async def ping(self) -> None:
        await self._link.call(lambda client: client.ping())

    async def close(self) -> None:
        await self._link.close()


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
