"""Tables of kernels to be tried on each target: one test per row and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.meaning.build import Build
from tests.meaning.harness import TARGETS, assert_means

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, and the inputs to try it with."""

    ast: Json
    seeds: Sequence[int] = (0, 1)
    special: bool = False
    targets: Sequence[str] = TARGETS
    optimize: object = "none"
    device: Json = field(default_factory=dict)

    def holds(self, target: str) -> None:
        assert_means(self.ast, target, self.optimize, self.seeds, special=self.special, device=self.device)


def special(build: Build, seeds: Sequence[int] = (0,)) -> Case:
    """With NaN, infinities, zeros and the ends of ranges among the inputs, and without."""
    return Case(build.ast(), seeds, special=True)


def plain(build: Build, seeds: Sequence[int] = (0, 1)) -> Case:
    return Case(build.ast(), seeds)


def symbolic(build: Build) -> Case:
    """For several values of the variables, the least ones among them."""
    return Case(build.ast(), (0, 1, 2, 3))


def each(cases: Mapping[str, Case]) -> pytest.MarkDecorator:
    """Parametrizes (case, target) over a table; the row's name is the test's."""
    rows = [pytest.param(case, target, id=f"{name}-{target}") for name, case in cases.items() for target in case.targets]
    return pytest.mark.parametrize(("case", "target"), rows)
