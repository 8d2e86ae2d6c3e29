"""Many programs tried at once: one text, one run of the target's compiler, the reference evaluated once per kernel.

A batch runs in a process that may die. If it does, its programs are run one by one, to find the one that did it.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pebble import ProcessExpired

from core import Request
from core.dtypes import dtype_named
from core.linear.interpret import Fault, run
from core.linear.listing import Listing
from core.reference import OutsideBuffer, compare, evaluate, sample_inputs, sample_variables, size_at
from core.reference.bounded import Array
from service.device.run import NotBuilt, Ran, Unfit, launch_of
from tests.meaning.harness import PROCESSES, CRunner, runner_of
from tests.tools.fibers import emulator as fibers

Json = dict[str, Any]
SECONDS = 300.0
SENTINEL = 0xA5
OF_C: dict[str, tuple[str, ...]] = {"c": (), "ubsan": ("-fsanitize=undefined", "-fno-sanitize-recover=undefined")}
FIBERS = (*fibers.LANGUAGES, "fibers")
BUDGET = 1 << 22  # points of nodes: what the reference takes a tenth of a second for


@dataclass(frozen=True, slots=True)
class Attempt:
    """One kernel under several schedules: `programs` answer `bodies`. listings: for the emulator, in step with the programs."""

    bodies: Sequence[Json]
    programs: Sequence[Json]
    listings: Sequence[Listing] = ()
    seeds: Sequence[tuple[int, bool]] = ((0, False),)


@dataclass(frozen=True, slots=True)
class Difference:
    """A program that does not do what its kernel means, by the numbers of its attempt and program in the batch."""

    attempt: int
    program: int
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """right: programs that agreed on all inputs. untried: those no inputs could be made up for, or that the device has no room for."""

    differences: tuple[Difference, ...]
    right: int
    untried: int


def try_all(target: str, attempts: Sequence[Attempt]) -> Outcome:
    """What came of a batch. target: `c`, `ubsan` (C that ends its process where its behaviour is undefined), `llvm`, `opencl`; `cuda`,
    `hip`, `metal`, `ptx`, `wgsl` or, for programs of the first three, `fibers` (on the CPU); or `emulated`: listings of OpenCL programs.
    """
    found = _in_process(target, attempts)
    if isinstance(found, Outcome):
        return found
    differences: list[Difference] = []
    right = untried = 0
    for a, attempt in enumerate(attempts):
        for p in range(len(attempt.programs)):
            listings = attempt.listings[p : p + 1]
            alone = Attempt(attempt.bodies[p : p + 1], attempt.programs[p : p + 1], listings, attempt.seeds)
            one = _in_process(target, [alone])
            if isinstance(one, str):
                differences.append(Difference(a, p, one))
            else:
                differences += [Difference(a, p, d.why) for d in one.differences]
                right += one.right
                untried += one.untried
    return Outcome(tuple(differences), right, untried)


def _in_process(target: str, attempts: Sequence[Attempt]) -> Outcome | str:
    if target == "emulated":
        return _tried(target, list(attempts))
    try:
        found: Outcome = PROCESSES.of(target).schedule(_tried, args=[target, list(attempts)], timeout=SECONDS).result()
    except ProcessExpired as error:
        return f"the process ended, exit code {error.exitcode}"
    except NotInTime:
        return f"not done within {SECONDS:g} s"
    return found


# ---- in the process of the device ------------------------------------------------------------------------------------------


def _tried(target: str, attempts: list[Attempt]) -> Outcome:
    built = _built(target, attempts)
    differences: list[Difference] = []
    right = untried = 0
    for a, attempt in enumerate(attempts):
        verdicts = _judged(target, attempt, built[a])
        for p, verdict in enumerate(verdicts):
            if verdict is None:
                untried += 1
            elif verdict:
                differences.append(Difference(a, p, verdict))
            else:
                right += 1
    return Outcome(tuple(differences), right, untried)


def _built(target: str, attempts: list[Attempt]) -> list[list[Any]]:
    """Something to run per program; a text instead where its compiler rejects it."""
    if target in OF_C:
        return together(attempts, OF_C[target])
    if target in FIBERS:
        return _fibers(attempts)
    built: list[list[Any]] = []
    for attempt in attempts:
        row: list[Any] = []
        for p, program in enumerate(attempt.programs):
            if target == "emulated":
                row.append(attempt.listings[p])
                continue
            try:
                row.append(runner_of(target).build(program))
            except NotBuilt as error:
                row.append(f"not built: {error}"[:2000])
        built.append(row)
    return built


def _fibers(attempts: Sequence[Attempt]) -> list[list[Any]]:
    """Functions of programs of any languages that fibers run, those of a language compiled as one text."""
    programs: dict[str, list[Json]] = {}
    for attempt in attempts:
        for body, program in zip(attempt.bodies, attempt.programs, strict=True):
            programs.setdefault(body["device"]["target"], []).append(program)
    made = {language: iter(fibers.together(language, found)) for language, found in programs.items()}
    return [[next(made[body["device"]["target"]]) for body in attempt.bodies] for attempt in attempts]


def together(attempts: Sequence[Attempt], flags: Sequence[str] = ()) -> list[list[Any]]:
    """Functions of C programs that were compiled as one text; helpers they have in common stand there once."""
    head: dict[str, None] = {}
    body: list[str] = []
    for a, attempt in enumerate(attempts):
        for p, program in enumerate(attempt.programs):
            before, own, text = _parted(program, f"kernel_{a}_{p}")
            head.update(dict.fromkeys(before))
            body.append(own + text)
    with tempfile.TemporaryDirectory(prefix="lathe-batch-") as folder:
        source, library = Path(folder) / "batch.c", Path(folder) / "batch.so"
        source.write_text("".join(sorted(head, key=lambda part: not part.startswith("#"))) + "".join(body))
        command = ["gcc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-w", *flags, str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            if sum(len(attempt.programs) for attempt in attempts) == 1:
                return [[f"not built: {done.stderr[:2000]}"]]
            singles = [[Attempt([b], [p]) for b, p in zip(a.bodies, a.programs, strict=True)] for a in attempts]
            return [[together([single], flags)[0][0] for single in row] for row in singles]
        found = ctypes.CDLL(str(library))
    return [[_function(found, f"kernel_{a}_{p}") for p in range(len(attempt.programs))] for a, attempt in enumerate(attempts)]


def _function(library: ctypes.CDLL, name: str) -> Any:
    function = library[name]
    function.restype = None
    return function


def _parted(program: Json, name: str) -> tuple[list[str], str, str]:
    """The definitions a text begins with, what else stands before its function, and the function under another name."""
    source = program["source"]
    start = re.search(rf"^void {program['name']}\(", source, re.MULTILINE)
    assert start is not None
    parts = re.split(r"^(?=#include|static )", source[: start.start()], flags=re.MULTILINE)
    shared = [part.rstrip() + "\n" for part in parts if part.startswith(("#include", "static "))]
    other = "".join(part for part in parts if not part.startswith(("#include", "static ")))
    return shared, other.strip(), source[start.start() :].replace(f"void {program['name']}(", f"void {name}(", 1)


def _judged(target: str, attempt: Attempt, built: list[Any]) -> list[str | None]:
    """Per program: nothing, or what is wrong with it; None where it can not be tried."""
    kernel = Request.from_json(attempt.bodies[0]).kernel
    verdicts: list[str | None] = [made if isinstance(made, str) else "" for made in built]
    for seed, special in attempt.seeds:
        variables = sample_variables(kernel, seed)
        try:
            inputs = sample_inputs(kernel, variables, seed, special)
            expected = evaluate(kernel, inputs, variables, BUDGET)
        except OutsideBuffer:
            return [None] * len(built)
        for p, program in enumerate(attempt.programs):
            if verdicts[p] != "":
                continue
            try:
                buffers = _sized(program, inputs, variables)
                ran = _run(target, program, built[p], buffers, variables)
            except Unfit:
                verdicts[p] = None
                continue
            except Fault as error:
                verdicts[p] = f"fault: {error}"
                continue
            dtypes = {a["index"]: dtype_named(a["dtype"]) for a in program["arguments"] if a["kind"] == "buffer"}
            for number, result in expected.items():
                got = ran.buffers[number][: len(result.values)]
                agreement = compare(got, result, dtypes[number])
                if agreement.wrong:
                    at = agreement.first_wrong or 0
                    verdicts[p] = f"seed {seed}{' special' if special else ''}: buffer {number} has {agreement.wrong} wrong elements, "
                    verdicts[p] = f"{verdicts[p]}the first at {at}: {got[at]}, not {result.values[at]} ± {result.tolerance[at]}"
            for number, held in ran.buffers.items():
                if number not in expected and not np.array_equal(held.view(np.uint8), buffers[number].view(np.uint8)):
                    verdicts[p] = f"buffer {number}, which is only read, was changed"
            if ran.overrun:
                verdicts[p] = f"something beside buffers {ran.overrun} was written"
    return verdicts


def _sized(program: Mapping[str, Any], inputs: Mapping[int, Array], variables: Mapping[str, int]) -> dict[int, Array]:
    """The buffers, longer where the program declares more than the inputs have."""
    buffers = dict(inputs)
    for argument in program["arguments"]:
        if argument["kind"] == "buffer":
            held = buffers[argument["index"]]
            more = max(size_at(argument["size"], variables) - len(held), 0)
            filler = np.full(more * held.itemsize, SENTINEL, np.uint8).view(held.dtype)
            buffers[argument["index"]] = np.concatenate([held, filler]) if more else held
    return buffers


_caller = CRunner()


def _run(target: str, program: Json, made: Any, buffers: dict[int, Array], variables: Mapping[str, int]) -> Ran:
    if target in OF_C:
        return _caller.run(program, made, buffers, variables)
    if target == "emulated":
        return _emulated(program, made, buffers, variables)
    ran: Ran = runner_of(target).run(program, made, buffers, variables)
    return ran


def _emulated(program: Json, listing: Listing, buffers: dict[int, Array], variables: Mapping[str, int]) -> Ran:
    """A run of the listing in plain Python, each access watched. Raises Fault."""
    bools = {a["index"] for a in program["arguments"] if a.get("dtype") == "bool"}
    held: dict[int, Any] = {n: [bool(x) if x < 2 else x for x in b.tolist()] if n in bools else b.copy() for n, b in buffers.items()}
    launch = launch_of(program, variables)
    local = launch.group or (1, 1, 1)
    groups = (launch.items[0] // local[0], launch.items[1] // local[1], launch.items[2] // local[2])
    run(listing, held, variables, groups=groups, local_size=(local[0], local[1], local[2]))
    return Ran({n: np.array(b, np.uint8) if n in bools else b for n, b in held.items()})
