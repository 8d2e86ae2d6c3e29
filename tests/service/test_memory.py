"""The store in memory: bounded, the least recently used goes first; lifetimes by a clock of the test's own."""

from __future__ import annotations

import pytest

from service.store.keys import Key, Kind, Name
from service.store.memory import ENTRY_BYTES, MemoryStore
from service.store.store import Entry

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def name(i: int, kind: Kind = Kind.PROGRAM) -> Name:
    return Name(kind, Key(f"{i:064x}"))


async def test_it_never_holds_more_than_it_may() -> None:
    store = MemoryStore(10 * (ENTRY_BYTES + 100))
    for i in range(1000):
        await store.put(Entry(name(i), bytes(100)))
        assert store.bytes_held <= 10 * (ENTRY_BYTES + 100)

    assert 10 == sum(value is not None for value in await store.many([name(i) for i in range(1000)]))


async def test_what_was_used_last_stays() -> None:
    store = MemoryStore(3 * (ENTRY_BYTES + 1))
    for i in range(3):
        await store.put(Entry(name(i), b"v"))
    store.look(name(0))
    await store.put(Entry(name(3), b"v"))

    assert [b"v", None, b"v", b"v"] == await store.many([name(i) for i in range(4)])


async def test_a_value_larger_than_all_its_room_is_not_kept() -> None:
    store = MemoryStore(1000)
    await store.put(Entry(name(1), b"small"))
    await store.put(Entry(name(2), bytes(2000)))

    assert [b"small", None] == await store.many([name(1), name(2)])


async def test_replacing_a_value_frees_the_room_of_the_old_one() -> None:
    store = MemoryStore(10_000)
    for _ in range(100):
        await store.put(Entry(name(1), bytes(5000)))

    assert 5000 + ENTRY_BYTES == store.bytes_held


async def test_a_lifetime_ends_on_time() -> None:
    clock = Clock()
    store = MemoryStore(10_000, clock)
    await store.put(Entry(name(1), b"v", 10.0))
    clock.now += 9.9
    assert store.look(name(1)) == b"v"
    clock.now += 0.2

    assert store.look(name(1)) is None
    assert 0 == store.bytes_held
