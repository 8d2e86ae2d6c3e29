"""Replacing parts of index values, rebuilt through the simplifying constructors; sharing is kept, recursion is not used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from core.index.linear import multiply, number, split, weighted
from core.ir.op import Op
from core.ir.parts import coefficients, integer
from core.ir.value import Value, make


class Rebuild(ABC):
    """A memoised map over index values. Kinds of it say what is replaced."""

    __slots__ = ("_memo",)

    def __init__(self) -> None:
        self._memo: dict[Value, Value] = {}

    @abstractmethod
    def replaced(self, x: Value) -> Value | None:
        """What stands in a value's place, or None to look inside it."""

    def __call__(self, root: Value) -> Value:
        memo = self._memo
        done = memo.get(root)
        if done is not None:
            return done
        stack = [root]
        while stack:
            x = stack[-1]
            if x in memo:
                stack.pop()
                continue
            if x.op is not Op.CONST:
                found = self.replaced(x)
                if found is not None:
                    memo[x] = found
                    stack.pop()
                    continue
            waiting = [s for s in x.src if s not in memo]
            if waiting:
                stack.extend(waiting)
                continue
            memo[x] = rebuilt(x, tuple(memo[s] for s in x.src)) if x.src else x
            stack.pop()
        return memo[root]


def rebuilt(x: Value, src: tuple[Value, ...]) -> Value:
    """The operation of x on other operands, simplified."""
    if src == x.src:
        return x
    match x.op:
        case Op.SUM:
            part, factors, _ = split(x)
            return weighted(part, src, factors)
        case Op.PRODUCT:
            result = src[0]
            for s in src[1:]:
                result = multiply(result, s)
            return result
        case Op.DIV:
            from core.index.divmod import floordiv

            return floordiv(src[0], src[1])
        case Op.MOD:
            from core.index.divmod import mod

            return mod(src[0], src[1])
        case Op.LESS:
            from core.index.condition import less

            return less(src[0], number(integer(x)))
        case Op.ALL:
            from core.index.condition import all_of

            return all_of(src)
        case _:
            return make(x.op, x.dtype, src, x.arg, x.lanes, (x.lo, x.hi))


def substitute(x: Value, mapping: Mapping[Value, Value]) -> Value:
    """x with each key of `mapping` replaced, all at once."""
    if x.free.isdisjoint(mapping):
        return x
    return Substitution(mapping)(x)


class Substitution(Rebuild):
    """A substitution to be applied to several values: what they share is rebuilt once."""

    __slots__ = ("_mapping",)

    def __init__(self, mapping: Mapping[Value, Value]) -> None:
        self._memo = {}
        self._mapping = mapping

    def replaced(self, x: Value) -> Value | None:
        found = self._mapping.get(x)
        if found is not None:
            return found
        return x if x.free.isdisjoint(self._mapping) else None

    def __call__(self, root: Value) -> Value:
        if root.free.isdisjoint(self._mapping):
            return root
        found = self._mapping.get(root) or self._memo.get(root)
        if found is None and root.op is Op.SUM:  # most are sums of atoms: nothing below them to wait for
            part, factors = coefficients(root)
            found = self._memo[root] = weighted(part, [self(t) for t in root.src], factors)
        return found if found is not None else super().__call__(root)
