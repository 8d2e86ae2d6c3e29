"""Kernels that kill workers are refused for a growing while."""

from __future__ import annotations

import pytest

from service.errors import KernelShunned
from service.shun import REMEMBERED, Offence, Shun
from service.store.keys import Key

KEY = Key("d" * 64)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_kernel_without_offences_is_welcome() -> None:
    Shun(10, 100, Clock()).refuse(KEY)


def test_each_offence_doubles_the_while_up_to_the_most() -> None:
    clock = Clock()
    shun = Shun(10, 100, clock)
    waits: list[int] = []
    for _ in range(6):
        shun.offended(KEY)
        with pytest.raises(KernelShunned) as refused:
            shun.refuse(KEY)
        waits.append(refused.value.retry_after_s)
        clock.now += refused.value.retry_after_s
        shun.refuse(KEY)

    assert [11, 21, 41, 81, 101, 101] == waits


def test_other_kernels_are_not_concerned() -> None:
    shun = Shun(10, 100, Clock())
    shun.offended(KEY)

    shun.refuse(Key("e" * 64))


def test_offences_that_others_know_of_count() -> None:
    shun = Shun(10, 1000, Clock())

    assert Offence(4, 1080.0) == shun.offended(KEY, Offence(3, 900.0))
    assert Offence(5, 1160.0) == shun.offended(KEY, Offence(1, 900.0))


def test_a_kernel_that_was_compiled_is_absolved() -> None:
    shun = Shun(10, 100, Clock())
    shun.offended(KEY)
    shun.absolve(KEY)
    shun.refuse(KEY)

    assert Offence(1, 1010.0) == shun.offended(KEY)


def test_what_is_remembered_is_bounded() -> None:
    shun = Shun(10, 100, Clock())
    for i in range(REMEMBERED + 10):
        shun.offended(Key(f"{i:064x}"))

    shun.refuse(Key(f"{0:064x}"))
    with pytest.raises(KernelShunned):
        shun.refuse(Key(f"{REMEMBERED:064x}"))
