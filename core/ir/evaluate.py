"""What each data operation means on plain numbers, in each type: the scalar truth behind constant folding, rule proofs and the interpreter.

Integers wrap, division truncates, every float result is rounded once to its type. What the wire leaves open has one fixed answer here:
division by 0 and of the least integer by -1, shifts out of range, and floats no integer type holds give 0; the maximum of two zeros is
+0.0 if either is; every NaN is the one quiet NaN.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType, Kind, Number
from core.ir.op import OPS, Op
from core.ir.parts import content, integer
from core.ir.value import Arg, Value, bits_of, constant

Meaning = Callable[..., Number]
Content = Number | tuple[Number, ...]  # of a value: one number, or one per lane

_meanings: dict[tuple[object, ...], Meaning | None] = {}  # of operations without arg: as many as there are typings
LIBRARY = frozenset((Op.EXP2, Op.LOG2, Op.SIN))  # answers of the machine's mathematical library, which differ between machines


def compute(op: Op, dtype: DType, operands: Sequence[Number], dtypes: Sequence[DType], arg: Arg = None) -> Number:
    """The value of one operation on numbers of these types. Raises KeyError for an operation that is no function of numbers."""
    return meaning(op, dtype, tuple(dtypes), arg)(*operands)


def fold(op: Op, dtype: DType, operands: Sequence[Number], dtypes: Sequence[DType], arg: Arg = None) -> Number | None:
    """As `compute`; None where a constant must not take the operation's place.

    That is where targets may answer differently (a float out of an integer's range), where the machine's library would decide, and
    where a NaN's payload would be lost.
    """
    if op in LIBRARY and not _exact(op, operands[0]):
        return None
    if op is Op.CAST and dtype.is_integer and dtypes[0].is_float:
        x = operands[0]
        if not math.isfinite(x) or not dtype.least <= math.trunc(x) <= dtype.greatest:
            return None
    result = meaning(op, dtype, tuple(dtypes), arg)(*operands)
    return None if op is Op.BITCAST and result != result else result


def fold_value(root: Value) -> Value | None:
    """The constant an elementwise operation on constants is, or None."""
    src = root.src
    number = fold(root.op, root.dtype, [content(s) for s in src], [s.dtype for s in src], root.arg)
    return None if number is None else constant(number, root.dtype, root.lanes)


def _exact(op: Op, x: Number) -> bool:
    """Where the function's value is beyond doubt."""
    if not math.isfinite(x):
        return True
    match op:
        case Op.EXP2:
            return x == math.floor(x)
        case Op.LOG2:
            return x <= 0.0 or math.frexp(x)[0] == 0.5
        case _:
            return x == 0.0


def meaning(op: Op, dtype: DType, dtypes: tuple[DType, ...], arg: Arg = None) -> Meaning:
    """The function from operands to result. Raises KeyError where there is none."""
    if arg is None:
        key = (op, dtype, dtypes)
        if key not in _meanings:
            _meanings[key] = _meaning(op, dtype, dtypes, arg)
        found = _meanings[key]
    else:
        found = _meaning(op, dtype, dtypes, arg)
    if found is None:
        raise KeyError(f"{OPS[op].name} of {', '.join(map(str, dtypes))} gives no {dtype}")
    return found


def _meaning(op: Op, dtype: DType, dtypes: tuple[DType, ...], arg: Arg) -> Meaning | None:
    match op:
        case Op.CAST:
            return _conversion(dtypes[0], dtype)
        case Op.BITCAST:
            return _reinterpretation(dtypes[0], dtype)
        case Op.ROUND:
            return arg.round if isinstance(arg, DType) and dtype.is_float and dtypes[0] is dtype else None
        case Op.INDEX_OF:
            return int
        case Op.WHERE:
            return lambda c, x, y: x if c else y
        case Op.CMPLT:
            return lambda x, y: x < y
        case Op.CMPNE:
            return lambda x, y: x != y
        case Op.LESS:
            return lambda x: x < arg
        case Op.ALL:
            return lambda *xs: all(xs)
        case Op.SUM | Op.PRODUCT | Op.DIV | Op.MOD:
            return _index_meaning(op, dtype, arg)
        case _:
            pass
    if dtype.is_float:
        return _float_meaning(op, dtype)
    if dtype is BOOL:
        return _BOOL.get(op)
    return _integer_meaning(op, dtype)


_BOOL: dict[Op, Meaning] = {
    Op.NEG: lambda x: not x,
    Op.NOT: lambda x: not x,
    Op.ADD: lambda x, y: x or y,
    Op.MAX: lambda x, y: x or y,
    Op.OR: lambda x, y: x or y,
    Op.MUL: lambda x, y: x and y,
    Op.AND: lambda x, y: x and y,
    Op.XOR: lambda x, y: x != y,
    Op.MULACC: lambda x, y, z: (x and y) or z,
}


def _index_meaning(op: Op, dtype: DType, arg: Arg) -> Meaning:
    """Exact, then kept as the type keeps it: data integers wrap, an index never needs to."""
    keep = dtype.wrap if dtype.is_integer else int
    if op is Op.SUM:
        return _weighted(arg, keep)  # type: ignore[arg-type]  # a SUM's arg is this pair
    if op is Op.PRODUCT:
        return lambda *xs: keep(math.prod(xs))
    if op is Op.DIV:
        return lambda x, y: keep(x // y) if y > 0 else 0
    return lambda x, y: keep(x % y) if y > 0 else 0


def _weighted(arg: tuple[int, tuple[int, ...]], keep: Callable[[int], int]) -> Meaning:
    first, coefficients = arg
    return lambda *xs: keep(first + sum([c * x for c, x in zip(coefficients, xs, strict=True)]))


def _integer_meaning(op: Op, dtype: DType) -> Meaning | None:
    wrap, least, bits = dtype.wrap, dtype.least, dtype.bits
    table: dict[Op, Meaning] = {
        Op.NEG: lambda x: wrap(-x),
        Op.NOT: lambda x: wrap(~x),
        Op.ADD: lambda x, y: wrap(x + y),
        Op.MUL: lambda x, y: wrap(x * y),
        Op.IDIV: lambda x, y: 0 if y == 0 or (y == -1 and x == least) else truncated(x, y),
        Op.REM: lambda x, y: 0 if y == 0 else x - y * truncated(x, y),
        Op.MAX: max,
        Op.XOR: lambda x, y: x ^ y,
        Op.AND: lambda x, y: x & y,
        Op.OR: lambda x, y: x | y,
        Op.SHL: lambda x, y: wrap(x << y) if 0 <= y < bits else 0,
        Op.SHR: lambda x, y: x >> y if 0 <= y < bits else 0,
        Op.MULACC: lambda x, y, z: wrap(x * y + z),
    }
    return table.get(op)


def truncated(x: int, y: int) -> int:
    """x / y toward zero, exactly."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _float_meaning(op: Op, dtype: DType) -> Meaning | None:
    # Python's floats are binary64: sums, products, quotients and roots of narrower floats round to the same in one step or in two
    # (53 >= 2 * 24 + 2: S. Figueroa, "When is double rounding innocuous?", 1995).
    keep = dtype.round
    table: dict[Op, Meaning] = {
        Op.NEG: lambda x: -x,
        Op.EXP2: lambda x: keep(_exp2(x)),
        Op.LOG2: lambda x: keep(_log2(x)),
        Op.SIN: lambda x: keep(math.sin(x)) if math.isfinite(x) else math.nan,
        Op.SQRT: lambda x: keep(math.sqrt(x)) if not x < 0.0 else math.nan,
        Op.RECIP: lambda x: keep(1.0 / x) if x != 0.0 else math.copysign(math.inf, x),
        Op.ADD: lambda x, y: keep(x + y),
        Op.MUL: lambda x, y: keep(x * y),
        Op.MAX: _maximum,
        Op.MULACC: lambda x, y, z: keep(keep(x * y) + z),
    }
    return table.get(op)


def _exp2(x: float) -> float:
    try:
        return math.exp2(x)
    except OverflowError:
        return math.inf


def _log2(x: float) -> float:
    if x == 0.0:
        return -math.inf
    return math.log2(x) if not x < 0.0 else math.nan


def _maximum(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    return x + y if x == y == 0.0 else max(x, y)  # of zeros: +0.0 unless both are -0.0


def _conversion(source: DType, dtype: DType) -> Meaning | None:
    if source.kind is Kind.VOID or dtype.kind is Kind.VOID:
        return None
    if dtype is BOOL:
        return lambda x: x != 0
    if dtype.is_float:
        keep = dtype.round
        return lambda x: keep(int(x) if x.__class__ is bool else x)
    if not source.is_float:
        wrap = dtype.wrap
        return int if dtype.is_index else lambda x: wrap(int(x))
    least, greatest = dtype.least, dtype.greatest

    def to_integer(x: float) -> int:
        number = math.trunc(x) if math.isfinite(x) else 0
        return number if least <= number <= greatest else 0

    return to_integer


_LETTERS = {FLOAT16: "<e", FLOAT32: "<f", FLOAT64: "<d"}


def to_bits(x: Number, dtype: DType) -> int:
    """The bit pattern of a number of this type, as an unsigned integer."""
    return bits_of(x, dtype) if dtype.is_float else int(x) & ((1 << dtype.bits) - 1)


def from_bits(bits: int, dtype: DType) -> Number:
    """The number of this type with these bits; to bool: is it not zero."""
    if dtype is BOOL:
        return bits != 0
    if not dtype.is_float:
        return dtype.wrap(bits)
    if dtype is BFLOAT16:
        return from_bits(bits << 16, FLOAT32)
    number: float = struct.unpack(_LETTERS[dtype], bits.to_bytes(dtype.itemsize, "little"))[0]
    return number if number == number else math.nan


def _reinterpretation(source: DType, dtype: DType) -> Meaning | None:
    if source.bits != dtype.bits or not source.bits:
        return None
    return lambda x: from_bits(to_bits(x, source), dtype)


def evaluate(root: Value, known: Mapping[Value, Content]) -> Content:
    """What a graph of pure operations is where the values of `known` are as told: every leaf but constants has to be among them.

    Loads, registers and launch ids are leaves here; `core.linear.interpret` runs whole programs.
    """
    done: dict[Value, Content] = dict(known)
    stack = [root]
    while stack:
        value = stack[-1]
        pending = [s for s in value.src if s not in done] if value not in done else []
        if pending:
            stack.extend(pending)
            continue
        stack.pop()
        if value not in done:
            done[value] = step(value, [done[s] for s in value.src])
    return done[root]


def step(value: Value, operands: Sequence[Content]) -> Content:
    """One pure operation on its operands' contents, lane by lane; a single condition rules all lanes. Raises KeyError for others."""
    if value.op is Op.CONST:
        return content(value) if value.lanes == 1 else (content(value),) * value.lanes
    if value.op is Op.VECTOR:
        return tuple(operands)  # type: ignore[arg-type]  # of scalars
    if value.op is Op.EXTRACT:
        vector = operands[0]
        return vector[integer(value)] if isinstance(vector, tuple) else vector
    function = meaning(value.op, value.dtype, tuple([s.dtype for s in value.src]), value.arg)
    if value.lanes == 1:
        return function(*operands)
    lanes = [x if isinstance(x, tuple) else (x,) * value.lanes for x in operands]
    return tuple([function(*numbers) for numbers in zip(*lanes, strict=True)])
