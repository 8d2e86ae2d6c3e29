"""The names under which things are kept.

All that belongs to one program shares its key, so that one look finds all of it (and lies in one slot of a Redis cluster); only
its AST, which other programs come from too, has a name of its own.
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
    REQUEST = "request"  # the canonical request it was compiled from, all but its AST; never changes
    AST = "ast"  # a canonical AST, under its own hash in place of a key: many programs may come from it; never changes
    REFUSAL = "refusal"  # why there is no program; for a short time
    OFFENCE = "offence"  # that the kernel has cost workers their lives, how often, and until when it is left alone
    BINARY = "binary"  # a device binary, under a name of its own in place of a key; never changes
    BINARIES = "binaries"  # which binaries a program has; grows
    VALIDATION = "validation"  # what runs on devices have said of it; grows
    USE = "use"  # how often keys were asked for, as one process counted it, under a name of its own
    JOB = "job"  # a job's state, under its id
    JOBS = "jobs"  # the ids of those that have not ended, of all processes, under one name that all know
    JOB_BODY = "job-body"  # what it was asked
    JOB_CANCEL = "job-cancel"  # there, where somebody wants it cancelled


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
