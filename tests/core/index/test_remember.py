"""What is remembered of index arithmetic: the same answer, no more than so many, and no error."""

from __future__ import annotations

import pytest

from core.index.remember import ANSWERS, remembered


def test_an_answer_is_made_once() -> None:
    asked: list[int] = []

    @remembered
    def square(n: int) -> int:
        asked.append(n)
        return n * n

    assert [9, 9, 16] == [square(3), square(3), square(4)]
    assert [3, 4] == asked


def test_what_was_asked_for_longest_ago_is_forgotten_first() -> None:
    asked: list[int] = []

    @remembered
    def same(n: int) -> int:
        asked.append(n)
        return n

    for n in range(ANSWERS + 1):
        same(n)
    asked.clear()

    same(1)
    same(0)

    assert [0] == asked


def test_a_refusal_is_not_an_answer() -> None:
    asked: list[int] = []

    @remembered
    def refused(n: int) -> int:
        asked.append(n)
        raise ValueError(n)

    for _ in range(2):
        with pytest.raises(ValueError, match="7"):
            refused(7)

    assert [7, 7] == asked
