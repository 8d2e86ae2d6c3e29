"""Single flight: equal work at the same time runs once; who leaves takes nothing from the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from service.flight.local import Flights, Wanted
from service.metrics import Metrics

pytestmark = pytest.mark.anyio


class Work:
    """Work that ends when it is let go, and counts how often it ran."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = asyncio.Event()
        self.wanted: Wanted | None = None

    def __call__(self, wanted: Wanted) -> Awaitable[str]:
        return self._run(wanted)

    async def _run(self, wanted: Wanted) -> str:
        self.runs += 1
        self.wanted = wanted
        await self.go.wait()
        return "done"


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


async def test_equal_work_runs_once_and_all_get_its_result() -> None:
    flights: Flights[str] = Flights()
    work = Work()
    asking = [asyncio.ensure_future(flights.run("x", work)) for _ in range(50)]
    await until(lambda: work.runs > 0)
    work.go.set()
    results = await asyncio.gather(*asking)

    assert 1 == work.runs
    assert [("done", True)] + 49 * [("done", False)] == results
    assert 0 == len(flights)


async def test_different_work_runs_side_by_side() -> None:
    flights: Flights[str] = Flights()
    one, two = Work(), Work()
    asking = [asyncio.ensure_future(flights.run("1", one)), asyncio.ensure_future(flights.run("2", two))]
    await until(lambda: one.runs + two.runs == 2)
    one.go.set()
    two.go.set()

    assert [("done", True), ("done", True)] == await asyncio.gather(*asking)


async def test_after_it_has_landed_the_same_work_runs_again() -> None:
    flights: Flights[str] = Flights()
    work = Work()
    work.go.set()
    await flights.run("x", work)
    await flights.run("x", work)

    assert 2 == work.runs


@pytest.mark.parametrize("who", [0, 1, 5])
async def test_a_client_that_goes_away_harms_no_other(who: int) -> None:
    flights: Flights[str] = Flights()
    work = Work()
    asking = [asyncio.ensure_future(flights.run("x", work)) for _ in range(6)]
    await until(lambda: work.runs > 0)
    asking[who].cancel()
    await asyncio.sleep(0)
    work.go.set()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert isinstance(results.pop(who), asyncio.CancelledError)
    assert 5 == sum(isinstance(result, tuple) and result[0] == "done" for result in results)
    assert 1 == work.runs


async def test_work_knows_when_nobody_waits_any_more_and_when_somebody_does_again() -> None:
    flights: Flights[str] = Flights()
    work = Work()
    first = asyncio.ensure_future(flights.run("x", work))
    await until(lambda: work.wanted is not None)
    assert work.wanted is not None
    assert work.wanted()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert not work.wanted()
    second = asyncio.ensure_future(flights.run("x", work))
    await asyncio.sleep(0)
    assert work.wanted()
    work.go.set()

    assert ("done", False) == await second


async def test_an_error_is_raised_to_all_and_nothing_is_left_behind() -> None:
    flights: Flights[str] = Flights()
    go = asyncio.Event()

    async def fail(wanted: Wanted) -> str:
        await go.wait()
        raise ValueError("no")

    asking = [asyncio.ensure_future(flights.run("x", fail)) for _ in range(3)]
    await asyncio.sleep(0)
    go.set()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert ["no", "no", "no"] == [str(result) for result in results]
    assert 0 == len(flights)


async def test_those_who_wait_for_another_are_counted_while_they_do() -> None:
    metrics = Metrics()
    flights: Flights[str] = Flights(metrics.singleflight_waiters)
    work = Work()
    asking = [asyncio.ensure_future(flights.run("x", work)) for _ in range(4)]
    await until(lambda: work.runs > 0)
    assert 3 == metrics.registry.get_sample_value("lathe_singleflight_waiters")
    work.go.set()
    await asyncio.gather(*asking)

    assert 0 == metrics.registry.get_sample_value("lathe_singleflight_waiters")


async def test_settling_waits_for_all_that_is_under_way() -> None:
    flights: Flights[str] = Flights()
    work = Work()
    asking = asyncio.ensure_future(flights.run("x", work))
    await until(lambda: work.runs > 0)
    settling = asyncio.ensure_future(flights.settle())
    await asyncio.sleep(0)
    assert not settling.done()
    work.go.set()
    await settling

    assert ("done", True) == await asking
