"""What the fake compiler does, in whichever process: imported by name in workers, so it needs little."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from core import CompilerBug, KernelError, LimitExceeded
from service.codings import pack
from service.errors import OutOfMemory
from service.origin import Origin, dumped, origin_of
from service.workers.job import Failed, Job, Made, Outcome, Told

AST_HASH = "a5" * 32
SOURCE = "void kernel(float* out) { out[0] = 1.0f; }\n"


def program(body: dict[str, Any]) -> bytes:
    """The program of a fake request: deterministic, about 4 KB."""
    lines = int(body.get("lines", 80))
    return dumped({"key": "", "name": f"k_{body['kernel']}", "target": "c", "source": SOURCE * lines, "compiler": "fake"})


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def run(job: Job) -> Outcome:
    """What `do` says: run for ever, die, die the first time, eat memory, take a time, wait for a file, or fail in some way.

    `tally`: a file that gets a line for each attempt, with the process of the service whose worker this is.
    """
    body = json.loads(job.request)
    if "tally" in body:
        with Path(body["tally"]).open("a") as tally:  # short lines that are appended are never torn
            tally.write(f"{body['kernel']} {_parent(os.getppid())}\n")
    match body.get("do"):
        case "spin":
            Path(body["file"]).write_text(str(os.getpid()))
            while True:
                pass
        case "die":
            os.kill(os.getpid(), 9)
        case "die_once":
            mark = Path(body["file"])
            if not mark.exists():
                mark.write_text(str(os.getpid()))
                while True:
                    time.sleep(0.01)
        case "eat":
            try:
                hoard = [bytearray(1 << 24) for _ in range(1 << 20)]
                del hoard
            except MemoryError:
                return Failed(OutOfMemory(allowed=int(body.get("allowed", 0))))
        case "eat_unseen":
            return Made(bytes(1 << 60), b"", Origin("", b"", b""))
        case "take":
            time.sleep(body["seconds"])
        case "wait":
            Path(body["file"]).write_text(str(os.getpid()))
            while not Path(body["file"] + ".go").exists():
                time.sleep(0.01)
        case "refuse":
            return Failed(KernelError("/ast/nodes/3", expected="a kernel", got="something else", node=3))
        case "too_large":
            return Failed(LimitExceeded("/ast", limit="micro_ops", needed=300_000, allowed=200_000))
        case "bug":
            return Failed(CompilerBug("simplify", "a rule made a value bigger", "listing of micro-ops"), "Traceback …")
        case "crash":
            raise ValueError("never raised by the real task")
    if job.explained:
        return Told(dumped({"key": job.key, "name": f"k_{body['kernel']}"}), stages={"explain": 0.5})
    made = program(body)
    return Made(made, pack(made), origin_of({"ast": {}, **body}, AST_HASH), stages={"read": 0.001, "lower": 0.25})
