"""What a language's own data operations can do, as far as making a graph fit for it asks."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.dtypes import DType


@dataclass(frozen=True, slots=True)
class Machine:
    """One target's abilities.

    vectors: values of several lanes exist. computes_vectors: and may be computed with, not only moved. images: image arguments exist.
    saturates: a cast of any float to an integer is defined, whatever comes out where the value is out of range. total: so are quotients and
    shifts of whatever is not a constant. lacks: types that it has not, whatever the device.
    """

    target: str
    vectors: bool
    images: bool
    saturates: bool
    computes_vectors: bool = True
    total: bool = False
    lacks: frozenset[DType] = field(default=frozenset())
