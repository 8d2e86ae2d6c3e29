"""A point where conditions hold, by a solver: for what intervals do not decide and whose points are too many to try.

Index values are exact integers and so are the solver's (SMT-LIB `Ints`), whose `div` and `mod` by a positive divisor are the floor division
and the remainder of indices. Work is counted in the solver's own steps, never in time, and each question begins anew with fixed seeds, so
that a question has one answer, in every process. What the solver says depends on its version, which is therefore pinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.index.enumerate import COUNTING, DATA, own_bounds, symbolic
from core.index.linear import split
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value

ROOM = 160 << 20  # bytes of address space the solver has to find: where there is less it may end the process
MOST_VALUES = 1 << 10  # different operations in one question: what comes before the solver's first step takes time for each


class Undecided(Exception):
    """The solver's steps ended before it knew. steps: those it took."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self.steps = steps


def point_where(conditions: Sequence[Value], steps: int) -> tuple[dict[Value, int] | None, int]:
    """Values of all atoms at which every condition (LESS or ALL) holds, None where there are none; and how many steps that took.

    Atoms are within their bounds, and below an extent that is an expression; what other nodes give is any integer of its type. Raises
    Undecided after so many steps, MemoryError where the process has less than ROOM left.
    """
    known = _in_order(conditions)
    if len(known) > MOST_VALUES:
        raise Undecided(0)
    np.empty(ROOM, np.uint8)  # raises MemoryError; nothing of it is touched
    import z3  # type: ignore[import-untyped]  # here, because most programs are proved without it

    return _Question(z3, known).answer(conditions, steps)


def _in_order(values: Sequence[Value]) -> list[Value]:
    """The values and all that they are made of, operands first. An atom is made of nothing but the extent it is below."""
    order: dict[Value, None] = {}
    stack = [(v, False) for v in reversed(values)]
    while stack:
        v, done = stack.pop()
        if done:
            order[v] = None
        elif v not in order:
            stack.append((v, True))
            if v.op not in DATA and (v.op not in COUNTING or symbolic(v)):
                stack.extend((s, False) for s in reversed(v.src))
    return list(order)


class _Question:
    """One context of the solver, with the terms of all values in it."""

    def __init__(self, z3: Any, order: list[Value]) -> None:
        self.z3 = z3
        self.context = z3.Context()
        self.solver = z3.SimpleSolver(self.context)  # the others try one way after another by the clock
        self.terms: dict[Value, Any] = {}
        self.atoms: list[Value] = []
        for v in order:
            self.terms[v] = self._atom(v) if v in v.free else self._term(v, [self.terms[s] for s in v.src])

    def answer(self, conditions: Sequence[Value], steps: int) -> tuple[dict[Value, int] | None, int]:
        self.solver.set(random_seed=0, rlimit=steps, ctrl_c=False)
        self.solver.add([self.terms[c] for c in conditions])
        found = self.solver.check()
        taken = self._taken()
        if found == self.z3.unknown:
            raise Undecided(taken)
        if found == self.z3.unsat:
            return None, taken
        model = self.solver.model()
        return {v: model.eval(self.terms[v], model_completion=True).as_long() for v in self.atoms}, taken

    def _taken(self) -> int:
        return int(self.solver.statistics().get_key_value("rlimit count"))

    def _atom(self, v: Value) -> Any:
        term = self.z3.Int(f"a{len(self.atoms)}", self.context)
        self.atoms.append(v)
        low, high = own_bounds(v)
        self.solver.add(low <= term, term <= high)
        if symbolic(v):
            self.solver.add(term < self.terms[v.src[0]])
        return term

    def _term(self, v: Value, src: list[Any]) -> Any:
        z3 = self.z3
        match v.op:
            case Op.CONST:
                return z3.BoolVal(v.arg, self.context) if isinstance(v.arg, bool) else z3.IntVal(integer(v), self.context)
            case Op.SUM:
                part, coefficients, _ = split(v)
                return z3.Sum([z3.IntVal(part, self.context), *(c * s for c, s in zip(coefficients, src, strict=True))])
            case Op.PRODUCT:
                return z3.Product(src)
            case Op.DIV | Op.MOD:
                divisor = src[1]
                if own_bounds(v.src[1])[0] < 1:  # an extent that may be 0: there is no point where it is
                    divisor = z3.If(divisor < 1, 1, divisor)
                return src[0] / divisor if v.op is Op.DIV else src[0] % divisor
            case Op.LESS:
                return src[0] < integer(v)
            case Op.ALL:
                return z3.And(src)
            case _:
                raise KeyError(v)
