"""What the service asks of a device compiler: whether it is here, what it would be called with, and to compile one text.

Finding happens in the service's process and starts nothing that could harm it; compiling happens in worker processes. A compiler is a
program (`call`, within limits of its own, in a folder that goes with the task) or a library that the worker loads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core import LimitExceeded, TextRejected
from service.binaries.binary import Recipe, Tool
from service.errors import OutOfMemory, TimedOut

LOG_MOST = 8000  # characters of what a compiler says that a client is told
EARLY_S = 1.0  # so long before the worker's time is over a compiler's is: then no worker is lost
VERSION_S = 20.0  # for a compiler to tell its version; it takes milliseconds
_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None)
_NO_MEMORY = re.compile(r"out of memory|cannot allocate memory|virtual memory exhausted|bad_alloc|memory exhausted", re.IGNORECASE)
_NO_TIME = re.compile(r"cpu time limit exceeded", re.IGNORECASE)
_NO_ROOM = re.compile(r"file size limit exceeded|file too large", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Task:
    """One program to compile. program: the wire's. folder: an empty one, for this alone. seconds: the limit of time, all in all."""

    program: Mapping[str, Any]
    recipe: Recipe
    tool: Tool
    folder: Path
    seconds: float
    most_bytes: int

    @property
    def source(self) -> str:
        return str(self.program["source"])

    def rejected(self, log: str) -> TextRejected:
        """What is raised where the compiler refuses the text, with what it said."""
        said = log.strip()
        return TextRejected(str(self.program["target"]), said if len(said) <= LOG_MOST else said[:LOG_MOST] + "…")

    def too_large(self, size: int) -> LimitExceeded:
        """What is raised where the binary has more bytes than it may."""
        return LimitExceeded("/binary", limit="binary_bytes", needed=size, allowed=self.most_bytes)


class Compiler(Protocol):
    """One device compiler."""

    @property
    def name(self) -> str:
        """As keys and headers have it."""

    def find(self, path: str) -> Tool | None:
        """The compiler as it is on this host, or None. path: where programs are looked for."""

    def architectures(self, tool: Tool) -> Sequence[str]:
        """Those it is known to take, what it compiles for where nobody says first; empty: whatever the device options take."""

    def options(self, format_: str, arch: str) -> tuple[str, ...]:
        """What it is called with, but for the names of files."""

    def compile(self, task: Task) -> bytes:
        """The binary. Raises TextRejected with the compiler's log, TimedOut, OutOfMemory, LimitExceeded, TargetError."""


def first_line(command: Sequence[str], path: str) -> str | None:
    """What a program says first when it is asked for its version; None where it does not answer."""
    try:
        done = subprocess.run(
            command,
            env={"PATH": path, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().splitlines()[0].strip() if done.stdout.strip() else None


def call(task: Task, arguments: Sequence[str]) -> None:
    """Runs the tool with these arguments in the task's folder. Raises TimedOut, OutOfMemory, LimitExceeded, TextRejected.

    Whatever it starts ends with it at the time limit; where this process is killed meanwhile, at the latest at its limit of CPU time.
    """
    log = task.folder / "log"
    seconds = task.seconds - min(EARLY_S, task.seconds / 10)
    environment = {"LC_ALL": "C", "HOME": str(task.folder), "TMPDIR": str(task.folder), "SOURCE_DATE_EPOCH": "0", **task.tool.environment}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*task.tool.command, *arguments],
            cwd=task.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: _limit(seconds),
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimedOut(limit="compile_seconds", allowed_s=task.seconds) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status == 0:
        return
    with log.open("rb") as said:
        text = said.read(4 * LOG_MOST).decode(errors="replace")
    if status == -signal.SIGXCPU or _NO_TIME.search(text):
        raise TimedOut(limit="compile_seconds", allowed_s=task.seconds)
    if _NO_MEMORY.search(text):
        raise OutOfMemory(allowed=resource.getrlimit(resource.RLIMIT_AS)[0])
    if status == -signal.SIGXFSZ or _NO_ROOM.search(text):
        raise task.too_large(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    raise task.rejected(text or f"it ended with status {status}, without a word")


def _limit(seconds: float) -> None:
    """Runs in the new process, ahead of the compiler."""
    cpu_s = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def written(task: Task, name: str) -> bytes:
    """The file that the compiler has left in the task's folder. Raises LimitExceeded where it is larger than it may be."""
    file = task.folder / name
    size = file.stat().st_size
    if size > task.most_bytes:
        raise task.too_large(size)
    return file.read_bytes()
