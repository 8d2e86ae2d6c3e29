"""What the service and a worker say to each other over a socket: messages of a kind and some bytes.

Only between a process and the ones it has started: contents may be pickled.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import BinaryIO

_HEAD = struct.Struct("<BQ")  # kind, length of the content


class Said(IntEnum):
    """To a worker: JOB, nothing else. From it: READY once, with its process id in text; then BEGUN and one of the last two per job."""

    JOB = 1
    READY = 2
    BEGUN = 3  # the job has been taken: what happens to the process now may be its doing
    MADE = 4
    RAISED = 5


def message(said: Said, content: bytes = b"") -> bytes:
    """A message as it goes over the line."""
    return _HEAD.pack(said, len(content)) + content


def heard(line: BinaryIO) -> tuple[Said, bytes] | None:
    """The next message; None where the other side has ended."""
    head = line.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    said, length = _HEAD.unpack(head)
    content = line.read(length)
    return (Said(said), content) if len(content) == length else None


class Messages:
    """Puts together what comes in pieces."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._due = _HEAD.size  # bytes without which there is nothing to look at

    def fed(self, piece: bytes) -> Iterator[tuple[Said, bytes]]:
        """The messages that are whole with this piece."""
        self._pieces.append(piece)
        self._held += len(piece)
        while self._held >= self._due:
            whole = b"".join(self._pieces)
            said, length = _HEAD.unpack_from(whole)
            end = _HEAD.size + length
            if len(whole) < end:
                self._pieces, self._due = [whole], end
                return
            self._pieces, self._held, self._due = [whole[end:]], len(whole) - end, _HEAD.size
            yield Said(said), whole[_HEAD.size : end]
