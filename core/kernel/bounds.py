"""Least and greatest value of an expression over declared variables, where the wire asks for it before there is any algebra.

Intervals step by step: sound, and loose where a variable stands twice. Where looseness would refuse something, few values
are simply tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from operator import add, floordiv, mod, mul, neg, sub

from core.kernel.expression import Expression, Size
from core.kernel.node import Variable

Interval = tuple[int, int]
INT64 = (-(2**63), 2**63 - 1)

_DEGREES: dict[str, Callable[..., int]] = {
    "+": max, "-": max, "*": add, "//": lambda x, _: x, "%": lambda x, _: x, "~": lambda x: x
}  # fmt: skip
_EXACT: dict[str, Callable[..., int]] = {"+": add, "-": sub, "*": mul, "//": floordiv, "%": mod, "~": neg}


class Beyond64(ValueError):
    """Some value on the way is outside of int64; `args` holds its interval."""


def _kept(low: int, high: int) -> Interval:
    if low < INT64[0] or high > INT64[1]:
        raise Beyond64(low, high)
    return low, high


def _product(x: Interval, y: Interval) -> Interval:
    corners = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return _kept(min(corners), max(corners))


def _remainder(x: Interval, y: Interval) -> Interval:
    c = y[0]  # a positive literal
    return (x[0] % c, x[1] % c) if x[0] // c == x[1] // c else (0, c - 1)


_INTERVALS: dict[str, Callable[..., Interval]] = {
    "+": lambda x, y: _kept(x[0] + y[0], x[1] + y[1]),
    "-": lambda x, y: _kept(x[0] - y[1], x[1] - y[0]),
    "*": _product,
    "//": lambda x, y: (x[0] // y[0], x[1] // y[0]),
    "%": _remainder,
    "~": lambda x: _kept(-x[1], -x[0]),
}


def bounds(size: Size, variables: Mapping[str, Variable]) -> Interval:
    """An interval that holds every value of `size`. Raises Beyond64 where a step may leave int64."""
    if isinstance(size, int):
        return size, size
    return size.run(lambda n: (n, n), lambda name: (variables[name].min, variables[name].max), _INTERVALS)


def may_be_negative(size: Size, variables: Mapping[str, Variable], most: int = 1 << 16) -> tuple[bool, int]:
    """Whether `size` is below 0 for some value of the variables, or can't be shown not to be by trying `most` assignments of
    them; and how many were tried."""
    if isinstance(size, int):
        return size < 0, 0
    try:
        if bounds(size, variables)[0] >= 0:
            return False, 0
    except Beyond64:
        return True, 0
    ranges = [_deciding_values(size, variables[name]) for name in size.names]
    count = prod(len(values) for values in ranges)
    if count > most:
        return True, 0
    return any(value_at(size, dict(zip(size.names, point, strict=True))) < 0 for point in product(*ranges)), count


def _deciding_values(size: Expression, variable: Variable) -> Sequence[int]:
    """Values of a variable among which `size` takes its least one, whatever the others are.

    Let L be the product of all divisors in it. Among values that agree modulo L an expression that is linear in the variable,
    // and % aside, grows by equal steps: it is least at one of the ends. So L values at each end decide; all of them where it
    is not linear.
    """
    every = range(variable.min, variable.max + 1)
    steps = size.postfix
    period = prod(int(right) for right, step in pairwise(steps) if step in ("//", "%"))
    if 2 * period >= len(every) or size.run(lambda _: 0, lambda name: int(name == variable.name), _DEGREES) > 1:
        return every
    return [*every[:period], *every[-period:]]


def value_at(size: Expression, values: Mapping[str, int]) -> int:
    """The exact value for these values of its names."""
    return size.run(lambda n: n, values.__getitem__, _EXACT)
