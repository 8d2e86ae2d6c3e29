"""The small parts of the wire: members of an object, lists, integers, and sizes that may be expressions.

Each function takes a value as JSON had it and where it is, and returns it typed or raises WireError (LimitExceeded where it
is a matter of size). A place is a pointer and the parts below it, put together only when something is refused. `bool` is
never an integer, nor is 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from core.errors import LimitExceeded, Pointer, Said, WireError
from core.kernel.bounds import Beyond64, bounds
from core.kernel.expression import Comparison, Expression, Malformed, Size, parse_comparison, parse_expression
from core.kernel.node import Variable
from core.limits import Limits

LEAST, GREATEST = -(2**63), 2**63 - 1
_UNSIGNED_GREATEST = 2**64 - 1  # a bound on a uint64 value may be as large
_LONG_NUMBER = re.compile(r"[1-9][0-9]{20}")


@dataclass(frozen=True, slots=True)
class Members:
    """The members an object of this kind has. what: its name in messages."""

    what: str
    required: frozenset[str]
    allowed: frozenset[str]

    @staticmethod
    def of(what: str, required: str, optional: str = "") -> Members:
        return Members(what, frozenset(required.split()), frozenset((required + " " + optional).split()))


def below(at: Pointer, where: tuple[str | int, ...]) -> Pointer:
    for part in where:
        at = at / part
    return at


def members(value: object, kind: Members, at: Pointer, *where: str | int) -> dict[str, object]:
    """The object, with all the members its kind requires and none beyond those it allows."""
    if type(value) is not dict:
        raise WireError(below(at, where), expected=f"{kind.what}: an object", got=value)
    if not kind.required <= value.keys() <= kind.allowed:
        at = below(at, where)
        for name in value:
            if name not in kind.allowed:
                raise WireError(at / name, expected=f"no such member: {kind.what} has {', '.join(sorted(kind.allowed))}", got=value[name])
        name = min(kind.required - value.keys())
        raise WireError(at / name, expected=f"a member {name!r}: {kind.what} requires it", got=Said("nothing"))
    return value


def items(value: object, expected: str, at: Pointer, *where: str | int) -> list[object]:
    if type(value) is not list:
        raise WireError(below(at, where), expected=expected, got=value)
    return value


def integer(value: object, least: int, greatest: int | None, at: Pointer, *where: str | int) -> int:
    """An integer within bounds, both inclusive."""
    if type(value) is int and least <= value and (greatest is None or value <= greatest):
        return value
    most = "" if greatest is None else f", at most {greatest}"
    raise WireError(below(at, where), expected=f"an integer, at least {least}{most}", got=value)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names an expression may use. words: the same for messages."""

    names: frozenset[str]
    words: str


def scope_of(variables: tuple[str, ...], rank: int = 0, values: tuple[int, ...] = ()) -> Scope:
    """Declared variables, the axes of a leaf of this rank, and `src` with these numbers."""
    names = (*variables, *(f"axis{k}" for k in range(rank)), *(f"src{k}" for k in values))
    shown = [*variables[:8], *(["…"] if len(variables) > 8 else [])]
    if rank:
        shown.append("axis0" if rank == 1 else f"axis0 to axis{rank - 1}")
    if values:
        shown.append(f"src{values[0]}" if len(values) == 1 else f"src{values[0]} to src{values[-1]}")
    return Scope(frozenset(names), " over " + ", ".join(shown) if shown else " of literals (no variables are declared)")


_cached_scope = lru_cache(maxsize=512)(scope_of)
_MANY = 16  # names of a kind: longer scopes are not worth their memory


class Sizes:
    """Reads the integers and expressions of one kernel: each distinct text is parsed once."""

    def __init__(self, limits: Limits, variables: tuple[Variable, ...]) -> None:
        self._limits = limits
        self._variables: Mapping[str, Variable] = {variable.name: variable for variable in variables}
        self._names = tuple(self._variables)
        self._sizes: dict[str, Size] = {}
        self._comparisons: dict[str, Comparison] = {}
        self.declared = self.scope(0)

    def scope(self, rank: int, values: tuple[int, ...] = ()) -> Scope:
        make = scope_of if max(len(self._names), rank, len(values)) > _MANY else _cached_scope
        return make(self._names, rank, values)

    def size(self, value: object, scope: Scope, at: Pointer, *where: str | int) -> Size:
        """An integer of 64 bits, or an expression over the names of `scope`."""
        if type(value) is int and LEAST <= value <= GREATEST:
            return value
        at = below(at, where)
        if type(value) is int:
            raise _too_wide(at, value)
        if type(value) is not str:
            raise WireError(at, expected=f"an integer, or a string with an integer expression{scope.words}", got=value)
        size = self._sizes.get(value)
        if size is None:
            size = self._sizes[value] = self._parse(value, at)
        if isinstance(size, Expression) and not scope.names.issuperset(size.names):
            raise _unknown_name(at, size, scope)
        return size

    def list_of_sizes(self, value: object, scope: Scope, count: int | None, at: Pointer, *where: str | int) -> tuple[Size, ...]:
        """A list of them; count: how many there must be, one per axis of the shape beside it."""
        if type(value) is not list or (count is not None and len(value) != count):
            one_per_axis = "a list of integers or expressions" if count is None else f"a list of {count}, one per axis of shape"
            raise WireError(below(at, where), expected=one_per_axis, got=value)
        for item in value:
            if type(item) is not int or not LEAST <= item <= GREATEST:
                return tuple([self.size(each, scope, at, *where, k) for k, each in enumerate(value)])
        return tuple(value)

    def shape(self, value: object, at: Pointer) -> tuple[Size, ...]:
        if type(value) is list and len(value) > self._limits.rank:
            raise LimitExceeded(at / "shape", limit="rank", needed=len(value), allowed=self._limits.rank)
        return self.list_of_sizes(value, self.declared, None, at, "shape")

    def comparison(self, value: object, scope: Scope, at: Pointer, *where: str | int) -> Comparison:
        """One of < <= > >= between two expressions over the names of `scope`."""
        at = below(at, where)
        if type(value) is not str:
            raise WireError(at, expected=f"a string with one of < <= > >= between two integer expressions{scope.words}", got=value)
        found = self._comparisons.get(value)
        if found is None:
            self._check_text(value, at)
            try:
                found = self._comparisons[value] = parse_comparison(value)
            except Malformed as error:
                raise WireError(at, expected=str(error), got=value) from None
            self._check_value(found.left, at, value, _UNSIGNED_GREATEST)
            self._check_value(found.right, at, value, _UNSIGNED_GREATEST)
        for side in (found.left, found.right):
            if isinstance(side, Expression) and not scope.names.issuperset(side.names):
                raise _unknown_name(at, side, scope)
        return found

    def _parse(self, text: str, at: Pointer) -> Size:
        self._check_text(text, at)
        try:
            size = parse_expression(text)
        except Malformed as error:
            raise WireError(at, expected=str(error), got=text) from None
        self._check_value(size, at, text, GREATEST)
        return size

    def _check_text(self, text: str, at: Pointer) -> None:
        if len(text) > self._limits.expression_chars:
            raise LimitExceeded(at, limit="expression_chars", needed=len(text), allowed=self._limits.expression_chars)
        if _LONG_NUMBER.search(text) or (len(text) > 600 and "0" * 600 in text):  # int() takes 640 digits under every setting
            raise _too_wide(at, text)

    def _check_value(self, size: Size, at: Pointer, text: str, greatest: int) -> None:
        """Literals, and all that needs nothing but the variables' bounds, within 64 bits."""
        if isinstance(size, int):
            if not LEAST <= size <= greatest:
                raise _too_wide(at, text)
            return
        if any(isinstance(step, int) and step > max(greatest, -LEAST) for step in size.postfix):
            raise _too_wide(at, text)
        if self._variables.keys() >= set(size.names):
            try:
                bounds(size, self._variables)
            except Beyond64 as error:
                raise _too_wide(at, text, f"values from {error.args[0]} to {error.args[1]}") from None


def _unknown_name(at: Pointer, size: Expression, scope: Scope) -> WireError:
    name = next(name for name in size.names if name not in scope.names)
    return WireError(at, expected=f"an integer expression{scope.words}", got=Said(f"{name!r} in {size.text[:80]!r}"))


def _too_wide(at: Pointer, value: object, needed: str | None = None) -> LimitExceeded:
    if isinstance(value, int):
        needed = f"{value.bit_length() + 1} bits"
    return LimitExceeded(at, limit="integer_bits", needed=needed or "more than 64 bits", allowed="64 bits, signed")
