"""What is known of keys, over a store that may fail or lie at any time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from core import KernelError
from service.catalog import Catalog, Lifetimes
from service.codings import pack
from service.errors import KernelShunned, Quarantined, StoreDown
from service.metrics import Metrics
from service.origin import origin_of
from service.shun import Offence
from service.store.keys import Key, Kind, Name
from service.store.memory import MemoryStore
from service.store.record import seal, unseal
from service.store.store import Entry

pytestmark = pytest.mark.anyio

KEY = Key("a" * 64)
AST_HASH = "c5" * 32
PROGRAM = b'{"name":"k","target":"c","source":"int x;","ast_hash":"%s"}' % AST_HASH.encode()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Flaky(MemoryStore):
    """A store that fails when it is told to."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(1 << 24, clock)
        self.down = False
        self.asked = 0

    async def many(self, names: Sequence[Name]) -> list[bytes | None]:
        self.asked += 1
        self._stand()
        return await super().many(names)

    async def put(self, *entries: Entry) -> None:
        self._stand()
        await super().put(*entries)

    async def renew(self, names: Sequence[Name], lifetime_s: float) -> None:
        self._stand()
        await super().renew(names, lifetime_s)

    async def ping(self) -> None:
        self._stand()

    def _stand(self) -> None:
        if self.down:
            raise StoreDown("told to fail")


def catalog(store: Any = None, **values: Any) -> Catalog:
    return Catalog(store or Flaky(), Metrics(), **{"ready_bytes": 1 << 20, **values})


async def keep(kept: Catalog, key: Key = KEY, program: bytes = PROGRAM) -> None:
    await kept.keep(key, program, pack(program), origin_of({"ast": {"nodes": []}, "annotate": True}, AST_HASH), 0.5)


def counted(kept: Catalog, operation: str, result: str) -> float:
    labels = {"level": "store", "operation": operation, "result": result}
    return kept._metrics.registry.get_sample_value("lathe_cache_operations_total", labels) or 0.0


async def test_a_kept_program_is_found_by_another_process() -> None:
    store = Flaky()
    await keep(catalog(store))
    found = await catalog(store).program(KEY)

    assert found is not None
    assert (PROGRAM, pack(PROGRAM), 0.5) == (found.body, found.packed, found.seconds)


async def test_the_request_is_kept_beside_the_program() -> None:
    kept = catalog()
    await keep(kept)

    assert b'{"ast":{"nodes":[]},"annotate":true}' == await kept.request(KEY)
    assert await kept.request(Key("b" * 64)) is None


async def test_an_ast_is_kept_once_under_its_own_hash_for_all_programs_that_come_from_it() -> None:
    store = Flaky()
    kept = catalog(store)
    await keep(kept)
    await keep(kept, Key("b" * 64))
    value = store.look(Name(Kind.AST, Key(AST_HASH)))

    assert value is not None
    assert b'{"nodes":[]}' == unseal(Name(Kind.AST, Key(AST_HASH)), value).content
    assert 5 == len(store._entries)
    assert await kept.request(KEY) == await kept.request(Key("b" * 64))


async def test_a_program_whose_ast_is_gone_has_no_request() -> None:
    store = Flaky()
    kept = catalog(store)
    await keep(kept)
    await store.delete(Name(Kind.AST, Key(AST_HASH)))

    assert await kept.request(KEY) is None


async def test_what_is_asked_for_lives_on_with_all_that_belongs_to_it() -> None:
    clock = Clock()
    store = Flaky(clock)
    await keep(catalog(store, clock=clock, lifetimes=Lifetimes(100.0)))
    for _ in range(6):
        clock.now += 50.0
        reader = catalog(store, clock=clock, lifetimes=Lifetimes(100.0))
        assert await reader.program(KEY) is not None
        await asyncio.gather(*reader._renewals)

    assert await catalog(store).request(KEY) is not None


async def test_one_process_renews_a_program_once_in_a_tenth_of_its_lifetime() -> None:
    clock = Clock()
    store = Flaky(clock)
    kept = catalog(store, clock=clock, lifetimes=Lifetimes(100.0, ready_s=1.0))
    await keep(kept)
    for _ in range(25):
        clock.now += 2.0
        await kept.program(KEY)
        await asyncio.gather(*kept._renewals)

    assert 5.0 == counted(kept, "renew", "ok")


async def test_a_kernel_that_kills_workers_is_left_alone_by_all_who_share_the_store() -> None:
    store = Flaky()
    await catalog(store).keep_offence(KEY, Offence(3, time.time() + 50.0))
    with pytest.raises(KernelShunned, match="3 times") as refused:
        await catalog(store).program_or_refusal(KEY)

    assert 49 <= refused.value.retry_after_s <= 51


async def test_an_old_offence_is_remembered_and_refuses_nobody() -> None:
    store = Flaky()
    offence = Offence(3, time.time() - 1.0)
    await catalog(store).keep_offence(KEY, offence)

    assert await catalog(store).program_or_refusal(KEY) is None
    assert offence == await catalog(store).offence(KEY)


async def test_whether_a_request_is_kept_cannot_be_said_while_the_store_is_down() -> None:
    store = Flaky()
    kept = catalog(store)
    await keep(kept)
    store.down = True

    with pytest.raises(StoreDown):
        await kept.request(KEY)


async def test_a_program_asked_for_lately_is_answered_from_memory() -> None:
    store = Flaky()
    kept = catalog(store)
    await keep(kept)
    store.down = True

    assert kept.ready(KEY) is await kept.program(KEY) is not None


async def test_memory_is_believed_for_a_while_only() -> None:
    store, clock = Flaky(), Clock()
    kept = catalog(store, clock=clock, lifetimes=Lifetimes(ready_s=60.0))
    await keep(kept)
    clock.now = 61.0

    assert kept.ready(KEY) is None
    assert await kept.program(KEY) is not None
    assert 1 == store.asked


async def test_memory_for_ready_programs_is_bounded() -> None:
    kept = catalog(ready_bytes=20_000)
    for i in range(100):
        await keep(kept, Key(f"{i:064x}"))

    assert 0 < sum(kept.ready(Key(f"{i:064x}")) is not None for i in range(100)) < 10
    assert kept.ready(Key(f"{99:064x}")) is not None


async def test_a_store_that_is_down_is_a_store_without_anything() -> None:
    store = Flaky()
    kept = catalog(store)
    store.down = True
    await keep(kept)
    kept.forget_ready(KEY)

    assert await kept.program(KEY) is None
    assert "told to fail" == kept.degraded
    assert (1, 1) == (counted(kept, "get", "error"), counted(kept, "put", "error"))


async def test_it_is_no_longer_degraded_when_the_store_is_back() -> None:
    store = Flaky()
    kept = catalog(store)
    store.down = True
    assert not await kept.ping()
    store.down = False
    assert await kept.ping()

    assert kept.degraded is None


async def test_a_damaged_value_is_a_miss_is_counted_and_is_overwritten() -> None:
    store = Flaky()
    await keep(catalog(store))
    name = Name(Kind.PROGRAM, KEY)
    value = bytearray(store.look(name) or b"")
    value[-1] ^= 1
    await store.put(Entry(name, bytes(value)))
    kept = catalog(store)

    assert await kept.program(KEY) is None
    assert 1 == counted(kept, "get", "damaged")
    assert store.look(name) is None
    await keep(kept)
    assert await catalog(store).program(KEY) is not None


async def test_a_value_of_another_key_is_a_miss() -> None:
    store = Flaky()
    await keep(catalog(store))
    foreign = store.look(Name(Kind.PROGRAM, KEY))
    assert foreign is not None
    await store.put(Entry(Name(Kind.PROGRAM, Key("b" * 64)), foreign))

    assert await catalog(store).program(Key("b" * 64)) is None


async def test_a_program_written_without_our_secret_is_not_believed() -> None:
    store = Flaky()
    await keep(catalog(store))

    assert await catalog(store, secret="hush").program(KEY) is None


async def test_a_refusal_is_kept_and_raised_again() -> None:
    kept = catalog()
    refusal = KernelError("/ast/nodes/1", expected="a", got="b", node=1)
    await kept.keep_refusal(KEY, refusal)
    with pytest.raises(KernelError) as again:
        await kept.program_or_refusal(KEY)

    assert (refusal.detail, refusal.facts()) == (again.value.detail, again.value.facts())
    assert await kept.program(KEY) is None


async def test_a_program_counts_more_than_a_refusal() -> None:
    kept = catalog()
    await kept.keep_refusal(KEY, KernelError("", expected="a", got="b"))
    await keep(kept)
    kept.forget_ready(KEY)

    assert await kept.program_or_refusal(KEY) is not None


async def test_many_programs_are_found_in_one_look() -> None:
    store = Flaky()
    first = catalog(store)
    keys = [Key(f"{i:064x}") for i in range(20)]
    for key in keys[::2]:
        await keep(first, key)
    kept = catalog(store)
    found = await kept.programs(keys)

    assert set(keys[::2]) == set(found)
    assert 1 == store.asked


async def test_what_devices_say_is_kept_in_order() -> None:
    kept = catalog()
    for i in range(3):
        await kept.keep_validation(KEY, {"verdict": "right", "device": f"d{i}"})

    assert ["d0", "d1", "d2"] == [report["device"] for report in await kept.validations(KEY)]
    assert [] == await kept.validations(Key("b" * 64))


async def test_reports_are_bounded_and_a_wrong_one_is_never_lost() -> None:
    kept = catalog()
    await kept.keep_validation(KEY, {"verdict": "wrong", "device": "d"})
    for _ in range(40):
        await kept.keep_validation(KEY, {"verdict": "right", "device": "d"}, most=5)
    reports = await kept.validations(KEY)

    assert 6 == len(reports)
    assert "wrong" == reports[0]["verdict"]


async def test_a_wrong_program_is_in_quarantine_in_every_process() -> None:
    store = Flaky()
    kept, other = catalog(store), catalog(store)
    await keep(kept)
    await kept.keep_validation(KEY, {"verdict": "wrong", "device": "d"})

    for process in (kept, other):
        with pytest.raises(Quarantined):
            await process.program(KEY)
        with pytest.raises(Quarantined):
            await process.program_or_refusal(KEY)
        assert {} == await process.programs([KEY])


async def test_a_right_verdict_changes_nothing() -> None:
    kept = catalog()
    await keep(kept)
    await kept.keep_validation(KEY, {"verdict": "right", "device": "d"})

    assert await kept.program(KEY) is not None


@pytest.mark.parametrize("content", [b"[]", b"nonsense", b'{"kind":"X"}', b"\xff"])
async def test_a_refusal_that_makes_no_sense_is_none(content: bytes) -> None:
    store = Flaky()
    name = Name(Kind.REFUSAL, KEY)
    await store.put(Entry(name, seal(name, content)))

    assert await catalog(store).program_or_refusal(KEY) is None
