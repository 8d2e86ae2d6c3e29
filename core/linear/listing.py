"""What a renderer gets: machine values in an order to run them in, scopes closed by END, and the launch around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.ir.value import Value


@dataclass(frozen=True, slots=True)
class Listing:
    """A linear program.

    name: of the function. params: PARAM values by number, one per argument, also those no access uses.
    variables: (name, min, max) of the scalar arguments, by name. body: every value before its users; a RANGE or IF opens a scope
    that its END closes; STOREs in order. CONSTs, PARAMs and VARIABLEs are not in the body: they are there from the start.
    local_size: work-items of a group where all three are integers, else None. provenance: AST nodes (rows of the canonical table) a value
    stems from; beside the values, never part of them.
    """

    name: str
    params: tuple[Value, ...]
    variables: tuple[tuple[str, int, int], ...]
    body: tuple[Value, ...]
    local_size: tuple[int, int, int] | None = None
    provenance: Mapping[Value, tuple[int, ...]] = field(default_factory=dict)
