"""Single flight between processes: here several `Cluster`s in one process, over a real store, each standing for a replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from service.errors import QueueFull, StoreDown, TimedOut
from service.flight.cluster import Cluster, Way
from service.flight.leases import Standing
from service.flight.local import Abandoned
from service.flight.sqlite import SqliteLeases
from service.metrics import Metrics
from service.store.keys import Key, Kind, Name
from service.store.sqlite import SqliteStore
from service.store.sqlite_file import SqliteFile
from service.store.store import Entry

pytestmark = pytest.mark.anyio

KEY = Key("7" * 64)
NAME = Name(Kind.PROGRAM, KEY)
LONG_S = 3600.0


class Flaky(SqliteLeases):
    """Leases that fail when they are told to."""

    down = False

    async def take(self, key: Key, token: str, lease_s: float) -> Standing:
        self._stand()
        return await super().take(key, token, lease_s)

    async def standing(self, key: Key) -> Standing:
        self._stand()
        return await super().standing(key)

    def _stand(self) -> None:
        if self.down:
            raise StoreDown("told to fail")


class Replica:
    """One process: its compiles wait for `gate`, are counted in `made`, and leave the value in the store."""

    def __init__(self, file: SqliteFile, **values: float) -> None:
        self.store = SqliteStore(file)
        self.leases = Flaky(file)
        self.metrics = Metrics()
        self.cluster = Cluster(self.leases, self.metrics, **{"lease_s": LONG_S, "wait_s": LONG_S, **values})
        self.gate = asyncio.Event()
        self.made = 0
        self.error: Exception | None = None
        self.wanted = True

    async def work(self) -> bytes:
        self.made += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        await self.store.put(Entry(NAME, b"program"))
        return b"program"

    async def look(self) -> bytes | None:
        return (await self.store.many([NAME]))[0]

    async def ask(self) -> tuple[bytes, Way]:
        return await self.cluster.run(KEY, self.look, self.work, lambda: self.wanted)

    def counted(self, result: str) -> float:
        return self.metrics.registry.get_sample_value("lathe_leases_total", {"result": result}) or 0.0

    @property
    def waiting(self) -> float:
        return self.metrics.registry.get_sample_value("lathe_singleflight_waiters") or 0.0


Replicas = Callable[..., Sequence[Replica]]


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    file = SqliteFile(tmp_path / "lathe.db", timeout_s=60)
    made: list[Replica] = []

    def start(count: int, **values: float) -> Sequence[Replica]:
        made.extend(Replica(file, **values) for _ in range(count))
        return made

    yield start
    for replica in made:
        await replica.cluster.close()
    await file.close()


async def until(true: Callable[[], object]) -> None:
    while not true():
        await asyncio.sleep(0.001)


@asynccontextmanager
async def led(leader: Replica) -> AsyncIterator[asyncio.Future[tuple[bytes, Way]]]:
    """While the leader works; let go in the end."""
    asking = asyncio.ensure_future(leader.ask())
    await until(lambda: leader.made)
    yield asking
    leader.gate.set()
    await asyncio.gather(asking, return_exceptions=True)


def asked(replica: Replica) -> asyncio.Future[tuple[bytes, Way]]:
    return asyncio.ensure_future(replica.ask())


async def test_one_replica_compiles_and_the_others_wait_for_it(replicas: Replicas) -> None:
    one, two, three = replicas(3)
    async with led(one) as leading:
        others = [asked(two), asked(three)]
        await until(lambda: two.waiting and three.waiting)
        one.gate.set()

    assert (b"program", "compiled") == await leading
    assert 2 * [(b"program", "coalesced")] == await asyncio.gather(*others)
    assert [1, 0, 0] == [one.made, two.made, three.made]
    assert [0.0, 0.0] == [two.waiting, three.waiting]


async def test_what_landed_before_the_lease_was_ours_is_no_compile(replicas: Replicas) -> None:
    (one,) = replicas(1)
    await one.store.put(Entry(NAME, b"program"))

    assert (b"program", "hit") == await one.ask()
    assert 0 == one.made


async def test_without_anybody_to_share_with_work_is_done_here() -> None:
    async def work() -> str:
        return "made"

    async def look() -> str | None:
        raise AssertionError("there is nowhere to look")

    assert ("made", "compiled") == await Cluster(None, Metrics()).run(KEY, look, work, lambda: True)


async def test_when_a_holder_is_gone_one_of_those_who_wait_takes_over(replicas: Replicas) -> None:
    two, three = replicas(2)
    await two.leases.take(KEY, "of a process that was killed", 0.2)
    for replica in (two, three):
        replica.gate.set()
    results = await asyncio.gather(two.ask(), three.ask())

    assert 1 == two.made + three.made
    assert {(b"program", "compiled"), (b"program", "coalesced")} == set(results)


async def test_a_lease_is_renewed_while_the_work_runs(replicas: Replicas) -> None:
    one, two = replicas(2, lease_s=0.4)
    async with led(one):
        other = asked(two)
        await asyncio.sleep(1.2)  # three lives of a lease
        one.gate.set()

    assert (b"program", "coalesced") == await other
    assert (0, 0) == (two.made, one.counted("lost"))


async def test_a_lost_lease_is_noticed_and_costs_a_second_compile_at_most(replicas: Replicas) -> None:
    one, two = replicas(2, lease_s=0.4)
    two.gate.set()
    async with led(one) as leading:
        (token,) = one.cluster._held
        await one.leases.release(KEY, token)  # as a failover would lose it
        assert (b"program", "compiled") == await two.ask()
        await until(lambda: one.counted("lost"))
        one.gate.set()

    assert (b"program", "compiled") == await leading


async def test_who_waits_too_long_compiles_for_itself(replicas: Replicas) -> None:
    one, two = replicas(2, wait_s=0.05)
    two.gate.set()
    async with led(one):
        assert (b"program", "compiled") == await two.ask()

    assert (1, 1) == (two.made, two.counted("overdue"))


async def test_a_store_that_fails_makes_nobody_wait(replicas: Replicas) -> None:
    (one,) = replicas(1)
    one.leases.down = True
    one.gate.set()

    assert (b"program", "compiled") == await one.ask()
    assert 1 == one.counted("without")


async def test_a_lease_taken_by_a_call_that_was_given_up_holds_nobody_up(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = replicas(2)
    take = one.leases.take

    async def heard_and_not_answered(key: Key, token: str, lease_s: float) -> Standing:
        await take(key, token, lease_s)
        raise StoreDown("no answer in time")

    monkeypatch.setattr(one.leases, "take", heard_and_not_answered)
    one.error = QueueFull("full")
    one.gate.set()
    two.gate.set()
    with pytest.raises(QueueFull):
        await one.ask()

    assert (b"program", "compiled") == await two.ask()


async def test_a_store_that_goes_away_meanwhile_is_not_waited_for(replicas: Replicas) -> None:
    one, two = replicas(2)
    two.gate.set()
    async with led(one):
        other = asked(two)
        await until(lambda: two.waiting)
        two.leases.down = True

        assert (b"program", "compiled") == await other
    assert 1 == two.counted("without")


async def test_a_failure_of_the_compile_is_that_of_all_who_waited(replicas: Replicas) -> None:
    one, two = replicas(2)
    one.error = TimedOut(limit="compile_seconds", allowed_s=30)
    async with led(one):
        other = asked(two)
        await until(lambda: two.waiting)
        one.gate.set()
    with pytest.raises(TimedOut) as told:
        await other

    assert (one.error.detail, one.error.facts()) == (told.value.detail, told.value.facts())
    assert 0 == two.made


async def test_a_failure_is_not_that_of_who_comes_later(replicas: Replicas) -> None:
    one, two = replicas(2)
    one.error = TimedOut(limit="compile_seconds", allowed_s=30)
    one.gate.set()
    two.gate.set()
    with pytest.raises(TimedOut):
        await one.ask()
    await until(lambda: not one.cluster._tasks)  # the lease is given up meanwhile

    assert (b"program", "compiled") == await two.ask()


async def test_a_replica_without_room_leaves_the_work_to_another(replicas: Replicas) -> None:
    one, two = replicas(2)
    one.error = QueueFull("full")
    two.gate.set()
    async with led(one):
        other = asked(two)
        await until(lambda: two.waiting)
        one.gate.set()

    assert (b"program", "compiled") == await other


async def test_waiting_ends_when_nobody_wants_it_any_more(replicas: Replicas) -> None:
    one, two = replicas(2)
    async with led(one):
        other = asked(two)
        await until(lambda: two.waiting)
        two.wanted = False
        with pytest.raises(Abandoned):
            await other

    assert 0 == two.waiting


async def test_leases_are_handed_back_at_the_end(replicas: Replicas) -> None:
    one, two = replicas(2)
    two.gate.set()
    async with led(one):
        await one.cluster.close()

        assert (b"program", "compiled") == await two.ask()


async def test_word_of_a_landing_ends_the_wait_before_the_next_look(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.flight.cluster.FIRST_LOOK_S", LONG_S)
    monkeypatch.setattr("service.flight.cluster.LOOK_MOST_S", LONG_S)
    one, two = replicas(2)
    told: list[Callable[[Key], None]] = []

    def listen(heard: Callable[[Key], None]) -> Awaitable[None]:
        told.append(heard)
        return asyncio.Event().wait()  # type: ignore[return-value]  # never returns

    monkeypatch.setattr(two.leases, "listen", listen)
    two.cluster.start()
    async with led(one):
        other = asked(two)
        await until(lambda: two.waiting)
        one.gate.set()
        await until(lambda: not one.cluster._held and not one.cluster._tasks)
        told[0](KEY)

        assert (b"program", "coalesced") == await other
