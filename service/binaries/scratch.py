"""Folders for what device compilers read and write: one for each task, all in one of the service's own.

A worker that is killed leaves its folder behind, so the service removes it when the task has ended, whichever way. What a service
leaves behind that was killed itself is swept by the next one that starts: the folder is locked while its owner lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from itertools import count
from pathlib import Path

PREFIX = "lathe-binaries-"
LOCK = "owner"


class Scratch:
    """place: where the service's own folder is made at the first task; None: among the temporary files."""

    def __init__(self, place: Path | None = None) -> None:
        self._place = place
        self._own: Path | None = None
        self._lock: int | None = None
        self._numbers = count()

    def folder(self) -> Path:
        """A new name in the service's own folder; whoever takes up the task makes the folder."""
        if self._own is None:
            self._own = self._made()
        return self._own / str(next(self._numbers))

    def remove(self, folder: Path) -> None:
        """Removes a task's folder with all that is in it, where it is still there."""
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
        self._own = self._lock = None

    def _made(self) -> Path:
        place = self._place or Path(tempfile.gettempdir())
        for left in place.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                _swept(left)
        made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))
        self._lock = os.open(made / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return made.rename(made.with_name(made.name[1:]))  # only now may others find it


def _swept(folder: Path) -> None:
    """Removes the folder of an owner that lives no more. Raises OSError where it lives, or is not our own."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(lock)
