"""The rule each operation's operands, type and arg keep to; `core.ir.verify` walks graphs with them.

A rule is a function of a value that returns what should have been, or None where all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from core.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, INDEX, INDEX64, INT32, INT64, VOID, DType
from core.fragments import is_layout, layout_named
from core.ir.op import OPS, Op
from core.ir.value import Value

_ORDER_TOKENS = frozenset((Op.BARRIER, Op.STORE, Op.IF, Op.UPDATE, Op.RANGE, Op.LOAD))

_Rule = Callable[[Value], str | None]


def _arity(value: Value) -> str | None:
    arity = OPS[value.op].arity
    if arity is not None and len(value.src) != arity:
        return f"{arity} operands, not {len(value.src)}"
    return None


def _no_arg(value: Value) -> str | None:
    return None if value.arg is None else "no arg"


def _const(value: Value) -> str | None:
    arg, dtype = value.arg, value.dtype
    if value.src:
        return "a constant has no operands"
    if dtype is BOOL:
        return None if isinstance(arg, bool) else "a bool's constant is a bool"
    if dtype.is_float:
        if not isinstance(arg, float):
            return "a float's constant is a float"
        return None if arg != arg or dtype.round(arg) == arg else f"{arg} is no {dtype}"
    if dtype is VOID or not isinstance(arg, int) or isinstance(arg, bool):
        return "an integer's constant is an integer"
    in_range = dtype is INDEX or dtype.least <= arg <= dtype.greatest
    return None if in_range else f"{arg} is no {dtype}"


_INDICES = frozenset((INDEX, INDEX64, INT32, INT64))  # what index arithmetic is done in


def _index_arithmetic(value: Value) -> str | None:
    dtype = value.dtype
    if dtype not in _INDICES or value.lanes != 1:
        return "index arithmetic gives one index"
    for s in value.src:
        if s.dtype is not dtype or s.lanes != 1:
            return f"operands of {dtype}, not {s.dtype}"
    return _arity(value)


def _sum(value: Value) -> str | None:
    arg = value.arg
    if not (
        isinstance(arg, tuple) and len(arg) == 2 and isinstance(arg[0], int) and isinstance(arg[1], tuple) and len(arg[1]) == len(value.src)
    ):
        return "a constant, and a coefficient for each term"
    return _index_arithmetic(value)


def _less(value: Value) -> str | None:
    if value.dtype is not BOOL or value.lanes != 1 or len(value.src) != 1 or not isinstance(value.arg, int):
        return "an index or integer below a number is a bool"
    dtype = value.src[0].dtype
    return None if dtype.is_index or dtype.is_integer else f"an index or an integer, not {dtype}"


def _all(value: Value) -> str | None:
    if value.dtype is not BOOL or any(s.dtype is not BOOL for s in value.src):
        return "conditions are bools"
    if any(s.op is not Op.LESS for s in value.src):
        return "a conjunction is of comparisons of indices; with data it is an AND"
    return _no_arg(value)


def _special(value: Value) -> str | None:
    arg = value.arg
    if not (isinstance(arg, tuple) and len(arg) == 2 and arg[0] in ("group", "local", "global") and arg[1] in (0, 1, 2)):
        return "group, local or global, and a dimension from 0 to 2"
    return _index_arithmetic(value)


def _range(value: Value) -> str | None:
    arg = value.arg
    if not (isinstance(arg, tuple) and len(arg) == 2 and arg[1] in ("reduce", "output")):
        return "a number, and reduce or output"
    return _index_arithmetic(value)


def _leaf_of_data(value: Value) -> str | None:
    return None if value.dtype in _DATA and not value.src else "an array of data has no operands"


def _acc(value: Value) -> str | None:
    src = value.src
    if not src or src[0].op is not Op.CONST or src[0].dtype is not value.dtype or src[0].lanes != value.lanes:
        return "starts from a constant of its type"
    if any(s.op is not Op.RANGE for s in src[1:]) or len(set(src[1:])) != len(src) - 1:
        return "is carried by loops, each once"
    return None


def _update(value: Value) -> str | None:
    if len(value.src) != 2 or value.src[0].op is not Op.ACC:
        return "assigns to a register"
    if any(s.dtype is not value.dtype or s.lanes != value.lanes for s in value.src):
        return "register and value are of one type"
    return _no_arg(value)


def _access(value: Value) -> str | None:
    arg, src = value.arg, value.src
    if not (isinstance(arg, tuple) and len(arg) == 2 and arg[0] in (1, 2) and isinstance(arg[1], bool)):
        return "one address or two, and whether there is a gate"
    count, gated = arg
    store = value.op is Op.STORE
    least = 1 + count + store + (gated if store else 2 * gated)
    if len(src) < least:
        return f"at least {least} operands"
    array = src[0]
    if array.op is not Op.PARAM and array.op is not Op.SHARED:
        return "an array first"
    for s in src[1 : 1 + count]:
        if s.dtype not in _ADDRESSES or s.lanes != 1:
            return f"an address is one index, not {s.dtype}"
    if gated:
        gate = src[1 + count + store]
        if gate.dtype is not BOOL or gate.lanes != 1:
            return f"a gate is one bool, not {gate.dtype}"
    if len(src) > least and any(s.op not in _ORDER_TOKENS for s in src[least:]):
        return "what an access comes after is a barrier, a store, an update or an if"
    image = isinstance(array.arg, tuple) and len(array.arg) > 2 and array.arg[2] is not None
    element, lanes = (FLOAT32, 4) if image else (array.dtype, 0)
    if (count == 2) is not image:
        return "an image has two addresses, a buffer one"
    return _moved(value, src[1 + count] if store else None, src[2 + count] if gated and not store else None, element, lanes)


def _moved(value: Value, stored: Value | None, alternative: Value | None, element: DType, lanes: int) -> str | None:
    """The type of what an access reads or writes."""
    moved = value if stored is None else stored
    if moved.dtype is FLOAT32 and element in (FLOAT16, BFLOAT16):  # a load that widens, a store that rounds
        element = FLOAT32
    if moved.dtype is not element or (lanes and moved.lanes != lanes):
        return f"an element is {element}, not {moved.dtype}"
    if stored is not None and value.dtype is not VOID:
        return "a store gives nothing"
    if alternative is not None and (alternative.dtype is not element or alternative.lanes != value.lanes):
        return f"the alternative is {element} of as many lanes"
    return None


def _barrier(value: Value) -> str | None:
    if value.dtype is not VOID:
        return "gives nothing"
    for s in value.src:
        if s.op not in _ORDER_TOKENS or (s.op is Op.STORE and s.src[0].op is not Op.SHARED):
            return "comes after stores to shared arrays"
    return None


def _if(value: Value) -> str | None:
    if value.dtype is not VOID or not value.src or value.src[0].dtype is not BOOL or value.src[0].lanes != 1:
        return "a region's condition is one bool"
    return None


def _end(value: Value) -> str | None:
    closes = len(value.src) == 1 and (value.src[0].op is Op.RANGE or value.src[0].op is Op.IF)
    return None if value.dtype is VOID and closes else "closes one loop or region"


def _sink(value: Value) -> str | None:
    return None if value.dtype is VOID and all(s.op is Op.STORE for s in value.src) else "ends in stores"


def _cast(value: Value) -> str | None:
    if len(value.src) != 1 or value.dtype is VOID or value.src[0].dtype is VOID or value.src[0].lanes != value.lanes:
        return "one operand of as many lanes"
    return _no_arg(value)


def _bitcast(value: Value) -> str | None:
    if value.src and value.src[0].dtype.bits != value.dtype.bits:
        return f"{value.dtype.bits} bits, not {value.src[0].dtype.bits}"
    return _cast(value)


def _round(value: Value) -> str | None:
    if not value.dtype.is_float or value.dtype.bits < 32 or (value.arg is not FLOAT16 and value.arg is not BFLOAT16):
        return "a wide float rounded as float16 or bfloat16"
    return _same(value)


def _index_of(value: Value) -> str | None:
    if not value.dtype.is_index or len(value.src) != 1 or value.lanes != 1 or value.src[0].lanes != 1:
        return "one integer as an index"
    dtype = value.src[0].dtype
    return None if dtype is BOOL or dtype.is_integer else f"an integer or bool, not {dtype}"


def _vector(value: Value) -> str | None:
    if value.lanes != len(value.src) or value.lanes < 2:
        return f"{value.lanes} lanes of {len(value.src)} scalars"
    if any(s.dtype is not value.dtype or s.lanes != 1 for s in value.src):
        return f"scalars of {value.dtype}"
    return _no_arg(value)


def _extract(value: Value) -> str | None:
    if len(value.src) != 1 or value.lanes != 1 or value.src[0].dtype is not value.dtype:
        return "one lane of a vector of its type"
    return None if isinstance(value.arg, int) and 0 <= value.arg < value.src[0].lanes else f"lane {value.arg} of {value.src[0].lanes}"


def _same(value: Value) -> str | None:
    """Operands of the result's type."""
    dtype, lanes = value.dtype, value.lanes
    for s in value.src:
        if s.dtype is not dtype or s.lanes != lanes:
            return f"operands of {dtype}, not {s.dtype}" if s.dtype is not dtype else f"{lanes} lanes, not {s.lanes}"
    return _arity(value)


def _arithmetic(op: Op, of: Container[DType], what: str) -> _Rule:
    """As many operands as the operation has, of the result's type, which is one of these."""
    arity = OPS[op].arity

    def rule(value: Value) -> str | None:
        dtype, lanes, src = value.dtype, value.lanes, value.src
        if dtype not in of:
            return f"of {what}, not {dtype}"
        for s in src:
            if s.dtype is not dtype or s.lanes != lanes:
                return _same(value)
        if len(src) != arity:
            return _arity(value)
        return None if value.arg is None else "no arg"

    return rule


def _shift(value: Value) -> str | None:
    if len(value.src) != 2 or not value.dtype.is_integer or value.src[0].dtype is not value.dtype:
        return "an integer shifted"
    by = value.src[1]
    if not by.dtype.is_integer or any(s.lanes != value.lanes for s in value.src):
        return f"shifted by an integer of as many lanes, not {by.dtype}"
    return _no_arg(value)


def _comparison(value: Value) -> str | None:
    if len(value.src) != 2 or value.dtype is not BOOL:
        return "two operands give a bool"
    first, second = value.src
    if first.dtype is not second.dtype or first.lanes != second.lanes or first.lanes != value.lanes:
        return f"operands of one type, not {first.dtype} and {second.dtype}"
    return _no_arg(value)


def _where(value: Value) -> str | None:
    if len(value.src) != 3:
        return "a condition and two values"
    condition, first, second = value.src
    if condition.dtype is not BOOL or condition.lanes not in (1, value.lanes):
        return f"a bool decides, not {condition.dtype}"
    if first.dtype is not value.dtype or second.dtype is not value.dtype or first.lanes != value.lanes or second.lanes != value.lanes:
        return f"both values of {value.dtype}"
    return _no_arg(value)


def _mma(value: Value) -> str | None:
    if not is_layout(value.arg):
        return "the name of a matrix instruction"
    layout = layout_named(value.arg)
    operand, accumulator = DTYPES[layout.core.operand], DTYPES[layout.core.accumulator]
    wanted = ((operand, layout.a), (operand, layout.b), (accumulator, layout.c))
    if len(value.src) != 3 or (value.dtype, value.lanes) != (accumulator, layout.c.elements):
        return f"three fragments give {layout.c.elements} of {accumulator}"
    for s, (dtype, fragment) in zip(value.src, wanted, strict=True):
        if (s.dtype, s.lanes) != (dtype, fragment.elements):
            return f"a fragment of {fragment.elements} of {dtype}, not {s.lanes} of {s.dtype}"
    return None


def _nothing(value: Value) -> str | None:
    return None


_DATA = frozenset(DTYPES.values())
_INTEGERS = frozenset(d for d in _DATA if d.is_integer)
_FLOATS = frozenset(d for d in _DATA if d.is_float)
_BITS = _INTEGERS | {BOOL}
_ADDRESSES = _INTEGERS | {INDEX, INDEX64}

RULES: dict[Op, _Rule] = {
    Op.CONST: _const,
    Op.AXIS: _nothing,
    Op.VARIABLE: _index_arithmetic,
    Op.OPAQUE: _nothing,
    Op.SUM: _sum,
    Op.PRODUCT: _index_arithmetic,
    Op.DIV: _index_arithmetic,
    Op.MOD: _index_arithmetic,
    Op.LESS: _less,
    Op.ALL: _all,
    Op.SPECIAL: _special,
    Op.RANGE: _range,
    Op.PARAM: _leaf_of_data,
    Op.SHARED: _leaf_of_data,
    Op.ACC: _acc,
    Op.UPDATE: _update,
    Op.LOAD: _access,
    Op.STORE: _access,
    Op.BARRIER: _barrier,
    Op.IF: _if,
    Op.END: _end,
    Op.CAST: _cast,
    Op.BITCAST: _bitcast,
    Op.ROUND: _round,
    Op.INDEX_OF: _index_of,
    Op.VECTOR: _vector,
    Op.EXTRACT: _extract,
    Op.SHL: _shift,
    Op.SHR: _shift,
    Op.CMPLT: _comparison,
    Op.CMPNE: _comparison,
    Op.WHERE: _where,
    Op.MMA: _mma,
    Op.SINK: _sink,
    **{op: _arithmetic(op, _DATA, "data") for op in (Op.NEG, Op.ADD, Op.MUL, Op.MAX, Op.MULACC)},
    **{op: _arithmetic(op, _INTEGERS, "integers") for op in (Op.IDIV, Op.REM)},
    **{op: _arithmetic(op, _BITS, "integers or bools") for op in (Op.NOT, Op.XOR, Op.AND, Op.OR)},
    **{op: _arithmetic(op, _FLOATS, "floats") for op in (Op.EXP2, Op.LOG2, Op.SIN, Op.SQRT, Op.RECIP)},
}
