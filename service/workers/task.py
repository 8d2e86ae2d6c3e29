"""What runs inside a worker process: a request in; a program's JSON, how it came about, or a refusal out.

What crosses the process boundary are requests as `core` has read them, plain bytes, numbers and errors of ours. A worker needs no network,
no files and no environment.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from core import CompilerBug, LatheError, Limits, Request, compile_kernel, explain, program_key
from service.codings import pack
from service.errors import CompilerReplaced, OutOfMemory
from service.origin import Origin, dumped
from service.workers.line import Said, heard, message

FILE_MOST = 1 << 20  # bytes of a file a worker may write: it needs to write none, but for what Python caches of its modules
FILES_MOST = 128  # open at once; a worker has some ten


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
class Failed:
    """Why there is no program. trace: where a defect showed, for the log only."""

    error: LatheError
    stages: dict[str, float] = field(default_factory=dict)
    trace: str | None = None
    began_ns: int = 0
    pid: int = 0


Outcome = Made | Told | Failed  # each also tells when it was begun (since the epoch), and in which process


class Stopwatch:
    """Told each stage as it ends, it knows how long each took."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, stage: str, value: object = None) -> None:
        now = time.perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now


def run(job: Job) -> Outcome:
    """Compiles or explains one request. Whatever happens is an outcome; nothing is raised but what ends the process."""
    began_ns = time.time_ns()
    return _outcome(job, Stopwatch(), began_ns, os.getpid())


def _outcome(job: Job, watch: Stopwatch, began_ns: int, pid: int) -> Outcome:
    try:
        request = pickle.loads(job.request)
        watch("receive")
        if program_key(request) != job.key:
            raise CompilerReplaced(
                "the compiler's files are not those the service was started with: it must be restarted", retry_after_s=30
            )
        if job.explained:
            explanation = dumped(explain(request, job.limits))
            watch("explain")
            return Told(explanation, watch.stages, began_ns, pid)
        program = compile_kernel(request, job.limits, watch)
        watch("assemble")
        made = dumped(program.to_json())
        origin = Origin(request.ast_hash, request.ast_text.encode(), rest_of(request))
        packed = pack(made)
        watch("pack")
        return Made(made, packed, origin, watch.stages, began_ns, pid)
    except LatheError as error:
        return Failed(error, watch.stages, traceback.format_exc() if isinstance(error, CompilerBug) else None, began_ns, pid)
    except MemoryError:
        gc.collect()
        return Failed(OutOfMemory(allowed=resource.getrlimit(resource.RLIMIT_AS)[0]), watch.stages, None, began_ns, pid)
    except Exception as error:
        bug = CompilerBug("compile", f"{type(error).__name__} after {list(watch.stages)[-1:] or ['nothing']}")
        return Failed(bug, watch.stages, traceback.format_exc(), began_ns, pid)


def rest_of(request: Request) -> bytes:
    """What the program answers beside its AST, as JSON with the hash in the AST's place: without what was to be done beside compiling."""
    schedule = request.schedule
    optimize = schedule if schedule == "heuristic" else [option.to_json() for option in schedule]
    return dumped({"ast_hash": request.ast_hash, "device": request.device.to_json(), "optimize": optimize, "annotate": request.annotate})


def serve(line: socket.socket, run: Callable[[Any], object], memory_bytes: int) -> None:
    """The whole life of a worker: does the jobs that come over the line, one after another, until the service hangs up."""
    begin(line, memory_bytes)
    line.sendall(message(Said.READY, b"%d" % os.getpid()))
    jobs = line.makefile("rb")
    while (told := heard(jobs)) is not None:
        line.sendall(message(Said.BEGUN))
        try:
            made = message(Said.MADE, pickle.dumps(run(pickle.loads(told[1])), pickle.HIGHEST_PROTOCOL))
        except Exception as error:
            made = message(Said.RAISED, pickle.dumps(error))
        line.sendall(made)


def begin(line: socket.socket, memory_bytes: int) -> None:
    """Runs once in a new worker: its limits, and an end when the service has ended without a word.

    Signals to the whole process group are left to the service: they must not take the work that it finishes first.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MOST, FILE_MOST))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MOST, FILES_MOST))
    os.environ.clear()
    gc.set_threshold(50_000, 20, 20)  # graphs hold no cycles: looking for some took a third of a compile's time (measured)
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()


def _end_with(line: socket.socket) -> None:
    """Whatever the process is doing: it ends when the other side of the line has."""
    hung_up = select.poll()
    hung_up.register(line, select.POLLRDHUP)
    hung_up.poll()
    os._exit(1)
