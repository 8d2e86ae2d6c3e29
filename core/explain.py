"""How a program came about, as JSON: what the pages and people who debug a kernel look at. Compiles the request once more, watched."""

from __future__ import annotations

from core.compiler import compile_kernel
from core.ir.text import lines_of
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
    decisions: the heuristic's, with reasons, and what it tried in vain. micro_ops: the listing, each line with the nodes it comes from.
    estimates, proofs: as in the program, the proofs with all that stays open.
    """
    limits = limits or Limits()
    seen: dict[str, object] = {}
    program = compile_kernel(request.annotated(), limits, seen.__setitem__)
    built, listing, proofs = seen["build"], seen["order"], seen["prove"]
    assert isinstance(built, Nest)
    assert isinstance(listing, Listing)
    assert isinstance(proofs, Proofs)
    decisions = seen.get("decisions", ())
    final = seen["schedule"]
    assert isinstance(final, Nest)
    return {
        "key": program_key(request),
        "name": program.name,
        "ast": request.canonical_ast(),
        "kernel": show_kernel(request.kernel),
        "axes": [
            {"option": None if option is None else option.to_json(), "axes": [axis_json(a) for a in nest.axes]}
            for option, nest in steps(built, final.applied, request.device, limits, request.rows)
        ],
        "decisions": [_decision_json(d) for d in decisions] if isinstance(decisions, tuple) else [],
        "micro_ops": [{"text": text, "nodes": list(listing.provenance.get(value, ()))} for value, text in lines_of(listing.body)],
        "estimates": {"flops": program.flops, "memory_bytes": program.memory_bytes},
        "proofs": proofs.to_json(),
    }


def axis_json(axis: Axis) -> dict[str, object]:
    """One axis of a nest."""
    return {
        "kind": axis.kind.name.lower(),
        "extent": axis.extent if isinstance(axis.extent, int) else size_text(axis.extent),
        "reduce_class": axis.reduce_class if axis.is_reduced else None,
        "from": sorted(axis.wires),
    }


def _decision_json(decision: Decision) -> dict[str, object]:
    return {
        "step": decision.step,
        "options": [o.to_json() for o in decision.options],
        "reason": decision.reason,
        "refused": list(decision.refused),
    }
