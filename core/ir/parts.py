"""What an operation's `arg` and operands are, by name: typed views of single values."""

from __future__ import annotations

from typing import NamedTuple

from core.dtypes import Number
from core.ir.op import Op
from core.ir.value import Value, constant


def content(value: Value) -> Number:
    """What a CONST holds."""
    held = value.arg
    assert isinstance(held, (bool, int, float))
    return held


def integer(value: Value) -> int:
    """What a CONST of an integer or index type holds, a LESS compares with, an ACC is numbered, an EXTRACT takes."""
    held = value.arg
    assert isinstance(held, int)
    return held


def like(number: Number, value: Value) -> Value:
    """A constant of the type and lanes of `value`."""
    return constant(number, value.dtype, value.lanes)


def coefficients(total: Value) -> tuple[int, tuple[int, ...]]:
    """A SUM's constant, and a coefficient per term."""
    assert isinstance(total.arg, tuple)
    constant_part, factors = total.arg
    assert isinstance(constant_part, int)
    assert isinstance(factors, tuple)
    return constant_part, factors


class Param(NamedTuple):
    """A buffer argument. access: "read", "write" or "readwrite". alignment: of its start, in bytes."""

    number: int
    access: str
    image: tuple[int, int, int] | None
    alignment: int


def param(value: Value) -> Param:
    """What a PARAM says."""
    assert isinstance(value.arg, tuple)
    number, access, image, alignment = value.arg
    return Param(number, access, image, alignment)


class Shared(NamedTuple):
    """An array of a work-group."""

    number: int
    elements: int


def shared(value: Value) -> Shared:
    """What a SHARED says."""
    assert isinstance(value.arg, tuple)
    number, elements = value.arg
    return Shared(number, elements)


class Access(NamedTuple):
    """A LOAD or a STORE. stored: of a STORE. alternative: of a gated LOAD. tokens: what must have happened before; no values."""

    array: Value
    addresses: tuple[Value, ...]
    stored: Value | None
    gate: Value | None
    alternative: Value | None
    tokens: tuple[Value, ...]

    @property
    def operands(self) -> tuple[Value, ...]:
        """What it computes with: everything but the tokens, the gate last."""
        return (self.array, *self.addresses, *(v for v in (self.stored, self.alternative, self.gate) if v is not None))


def access(value: Value) -> Access:
    """The parts of a LOAD or a STORE."""
    assert isinstance(value.arg, tuple)
    addresses, gated = value.arg
    src = value.src
    after = 1 + addresses
    if value.op is Op.STORE:
        end = after + 1 + gated
        return Access(src[0], src[1:after], src[after], src[after + 1] if gated else None, None, src[end:])
    end = after + 2 * gated
    return Access(src[0], src[1:after], None, src[after] if gated else None, src[after + 1] if gated else None, src[end:])


def moved(value: Value) -> Value:
    """What a LOAD gives or a STORE stores."""
    if value.op is Op.LOAD:
        return value
    assert isinstance(value.arg, tuple)
    addresses: int = value.arg[0]
    return value.src[1 + addresses]


def without_tokens(value: Value) -> tuple[Value, ...]:
    """What a LOAD or a STORE computes with: its operands but for what only must have happened before."""
    assert isinstance(value.arg, tuple)
    addresses, gated = value.arg
    store = value.op is Op.STORE
    return value.src[: 1 + addresses + (1 + gated if store else 2 * gated)]
