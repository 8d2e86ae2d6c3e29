"""Random instances of rewrite rules: types for its parts, values for its holes, and what both sides come to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, INDEX, DType, Number, float_bits
from core.ir.evaluate import Content, evaluate, fold, meaning
from core.ir.op import Op
from core.ir.value import Value, alu, cast, constant, make
from core.ir.walk import ordered
from core.rewrite.compile import constant_of
from core.rewrite.pattern import Apply, Exactly, Hole, Pattern
from core.rewrite.rule import Rule, RuleSet
from core.rewrite.typing import Typing

DATA = tuple(DTYPES.values())
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -7.0, math.inf, -math.inf, math.nan, 1e30, 6e-8, 65504.0, 0.1)


class Unfit(Exception):
    """These types make no operation of this pattern; others may."""


def number(random: Random, dtype: DType) -> Number:
    """A number of the type: often one at which rules break."""
    if dtype is BOOL:
        return random.random() < 0.5
    if dtype.is_float:
        return dtype.round(random.choice(SPECIAL_FLOATS) if random.random() < 0.6 else random.uniform(-100, 100))
    if random.random() < 0.7:
        edges = (
            0,
            1,
            -1,
            2,
            3,
            4,
            5,
            7,
            8,
            12,
            -3,
            -8,
            dtype.bits,
            dtype.bits - 1,
            int(dtype.least),
            int(dtype.greatest),
            int(dtype.greatest) - 1,
        )
        return dtype.wrap(random.choice(edges))
    return dtype.wrap(random.getrandbits(64))


def unknown(name: int, dtype: DType, lanes: int = 1) -> Value:
    """A value nothing is known of."""
    array = make(Op.PARAM, dtype, (), (name, "read", None, dtype.itemsize))
    return make(Op.LOAD, dtype, (array, constant(0, INDEX)), (1, False), lanes)


class Instance:
    """The left side of a rule over random types and leaves."""

    def __init__(self, rule: Rule, random: Random, tame: bool = False) -> None:
        self.random = random
        self.tame = tame  # only floats that are small powers of two
        before = rule.before
        if len(before.ops) > 1:
            before = Apply((random.choice(before.ops),), before.src)
        self.typing = Typing(before, None)
        self.loose = not tame and random.random() < 0.25  # types the rule is not for: then it must not fire, or hold all the same
        self.lanes = random.choice((1, 1, 1, 2))
        self.chosen: dict[int, DType] = {}
        self.holes: dict[str, Value] = {}
        self.leaves: list[Value] = []
        self.root = self._build(before)

    def _dtype(self, pattern: Pattern) -> DType:
        kind = self.typing.of(pattern)
        if kind not in self.chosen:
            allowed = self.typing.types(kind)
            self.chosen[kind] = self.random.choice([d for d in DATA if self.loose or allowed is None or d in allowed])
        return self.chosen[kind]

    def _build(self, pattern: Pattern) -> Value:
        match pattern:
            case Exactly():
                return constant_of(pattern.number, self._dtype(pattern), self.lanes)
            case Hole():
                if pattern.name not in self.holes:
                    self.holes[pattern.name] = self._hole(pattern)
                return self.holes[pattern.name]
            case Apply():
                return self._operation(pattern)
            case _:
                raise TypeError

    def _operation(self, pattern: Apply) -> Value:
        op, dtype = pattern.ops[0], self._dtype(pattern)
        src = tuple(self._build(s) for s in pattern.src)
        arg = None
        if op is Op.ROUND:
            arg = self.random.choice((FLOAT16, BFLOAT16))
        if op is Op.INDEX_OF:
            dtype = INDEX
        if op is Op.CMPLT or op is Op.CMPNE:
            dtype = BOOL
        if op is Op.WHERE:
            dtype = src[1].dtype
        try:
            meaning(op, dtype, tuple(s.dtype for s in src), arg)
        except KeyError:
            raise Unfit from None
        return make(op, dtype, src, arg, self.lanes)

    def _hole(self, hole: Hole) -> Value:
        dtype, random = self._dtype(hole), self.random
        if hole.constant or random.random() < 0.1:
            return constant(self._number(dtype), dtype, self.lanes)
        if not dtype.is_integer or random.random() < 0.5:
            return self._leaf(dtype)
        match random.randrange(4):
            case 0:
                return cast(self._leaf(BOOL), dtype)
            case 1 if dtype.bits > 8:
                return cast(self._leaf(DTYPES["uint8"]), dtype)
            case 2:
                return alu(Op.AND, self._leaf(dtype), constant(random.choice((1, 3, 7, 15, 6)), dtype, self.lanes))
            case _:
                return alu(Op.MAX, self._leaf(dtype), constant(random.choice((0, 1, 5)), dtype, self.lanes))

    def _leaf(self, dtype: DType) -> Value:
        leaf = unknown(len(self.leaves), dtype, self.lanes)
        self.leaves.append(leaf)
        return leaf

    def _number(self, dtype: DType) -> Number:
        if self.tame and dtype.is_float:
            return self.random.choice((1.0, -1.0, 2.0, -4.0, 0.5))
        return number(self.random, dtype)

    def assignment(self) -> dict[Value, Content]:
        """Random contents for the leaves."""
        return {
            leaf: self._number(leaf.dtype) if self.lanes == 1 else tuple(self._number(leaf.dtype) for _ in range(self.lanes))
            for leaf in self.leaves
        }


def is_open(root: Value, known: dict[Value, Content]) -> bool:
    """Whether any value would do: a float on the way is no integer of the type it is converted to."""
    for value in ordered(root):
        if value.op is Op.CAST and value.dtype.is_integer and value.src[0].dtype.is_float:
            content = evaluate(value.src[0], known)
            for x in content if isinstance(content, tuple) else (content,):
                if fold(Op.CAST, value.dtype, (x,), (value.src[0].dtype,)) is None:
                    return True
    return False


def replacements(rule: Rule, root: Value) -> Iterator[Value]:
    """What each order of the rule makes of `root`."""
    for _, matcher in RuleSet(rule).candidates(root):
        result = matcher(root)
        if result is not None:
            yield result


def instances(rule: Rule, seed: int, tame: bool = False) -> Iterator[Instance]:
    """Endlessly many."""
    random = Random(f"{rule} {seed}")
    while True:
        try:
            yield Instance(rule, random, tame)
        except Unfit:
            continue


def bits(content: Content) -> tuple[object, ...]:
    """What has to be equal: the type's own bits, every NaN the same."""
    numbers = content if isinstance(content, tuple) else (content,)
    return tuple(float_bits(x) if isinstance(x, float) else int(x) for x in numbers)
