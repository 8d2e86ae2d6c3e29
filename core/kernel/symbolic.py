"""The wire's expressions as index values: sizes over declared variables, indices and conditions over axes and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.dtypes import INDEX
from core.index import add, at_least, floordiv, less, mod, multiply, negate, number, subtract
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value, make
from core.kernel.expression import Comparison, Expression, Size
from core.kernel.node import Variable

Names = Mapping[str, Value]

_APPLY: dict[str, Callable[..., Value]] = {"+": add, "-": subtract, "*": multiply, "//": floordiv, "%": mod, "~": negate}


def variable_value(variable: Variable) -> Value:
    """The atom of a declared variable."""
    if variable.min == variable.max:
        return number(variable.min)
    return make(Op.VARIABLE, INDEX, (), (variable.name, variable.min, variable.max), 1, (variable.min, variable.max))


def variable_values(variables: tuple[Variable, ...]) -> dict[str, Value]:
    """The atoms of all of them, by name."""
    return {v.name: variable_value(v) for v in variables}


def value_of(size: Size, names: Names) -> Value:
    """An expression's value, simplified as it is built."""
    if not isinstance(size, Expression):
        return number(size)
    return size.run(number, names.__getitem__, _APPLY)


def size_value(size: Size, names: Names) -> int | Value:
    """A size: an integer where it is one, else its value; equal sizes are equal or identical."""
    if not isinstance(size, Expression):
        return size
    value = value_of(size, names)
    return integer(value) if value.op is Op.CONST else value


def condition_of(comparison: Comparison, names: Names) -> Value:
    """A comparison as a condition, normalised to one side."""
    left, right = value_of(comparison.left, names), value_of(comparison.right, names)
    match comparison.relation:
        case "<":
            return less(left, right)
        case "<=":
            return at_least(right, left)
        case ">":
            return less(right, left)
        case _:
            return at_least(left, right)
