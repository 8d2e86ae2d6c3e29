"""Right or not: a program's runs compared with what its kernel means, each output with the error its arithmetic allows.

Runs in the process of the device, which may not outlive it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from core import Request
from core.reference import OutsideBuffer, bounded_buffers, compare, dtype_named, evaluate, sample_inputs, sample_variables, size_at
from service.device.device import Trial, Verdict
from service.device.run import BadLaunch, Elements, NotBuilt, Ran, Unfit

SENTINEL = 0xA5


class Runs(Protocol):
    """Whatever builds and runs programs."""

    def build(self, program: Mapping[str, Any]) -> Any:
        """Something `run` takes. Raises NotBuilt."""

    def run(self, program: Mapping[str, Any], kernel: Any, buffers: Mapping[int, Elements], variables: Mapping[str, int]) -> Ran:
        """What a run leaves behind. Raises BadLaunch, or Unfit."""


def judge(runner: Runs, trial: Trial) -> Verdict:
    """The verdict of all runs; ends with the first that is not right. Raises LimitExceeded where the reference would take too long."""
    program = trial.program
    kernel = Request.from_json(dict(trial.request)).kernel
    fast_math = bool(program["device"].get("fast_math"))
    dtypes = {a["index"]: dtype_named(a["dtype"]) for a in program["arguments"] if a["kind"] == "buffer"}
    reports: list[Mapping[str, object]] = []
    try:
        built = runner.build(program)
        for seed, special in trial.runs:
            variables = sample_variables(kernel, seed)
            buffers = _declared(sample_inputs(kernel, variables, seed, special), program, variables, bounded_buffers(kernel, variables))
            expected = evaluate(kernel, buffers, variables, trial.points)
            started = time.perf_counter()
            ran = runner.run(program, built, buffers, variables)
            outputs: list[Mapping[str, object]] = []
            wrong = 0
            for number, result in expected.items():
                agreement = compare(ran.buffers[number], result, dtypes[number], fast_math=fast_math)
                wrong += agreement.wrong
                outputs.append(
                    {
                        "buffer": number, "dtype": dtypes[number].name, "elements": len(result.values), "compared": agreement.compared,
                        "wrong": agreement.wrong, "first_wrong": agreement.first_wrong, "worst_ulp": agreement.worst_ulp,
                    }
                )  # fmt: skip
            changed = [number for number in ran.buffers if number not in expected and not _same(ran.buffers[number], buffers[number])]
            reports.append(
                {
                    "seed": seed, "special": special, "variables": variables, "outputs": outputs, "inputs_changed": changed,
                    "overrun": ran.overrun, "device_seconds": ran.nanoseconds / 1e9, "seconds": round(time.perf_counter() - started, 6),
                }
            )  # fmt: skip
            if ran.overrun:
                return Verdict("wrong", "overrun", f"something beside buffers {ran.overrun} was written", reports)
            if changed:
                return Verdict("wrong", "inputs", f"buffers {changed}, which are only read, were changed", reports)
            if wrong:
                return Verdict("wrong", "outputs", f"{wrong} elements are wrong", reports)
    except Unfit as error:
        return Verdict("unfit", "launch", str(error), reports)
    except OutsideBuffer as error:
        return Verdict("unfit", "inputs", f"no inputs can be made up for this kernel: {error}", reports)
    except MemoryError:
        return Verdict("unfit", "launch", "the buffers need more memory than a run may have", reports)
    except BadLaunch as error:
        return Verdict("wrong", "launch", str(error), reports)
    except NotBuilt as error:
        return Verdict("wrong", "build", str(error)[:8000], reports)
    return Verdict("right", runs=reports)


def _declared(
    buffers: dict[int, Elements], program: Mapping[str, Any], variables: Mapping[str, int], bounded: frozenset[int]
) -> dict[int, Elements]:
    """Buffers of the size the program declares, where that is more than the kernel touches (an upper bound is allowed).

    Raises BadLaunch where it is less, but for what the program itself leaves open: a table nothing bounds the index of. bounded: buffers
    whose sizes the reference only bounds. The program may know better; whether it does shows where the kernel is evaluated on these.
    """
    left_open = {entry["argument"] for entry in program["proofs"]["open"] if entry["of"] == "bounds"}
    for argument in program["arguments"]:
        if argument["kind"] != "buffer":
            continue
        number = argument["index"]
        elements = buffers[number]
        more = size_at(argument["size"], variables) - len(elements)
        if more > 0:
            filler = np.full(more * elements.itemsize, SENTINEL, np.uint8).view(elements.dtype)
            buffers[number] = np.concatenate([elements, filler])
        elif more < 0 and number in bounded:
            buffers[number] = elements[:more]
        elif more < 0 and number not in left_open:
            raise BadLaunch(f"buffer {number} is declared to need {len(elements) + more} elements; the kernel touches {len(elements)}")
    return buffers


def _same(a: Elements, b: Elements) -> bool:
    return np.array_equal(np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8))
