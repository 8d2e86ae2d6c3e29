"""What runs inside a worker, with the real compiler: whatever happens is an outcome, plain and picklable."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import service.workers.task as task
from core import CompilerBug, LimitExceeded, Limits, Program, Request, program_key
from service.api.examples import COMPILES
from service.asking import asked_in
from service.binaries.toolchain import Toolchain
from service.codings import inflated
from service.errors import CompilerReplaced, OutOfMemory
from service.origin import request_of
from service.workers.job import Failed, Job, Made
from service.workers.task import run

EXAMPLES = pytest.mark.parametrize("body", COMPILES.values(), ids=list(COMPILES))


def job(body: object, **limits: int) -> Job:
    asked = asked_in(json.dumps(body).encode(), Limits(), Toolchain())
    return Job(asked.job, Limits(**limits), asked.key)


def made(body: object) -> Made:
    outcome = run(job(body))
    assert isinstance(outcome, Made), outcome
    return outcome


@EXAMPLES
def test_a_program_comes_as_json_as_a_frame_and_with_the_request_it_answers(body: dict[str, Any]) -> None:
    outcome = made(body)
    program = Program.from_json(json.loads(outcome.program))
    beside = Request.from_json(json.loads(request_of(outcome.origin.ast, outcome.origin.rest)))

    assert program_key(Request.from_json(body)) == program.key == program_key(beside)
    assert outcome.program == inflated(outcome.packed, "zstd", 1 << 24)
    assert {"receive", "lower", "render"} <= set(outcome.stages)
    assert all(seconds >= 0 for seconds in outcome.stages.values())


def test_what_was_asked_beside_compiling_is_not_kept_with_the_program() -> None:
    plain = next(iter(COMPILES.values()))
    asked = {**plain, "optimize": "tuned", "require": "validated"}

    assert made(plain).origin == made(asked).origin
    assert made(plain).program == made(asked).program


def test_a_refusal_is_an_outcome_that_crosses_processes() -> None:
    outcome = run(job(next(iter(COMPILES.values())), source_chars=1))
    assert isinstance(outcome, Failed)
    back = pickle.loads(pickle.dumps(outcome))

    assert isinstance(outcome.error, LimitExceeded)
    assert (outcome.error.detail, outcome.error.facts(), None) == (back.error.detail, back.error.facts(), back.trace)


def test_a_worker_with_another_compiler_than_the_service_makes_nothing() -> None:
    outcome = run(replace(job(next(iter(COMPILES.values()))), key="0" * 64))

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, CompilerReplaced)


def test_the_limits_of_the_job_are_kept() -> None:
    outcome = run(job(next(iter(COMPILES.values())), micro_ops=1))

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, LimitExceeded)
    assert "micro_ops" == outcome.error.facts()["limit"]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("x"), CompilerBug),
        (RecursionError(), CompilerBug),
        (MemoryError(), OutOfMemory),
        (AssertionError(), CompilerBug),
    ],
)
def test_whatever_the_compiler_raises_is_an_outcome(monkeypatch: pytest.MonkeyPatch, raised: Exception, kind: type[Exception]) -> None:
    def broken(*_: object) -> Program:
        raise raised

    monkeypatch.setattr(task, "compile_kernel", broken)
    outcome = run(job(next(iter(COMPILES.values()))))

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, kind)
    assert (kind is CompilerBug) == (outcome.trace is not None)


COMPILE = """
import json, sys
from core import Limits
from service.asking import asked_in
from service.binaries.toolchain import Toolchain
from service.workers.task import Job, run
for body in json.load(sys.stdin):
    asked = asked_in(json.dumps(body).encode(), Limits(), Toolchain())
    sys.stdout.buffer.write(run(Job(asked.job, Limits(), asked.key)).program)
"""


def test_two_processes_with_different_hash_seeds_make_the_same_bytes() -> None:
    root = Path(__file__).parents[2]
    bodies = json.dumps(list(COMPILES.values())).encode()
    programs = [
        subprocess.run(
            [sys.executable, "-c", COMPILE],
            input=bodies,
            capture_output=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]

    assert programs[0] == programs[1] != b""
