"""An axis of the nest and what it becomes in the machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from core.ir.value import Value
from core.kernel.leaves import Extent

OF_OUTPUT = -1  # an axis that is none of a reduce class


class AxisKind(Enum):
    """In the order in which kinds stand in a nest; the value is the letter they are shown with."""

    GLOBAL = "g"
    LOCAL = "l"
    LOOP = "o"
    GROUP = "G"
    MID = "m"
    REDUCE = "r"
    UNROLL = "U"
    UPCAST = "u"


EXPANDED = (AxisKind.UNROLL, AxisKind.UPCAST)
LEAST_ABREAST, MOST_ABREAST = (
    8,
    256,
)  # unrolled terms of a turn that have registers of their own on a CPU, and registers that may come of it


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """Compared by identity. var: the atom accesses name it by. extent: an integer, or a value of declared variables.

    reduce_class: the class it belongs to, OF_OUTPUT for an output's. wires: the kernel's axes it was made from.
    """

    var: Value
    extent: Extent
    kind: AxisKind
    reduce_class: int
    wires: frozenset[int]

    @property
    def size(self) -> int:
        """The extent of an axis that has an integer one, as lanes, expanded and cut axes do."""
        assert isinstance(self.extent, int)
        return self.extent

    @property
    def is_reduced(self) -> bool:
        return self.reduce_class != OF_OUTPUT
