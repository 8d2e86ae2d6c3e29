"""Simplifying is never needed: a graph that goes on as it was lowered is a right program too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from core.ir.value import Value
from tests.meaning.choices import Choices
from tests.meaning.fuzz import Tally, fuzz_batch

KERNELS = {"c": 40, "emulated": 15}  # each under up to four schedules


def as_it_is(root: Value, **_: object) -> tuple[Value, Mapping[Value, Value]]:
    return root, {}


@pytest.mark.parametrize("target", KERNELS)
def test_random_kernels_mean_the_same_without_simplification(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 5: no pass but those the target's language needs."""
    monkeypatch.setattr("core.compiler.simplify", as_it_is)
    monkeypatch.setattr("core.compiler.collapse", as_it_is)
    tally = Tally()

    failures = fuzz_batch(target, [Choices.random(f"as it is {n}") for n in range(KERNELS[target])], tally, tries=60)

    assert not failures, "\n".join(map(str, failures))
    assert tally.schedules > 2 * KERNELS[target]
