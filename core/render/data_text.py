"""Operations on data as text: each expression has the value its type says, whatever C promotes in between."""

from __future__ import annotations

from typing import NamedTuple

from core.dtypes import BOOL, FLOAT32, FLOAT64, UINT32, UINT64
from core.ir.op import OPS, Op
from core.ir.parts import content, integer
from core.ir.value import Value
from core.render.index_text import choice, less, unsigned_word
from core.render.page import Page
from core.render.text import AND, BIT_AND, BIT_OR, BIT_XOR, CHOICE, EQUAL, OR, ORDER, PLUS, PRIMARY, SHIFT, TIMES, UNARY, Text, deeper


class Sign(NamedTuple):
    """How an operation stands between its operands: its rank, and the ranks it asks of them."""

    words: str
    rank: int
    left: int
    right: int


SIGNS = {
    Op.ADD: Sign(" + ", PLUS, PLUS, TIMES),
    Op.MUL: Sign("*", TIMES, TIMES, UNARY),
    Op.IDIV: Sign("/", TIMES, TIMES, UNARY),
    Op.REM: Sign("%", TIMES, TIMES, UNARY),
    Op.AND: Sign(" & ", BIT_AND, UNARY, UNARY),
    Op.OR: Sign(" | ", BIT_OR, UNARY, UNARY),
    Op.XOR: Sign(" ^ ", BIT_XOR, UNARY, UNARY),
    Op.SHL: Sign(" << ", SHIFT, UNARY, UNARY),
    Op.SHR: Sign(" >> ", SHIFT, UNARY, UNARY),
}
MINUS = Sign(" - ", PLUS, PLUS, TIMES)
_BITWISE = frozenset((Op.AND, Op.OR, Op.XOR))
_WRAPS = frozenset((Op.ADD, Op.MUL, Op.SHL))  # results that may leave the type
_AS_WRITTEN = frozenset((FLOAT32, FLOAT64, UINT32, UINT64))  # what C computes in just these types
COMMUTES = frozenset(op for op, info in OPS.items() if info.commutes)


def binary(page: Page, value: Value) -> Text:
    """ADD MUL IDIV REM AND OR XOR SHL SHR of numbers; AND OR XOR of bools."""
    op, (a, b) = value.op, value.src
    pair = difference(page, value)
    if pair is not None:
        return _combined(page, value, *pair, MINUS)
    x, y = page.text(a), page.text(b)
    if op in COMMUTES:
        x, y = in_order(x, y)
    return _combined(page, value, x, y, SIGNS[op]) if value.dtype is not BOOL else logical(value, x, y)


def in_order(x: Text, y: Text) -> tuple[Text, Text]:
    """Operands whose order is free, as people write them: a register after what is added to it, names by their number."""
    if x.moves != y.moves:
        return (y, x) if x.moves else (x, y)
    first, second = x.name, y.name
    if first is None or second is None or first[0] != second[0] or first[1] <= second[1]:
        return x, y
    return y, x


TURNED = frozenset((Op.NEG, Op.CONST))


def difference(page: Page, value: Value) -> tuple[Text, Text] | None:
    """What an ADD is the difference of, the same number: x + -y, and x plus a negative constant."""
    if value.op is not Op.ADD or TURNED.isdisjoint([s.op for s in value.src]):
        return None
    x, y = value.src
    if page.is_written_out(x, Op.NEG) and not page.is_written_out(y, Op.NEG):
        x, y = y, x
    if page.is_written_out(y, Op.NEG):
        return page.text(x), page.text(y.src[0])
    if y.is_const and _is_negative(y):
        return page.text(x), page.constant(-content(y), y.dtype, y.lanes)
    return None


def _is_negative(constant: Value) -> bool:
    """Whether a constant can be subtracted instead: the least integer has no positive one."""
    held = content(constant)
    return str(held)[0] == "-" if constant.dtype.is_float else constant.dtype.is_signed and int(constant.dtype.least) < held < 0


def _combined(page: Page, value: Value, x: Text, y: Text, sign: Sign) -> Text:
    dtype, op = value.dtype, value.op
    if dtype in _AS_WRITTEN and value.lanes == 1 and op not in _BITWISE:
        return Text(f"{x.at(sign.left)}{sign.words}{y.at(sign.right)}", sign.rank, deeper(x, y))
    between, rank, depth = sign.words, sign.rank, deeper(x, y)
    if value.lanes > 1:
        plain = between.join(sides(op, x, y, sign))
        if not (dtype.is_signed and op in _WRAPS):
            return Text(plain, rank, depth)
        word, unsigned = page.type_of(dtype, value.lanes), page.vector_word(unsigned_word(page, dtype), value.lanes)
        as_type = page.dialect.reinterpret
        inner = between.join(as_type.format(t=unsigned, x=t.words) for t in (x, y))
        return Text(as_type.format(t=word, x=inner), PRIMARY, depth)
    if dtype.is_signed and dtype.bits >= 32 and op in _WRAPS:
        words = _unsigned(page, value, x, y, sign)
        return Text(f"({page.word(dtype)})({words})", UNARY, depth, (words, rank))
    left, right = sides(op, x, y, sign)
    if dtype.bits >= 32:
        return Text(f"{left}{between}{right}", rank, depth)
    if not dtype.is_float and (op is Op.SHL or (op is Op.MUL and dtype.bits == 16 and not dtype.is_signed)):
        left = f"({page.dialect.types['uint32']}){x.at(UNARY)}"  # int would overflow
    words = f"{left}{between}{right}"
    if op in _BITWISE or op is Op.SHR:
        return Text(words, rank, depth)
    return Text(f"({page.word(dtype)})({words})", UNARY, depth)


def sides(op: Op, x: Text, y: Text, sign: Sign) -> tuple[str, str]:
    """Both operands; compilers warn of an & within a | that stands without parentheses, and of the like."""
    if op in _BITWISE:
        left, right = (t.at(sign.rank if t.rank == sign.rank else UNARY) for t in (x, y))
        return left, right
    return x.at(sign.left), y.at(sign.right)


def _unsigned(page: Page, value: Value, x: Text, y: Text, sign: Sign) -> str:
    """A signed operation in unsigned arithmetic; one unsigned operand makes the other one so."""
    op = value.op

    def shown(t: Text, at: int, cast: bool) -> str:
        if t.unsigned is not None:
            return t.unsigned[0] if t.unsigned[1] >= at else f"({t.unsigned[0]})"
        is_negative = t.words.startswith("-") and t.words[1:2].isdigit()  # compilers warn of a constant that changes its sign
        return f"({unsigned_word(page, value.dtype)}){t.at(UNARY)}" if cast or is_negative else t.at(max(at, TIMES))

    is_flat = y.unsigned is not None and sign.words == " + " and y.unsigned[1] < TIMES  # x is then added to the first of its terms
    y_is_unsigned = y.unsigned is not None and op is not Op.SHL and not is_flat
    left = shown(x, sign.left, not y_is_unsigned)
    right = y.at(UNARY) if op is Op.SHL else shown(y, PLUS if sign.words == " + " else sign.right, False)
    return f"{left}{sign.words}{right}"


def logical(value: Value, x: Text, y: Text) -> Text:
    if value.lanes > 1:
        sign = SIGNS[value.op]
        return Text(f"{x.at(UNARY)}{sign.words}{y.at(UNARY)}", sign.rank, deeper(x, y))
    if value.op is Op.XOR:
        return Text(f"{x.at(PLUS)} != {y.at(PLUS)}", EQUAL, deeper(x, y))
    both, rank = ("&&", AND) if value.op is Op.AND else ("||", OR)
    left, right = (t.at(rank if t.rank == rank else EQUAL) for t in (x, y))
    return Text(f"{left} {both} {right}", rank, deeper(x, y))


def comparison(page: Page, value: Value, *, negated: bool = False) -> Text:
    """CMPLT CMPNE of numbers; negated: of integers, or CMPNE of anything."""
    a, b = value.src
    x, y = page.text(a), page.text(b)
    if value.op is Op.CMPNE:
        if a.is_const:
            x, y = y, x
        sign, rank = ("==" if negated else "!="), EQUAL
    elif a.is_const:
        x, y, sign, rank = y, x, ("<=" if negated else ">"), ORDER
    else:
        sign, rank = (">=" if negated else "<"), ORDER
    words = f"{x.at(PLUS)} {sign} {y.at(PLUS)}"
    if value.lanes == 1:
        return Text(words, rank, deeper(x, y))
    if a.dtype.bits == 32:
        return Text(words, rank, deeper(x, y))
    return Text(page.vectors.convert.format(t=page.type_of(BOOL, value.lanes), x=words), PRIMARY, deeper(x, y))


def negation(page: Page, value: Value) -> Text:
    """NOT."""
    inner = value.src[0]
    x = page.text(inner)
    if value.lanes > 1:
        return Text(f"~{x.at(UNARY)}", UNARY, deeper(x))
    if value.dtype is not BOOL:
        return Text(f"({page.word(value.dtype)})~{x.at(UNARY)}", UNARY, deeper(x))
    if page.is_written_out(inner, Op.LESS):
        return less(page, inner, negated=True)
    if page.is_written_out(inner, Op.CMPNE) or (page.is_written_out(inner, Op.CMPLT) and not inner.src[0].dtype.is_float):
        return comparison(page, inner, negated=True)
    return Text(f"!{x.at(UNARY)}", UNARY, deeper(x))


def negative(page: Page, value: Value) -> Text:
    """NEG."""
    x, dtype = page.text(value.src[0]), value.dtype
    depth = deeper(x)
    if value.lanes > 1 and dtype.is_signed:
        as_type = page.dialect.reinterpret
        word, unsigned = page.type_of(dtype, value.lanes), page.vector_word(unsigned_word(page, dtype), value.lanes)
        return Text(as_type.format(t=word, x="-" + as_type.format(t=unsigned, x=x.words)), PRIMARY, depth)
    operand = x.at(PRIMARY) if x.words[0] in "-(" and x.rank == UNARY and x.words[0] == "-" else x.at(UNARY)
    if value.lanes == 1 and dtype.is_signed and dtype.bits >= 32:
        if x.unsigned is not None:
            operand = x.unsigned[0] if x.unsigned[1] >= UNARY else f"({x.unsigned[0]})"
        else:
            operand = f"({unsigned_word(page, dtype)}){x.at(UNARY)}"
        words = f"-{operand}" if operand[0] != "-" else f"-({operand})"
        return Text(f"({page.word(dtype)})({words})", UNARY, depth, (words, UNARY))
    if value.lanes == 1 and dtype.bits < 32:
        return Text(f"({page.word(dtype)})-{operand}", UNARY, depth)
    return Text(f"-{operand}", UNARY, depth)


def function(page: Page, value: Value) -> Text:
    """EXP2 LOG2 SIN SQRT."""
    x = page.text(value.src[0])
    key = (value.op, value.dtype)
    quick = page.dialect.fast_functions.get(key) if page.fast else None
    word = quick or page.dialect.functions[key]
    if value.lanes == 1 or value.op is not Op.SIN or quick is not None:
        return Text(f"{word}({x.words})", PRIMARY, deeper(x))
    # PoCL 3.0's sine of a vector is wrong in its small lanes where another lane is beyond 1e6 or so: lane by lane it is right.
    lanes = ", ".join(f"{word}({x.at(PRIMARY)}{lane_word(k, value.lanes)})" for k in range(value.lanes))
    return page.vector(value.dtype, value.lanes, lanes)


def reciprocal(page: Page, value: Value) -> Text:
    """RECIP."""
    x = page.text(value.src[0])
    word = page.dialect.fast_functions.get((Op.RECIP, value.dtype)) if page.fast else None
    if word is not None:
        return Text(f"{word}({x.words})", PRIMARY, deeper(x))
    words = f"{page.constant(1.0, value.dtype).words}/{x.at(UNARY)}"
    if value.lanes == 1 and value.dtype.bits < 32:
        return Text(f"({page.word(value.dtype)})({words})", UNARY, deeper(x))
    return Text(words, TIMES, deeper(x))


def maximum(page: Page, value: Value) -> Text:
    """MAX; its operands are names or constants. NaN if a float operand is."""
    first, second = value.src
    x, y = (page.text(second), page.text(first)) if first.is_const else in_order(page.text(first), page.text(second))
    dtype, depth = value.dtype, 1
    quick = page.dialect.fast_functions.get((Op.MAX, dtype)) if page.fast else None
    if quick is not None:
        return Text(f"{quick}({x.words}, {y.words})", PRIMARY, depth)
    greater = f"{x.at(PLUS)} > {y.at(PLUS)}"
    if value.lanes == 1:
        if dtype.is_float and not page.fast:
            greater += f" || {x.at(PLUS)} != {x.at(PLUS)}"
        return Text(f"({greater}) ? {x.at(OR)} : {y.at(OR)}", CHOICE, depth)
    if not dtype.is_float:
        return Text(page.vectors.greater.format(x=x.words, y=y.words), PRIMARY, depth)
    mask = f"({greater})" if page.fast else f"({greater}) | ({x.words} != {x.words})"
    return Text(page.vectors.choose.format(x=y.words, y=x.words, c=mask), PRIMARY, depth)


def where(page: Page, value: Value) -> Text:
    """WHERE; both sides may be evaluated."""
    c, x, y = (page.text(s) for s in value.src)
    if value.src[0].lanes == 1:
        return choice(c, x, y)
    bits = 32 if value.dtype is BOOL else value.dtype.bits
    mask = c.words
    if bits != 32:
        mask = page.vectors.convert.format(t=page.vector_word(page.dialect.types[f"int{bits}"], value.lanes), x=c.words)
    return Text(page.vectors.choose.format(x=y.words, y=x.words, c=mask), PRIMARY, deeper(c, x, y))


def matrix(page: Page, value: Value) -> Text:
    """MMA."""
    return page.call_of(page.dialect.matrix[value.arg], *(page.text(s) for s in value.src))


def vector(page: Page, value: Value) -> Text:
    """VECTOR."""
    parts = [page.text(s) for s in value.src]
    if page.vectors.computes and all(s is value.src[0] for s in value.src):
        parts = parts[:1]  # one scalar is repeated in every lane
    words = [f"-{t.at(PRIMARY)}" if value.dtype is BOOL and page.vectors.computes else t.words for t in parts]
    made = page.vector(value.dtype, value.lanes, ", ".join(words))
    return Text(made.words, made.rank, deeper(*parts))


def extract(page: Page, value: Value) -> Text:
    """EXTRACT, of a name or a constant."""
    source, lane = value.src[0], integer(value)
    if source.is_const:
        return page.constant(content(source), source.dtype)
    x = page.text(source)
    words = x.at(PRIMARY) + lane_word(lane, source.lanes)
    return Text(words, PRIMARY, 0, None, x.moves, x.name) if value.dtype is not BOOL else Text(f"{words} != 0", EQUAL, 1, None, x.moves)


def lane_word(number: int, lanes: int) -> str:
    """How one element of a named vector is spelled, after its name."""
    return "." + "xyzw"[number] if lanes <= 4 else f".s{number:x}"
