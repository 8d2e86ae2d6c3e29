"""Random kernels under random legal schedules, compared with what they mean, for as long as one likes.

    python -m tests.meaning.fuzz --count 50000 --seed 1 --target c        counts schedules; or `ubsan`, `opencl`, `emulated`, another target
    python -m tests.meaning.fuzz --replay FILE --target c                 one request again

Each kernel is drawn from its seed and number alone, so a line of the report is enough to have it again. A failing case is made smaller
before it is printed, as a request of the wire.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.compiler import compile_kernel
from core.errors import KernelError, LimitExceeded, TargetError
from core.linear.listing import Listing
from core.program import Program
from core.request import Request
from tests.meaning.batches import Attempt, try_all
from tests.meaning.choices import Choices, smaller
from tests.meaning.harness import PROCESSES
from tests.meaning.random_kernels import random_kernel
from tests.meaning.random_schedules import initial_nest, random_schedule
from tests.tools.wgsl import keeps_specials

Json = dict[str, Any]

SCHEDULES = 4  # of each kernel
BATCH = 25  # kernels compiled as one text
OPENCL: tuple[Json, ...] = (
    {},
    {},
    {"device_class": "cpu"},
    {"supports_float4": False},
    {"global_max": [4, 3, 5]},
    {"global_max": [7, 16, 2], "local_max": [8, 8, 4]},
    {"lanes_max": 16, "shared_max": 512},
    {"alignment": 8},
    {"has_shared": False},
    {"has_local": False, "has_shared": False},
)
_GPU: tuple[Json, ...] = (
    {},
    {},
    {"float16": False},
    {"supports_float4": False},
    {"global_max": [4, 3, 5]},
    {"lanes_max": 16, "shared_max": 512},
    {"alignment": 64},
    {"has_local": False, "has_shared": False},
)
WGSL: tuple[Json, ...] = (
    {},
    {},
    {"float16": True},
    {"supports_float4": False},
    {"global_max": [4, 3, 5]},
    {"lanes_max": 16, "shared_max": 512},
    {"has_local": False, "has_shared": False},
)
LLVM: tuple[Json, ...] = ({}, {}, {"supports_float4": True}, {"supports_float4": True, "alignment": 4}, {"float16": False})
DEVICES: dict[str, tuple[Json, ...]] = {
    "cuda": (*_GPU, {"arch": "sm_75"}),
    "ptx": (*_GPU, {"arch": "sm_75"}),
    "hip": (*_GPU, {"arch": "gfx90a"}, {"arch": "gfx942", "float16": False}),
    "metal": _GPU,
    "wgsl": WGSL,
    "llvm": LLVM,
}
SEEDS: tuple[tuple[tuple[int, bool], ...], ...] = (((0, False), (1, False)), ((2, False), (3, False)), ((0, False), (1, True)))


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with some schedules for one device, ready to run. choices: what it was drawn from."""

    choices: tuple[int, ...]
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Failure:
    """A request whose program is not right, or that the compiler fails on."""

    request: Json
    why: str

    def __str__(self) -> str:
        return f"{self.why}\n{json.dumps(self.request)}"


@dataclass(slots=True)
class Tally:
    """What was tried. options: how often each was applied."""

    kernels: int = 0
    schedules: int = 0
    untried: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    options: Counter[str] = field(default_factory=Counter)


class CompilerFails(Exception):
    """The compiler answers a legal request with something that is no program."""

    def __init__(self, request: Json, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.request = request


def draw(choices: Choices, target: str, schedules: int = SCHEDULES) -> Case | str:
    """A case, or the category of the refusal of its kernel. Raises CompilerFails."""
    ast = random_kernel(choices)
    match target:
        case "opencl" | "emulated":
            device: Json = {"target": "opencl", **choices.one_of(OPENCL)}
        case "c" | "ubsan":
            device = {"target": "c"}
        case _:
            device = {"target": target, **choices.one_of(DEVICES[target])}
    plain = target == "emulated" or (target == "wgsl" and not keeps_specials(ast))
    seeds = choices.one_of(SEEDS[: 2 if plain else 3])
    bodies: list[Json] = []
    programs: list[Json] = []
    listings: list[Listing] = []
    body: Json = {"ast": ast, "device": device, "optimize": "none"}
    try:
        request = Request.from_json(body)
        nest = initial_nest(request)
    except (KernelError, LimitExceeded) as error:
        return error.category
    except Exception as error:
        raise CompilerFails(body, error) from error
    for number in range(schedules):
        own = number == 0 and choices.once_in(2)  # the compiler's choice
        body = {"ast": ast, "device": device, "optimize": "heuristic" if own else random_schedule(choices, nest, request)}
        if body in bodies:
            continue
        try:
            program, listing = compiled_with_listing(body)
        except LimitExceeded:
            continue
        except TargetError as error:
            return error.category
        except Exception as error:
            raise CompilerFails(body, error) from error
        bodies.append(body)
        programs.append(program.to_json())
        listings.append(listing)
    if not bodies:
        return "limit"
    return Case(tuple(choices.taken), Attempt(bodies, programs, listings if target == "emulated" else (), seeds))


def compiled_with_listing(body: Json) -> tuple[Program, Listing]:
    """The program of a request, and the listing it is the text of."""
    listings: list[Listing] = []

    def watch(stage: str, value: object) -> None:
        if isinstance(value, Listing):
            listings.append(value)

    program = compile_kernel(Request.from_json(body), watch=watch)
    return program, listings[-1]


def fuzz_batch(target: str, draws: Sequence[Choices], tally: Tally, *, tries: int = 300) -> list[Failure]:
    """Draws a case from each, tries all at once, and makes what fails smaller. tries: how often a smaller one is looked for."""
    cases: list[Case] = []
    failures: list[Failure] = []
    for choices in draws:
        try:
            case = draw(choices, target)
        except CompilerFails as error:
            failures.append(_reduced(choices.taken, target, Failure(error.request, str(error)), tries))
            continue
        if isinstance(case, str):
            tally.refused[case] += 1
            continue
        cases.append(case)
        tally.options.update(option["op"] for program in case.attempt.programs for option in program["applied"])
    outcome = try_all(target, [case.attempt for case in cases])
    tally.kernels += len(cases)
    tally.schedules += outcome.right + len(outcome.differences)
    tally.untried += outcome.untried
    seen: set[int] = set()
    for difference in outcome.differences:
        if difference.attempt not in seen:
            seen.add(difference.attempt)
            case = cases[difference.attempt]
            failures.append(_reduced(case.choices, target, Failure(case.attempt.bodies[difference.program], difference.why), tries))
    return failures


def _reduced(taken: Sequence[int], target: str, failure: Failure, tries: int) -> Failure:
    """A smaller case that fails; this one where none is found."""
    best = failure
    is_bug = _kind(failure)

    def fails(candidate: list[int]) -> list[int] | None:
        nonlocal best
        choices = Choices.replayed(candidate)
        try:
            case = draw(choices, target)
        except CompilerFails as error:
            found: Failure | None = Failure(error.request, str(error))
        else:
            outcome = try_all(target, [case.attempt]) if isinstance(case, Case) else None
            found = None
            if outcome is not None and outcome.differences and isinstance(case, Case):
                first = outcome.differences[0]
                found = Failure(case.attempt.bodies[first.program], first.why)
        if found is None or _kind(found) != is_bug:
            return None
        if len(json.dumps(found.request)) <= len(json.dumps(best.request)):
            best = found
        return list(choices.taken)

    smaller(taken, fails, tries)
    return best


def _kind(failure: Failure) -> str:
    """The same cause, roughly: what a smaller case must keep."""
    return failure.why[:12]


def replay(path: Path, target: str) -> list[str]:
    """What is wrong with one request, by every set of inputs."""
    body = json.loads(path.read_text())
    program, listing = compiled_with_listing(body)
    everything = [(seed, special) for seed in range(4) for special in ((False, True) if target != "emulated" else (False,))]
    outcome = try_all(target, [Attempt([body], [program.to_json()], [listing] if target == "emulated" else (), everything)])
    return [difference.why for difference in outcome.differences]


def main() -> int:
    """The command line; the exit status is 1 where anything failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.meaning.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="schedules to try")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--start", type=int, default=0, help="number of the first kernel")
    parser.add_argument("--target", default="c", choices=("c", "ubsan", "opencl", *DEVICES, "emulated"))
    parser.add_argument("--failures", type=int, default=10, help="stop after so many")
    parser.add_argument("--tries", type=int, default=300, help="smaller cases tried of each failure")
    parser.add_argument("--replay", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.replay:
        wrong = replay(options.replay, options.target)
        print("\n".join(wrong) or "right")
        PROCESSES.close()
        return int(bool(wrong))
    tally, failed, started, number = Tally(), 0, time.monotonic(), options.start
    while tally.schedules < options.count and failed < options.failures:
        draws = [Choices.random(f"{options.seed}/{n}") for n in range(number, number + BATCH)]
        for failure in fuzz_batch(options.target, draws, tally, tries=options.tries):
            failed += 1
            print(f"--- among kernels {number} to {number + BATCH - 1}\n{failure}", flush=True)
        number += BATCH
        if number // BATCH % 20 == 0:
            print(_summary(tally, number, started), flush=True)
    print(_summary(tally, number, started), f"{failed} failures")
    PROCESSES.close()
    return int(failed > 0)


def _summary(tally: Tally, number: int, started: float) -> str:
    applied = ", ".join(f"{op} {count}" for op, count in sorted(tally.options.items()))
    return (
        f"{tally.schedules} schedules of {tally.kernels} kernels (up to number {number - 1}) in {time.monotonic() - started:.0f} s; "
        f"{tally.untried} untried, kernels refused {dict(tally.refused)}; {applied}"
    )


if __name__ == "__main__":
    sys.exit(main())
