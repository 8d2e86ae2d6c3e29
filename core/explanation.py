"""How a program came about, as JSON: what the pages and people who debug a kernel look at. Compiles the request once more, watched."""

from __future__ import annotations

from collections.abc import Iterator

from core.compiler import compile_kernel
from core.ir.op import Op
from core.ir.text import lines_of
from core.ir.value import Value
from core.kernel.text import show_kernel
from core.limits import Limits
from core.linear.listing import Listing
from core.linear.prove import Proofs
from core.request import Request, program_key
from core.schedule.apply import steps
from core.schedule.axis import Axis
from core.schedule.heuristic import Decision
from core.schedule.nest import Nest, size_text


def explain(request: Request, limits: Limits | None = None) -> dict[str, object]:
    """Raises what `compile_kernel` raises. Members:

    ast: the canonical AST; kernel: it as text. axes: before any option (what option numbers count) and after each, with their kinds.
    decisions: whose each option is (the heuristic's, the request's, an image's) and why; and what the heuristic tried in vain.
    micro_ops: the listing, each line with the nodes it comes from. estimates, proofs: as in the program, the proofs with all that stays
    open.
    """
    limits = limits or Limits()
    seen: dict[str, object] = {}
    program = compile_kernel(request.annotated(), limits, seen.__setitem__)
    built, final, listing, proofs = seen["build"], seen["schedule"], seen["order"], seen["prove"]
    assert isinstance(built, Nest)
    assert isinstance(final, Nest)
    assert isinstance(listing, Listing)
    assert isinstance(proofs, Proofs)
    decisions = seen.get("decisions")
    assert decisions is None or isinstance(decisions, tuple)
    nodes = nodes_of(listing)
    return {
        "key": program_key(request),
        "name": program.name,
        "ast": request.canonical_ast(),
        "kernel": show_kernel(request.kernel),
        "axes": [
            {"option": None if option is None else option.to_json(), "axes": [axis_json(a) for a in nest.axes]}
            for option, nest in steps(built, final.applied, request.device, limits, request.rows)
        ],
        "decisions": [_decision_json(d) for d in (_as_asked(request, final) if decisions is None else decisions)],
        "micro_ops": [{"text": text, "nodes": sorted(nodes.get(value, ()))} for value, text in lines_of(listing.body)],
        "estimates": {"flops": program.flops, "memory_bytes": program.memory_bytes},
        "proofs": proofs.to_json(),
    }


def nodes_of(listing: Listing) -> dict[Value, set[int]]:
    """The nodes each value of a listing comes from: its own where it is known to be one's; of a scope those of what lies in it; else those
    of whatever uses it (an address has the node of its access, a partial sum that of its reduce)."""
    nodes: dict[Value, set[int]] = {}
    scopes: list[set[int]] = []
    for value in reversed(listing.body):  # users first
        if value.op is Op.END:
            scopes.append(nodes.setdefault(value.src[0], set()))
            nodes[value] = scopes[-1]
            continue
        if value.op is Op.RANGE or value.op is Op.IF:
            scopes.pop()
        own = nodes[value] = set(listing.provenance.get(value, ()) or nodes.get(value, ()))
        for into in scopes:
            into |= own
        for source in value.src:
            nodes.setdefault(source, set()).update(own)
    return nodes


def axis_json(axis: Axis) -> dict[str, object]:
    """One axis of a nest."""
    return {
        "kind": axis.kind.name.lower(),
        "extent": axis.extent if isinstance(axis.extent, int) else size_text(axis.extent),
        "reduce_class": axis.reduce_class if axis.is_reduced else None,
        "from": sorted(axis.wires),
    }


def _as_asked(request: Request, final: Nest) -> Iterator[Decision]:
    """The decisions behind a list that the request has: the list, and before it what an image makes mandatory."""
    forced = len(final.applied) - len(request.schedule)
    if forced:
        yield Decision("texels", final.applied[:forced], "an image is written by whole texels")
    if request.schedule:
        yield Decision("asked", final.applied[forced:], "the request has this list")


def _decision_json(decision: Decision) -> dict[str, object]:
    return {
        "step": decision.step,
        "options": [o.to_json() for o in decision.options],
        "reason": decision.reason,
        "refused": [{"option": option.to_json(), "reason": why} for option, why in decision.refused],
    }
