"""Kernels that kill workers are refused for a growing while."""

from __future__ import annotations

import pytest

from service.errors import KernelShunned, QueueFull, WorkerLost
from service.shun import REMEMBERED, Shun
from service.store.keys import Key

KEY = Key("d" * 64)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lose(shun: Shun, key: Key = KEY) -> None:
    with pytest.raises(WorkerLost), shun.watching(key):
        raise WorkerLost("gone")


def test_a_kernel_without_offences_is_welcome() -> None:
    Shun(10, 100, Clock()).refuse(KEY)


def test_each_offence_doubles_the_while_up_to_the_most() -> None:
    clock = Clock()
    shun = Shun(10, 100, clock)
    waits: list[int] = []
    for _ in range(6):
        lose(shun)
        with pytest.raises(KernelShunned) as refused:
            shun.refuse(KEY)
        waits.append(refused.value.retry_after_s)
        clock.now += refused.value.retry_after_s
        shun.refuse(KEY)

    assert [11, 21, 41, 81, 101, 101] == waits


def test_other_kernels_are_not_concerned() -> None:
    shun = Shun(10, 100, Clock())
    lose(shun)

    shun.refuse(Key("e" * 64))


def test_an_attempt_that_ends_well_wipes_out_the_offences() -> None:
    clock = Clock()
    shun = Shun(10, 100, clock)
    lose(shun)
    clock.now = 11
    with shun.watching(KEY):
        pass
    lose(shun)
    with pytest.raises(KernelShunned) as refused:
        shun.refuse(KEY)

    assert 11 == refused.value.retry_after_s


def test_a_full_queue_is_no_offence_and_wipes_out_none() -> None:
    clock = Clock()
    shun = Shun(10, 100, clock)
    lose(shun)
    clock.now = 11
    with pytest.raises(QueueFull), shun.watching(KEY):
        raise QueueFull("full")
    shun.refuse(KEY)
    lose(shun)
    with pytest.raises(KernelShunned) as refused:
        shun.refuse(KEY)

    assert 21 == refused.value.retry_after_s


def test_what_is_remembered_is_bounded() -> None:
    shun = Shun(10, 100, Clock())
    for i in range(REMEMBERED + 10):
        lose(shun, Key(f"{i:064x}"))

    shun.refuse(Key(f"{0:064x}"))
    with pytest.raises(KernelShunned):
        shun.refuse(Key(f"{REMEMBERED:064x}"))
