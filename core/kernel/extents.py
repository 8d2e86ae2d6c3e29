"""Extents of shapes: which of them are equal however they are written, and what a node's operands come to together.

Two extents are one if they simplify to one form; from here on equal extents are one object. A shape is a tuple of them, per
axis 1 or the kernel's full extent.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.ir.value import Value
from core.kernel.bounds import may_be_negative
from core.kernel.expression import Expression, Size
from core.kernel.node import Variable
from core.kernel.symbolic import size_value, variable_values

Shape = tuple[Size, ...]

_TRIES = 1 << 16  # assignments of variables that are tried for one kernel, at most: some 0.1 s


class Extents:
    """The extents of one kernel."""

    def __init__(self, variables: tuple[Variable, ...]) -> None:
        self._variables = variables
        self._known: dict[str, tuple[Size, bool]] = {}  # by text: what stands for it, and whether it may be negative
        self._tries = _TRIES
        self._first: dict[Value, Expression] = {}  # by simplified form: the first expression met

    def one(self, extent: Size) -> Size:
        """The extent that stands for all its equals: the integer it always is, or the first expression met."""
        return extent if isinstance(extent, int) else self._look(extent)[0]

    def may_be_negative(self, extent: Size) -> bool:
        return extent < 0 if isinstance(extent, int) else self._look(extent)[1]

    def shape(self, shape: Shape) -> Shape:
        for extent in shape:
            if type(extent) is not int:
                return tuple([self.one(each) for each in shape])
        return shape

    def _look(self, extent: Expression) -> tuple[Size, bool]:
        found = self._known.get(extent.text)
        if found is None:
            form = size_value(extent, variable_values(self._variables))
            if isinstance(form, int):
                found = form, form < 0
            else:
                never = form.lo is not None and form.lo >= 0
                negative = False
                if not never:
                    variables = {variable.name: variable for variable in self._variables}
                    negative, tried = may_be_negative(extent, variables, self._tries)
                    self._tries -= tried
                found = self._first.setdefault(form, extent), negative
            self._known[extent.text] = found
        return found


def joined(shapes: Iterable[Shape]) -> Shape | None:
    """The shape of an elementwise node: per axis what is not 1, where there is that. None: they do not fit."""
    result: Shape | None = None
    for shape in shapes:
        if result is None or shape == result:
            result = shape
            continue
        if len(shape) != len(result):
            return None
        merged = []
        for mine, other in zip(result, shape, strict=True):
            if mine == other or other == 1:
                merged.append(mine)
            elif mine == 1:
                merged.append(other)
            else:
                return None
        result = tuple(merged)
    return result


def fits(value: Shape, place: Shape) -> bool:
    """Whether a value of one shape can be had at every point of the other: the same rank, and equal or 1 on each axis."""
    return value == place or (
        len(value) == len(place) and all(mine == other or mine == 1 for mine, other in zip(value, place, strict=True))
    )


def shown_shape(shape: Shape) -> str:
    return f"({', '.join(str(extent)[:40] for extent in shape)}{',' * (len(shape) == 1)})"
