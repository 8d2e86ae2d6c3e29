"""What the compiler answers: a source text and everything needed to launch it. To and from the wire's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, in the order of the call.

    kind "buffer": index, dtype, size (elements it must have at least), access, alignment (bytes), image where it is one.
    kind "variable": name, dtype int32, min, max.
    """

    members: Mapping[str, object]

    def to_json(self) -> dict[str, object]:
        return dict(self.members)


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled kernel. Sizes and estimates are integers or expressions of the declared variables, as text.

    global_size counts work-groups, or work-items where local_size is None and the runtime chooses; both None where the program is a plain
    function. Nothing in it changes after it was first answered.
    """

    key: str
    ast_hash: str
    name: str
    target: str
    device: Mapping[str, object]
    optimize: str | list[dict[str, object]]
    annotate: bool
    source: str
    global_size: list[int | str] | None
    local_size: list[int | str] | None
    arguments: tuple[Argument, ...]
    shared_bytes: int
    applied: list[dict[str, object]]
    flops: int | str
    memory_bytes: int | str
    proofs: Mapping[str, object]
    compiler: str

    def to_json(self) -> dict[str, object]:
        """The wire's members, in its order, every one of them."""
        return {
            "key": self.key, "ast_hash": self.ast_hash, "name": self.name, "target": self.target, "device": dict(self.device),
            "optimize": self.optimize, "annotate": self.annotate, "source": self.source, "global_size": self.global_size,
            "local_size": self.local_size, "arguments": [a.to_json() for a in self.arguments], "shared_bytes": self.shared_bytes,
            "applied": self.applied, "flops": self.flops, "memory_bytes": self.memory_bytes, "proofs": dict(self.proofs),
            "compiler": self.compiler,
        }  # fmt: skip

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Program:
        """A program from what `to_json` gave. Raises KeyError and TypeError for what no program is."""
        return cls(**{**members, "arguments": tuple(Argument(a) for a in members["arguments"])})
