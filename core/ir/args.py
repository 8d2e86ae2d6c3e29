"""What `Value.arg` holds, by operation, with its type: `core.ir.op` says which."""

from __future__ import annotations

from core.dtypes import Number
from core.ir.value import Value


def number_of(constant: Value) -> Number:
    """CONST: the number."""
    return constant.arg  # type: ignore[return-value]


def lane_of(extract: Value) -> int:
    """EXTRACT: the lane."""
    return extract.arg  # type: ignore[return-value]


def shape_of(access: Value) -> tuple[int, bool]:
    """LOAD, STORE: how many addresses, and whether there is a gate."""
    return access.arg  # type: ignore[return-value]


def linear_of(total: Value) -> tuple[int, tuple[int, ...]]:
    """SUM: the constant, and each term's coefficient."""
    return total.arg  # type: ignore[return-value]


def limit_of(less: Value) -> int:
    """LESS: the number its operand is below."""
    return less.arg  # type: ignore[return-value]
