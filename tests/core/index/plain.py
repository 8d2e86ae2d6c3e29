"""Index arithmetic the plain way: Python's own integers, one point at a time; and random expressions to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random

from core.index import add, all_of, at_least, floordiv, less, mod, multiply, number, scale
from core.ir import parts
from core.ir.op import Op
from core.ir.value import Value
from core.kernel.expression import parse_comparison, parse_expression
from core.kernel.leaves import axis_value
from core.kernel.node import Variable
from core.kernel.symbolic import condition_of, value_of, variable_value

Point = dict[Value, int]


def variable(name: str, low: int, high: int) -> Value:
    return variable_value(Variable(name, low, high))


def axis(number_: int, extent: int | Value) -> Value:
    return axis_value(number_, extent)


def value(text: str, **atoms: Value) -> Value:
    """An index value as the wire writes it."""
    return value_of(parse_expression(text), atoms)


def condition(text: str, **atoms: Value) -> Value:
    return condition_of(parse_comparison(text), atoms)


def conditions(*texts: str, **atoms: Value) -> Value:
    return all_of(condition(text, **atoms) for text in texts)


def at(x: Value, point: Mapping[Value, int]) -> int:
    """What a value is at a point, by the definition of each operation."""
    if x in point:
        return point[x]
    src = [at(s, point) for s in x.src]
    match x.op:
        case Op.CONST:
            return parts.integer(x)
        case Op.SUM:
            constant, coefficients = parts.coefficients(x)
            return constant + sum(c * s for c, s in zip(coefficients, src, strict=True))
        case Op.PRODUCT:
            result = 1
            for s in src:
                result *= s
            return result
        case Op.DIV:
            return src[0] // src[1]
        case Op.MOD:
            return src[0] % src[1]
        case Op.LESS:
            return src[0] < parts.integer(x)
        case Op.ALL:
            return all(src)
        case _:
            raise KeyError(x)


def points(*atoms: Value) -> Iterator[Point]:
    """Every point of these atoms that exists: each within its bounds and, where it has one, below its symbolic extent."""
    for numbers in product(*(range(a.lo, a.hi + 1) for a in atoms)):  # type: ignore[arg-type,operator]
        point = dict(zip(atoms, numbers, strict=True))
        if all(not a.src or point[a] < at(a.src[0], point) for a in atoms):
            yield point


@dataclass(frozen=True)
class Sample:
    """A value made by the constructors, and the same computed plainly."""

    value: Value
    plain: Callable[[Mapping[Value, int]], int]


def sample(random: Random, atoms: list[Value], depth: int = 3, most: int = 30) -> Sample:
    """A random expression over atoms."""
    if depth == 0 or random.random() < 0.15:
        if random.random() < 0.2:
            n = random.randint(-most, most)
            return Sample(number(n), lambda _: n)
        atom = random.choice(atoms)
        return Sample(atom, lambda point: point[atom])
    kind = random.choice(("sum", "sum", "sum", "div", "mod", "mod", "product"))
    x = sample(random, atoms, depth - 1, most)
    if kind == "div" or kind == "mod":
        c = random.choice((1, 2, 3, 4, 5, 6, 8, 12, 16, random.randint(1, most)))
        if kind == "div":
            return Sample(floordiv(x.value, c), lambda point: x.plain(point) // c)
        return Sample(mod(x.value, c), lambda point: x.plain(point) % c)
    y = sample(random, atoms, depth - 1, most)
    if kind == "product":
        return Sample(multiply(x.value, y.value), lambda point: x.plain(point) * y.plain(point))
    a, b, n = (random.choice((1, -1, 2, 3, 4, 6, 8, -4, random.randint(-most, most))) for _ in range(3))
    made = add(add(scale(x.value, a), scale(y.value, b)), number(n))
    return Sample(made, lambda point: a * x.plain(point) + b * y.plain(point) + n)


def sample_condition(random: Random, atoms: list[Value], depth: int = 2) -> Sample:
    """A random comparison."""
    x = sample(random, atoms, depth)
    low, high = x.value.lo, x.value.hi
    assert low is not None
    assert high is not None
    t = random.randint(low - 1, high + 2)
    if random.random() < 0.5:
        return Sample(less(x.value, number(t)), lambda point: x.plain(point) < t)
    return Sample(at_least(x.value, number(t)), lambda point: x.plain(point) >= t)


def some_atoms(random: Random) -> list[Value]:
    """Two or three atoms of few values, some negative."""
    atoms = [axis(0, random.randint(2, 9)), axis(1, random.randint(2, 7))]
    low = random.randint(-6, 3)
    return [*atoms, variable("n", low, low + random.randint(1, 5))]
