"""What is well formed, value by value: operands' types, counts and lanes as `core.ir.op` says. Always on, one look at each value.

Two levels: *raw*, as lowered, with indices of any size in it; *machine*, where bounds prove that each fits its 32 bits, and the index
level's own atoms are gone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from core.dtypes import INDEX
from core.errors import CompilerBug
from core.ir.form import RULES
from core.ir.op import Op
from core.ir.text import show
from core.ir.value import Value
from core.ir.walk import ordered

Level = Literal["raw", "machine"]
LARGEST_SHOWN = 400  # lines of a graph a failure carries
_NOT_ON_MACHINE = frozenset((Op.AXIS, Op.OPAQUE))
_LEAST, _GREATEST = int(INDEX.least), int(INDEX.greatest)


def verify(root: Value, level: Level, stage: str) -> None:
    """Raises CompilerBug, named after `stage`, with the first value that is not well formed and the graph's text."""
    order = ordered(root)
    try:
        verify_values(order, level)
    except IllFormed as error:
        small = show(root) if len(order) <= LARGEST_SHOWN else show(error.value) if len(ordered(error.value)) <= LARGEST_SHOWN else None
        raise CompilerBug(stage, str(error), small) from None


class IllFormed(Exception):
    """`value` breaks a rule; the text says which."""

    def __init__(self, value: Value, rule: str) -> None:
        super().__init__(f"{value!r}: {rule}")
        self.value = value


def verify_values(values: Collection[Value], level: Level) -> None:
    """As `verify`, for values in any order. Raises IllFormed."""
    for value in values:
        said = RULES[value.op](value)
        if said is not None:
            raise IllFormed(value, said)
    specials: dict[tuple[object, ...], Value] = {}
    for value in [v for v in values if v.op is Op.SPECIAL]:
        other = specials.setdefault((value.arg, value.dtype), value)
        if other is not value:
            raise IllFormed(value, "another launch id of this kind and dimension")
    if level == "machine":
        for value in [v for v in values if v.op in _NOT_ON_MACHINE or (v.dtype is INDEX and not _fits_machine(v))]:
            raise IllFormed(value, "index values have become machine integers by now")


def _fits_machine(index: Value) -> bool:
    """Whether its bounds prove that 32 bits hold an index, and that it divides nothing negative."""
    low, high = index.lo, index.hi
    if low is None or high is None or low < _LEAST or high > _GREATEST:
        return False
    return (index.op is not Op.DIV and index.op is not Op.MOD) or (index.src[0].lo or 0) >= 0
