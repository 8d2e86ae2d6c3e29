"""What runs inside a worker process: a request in; a program's JSON, how it came about, or a refusal out. Or a program in, a binary out.

A worker needs no network and no environment, and files only for device compilers, in a folder that the service names.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import resource
import select
import shutil
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from core import CompilerBug, LatheError, Request, compile_kernel, explain, program_key
from service.binaries.compiler import Task
from service.binaries.toolchain import COMPILERS
from service.codings import pack
from service.errors import CompilerReplaced, OutOfMemory
from service.origin import Origin, dumped
from service.workers.job import Build, Built, Failed, Job, Made, Outcome, Told
from service.workers.line import Said, heard, message

BINARY_FILE_MOST = 256 << 20  # bytes of a file that a device compiler may write on its way
FILE_MOST = 1 << 20  # bytes of a file a worker may write: it needs to write none, but for what Python caches of its modules
FILES_MOST = 128  # open at once; a worker has some ten


class Stopwatch:
    """Told each stage as it ends, it knows how long each took."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, stage: str, value: object = None) -> None:
        now = time.perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now


def run(job: Job | Build) -> Outcome:
    """Compiles or explains one request, or makes one binary. Whatever happens is an outcome, but for what ends the process."""
    began_ns = time.time_ns()
    return _outcome(job, Stopwatch(), began_ns, os.getpid())


def _outcome(job: Job | Build, watch: Stopwatch, began_ns: int, pid: int) -> Outcome:
    try:
        return _built(job, watch, began_ns, pid) if isinstance(job, Build) else _compiled(job, watch, began_ns, pid)
    except LatheError as error:
        return Failed(
            error, traceback.format_exc() if isinstance(error, CompilerBug) else None, stages=watch.stages, began_ns=began_ns, pid=pid
        )
    except MemoryError:
        gc.collect()
        return Failed(OutOfMemory(allowed=resource.getrlimit(resource.RLIMIT_AS)[0]), stages=watch.stages, began_ns=began_ns, pid=pid)
    except Exception as error:
        bug = CompilerBug("compile", f"{type(error).__name__} after {list(watch.stages)[-1:] or ['nothing']}")
        return Failed(bug, traceback.format_exc(), stages=watch.stages, began_ns=began_ns, pid=pid)


def rest_of(request: Request) -> bytes:
    """What the program answers beside its AST, as JSON with the hash in the AST's place: without what was to be done beside compiling."""
    schedule = request.schedule
    optimize = schedule if schedule == "heuristic" else [option.to_json() for option in schedule]
    return dumped({"ast_hash": request.ast_hash, "device": request.device.to_json(), "optimize": optimize, "annotate": request.annotate})


def _compiled(job: Job, watch: Stopwatch, began_ns: int, pid: int) -> Made | Told:
    request = pickle.loads(job.request)
    watch("receive")
    if program_key(request) != job.key:
        raise CompilerReplaced("the compiler's files are not those the service was started with: it must be restarted", retry_after_s=30)
    if job.explained:
        explanation = dumped(explain(request, job.limits))
        watch("explain")
        return Told(explanation, stages=watch.stages, began_ns=began_ns, pid=pid)
    program = compile_kernel(request, job.limits, watch)
    watch("assemble")
    made = dumped(program.to_json())
    origin = Origin(request.ast_hash, request.ast_text.encode(), rest_of(request))
    packed = pack(made)
    watch("pack")
    return Made(made, packed, origin, stages=watch.stages, began_ns=began_ns, pid=pid)


def _built(job: Build, watch: Stopwatch, began_ns: int, pid: int) -> Built:
    shutil.rmtree(job.folder, ignore_errors=True)  # another worker may have begun this, and died
    job.folder.mkdir(mode=0o700)
    try:
        task = Task(json.loads(job.program), job.recipe, job.tool, job.folder, job.seconds, job.most_bytes)
        content = COMPILERS[job.recipe.compiler].compile(task)
    finally:
        shutil.rmtree(job.folder, ignore_errors=True)
    watch(f"binary-{job.recipe.format}")
    return Built(content, stages=watch.stages, began_ns=began_ns, pid=pid)


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
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MOST, BINARY_FILE_MOST))
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
