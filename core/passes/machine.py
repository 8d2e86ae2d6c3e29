"""What a language's own data operations can do, as far as making a graph fit for it asks."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.dtypes import DType
from core.ir.op import Op


@dataclass(frozen=True, slots=True)
class Machine:
    """One target's abilities.

    vectors: values of several lanes exist. computes_vectors: and may be computed with, not only moved. images: image arguments exist.
    saturates: a cast of any float to an integer is defined, whatever comes out where the value is out of range. total: so are quotients and
    shifts of whatever is not a constant. lacks: types that it has not, whatever the device.
    software: functions that it has not, and that are computed by arithmetic. rough: those that it has, but not to 4 units in the last
    place, and that are computed so unless speed is asked for.
    halves_doubles: a cast of float64 to float16 is an operation of the machine, and not a call of some compiler's runtime.
    """

    target: str
    vectors: bool
    images: bool
    saturates: bool
    computes_vectors: bool = True
    total: bool = False
    lacks: frozenset[DType] = field(default=frozenset())
    software: frozenset[tuple[Op, DType]] = frozenset()
    rough: frozenset[tuple[Op, DType]] = frozenset()
    halves_doubles: bool = True
