"""What could not be shown of a program: the entries of `open` in its proofs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Unknown:
    """of: "bounds", "writes" or "barriers". argument: a buffer's number, None of a shared array. node: row of the canonical table."""

    of: str
    argument: int | None
    node: int | None
    why: str

    def to_json(self) -> dict[str, object]:
        return {"of": self.of, "argument": self.argument, "node": self.node, "why": self.why}
