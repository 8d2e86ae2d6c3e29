"""What a worker process is asked, and what it answers. What crosses the process boundary are values of these, pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from core import LatheError, Limits
from service.binaries.binary import Recipe, Tool
from service.origin import Origin


@dataclass(frozen=True, slots=True)
class Job:
    """One compile: the request as `asking` hands it on, the limits it is under, and the key its program is to stand under.

    explained: how the program comes about is asked for, not the program.
    """

    request: bytes
    limits: Limits
    key: str
    explained: bool = False


@dataclass(frozen=True, slots=True)
class Build:
    """One binary: the program as JSON, how it is made and by what. folder: for this alone, to be made. seconds: the limit of time."""

    program: bytes
    recipe: Recipe
    tool: Tool
    folder: Path
    seconds: float
    most_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """stages: seconds by stage, in order. began_ns: since the epoch. pid: of the worker."""

    stages: dict[str, float] = field(default_factory=dict)
    began_ns: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Made(_Ended):
    """A program's JSON, the same as a zstd frame, and what it was compiled from."""

    program: bytes
    packed: bytes
    origin: Origin


@dataclass(frozen=True, slots=True)
class Told(_Ended):
    """How a program came about, as JSON."""

    explanation: bytes


@dataclass(frozen=True, slots=True)
class Built(_Ended):
    """A binary."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Failed(_Ended):
    """Why there is none. trace: where a defect showed, for the log only."""

    error: LatheError
    trace: str | None = None


Outcome = Made | Told | Built | Failed
