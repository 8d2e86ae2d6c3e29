"""Request → Program: the whole flow in one screen.

    kernel ─ leaves ─▶ places ─ build ─▶ nest ─ options ─▶ nest ─ lower ─▶ raw graph ─ simplify ─ legalize ─ narrow ─▶ machine graph
    ─ order ─▶ listing ─ render ─▶ text

Why this order: `simplify` first, so that legalization sees folded constants; `legalize` before `narrow`, since what it adds may still be
index arithmetic; `narrow` last on the graph, because only then no rule needs exact indices any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from core.assemble import arguments_of, estimates, kernel_name, work_items
from core.collector import uncollected
from core.errors import LimitExceeded
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.size_text import expression_text
from core.ir.value import Value
from core.ir.walk import Graph
from core.kernel.leaves import Leaves
from core.kernel.places import check_places, touched_sizes, unbounded_buffers
from core.limits import Limits
from core.linear.branches import branched
from core.linear.cost import count
from core.linear.listing import Listing
from core.linear.order import linearize
from core.linear.prove import prove
from core.linear.verify import verify
from core.lower.lower import Lowered, lower
from core.lower.memory import assumed_alignment, params_of
from core.passes.loops import collapse
from core.passes.narrow import machine_condition, narrow
from core.passes.simplify import simplify
from core.passes.superwords import superwords
from core.program import Program
from core.request import Request, program_key
from core.schedule.apply import scheduled
from core.schedule.build import build_nest
from core.schedule.heuristic import choose
from core.schedule.nest import Nest
from core.targets import TARGETS
from core.version import COMPILER

Watch = Callable[[str, object], None]


def _unwatched(stage: str, value: object) -> None:
    """Nobody looks."""


@uncollected()
def compile_kernel(request: Request, limits: Limits | None = None, watch: Watch = _unwatched) -> Program:
    """The program of a request. Raises the errors of `core.errors`; the same request gives the same bytes in every process.

    watch: told each stage's name and its value as soon as it is there.
    """
    limits = limits or Limits()
    kernel, device, target = request.kernel, request.device, TARGETS[request.device.target]
    leaves = Leaves(kernel)
    places = check_places(kernel, leaves, request.rows)
    sizes = touched_sizes(kernel, leaves)
    watch("leaves", leaves)
    nest = build_nest(kernel, leaves, limits.sites)
    watch("build", nest)
    if isinstance(request.schedule, tuple):
        nest = scheduled(nest, request.schedule, device, limits, request.rows)
    else:
        nest, decisions = choose(nest, device, limits, request.rows)
        watch("decisions", decisions)
    watch("schedule", nest)
    lowered = lower(nest, device, called=target.called, sized=target.sized, micro_op_limit=limits.micro_ops)
    watch("lower", lowered)
    graph = Graph.of(lowered.root)
    proofs = prove(graph, sizes, lowered.guard, lowered.provenance, places.open, unbounded_buffers(kernel, leaves))
    watch("prove", proofs)
    listing = _machine(request, nest, lowered, graph, watch)
    source = target.render(listing, device)
    if len(source) > limits.source_chars:
        raise LimitExceeded("/ast", limit="source_chars", needed=len(source), allowed=limits.source_chars)
    watch("render", source)
    counted = count(listing, work_items(lowered.global_size, lowered.local_size), device.least_shared)
    flops, moved = estimates(kernel, leaves, sizes, counted)
    program = Program(
        key=program_key(request),
        ast_hash=request.ast_hash,
        name=listing.name,
        target=device.target,
        device=device.to_json(),
        optimize=request.schedule if isinstance(request.schedule, str) else [o.to_json() for o in request.schedule],
        annotate=request.annotate,
        source=source,
        global_size=_sizes(lowered.global_size),
        local_size=_sizes(lowered.local_size),
        arguments=arguments_of(kernel, sizes, listing, counted.widest),
        shared_bytes=counted.shared_bytes,
        applied=[o.to_json() for o in nest.applied],
        flops=size_json(flops),
        memory_bytes=size_json(moved),
        proofs=proofs.to_json(),
        compiler=COMPILER,
    )
    watch("program", program)
    return program


def _machine(request: Request, nest: Nest, lowered: Lowered, graph: Graph, watch: Watch) -> Listing:
    """The raw graph as a listing of what the target has, verified."""
    device, target = request.device, TARGETS[request.device.target]
    graph, simpler = simplify(graph, fast_math=device.fast_math)
    graph, closed = collapse(graph)
    again: Mapping[Value, Value] = {}
    if closed:
        graph, again = simplify(graph, fast_math=device.fast_math)
    watch("simplify", graph.root)
    legal: dict[Value, Value] = {}
    graph = target.legalize(graph, device, legal.__setitem__)
    watch("legalize", graph.root)
    whole: dict[Value, Value] = {}
    if device.device_class == "cpu" and device.supports_float4:
        graph = superwords(graph, whole.__setitem__)
        watch("superwords", graph.root)
    graph, narrower = narrow(graph, index64=target.index64)
    watch("narrow", graph.root)
    guard = None if lowered.guard.op is Op.CONST else machine_condition(lowered.guard, index64=target.index64)
    body = branched(linearize(graph, guard))
    provenance = followed(lowered.provenance, (simpler, closed, again, legal, whole, narrower)) if request.annotate else {}
    params = params_of(nest, assumed_alignment(device))
    target.take(params.values(), device)
    variables = tuple((v.name, v.min, v.max) for v in nest.kernel.variables)
    listing = Listing(kernel_name(nest), tuple(params.values()), variables, body, _fixed(lowered.local_size), provenance)
    watch("order", listing)
    verify(listing)
    watch("verify", None)
    return listing


def followed(provenance: Mapping[Value, tuple[int, ...]], steps: Iterable[Mapping[Value, Value]]) -> dict[Value, tuple[int, ...]]:
    """Provenance carried along each pass's map of what became of a value."""
    current = dict(provenance)
    for step in steps:
        moved: dict[Value, tuple[int, ...]] = {}
        for value, rows in current.items():
            to = step.get(value, value)
            moved[to] = tuple(sorted({*moved.get(to, ()), *rows}))
        current = moved
    return current


def size_json(size: int | Value) -> int | str:
    """A size as the wire has it: an integer, or an expression of the declared variables."""
    if isinstance(size, int):
        return size
    return integer(size) if size.op is Op.CONST else expression_text(size)


def _fixed(sizes: tuple[Value, Value, Value] | None) -> tuple[int, int, int] | None:
    """A work-group size all of whose extents are integers."""
    if sizes is None or any(s.op is not Op.CONST for s in sizes):
        return None
    x, y, z = sizes
    return integer(x), integer(y), integer(z)


def _sizes(sizes: tuple[Value, Value, Value] | None) -> list[int | str] | None:
    return None if sizes is None else [size_json(s) for s in sizes]
