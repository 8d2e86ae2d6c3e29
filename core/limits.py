"""How large a request may be: every bound that is not part of the wire format itself. Plain numbers, handed along; nothing is read here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one request, each exceeded with a `limit` error that names the field, what was needed and what is allowed.

    Defaults hold every kernel seen in real use several times over, and keep one request within seconds and a few hundred MiB.
    """

    nesting: int = 64  # JSON arrays and objects within each other; the format itself needs 9
    nodes: int = 50_000  # rows of the node table
    rank: int = 64  # axes of a kernel
    views: int = 64  # views of one leaf
    variables: int = 64
    expression_chars: int = 4_096  # characters of one integer expression
    sites: int = 200_000  # evaluations of nodes after nested reduces have their own loops
    expanded: int = 1_024  # elements one program point may stand for (unrolled and upcast axes)
    micro_ops: int = 200_000  # values of a lowered kernel
    source_chars: int = 8_000_000
