"""Memory over another store: near answers for what never changes, the far store has the last word on the rest."""

from __future__ import annotations

import pytest

from service.store.keys import Key, Kind, Name
from service.store.layers import Layers
from service.store.memory import MemoryStore
from service.store.store import Entry

pytestmark = pytest.mark.anyio

KEY = Key("c" * 64)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_program_is_answered_without_asking_the_far_store() -> None:
    far = MemoryStore(1 << 20)
    store = Layers(MemoryStore(1 << 20), far, 300.0)
    name = Name(Kind.PROGRAM, KEY)
    await store.put(Entry(name, b"v"))
    await far.delete(name)

    assert [b"v"] == await store.many([name])


async def test_what_the_far_store_had_is_near_afterwards() -> None:
    far = MemoryStore(1 << 20)
    store = Layers(MemoryStore(1 << 20), far, 300.0)
    name = Name(Kind.REQUEST, KEY)
    await far.put(Entry(name, b"v"))
    await store.many([name])
    await far.delete(name)

    assert [b"v"] == await store.many([name])


@pytest.mark.parametrize("kind", [Kind.REFUSAL, Kind.VALIDATION])
async def test_what_may_change_is_always_asked_of_the_far_store(kind: Kind) -> None:
    far = MemoryStore(1 << 20)
    store = Layers(MemoryStore(1 << 20), far, 300.0)
    name = Name(kind, KEY)
    await store.put(Entry(name, b"old"))
    await far.put(Entry(name, b"new"))

    assert [b"new"] == await store.many([name])


async def test_near_values_are_believed_for_a_while_only() -> None:
    clock = Clock()
    far = MemoryStore(1 << 20)
    store = Layers(MemoryStore(1 << 20, clock), far, 60.0)
    name = Name(Kind.PROGRAM, KEY)
    await store.put(Entry(name, b"old"))
    await far.put(Entry(name, b"new"))
    assert [b"old"] == await store.many([name])
    clock.now = 61.0

    assert [b"new"] == await store.many([name])
