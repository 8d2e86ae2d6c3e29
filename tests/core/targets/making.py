"""Programs of one target, by options in short; kernels that every language's tests look at."""

from __future__ import annotations

from typing import Any, Protocol

from core.compiler import compile_kernel
from core.program import Program
from core.request import Request
from tests.core.schedule.scheduling import options_of
from tests.meaning.build import Build

Json = dict[str, Any]


class Maker(Protocol):
    """Compiles a kernel for one target."""

    def __call__(self, ast: Json, options: str | None = "", **device: Any) -> Program:
        """options: as `options_of` has them; None: the compiler's own."""


def maker(target: str) -> Maker:
    def made(ast: Json, options: str | None = "", **device: Any) -> Program:
        optimize: Any = "heuristic" if options is None else options_of(options)
        return compile_kernel(Request.from_json({"ast": ast, "device": {"target": target, **device}, "optimize": optimize}))

    return made


def masked_sum() -> Json:
    k = Build()
    padded = {"shape": [10], "strides": [1], "offset": 0, "mask": [[0, 6]]}
    return k.store(k.load("float32", [], views=[padded, {"shape": [8, 3], "strides": [1, 1]}]).sum(1)).ast()


def sum_of_columns() -> Json:
    k = Build()
    return k.store(k.load("float32", [64, 4], [1, 64]).sum(0)).ast()


def exponentials() -> Json:
    k = Build()
    return k.store(k.load("float32", [12]).exp2()).ast()


def with_variable(name: str) -> Json:
    """A kernel one of whose strides is a variable of this name."""
    k = Build(**{name: (1, 4)})
    return k.store(k.load("float32", ["8"], [name])).ast()
