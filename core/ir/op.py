"""Every operation of the one algebra: its arity, what its operands and `arg` are, its printed name.

Three levels share these ops. *Index* level: exact integers (`INDEX`), floor division, conditions; what leaves are written in. *Raw* graph:
what `lower` makes: machine ops whose addresses and gates are still index values. *Machine* graph: after `passes.narrow` an `INDEX` fits 32
bits by its bounds and divides nothing negative; what needs more is `INDEX64` (neither overflows), or, where only a gate proves the width,
`INT32` or `INT64`, which wrap.

Typing, by op (x, y: values of one dtype and lane count; `lanes` of the result equal the operands' unless said):

    CONST            arg: the value; lanes > 1 repeats it
    AXIS             INDEX; arg (name, number); src (extent,) if the extent is symbolic. Gone after lowering
    VARIABLE         INDEX; arg (name, min, max): a scalar int32 argument
    OPAQUE           INDEX; what a node gives at a point, in an index; arg (node, lo, hi); src: what its axes stand for. Gone after
                     lowering
    SUM              INDEX*, INT32, INT64; arg (constant, (coefficient, …)); src: the terms
    PRODUCT          as SUM; n-ary
    DIV MOD          as SUM; floor division and remainder; on the machine the numerator is >= 0 (or garbage nobody looks at), the
                     divisor >= 1
    LESS             BOOL; src (x,), arg t: x < t. x is of an index or integer dtype
    ALL              BOOL; n-ary conjunction
    SPECIAL          INDEX*; arg (kind, dimension): kind is "group", "local" or "global"; src (extent,)
    RANGE            INDEX*; arg (number, role): role is "reduce" or "output"; src (end,): counts from 0 to end - 1
    PARAM            arg (number, "read"|"write"|"readwrite", image or None, alignment in bytes); dtype: the buffer's element
    SHARED           arg (number, elements); dtype: the element
    ACC              arg number; src (initial constant, range…): a register carried by these loops
    UPDATE           src (acc, value): assigns; seen from outside the loops it is what the register holds in the end
    LOAD             src (array, address…, [gate, alternative], token…); arg (addresses, gated): one address, or x and y of an image
                     (then FLOAT32, 4 lanes). Where the gate is false nothing is read and the value is the alternative
    STORE            VOID; src (array, address…, value, [gate], token…); arg (addresses, gated)
    BARRIER          VOID; src: the shared stores before it
    IF               VOID; src (condition,): a region
    END              VOID; src (the RANGE or IF it closes,); only in a listing
    CAST             src (x,): the wire's conversion to dtype
    BITCAST          src (x,): the same bits
    ROUND            FLOAT32 (or FLOAT64); arg FLOAT16 or BFLOAT16: x rounded as that type, once
    INDEX_OF         INDEX*: an integer or bool value as an index; src (x,)
    VECTOR           src: the scalars. EXTRACT: src (vector,), arg lane
    NEG NOT EXP2 LOG2 SIN SQRT RECIP                 src (x,)
    ADD MUL IDIV REM MAX XOR AND OR SHL SHR          src (x, y); IDIV and REM truncate; data types
    CMPLT CMPNE                                      src (x, y); BOOL
    WHERE            src (condition, x, y)
    MULACC           src (a, b, c): a * b + c
    MMA              src (a, b, c): the fragments of a work-item, of as many lanes as it has elements of each tile (a fragment of one is a
                     scalar); arg: the name of the instruction's layout (`core.fragments`); D = A*B + C, as c
    SINK             VOID; src: the stores
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Op(Enum):
    """One word per operation; compared by identity."""

    CONST = 0
    AXIS = 1
    VARIABLE = 2
    OPAQUE = 3
    SUM = 4
    PRODUCT = 5
    DIV = 6
    MOD = 7
    LESS = 8
    ALL = 9
    SPECIAL = 10
    RANGE = 11
    PARAM = 12
    SHARED = 13
    ACC = 14
    UPDATE = 15
    LOAD = 16
    STORE = 17
    BARRIER = 18
    IF = 19
    END = 20
    CAST = 21
    BITCAST = 22
    ROUND = 23
    INDEX_OF = 24
    VECTOR = 25
    EXTRACT = 26
    NEG = 27
    NOT = 28
    EXP2 = 29
    LOG2 = 30
    SIN = 31
    SQRT = 32
    RECIP = 33
    ADD = 34
    MUL = 35
    IDIV = 36
    REM = 37
    MAX = 38
    XOR = 39
    AND = 40
    OR = 41
    SHL = 42
    SHR = 43
    CMPLT = 44
    CMPNE = 45
    WHERE = 46
    MULACC = 47
    MMA = 48
    SINK = 49

    __hash__ = object.__hash__  # members are singletons; Enum's own hash goes through the name


@dataclass(frozen=True, slots=True)
class OpInfo:
    """arity: number of sources, None: any. name: as printed. elementwise: lane by lane on data. commutes: order of sources is free."""

    arity: int | None
    name: str
    elementwise: bool = False
    commutes: bool = False


OPS: dict[Op, OpInfo] = {
    Op.CONST: OpInfo(0, "const"),
    Op.AXIS: OpInfo(None, "axis"),
    Op.VARIABLE: OpInfo(0, "variable"),
    Op.OPAQUE: OpInfo(None, "opaque"),
    Op.SUM: OpInfo(None, "sum"),
    Op.PRODUCT: OpInfo(None, "product", commutes=True),
    Op.DIV: OpInfo(2, "div"),
    Op.MOD: OpInfo(2, "mod"),
    Op.LESS: OpInfo(1, "less"),
    Op.ALL: OpInfo(None, "all", commutes=True),
    Op.SPECIAL: OpInfo(1, "special"),
    Op.RANGE: OpInfo(1, "range"),
    Op.PARAM: OpInfo(0, "param"),
    Op.SHARED: OpInfo(0, "shared"),
    Op.ACC: OpInfo(None, "acc"),
    Op.UPDATE: OpInfo(2, "update"),
    Op.LOAD: OpInfo(None, "load"),
    Op.STORE: OpInfo(None, "store"),
    Op.BARRIER: OpInfo(None, "barrier"),
    Op.IF: OpInfo(1, "if"),
    Op.END: OpInfo(1, "end"),
    Op.CAST: OpInfo(1, "cast", elementwise=True),
    Op.BITCAST: OpInfo(1, "bitcast", elementwise=True),
    Op.ROUND: OpInfo(1, "round", elementwise=True),
    Op.INDEX_OF: OpInfo(1, "index_of"),
    Op.VECTOR: OpInfo(None, "vector"),
    Op.EXTRACT: OpInfo(1, "extract"),
    Op.NEG: OpInfo(1, "neg", elementwise=True),
    Op.NOT: OpInfo(1, "not", elementwise=True),
    Op.EXP2: OpInfo(1, "exp2", elementwise=True),
    Op.LOG2: OpInfo(1, "log2", elementwise=True),
    Op.SIN: OpInfo(1, "sin", elementwise=True),
    Op.SQRT: OpInfo(1, "sqrt", elementwise=True),
    Op.RECIP: OpInfo(1, "recip", elementwise=True),
    Op.ADD: OpInfo(2, "add", elementwise=True, commutes=True),
    Op.MUL: OpInfo(2, "mul", elementwise=True, commutes=True),
    Op.IDIV: OpInfo(2, "idiv", elementwise=True),
    Op.REM: OpInfo(2, "rem", elementwise=True),
    Op.MAX: OpInfo(2, "max", elementwise=True, commutes=True),
    Op.XOR: OpInfo(2, "xor", elementwise=True, commutes=True),
    Op.AND: OpInfo(2, "and", elementwise=True, commutes=True),
    Op.OR: OpInfo(2, "or", elementwise=True, commutes=True),
    Op.SHL: OpInfo(2, "shl", elementwise=True),
    Op.SHR: OpInfo(2, "shr", elementwise=True),
    Op.CMPLT: OpInfo(2, "cmplt", elementwise=True),
    Op.CMPNE: OpInfo(2, "cmpne", elementwise=True, commutes=True),
    Op.WHERE: OpInfo(3, "where", elementwise=True),
    Op.MULACC: OpInfo(3, "mulacc", elementwise=True),
    Op.MMA: OpInfo(3, "mma"),
    Op.SINK: OpInfo(None, "sink"),
}
