"""The names under which things are kept, and for how long.

All that belongs to one program shares its key, so that one look finds all of it (and lies in one slot of a Redis cluster).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

Key = NewType("Key", str)  # the SHA-256 that names a program, in 64 hexadecimal digits

_KEY = re.compile(r"[0-9a-f]{64}")


class Kind(StrEnum):
    """What is kept under a program's key, or another name of the same form."""

    PROGRAM = "program"  # the answer of the wire page; never changes
    REQUEST = "request"  # the canonical request it was compiled from; never changes
    REFUSAL = "refusal"  # why there is no program; for a short time
    VALIDATION = "validation"  # what runs on devices have said of it; grows
    JOB = "job"  # a job's state, under its id
    JOB_BODY = "job-body"  # what it was asked
    JOB_CANCEL = "job-cancel"  # there, where somebody wants it cancelled


LASTING = frozenset((Kind.PROGRAM, Kind.REQUEST))  # never change, so a nearer copy is as good as the original


@dataclass(frozen=True, slots=True)
class Name:
    """The name of one stored value."""

    kind: Kind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


def as_key(text: str) -> Key | None:
    """The text as a key, or None where it is none."""
    return Key(text) if _KEY.fullmatch(text) else None
