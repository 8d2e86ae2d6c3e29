"""What the service asks of an attached device: what it is, whether it answers, and to run one program.

A program may crash, hang or write where it should not: that costs its own run and nothing else. Whoever keeps this promise can be
plugged in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from service.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a device without running anything on it.

    name: unique among the attached ones, and the word clients and metrics see. driver: whose, and which version. target: whose programs it
    runs. options: the device options of the wire that describe it. choice: how its driver finds it again.
    """

    name: str
    driver: str
    target: str
    options: Mapping[str, object]
    choice: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Trial:
    """A program to be run and compared with what its kernel means, for several inputs.

    program: the wire's program; request: the one it was compiled from. runs: pairs of a seed and whether the inputs are special ones.
    points: the most that evaluating the reference may take. All of it crosses process boundaries.
    """

    program: Mapping[str, Any]
    request: Mapping[str, Any]
    runs: Sequence[tuple[int, bool]]
    points: int = 1 << 28


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a trial.

    verdict: right, wrong (it is), or unfit (this device can't run it). why: of what is not right, in a word: outputs, inputs, overrun,
    build, crash, launch. detail: in a sentence. runs: one object per run with the worst error of each output.
    """

    verdict: str
    why: str | None = None
    detail: str | None = None
    runs: Sequence[Mapping[str, object]] = field(default=())

    @property
    def suspect(self) -> bool:
        """May the process it ran in have come to harm?"""
        return self.why in ("overrun", "crash")


class Device(Protocol):
    """One attached device."""

    @property
    def facts(self) -> Facts:
        """What it is."""

    @property
    def alive(self) -> bool:
        """Did it answer when it was last asked?"""

    async def start(self) -> bool:
        """Makes sure it answers, by a program known to be right."""

    async def judge(self, trial: Trial) -> Verdict:
        """Runs a program. Raises DeviceBusy, DeviceLost or RunTimedOut, and LimitExceeded where the reference would take too long."""

    async def close(self) -> None:
        """Ends its process."""


class DeviceBusy(ServiceError):
    """overload: too many runs wait for the device."""

    category = "overload"


class DeviceLost(ServiceError):
    """unavailable: the device does not answer."""


class RunTimedOut(ServiceError):
    """unavailable: a run was stopped at its time limit. It says nothing of the program: a quieter machine may manage."""
