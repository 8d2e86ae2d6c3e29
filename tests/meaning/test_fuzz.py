"""Random kernels under random legal schedules do what they mean: some hundred of them in every run; `tests.meaning.fuzz` tries more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.meaning.choices import Choices, smaller
from tests.meaning.fuzz import Tally, fuzz_batch

KERNELS = {"c": 16, "llvm": 6, "emulated": 3}  # of an example; each under up to four schedules
EXAMPLES = {"c": 5, "llvm": 4, "emulated": 8}


@pytest.mark.parametrize("target", KERNELS)
def test_random_kernels_mean_the_same_under_random_schedules(target: str) -> None:
    """J 188: and every text is taken by its compiler. A failure is made smaller by leaving out choices, not examples."""
    tally = Tally()

    @settings(max_examples=EXAMPLES[target], database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(st.integers(0, 1 << 30), min_size=KERNELS[target], max_size=KERNELS[target], unique=True))
    def tried(seeds: list[int]) -> None:
        failures = fuzz_batch(target, [Choices.random(f"{seed}") for seed in seeds], tally, tries=60)
        assert not failures, "\n".join(map(str, failures))

    tried()

    assert tally.schedules > 20


def test_choices_are_replayed_and_made_smaller() -> None:
    """The least list that fails, of a failure that needs one choice above 4."""
    first = Choices.random("a")
    drawn = [first.below(20) for _ in range(30)] + [first.between(5, 9)]

    def fails(candidate: list[int]) -> list[int] | None:
        choices = Choices.replayed(candidate)
        found = [choices.below(20) for _ in range(len(candidate))]
        return choices.taken if any(n > 4 for n in found) else None

    assert drawn == [*Choices.replayed(first.taken).taken, *first.taken[:-1], first.taken[-1] + 5]
    assert [5] == smaller(first.taken, fails)
