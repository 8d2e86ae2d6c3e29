"""A measured run as a value, and as the JSON that is stored to be compared with later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from bench.stages import REQUEST_STAGES

Stages = dict[str, float]


@dataclass(frozen=True)
class KernelTimes:
    """passes: per pass over the sample, CPU milliseconds by stage."""

    id: str
    micro_ops: int
    source_chars: int
    passes: tuple[Stages, ...]

    @cached_property
    def best(self) -> Stages:
        """The pass that took least; all figures of one kernel come from it, so that they add up."""
        return min(self.passes, key=lambda stages: sum(stages.values()))

    @cached_property
    def ms(self) -> float:
        return sum(self.best.values())

    @property
    def request_ms(self) -> float:
        """What comes before compiling: until the key is known."""
        return sum(self.best.get(stage, 0.0) for stage in REQUEST_STAGES)

    @property
    def compile_ms(self) -> float:
        return self.ms - self.request_ms

    def shares(self) -> list[tuple[str, float]]:
        """Each stage's part of the whole, the largest first."""
        return sorted(((stage, ms / self.ms) for stage, ms in self.best.items()), key=lambda row: -row[1])


@dataclass(frozen=True)
class Refused:
    """A kernel that has no program for this target."""

    id: str
    category: str
    message: str


@dataclass(frozen=True)
class Run:
    """Kernels of a corpus, compiled `repeats` times over.

    yardstick_ms: per pass, a fixed piece of Python; tells runs of a slower moment or machine from slower code.
    """

    corpus: list[str]
    target: str
    optimize: object
    sample: int | None
    seed: int
    repeats: int
    python: str
    cores: int
    compiler: str
    yardstick_ms: list[float]
    kernels: tuple[KernelTimes, ...]
    refused: tuple[Refused, ...]

    @cached_property
    def stages(self) -> list[str]:
        """All stages, in the order of the flow."""
        return list(dict.fromkeys(stage for kernel in self.kernels for stage in kernel.best))

    def to_json(self) -> dict[str, object]:
        kernels = [
            {
                "id": kernel.id,
                "micro_ops": kernel.micro_ops,
                "source_chars": kernel.source_chars,
                "passes": [{stage: round(ms, 4) for stage, ms in stages.items()} for stages in kernel.passes],
            }
            for kernel in self.kernels
        ]
        facts = {name: getattr(self, name) for name in _FACTS}
        return {"bench": "compile", **facts, "kernels": kernels, "refused": [asdict(refused) for refused in self.refused]}


_FACTS = (
    *("corpus", "target", "optimize", "sample", "seed", "repeats"),
    *("python", "cores", "compiler", "yardstick_ms"),
)


def read_run(file: Path) -> Run:
    """A stored run. Raises ValueError where the file holds none."""
    value = json.loads(file.read_bytes())
    if not isinstance(value, dict) or value.get("bench") != "compile":
        raise ValueError(f"{file} holds no run of `bench compile`")
    try:
        return Run(
            **{name: value[name] for name in _FACTS},
            kernels=tuple(KernelTimes(row["id"], row["micro_ops"], row["source_chars"], tuple(row["passes"])) for row in value["kernels"]),
            refused=tuple(Refused(**row) for row in value["refused"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file} holds a run of another form: {error}") from None
