"""Random graphs a kernel could lower to: loads, gates, arithmetic in every type, vectors, a loop with its register, stores."""

from __future__ import annotations

import math
from random import Random

from core.dtypes import BOOL, DTYPES, INDEX, VOID, DType, Number
from core.index import add, less, number, scale
from core.ir.evaluate import meaning
from core.ir.op import OPS, Op
from core.ir.value import Value, alu, cast, constant, make, sink

ELEMENTS = 8  # of every buffer; launch ids stay below
TYPES = tuple(DTYPES[name] for name in ("bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"))
_OPERATIONS = tuple(op for op, info in OPS.items() if info.elementwise and op not in (Op.CAST, Op.BITCAST, Op.ROUND, Op.WHERE))
_EDGES = (0, 1, -1, 2, 3, 4, 8, 255, 127, -128)


def scalar(random: Random, dtype: DType) -> Number:
    """A number that is often 0, 1, or at an edge."""
    if dtype is BOOL:
        return random.random() < 0.5
    if dtype.is_float:
        return dtype.round(random.choice((0.0, -0.0, 1.0, -1.0, 2.0, 0.5, math.inf, -math.inf, math.nan, random.uniform(-9, 9))))
    return dtype.wrap(random.choice((*_EDGES, random.getrandbits(16))))


class Maker:
    """A pool of values of each type that new operations draw from."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.id = make(Op.SPECIAL, INDEX, (number(ELEMENTS),), ("global", 0), 1, (0, ELEMENTS - 1))
        self.inputs = {d: make(Op.PARAM, d, (), (k, "read", None, d.itemsize)) for k, d in enumerate(TYPES)}
        self.outputs = {d: make(Op.PARAM, d, (), (k + len(TYPES), "readwrite", None, d.itemsize)) for k, d in enumerate(TYPES)}
        self.pool: dict[DType, list[Value]] = {d: [] for d in TYPES}
        self.loop = make(Op.RANGE, INDEX, (number(3),), (0, "reduce"), 1, (0, 2))
        for d in TYPES:
            for _ in range(2):
                self.pool[d].append(self.load(d))
            self.pool[d].append(constant(scalar(random, d), d))

    def address(self, inner: bool = False) -> Value:
        """An index within every buffer."""
        random = self.random
        index = random.choice((self.id, number(random.randrange(ELEMENTS)), add(number(ELEMENTS - 1), scale(self.id, -1))))
        return self.loop if inner else index

    def gate(self) -> Value:
        return self.random.choice((less(self.id, number(self.random.randrange(-1, ELEMENTS + 2))), self.any(BOOL)))

    def load(self, dtype: DType, inner: bool = False) -> Value:
        src: tuple[Value, ...] = (self.inputs[dtype], self.address(inner))
        gated = bool(self.pool[BOOL]) and self.random.random() < 0.4
        if gated:
            src += (self.gate(), constant(scalar(self.random, dtype), dtype))
        return make(Op.LOAD, dtype, src, (1, gated))

    def any(self, dtype: DType) -> Value:
        if self.random.random() < 0.15:
            return constant(scalar(self.random, dtype), dtype)
        recent = self.pool[dtype][-6:]
        return self.random.choice(recent)

    def grow(self) -> None:
        """One more operation on what is there."""
        random = self.random
        dtype = random.choice(TYPES)
        match random.randrange(10):
            case 0:
                source = random.choice([d for d in TYPES if not d.is_float or dtype.is_float or dtype is BOOL])
                made = cast(self.any(source), dtype)
            case 1:
                source = random.choice([d for d in TYPES if d.bits == dtype.bits and (dtype.is_float or not d.is_float)])
                made = make(Op.BITCAST, dtype, (self.any(source),)) if not dtype.is_float or source.is_float else self.any(dtype)
            case 2 | 3:
                made = alu(Op.WHERE, self.gate(), self.any(dtype), self.any(dtype))
            case 4:
                lanes = make(Op.VECTOR, dtype, (self.any(dtype), self.any(dtype)), None, 2)
                if random.random() < 0.5 and self._fits(Op.ADD, dtype, 2):
                    lanes = alu(Op.ADD, lanes, lanes)
                made = make(Op.EXTRACT, dtype, (lanes,), random.randrange(2))
            case 5:
                made = self.load(dtype)
            case _:
                made = self.operation(dtype)
        self.pool[made.dtype].append(made)

    @staticmethod
    def _fits(op: Op, dtype: DType, arity: int) -> bool:
        try:
            meaning(op, BOOL if op in (Op.CMPLT, Op.CMPNE) else dtype, (dtype,) * arity)
        except KeyError:
            return False
        return True

    def operation(self, dtype: DType) -> Value:
        random = self.random
        while True:
            op = random.choice(_OPERATIONS)
            arity = OPS[op].arity or 0
            if self._fits(op, dtype, arity):
                return alu(op, *(self.any(dtype) for _ in range(arity)))

    def reduce(self, dtype: DType) -> Value:
        """A loop over three elements."""
        start = constant(scalar(self.random, dtype), dtype)
        register = make(Op.ACC, dtype, (start, self.loop), self.random.randrange(100))
        term = self.load(dtype, inner=True)
        if self._fits(Op.MUL, dtype, 2):
            term = alu(Op.MUL, term, self.any(dtype))
        return make(Op.UPDATE, dtype, (register, alu(Op.ADD, term, register)))

    def stores(self) -> Value:
        made = []
        for dtype in TYPES:
            array, value = self.outputs[dtype], self.pool[dtype][-1]
            old = make(Op.LOAD, dtype, (array, self.id), (1, False))
            value = self.random.choice((value, value, old, alu(Op.WHERE, self.gate(), value, old), alu(Op.WHERE, self.gate(), old, value)))
            src: tuple[Value, ...] = (array, self.id, value)
            gated = self.random.random() < 0.4
            made.append(make(Op.STORE, VOID, (*src, self.gate()) if gated else src, (1, gated)))
        return sink(tuple(made))


def graph(seed: int, operations: int = 24) -> Value:
    """A SINK; the same for the same seed."""
    maker = Maker(Random(seed))
    for _ in range(operations):
        maker.grow()
    for dtype in maker.random.sample(TYPES, 2):
        maker.pool[dtype].append(maker.reduce(dtype))
    for _ in range(operations // 2):
        maker.grow()
    return maker.stores()


def buffers(seed: int) -> dict[int, list[Number]]:
    """Contents for every buffer of such a graph."""
    random = Random(seed)
    return {k: [scalar(random, d) for _ in range(ELEMENTS)] for k, d in enumerate(TYPES * 2)}
