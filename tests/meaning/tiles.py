"""Kernels under TC for any device that has matrix instructions, rendered or not: scheduled, lowered, and run on the emulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core.dtypes import DTYPES
from core.index import TRUE
from core.ir.walk import Graph
from core.kernel.leaves import Leaves
from core.limits import Limits
from core.linear.interpret import run
from core.linear.listing import Listing
from core.linear.order import linearize
from core.linear.verify import verify
from core.lower.lower import lower
from core.lower.memory import params_of
from core.passes.emulate import legalize
from core.passes.loops import collapse
from core.passes.machine import Machine
from core.passes.narrow import narrow
from core.passes.simplify import simplify
from core.reference import compare, evaluate, sample_inputs, sample_variables
from core.request import Request
from core.schedule.apply import scheduled
from core.schedule.build import build_nest
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.targets.resolve import resolve_device
from tests.core.schedule.scheduling import options_of
from tests.meaning.build import Build

Json = dict[str, Any]
DEVICES: dict[str, Json] = {
    "nvidia": {"target": "cuda", "fast_math": True},
    "rdna3": {"target": "hip", "arch": "gfx1100"},
    "cdna": {"target": "hip", "arch": "gfx942"},
    "apple": {"target": "metal"},
}  # by family of instructions
MACHINE = Machine(target="any", vectors=True, images=False, saturates=True, computes_vectors=False)


def matmul(
    m: int,
    n: int,
    k: int,
    operand: str = "float16",
    total: str = "float32",
    *,
    swapped: bool = False,
    batch: int = 1,
    rectified: bool = False,
) -> Json:
    """C[batch, m, n] = A[batch, m, k]·B[k, n], the product in `operand` and the sum in `total`. swapped: B's factor stands first."""
    b = Build()
    x = b.load(operand, [batch, m, 1, k], [m * k, k, 0, 1])
    y = b.load(operand, [1, 1, n, k], [0, 0, 1, n])
    product = y * x if swapped else x * y
    result = (product if operand == total else product.cast(total)).sum(3)
    return b.store(result.maximum(0.0) if rectified else result).ast()


def nest_for(ast: Json, options: str, device: Json) -> tuple[Request, Nest]:
    """The nest after these options, for a device of any target."""
    request = replace(
        Request.from_json({"ast": ast, "device": {"target": "c"}, "optimize": "none"}), device=resolve_device(device)
    )  # fmt: skip
    nest = build_nest(request.kernel, Leaves(request.kernel), 1000)
    chosen = [ScheduleOption(**o) for o in options_of(options)]
    return request, scheduled(nest, chosen, request.device, Limits(), request.rows)


def listing_of(request: Request, nest: Nest) -> tuple[Listing, tuple[int, ...], tuple[int, ...]]:
    """The verified listing of a nest; its work-groups, and the work-items of one."""
    lowered = lower(nest, request.device, called=False, micro_op_limit=1 << 20)
    assert lowered.guard is TRUE
    graph, _ = collapse(simplify(Graph.of(lowered.root), fast_math=False)[0])
    graph, _ = narrow(legalize(graph, request.device, MACHINE), index64=True)
    groups, local = (tuple(int(s.lo or 0) for s in sizes or ()) for sizes in (lowered.global_size, lowered.local_size))
    x, y, z = local
    listing = Listing("tile", tuple(params_of(nest, request.device.alignment).values()), (), linearize(graph), (x, y, z))
    verify(listing)
    return listing, groups, local


def agrees(request: Request, nest: Nest, seed: int = 0) -> str:
    """Runs a nest on the emulator; nothing where it gives what the kernel means, else what is wrong."""
    listing, groups, local = listing_of(request, nest)
    variables = sample_variables(request.kernel, seed)
    inputs = sample_inputs(request.kernel, variables, seed)
    expected = evaluate(request.kernel, inputs, variables)
    held: dict[int, Any] = {n: array.copy() for n, array in inputs.items()}
    run(listing, held, groups=(groups[0], groups[1], groups[2]), local_size=(local[0], local[1], local[2]))
    for number, result in expected.items():
        agreement = compare(held[number][: len(result.values)], result, DTYPES[_dtype(request, number)])
        if agreement.wrong:
            at = agreement.first_wrong or 0
            return f"{agreement.wrong} elements differ, the first at {at}: {held[number][at]}, not {result.values[at]}"
    return ""


def _dtype(request: Request, buffer: int) -> str:
    return next(n.dtype.name for n in request.kernel.nodes if getattr(n, "buffer", None) == buffer)


def holds(ast: Json, options: str, device: Json) -> Nest:
    """The kernel under these options does what it means; so do the same axes without the instruction. The nest, for a further look."""
    request, nest = nest_for(ast, options, device)
    assert "" == agrees(request, nest), nest.describe()
    return nest
