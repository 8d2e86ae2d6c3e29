"""Where random kernels and schedules get their choices from: a generator of random numbers, hypothesis, or a list that is replayed.

Everything drawn is one list of small integers, 0 the simplest choice, so a failing case is made smaller without knowing what it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
Draw = Callable[[int], int]  # an integer in [0, n)


class Choices:
    """taken: what was chosen so far."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.taken: list[int] = []

    @classmethod
    def random(cls, seed: str) -> Choices:
        return cls(Random(seed).randrange)

    @classmethod
    def replayed(cls, taken: Sequence[int]) -> Choices:
        """The same choices again; where the list ends, the simplest."""
        left = iter(taken)
        return cls(lambda n: min(next(left, 0), n - 1))

    def below(self, n: int) -> int:
        found = self._draw(n) if n > 1 else 0
        self.taken.append(found)
        return found

    def between(self, least: int, greatest: int) -> int:
        return least + self.below(greatest - least + 1)

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def once_in(self, n: int) -> bool:
        """True once in `n` times; false is the simpler."""
        return self.below(n) == n - 1

    def some_of(self, items: Sequence[T], once_in: int = 2) -> list[T]:
        return [item for item in items if self.once_in(once_in)]


def smaller(taken: Sequence[int], fails: Callable[[list[int]], list[int] | None], tries: int = 400) -> list[int]:
    """A shorter list of smaller choices that still fails. fails: what was taken of a list where it does, else None."""
    best = list(taken)
    left = tries
    size = max(len(best) // 2, 1)
    while size and left > 0:
        at = 0
        changed = False
        while at < len(best) and left > 0:
            for candidate in _attempts(best, at, size):
                left -= 1
                found = fails(candidate)
                if found is not None and (len(found), sum(found)) < (len(best), sum(best)):
                    best, changed = found, True
                    break
            else:
                at += size
        if not changed or size > 1:
            size //= 2
    return best


def _attempts(best: list[int], at: int, size: int) -> list[list[int]]:
    """Without a run of choices; with the simplest in its place; a single one halved or lowered."""
    run = best[at : at + size]
    found = [best[:at] + best[at + size :]]
    if any(run):
        found.append(best[:at] + [0] * len(run) + best[at + size :])
    if size == 1 and run[0] > 1:
        found += [[*best[:at], run[0] // 2, *best[at + 1 :]], [*best[:at], run[0] - 1, *best[at + 1 :]]]
    return found
