"""The same request gives the same bytes, whatever the process's hash seed, history and order of requests (acceptance 1, 3, 4, 276)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

from core import Request, compile_kernel
from core.ir.text import show
from core.lower.lower import Lowered
from tests.core.linear.test_order import NESTED, ROW_MINUS_MAXIMUM
from tests.core.passes.test_loops import counting, one_hot
from tests.core.passes.test_narrow import gather
from tests.kernels import every_form

Json = dict[str, Any]
KERNELS = [
    NESTED,
    ROW_MINUS_MAXIMUM,
    counting(7, 9, ["axis0 + axis1 < 8"]),
    one_hot(3, 5, 4),
    gather("int32", ["src0 >= 0", "src0 < 9"]),
    every_form(),
]

_CHILD = """
import hashlib, json, sys
from core import Request, compile_kernel
for body in json.load(sys.stdin):
    print(hashlib.sha256(json.dumps(compile_kernel(Request.from_json(body)).to_json()).encode()).hexdigest())
"""


def bodies() -> list[Json]:
    return [
        {"ast": ast, "device": {"target": target}, "optimize": optimize}
        for ast in KERNELS
        for target in ("opencl", "c")
        for optimize in ("none", "heuristic")
        if not (target == "c" and any(n.get("image") for n in ast["nodes"]))
    ]


def digests(requests: list[Json], seed: str) -> list[str]:
    """What another process, with another hash seed, makes of these requests."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps(requests), capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    return done.stdout.split()


def test_processes_with_different_hash_seeds_and_histories_answer_the_same_bytes() -> None:
    requests = bodies()
    here = [hashlib.sha256(json.dumps(compile_kernel(Request.from_json(b)).to_json()).encode()).hexdigest() for b in requests]

    assert here == digests(requests, "1")
    assert here[::-1] == digests(requests[::-1], "271828")


def test_lowering_twice_gives_one_graph() -> None:
    for body in bodies():
        graphs = []
        for _ in range(2):
            seen: dict[str, object] = {}
            compile_kernel(Request.from_json(body), watch=seen.__setitem__)
            lowered = seen["lower"]
            assert isinstance(lowered, Lowered)
            graphs.append(show(lowered.root))
        assert graphs[0] == graphs[1]


def test_a_kernel_compiled_after_another_with_axes_of_other_extents_is_the_same() -> None:
    """Bounds of an axis belong to what it is: once, two kernels alive together shared an atom and its bounds."""
    small, large = counting(3, 4, ["axis0 + axis1 < 3"]), counting(30, 40, ["axis0 + axis1 < 33"])
    alone = compile_kernel(Request.from_json({"ast": large, "device": {"target": "c"}})).source
    held: dict[str, object] = {}
    compile_kernel(Request.from_json({"ast": small, "device": {"target": "c"}}), watch=held.__setitem__)

    assert alone == compile_kernel(Request.from_json({"ast": large, "device": {"target": "c"}})).source
