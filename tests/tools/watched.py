"""Programs under tools that see what a comparison of results does not: reads beside a buffer, undefined behaviour, races.

Buffers here are exactly as long as the program says, so that one element too far is seen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.dtypes import dtype_named
from core.program import Program
from core.reference import evaluate, sample_inputs, sample_variables, size_at
from core.reference.bounded import Array
from core.reference.compare import compare
from core.reference.evaluate import Result
from core.request import Request

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
OCLGRIND = (Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so"), Path("/usr/local/lib/liboclgrind-rt-icd.so"))


@dataclass(frozen=True, slots=True)
class Watched:
    """A program, what it is called with, and what it is to leave in its outputs."""

    name: str
    program: Json
    buffers: Mapping[int, Array]
    variables: Mapping[str, int]
    expected: Mapping[int, Result]


def watched(name: str, program: Program, body: Json, seed: int = 0, *, special: bool = False) -> Watched:
    """A program with inputs made up for it. Raises what the reference raises."""
    kernel = Request.from_json(body).kernel
    variables = sample_variables(kernel, seed)
    buffers = sample_inputs(kernel, variables, seed, special)
    answer: Json = program.to_json()
    for argument in answer["arguments"]:
        if argument["kind"] == "buffer":
            held = buffers[argument["index"]]
            more = size_at(argument["size"], variables) - len(held)
            if more > 0:
                buffers[argument["index"]] = np.concatenate([held, np.zeros(more, held.dtype)])
    return Watched(name, answer, buffers, variables, evaluate(kernel, buffers, variables))


# ---- C under gcc's sanitizers ------------------------------------------------------------------------------------------------


def sanitized(items: Sequence[Watched], folder: Path) -> dict[str, str]:
    """What the address and undefined-behaviour sanitizers say of each program, and where a result is wrong; nothing of the clean ones."""
    return {item.name: found for number, item in enumerate(items) if (found := _sanitized(item, folder / str(number)))}


def _sanitized(item: Watched, folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "kernel.c").write_text(item.program["source"] + _main(item))
    command = ["gcc", "-std=gnu11", "-O1", "-g", "-w", *SANITIZERS, str(folder / "kernel.c"), "-o", str(folder / "kernel"), "-lm"]
    try:
        built = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise AssertionError("gcc is missing; Debian's package gcc brings it, with the sanitizers' libraries") from None
    if built.returncode:
        return f"not built: {built.stderr[:2000]}"
    for argument in item.program["arguments"]:
        if argument["kind"] == "buffer":
            (folder / f"in{argument['index']}").write_bytes(np.ascontiguousarray(item.buffers[argument["index"]]).tobytes())
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1", "LC_ALL": "C"}
    ran = subprocess.run([str(folder / "kernel")], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)
    if ran.returncode or ran.stderr:
        return f"exit status {ran.returncode}: {ran.stderr[:3000]}"
    return _disagreement(item, {n: np.frombuffer((folder / f"out{n}").read_bytes(), item.buffers[n].dtype) for n in item.expected})


def _main(item: Watched) -> str:
    """A program that reads its buffers from files, calls the kernel once, and writes its outputs."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "int main(void) {", "  FILE *f;"]
    names: list[str] = []
    for argument in item.program["arguments"]:
        if argument["kind"] == "variable":
            names.append(str(item.variables[argument["name"]]))
            continue
        n = argument["index"]
        size = item.buffers[n].nbytes
        lines += [
            f"  void *b{n} = malloc({size});",
            f'  f = fopen("in{n}", "rb"); if (fread(b{n}, 1, {size}, f) != {size}) return 99; fclose(f);',
        ]
        names.append(f"b{n}")
    lines.append(f"  {item.program['name']}({', '.join(names)});")
    for n in item.expected:
        size = item.buffers[n].nbytes
        lines.append(f'  f = fopen("out{n}", "wb"); if (fwrite(b{n}, 1, {size}, f) != {size}) return 98; fclose(f);')
    lines += [f"  free(b{a['index']});" for a in item.program["arguments"] if a["kind"] == "buffer"]
    return "\n" + "\n".join([*lines, "  return 0;", "}"]) + "\n"


# ---- OpenCL under Oclgrind -----------------------------------------------------------------------------------------------------


def simulated(items: Sequence[Watched], folder: Path) -> dict[str, str]:
    """What Oclgrind logs of each program, and where a result is wrong; nothing of the clean ones."""
    library = next((path for path in OCLGRIND if path.exists()), None)
    if library is None or shutil.which("oclgrind") is None:
        raise AssertionError("Oclgrind is missing; Debian's package oclgrind brings it")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "oclgrind.icd").write_text(f"{library}\n")
    with_texels = [item for item in items if _reads_texels(item.program)]
    others = [item for item in items if not _reads_texels(item.program)]
    # Oclgrind 21.10 takes whatever read_imagef gives for uninitialized.
    return _simulated(others, folder / "buffers", watch_values=True) | _simulated(with_texels, folder / "texels", watch_values=False)


def _reads_texels(program: Json) -> bool:
    return any(argument.get("image") and argument["access"] != "write" for argument in program["arguments"])


def _simulated(items: Sequence[Watched], folder: Path, *, watch_values: bool) -> dict[str, str]:
    if not items:
        return {}
    folder.mkdir()
    jobs: list[Json] = []
    for number, item in enumerate(items):
        where = folder / str(number)
        where.mkdir()
        for n, held in item.buffers.items():
            np.save(where / f"in{n}.npy", held)
        jobs.append({"folder": str(where), "program": item.program, "variables": dict(item.variables), "outputs": list(item.expected)})
    (folder / "jobs.json").write_text(json.dumps(jobs))
    log = folder / "oclgrind.log"
    environment = os.environ | {
        "OCL_ICD_VENDORS": str(folder.parent / "oclgrind.icd"),
        "OCLGRIND_LOG": str(log),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_CHECK_API": "1",
        "PYOPENCL_NO_CACHE": "1",
        "PYTHONPATH": str(ROOT),
    }
    if watch_values:
        environment["OCLGRIND_UNINITIALIZED"] = "1"
    command = [sys.executable, "-m", "tests.tools.simulate", str(folder / "jobs.json"), str(log)]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1200)
    if ran.returncode:
        raise AssertionError(f"the process under Oclgrind ended with {ran.returncode}: {ran.stderr[-3000:]}")
    said: dict[str, str] = {}
    for number, item in enumerate(items):
        where = folder / str(number)
        logged = (where / "log").read_text()
        wrong = logged or _disagreement(item, {n: np.load(where / f"out{n}.npy") for n in item.expected})
        if wrong:
            said[item.name] = re.sub(r"\n{2,}", "\n", wrong)[:3000]
    return said


def _disagreement(item: Watched, outputs: Mapping[int, Array]) -> str:
    dtypes = {a["index"]: dtype_named(a["dtype"]) for a in item.program["arguments"] if a["kind"] == "buffer"}
    for number, result in item.expected.items():
        agreement = compare(outputs[number][: len(result.values)], result, dtypes[number])
        if agreement.wrong:
            return f"buffer {number} has {agreement.wrong} wrong elements, the first at {agreement.first_wrong}"
    return ""
