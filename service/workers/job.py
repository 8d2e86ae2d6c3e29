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


@dataclass(frozen=True, slots=True)
class Made:
    """A program's JSON, the same as a zstd frame, what it was compiled from; seconds by stage, in order."""

    program: bytes
    packed: bytes
    origin: Origin
    stages: dict[str, float] = field(default_factory=dict)
    began_ns: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """How a program came about, as JSON; seconds by stage, in order."""

    explanation: bytes
    stages: dict[str, float] = field(default_factory=dict)
    began_ns: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """A binary; seconds by stage."""

    content: bytes
    stages: dict[str, float] = field(default_factory=dict)
    began_ns: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is none. trace: where a defect showed, for the log only."""

    error: LatheError
    stages: dict[str, float] = field(default_factory=dict)
    trace: str | None = None
    began_ns: int = 0
    pid: int = 0


Outcome = Made | Told | Built | Failed  # each also tells when it was begun (since the epoch), and in which process
