"""One kernel through every stage, with a clock between them.

What a stage is, the compiler itself says: `compile_kernel` names each one as it ends. Before it come the stages that read a
request, which the service pays for even where the program is stored already.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from core import Limits, Pointer, Request, WireError, compile_kernel, program_key, read_json
from core.kernel.canonical import canonical
from core.kernel.check import check_kernel
from core.kernel.read import read_kernel
from core.linear.listing import Listing
from core.targets.resolve import resolve_device

REQUEST_STAGES = ("read", "check", "canonical", "key")

AST = Pointer("/ast")
DEVICE = Pointer("/device")


@dataclass(frozen=True, slots=True)
class Timed:
    """ms: CPU milliseconds by stage, in the order of the flow. micro_ops: how long the program's listing is."""

    ms: dict[str, float]
    micro_ops: int
    source_chars: int


def timed(body: bytes, limits: Limits) -> Timed:
    """Compiles a request. The clock is this process's CPU time, so what else the machine does counts little.

    Raises the errors of `core`: a refused kernel has no time.
    """
    clock = time.process_time_ns
    took: dict[str, float] = {}
    micro_ops = 0

    begun = clock()
    value = read_json(body, limits)
    if not isinstance(value, dict):
        raise WireError("", expected="a request: an object", got=value)
    kernel = read_kernel(value["ast"], limits, AST)
    took["read"] = (clock() - begun) / 1e6
    begun = clock()
    kernel = check_kernel(kernel, AST)
    took["check"] = (clock() - begun) / 1e6
    begun = clock()
    canonical(kernel)
    took["canonical"] = (clock() - begun) / 1e6
    request = Request.from_json(value, limits)
    begun = clock()
    resolve_device(value["device"], DEVICE)
    program_key(request)
    took["key"] = (clock() - begun) / 1e6

    def watch(stage: str, value: object) -> None:
        nonlocal begun, micro_ops
        took[stage] = took.get(stage, 0.0) + (clock() - begun) / 1e6
        if isinstance(value, Listing):
            micro_ops = len(value.body)
        begun = clock()

    begun = clock()
    program = compile_kernel(request, limits, watch)
    return Timed(took, micro_ops, len(program.source))


def yardstick() -> float:
    """CPU milliseconds of a fixed piece of plain Python: how quick this machine is at this moment."""
    begun = time.process_time_ns()
    table: dict[tuple[int, str], int] = {}
    total = 0
    for k in range(12_000):
        name = (k & 1023, "value")
        total += table.get(name, 0)
        table[name] = k
    return (time.process_time_ns() - begun) / 1e6
