"""Expressions of WGSL: no casts are implied, nothing promotes, integers wrap by themselves, and a constant expression may not overflow.

An integer of 8 or 16 bits is a value of the same number in 32, so what may leave its type is brought back. A float16 that the device does
not compute in, and any bfloat16, is its bits in a `u32`.
"""

from __future__ import annotations

import math

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType, Kind, Number
from core.ir.op import Op
from core.ir.parts import coefficients, content, integer
from core.ir.value import Value, bits_of
from core.render import data_text, index_text
from core.render.literals import shortest
from core.render.page import Page
from core.render.text import BIT_AND, EQUAL, PLUS, PRIMARY, UNARY, Text, deeper

_LEAST = -(1 << 31)
_WRAPS = frozenset((Op.ADD, Op.MUL, Op.SHL))


class WgslPage(Page):
    """A page whose constants are WGSL's."""

    def constant(self, number: Number, dtype: DType, lanes: int = 1) -> Text:
        """A constant, repeated in each lane."""
        one = self._scalar(number, dtype)
        return one if lanes == 1 else self.vector(dtype, lanes, ", ".join([one.words] * lanes))

    def _scalar(self, number: Number, dtype: DType) -> Text:
        if dtype is BOOL:
            return Text("true" if number else "false", PRIMARY)
        if dtype is BFLOAT16 or (dtype is FLOAT16 and not self.native_half):
            return Text(f"0x{bits_of(float(number), dtype):04x}u", PRIMARY)
        if dtype.is_float:
            return self._float(float(number), dtype)
        if dtype.kind is Kind.UINT:
            return Text(f"{number}u", PRIMARY)
        if number == _LEAST:
            return Text(f"i32({number})", PRIMARY)
        return Text(str(number), PRIMARY if number >= 0 else UNARY)

    def _float(self, number: float, dtype: DType) -> Text:
        """Infinities and NaN have no literal, nor may their bits be a constant expression; subnormals may be lost in one."""
        if not math.isfinite(number) or 0.0 < abs(number) < math.ldexp(1.0, 1 - dtype.exponent_max):
            helper = "half_of" if dtype is FLOAT16 else "float_of"
            return self.call(helper, Text(f"0x{bits_of(number, dtype):0{dtype.bits // 4}x}u", PRIMARY))
        words = shortest(number, dtype) + ("h" if dtype is FLOAT16 else "f")
        return Text(words, UNARY if words[0] == "-" else PRIMARY)


def argument(text: Text) -> str:
    """One of several arguments: of `a < b, c > d` the language makes a template."""
    return text.words if text.rank > EQUAL or text.rank == PRIMARY or "<" not in text.words else f"({text.words})"


def chosen(condition: Text, x: Text, y: Text) -> Text:
    """x where the condition holds, else y."""
    return Text(f"select({argument(y)}, {argument(x)}, {argument(condition)})", PRIMARY, deeper(condition, x, y))


def runtime(page: Page, value: Value) -> Text:
    """An operand of what must not be computed before the program runs: of a constant it might be refused."""
    if value.is_const and value.dtype is FLOAT32:
        return page.call("float_of", Text(f"0x{bits_of(float(content(value)), FLOAT32):08x}u", PRIMARY))
    return page.text(value)


def wrapped(dtype: DType, text: Text) -> Text:
    """A 32-bit integer's low bits as an integer of this type."""
    if dtype.bits == 32:
        return text
    if dtype.is_signed:
        return Text(f"extractBits({text.words}, 0u, {dtype.bits}u)", PRIMARY, text.depth + 1)
    return Text(f"{text.at(UNARY)} & {(1 << dtype.bits) - 1:#x}u", BIT_AND, text.depth + 1)


# ---- index arithmetic ----------------------------------------------------------------------------------------------------------


def index(page: Page, value: Value) -> Text:
    """SUM, PRODUCT, DIV, MOD, of an index or, where a gate may be closed, of what wraps: `i32` does."""
    operands = [page.text(s) for s in value.src]
    if value.op is Op.SUM:
        constant, factors = coefficients(value)
        if constant == _LEAST:  # 2147483648 is no literal of an i32
            words = index_text.sum_of([*zip(factors, operands, strict=True)], constant + 1)
            return Text(f"{words.words} - 1", PLUS, words.depth)
    return index_text.arithmetic(value, operands)


# ---- arithmetic ----------------------------------------------------------------------------------------------------------------


def binary(page: Page, value: Value) -> Text:
    """ADD MUL IDIV REM AND OR XOR SHL SHR of numbers; AND OR XOR of bools."""
    op, (a, b) = value.op, value.src
    pair = data_text.difference(page, value)
    if pair is not None:
        return _combined(value, *pair, data_text.MINUS)
    x, y = page.text(a), page.text(b)
    if op is Op.SHL or op is Op.SHR:
        y = _amount(b, y)
    elif op in data_text.COMMUTES:
        x, y = data_text.in_order(x, y)
    return _combined(value, x, y, data_text.SIGNS[op]) if value.dtype is not BOOL else data_text.logical(value, x, y)


def _amount(value: Value, text: Text) -> Text:
    """What is shifted by: an unsigned number; only its low five bits count."""
    if value.is_const:
        return Text(f"{integer(value)}u", PRIMARY)
    return text if value.dtype.kind is Kind.UINT else Text(f"u32({text.words})", PRIMARY, deeper(text))


def _combined(value: Value, x: Text, y: Text, sign: data_text.Sign) -> Text:
    dtype, op = value.dtype, value.op
    left, right = data_text.sides(op, x, y, sign)
    text = Text(f"{left}{sign.words}{right}", sign.rank, deeper(x, y))
    return wrapped(dtype, text) if dtype.is_integer and (op in _WRAPS or (op is Op.IDIV and dtype.is_signed)) else text


def negation(page: Page, value: Value) -> Text:
    """NOT."""
    inner = value.src[0]
    if value.dtype is BOOL:
        if page.is_written_out(inner, Op.CMPNE) and inner.src[0].dtype.is_float:
            return comparison(page, inner, negated=True)
        return data_text.negation(page, value)
    x = page.text(inner)
    return wrapped(value.dtype, Text(f"~{x.at(UNARY)}", UNARY, deeper(x)))


def negative(page: Page, value: Value) -> Text:
    """NEG."""
    x, dtype = page.text(value.src[0]), value.dtype
    operand = f"({x.words})" if x.words[0] == "-" else x.at(UNARY)
    if dtype.kind is Kind.UINT:
        return wrapped(dtype, Text(f"0u - {operand}", PLUS, deeper(x)))
    text = Text(f"-{operand}", UNARY, deeper(x))
    return text if dtype.is_float else wrapped(dtype, text)


def function(page: Page, value: Value) -> Text:
    """EXP2 LOG2 SIN SQRT: in software where the language's own may be further off than a kernel may be."""
    x, key = runtime(page, value.src[0]), (value.op, value.dtype)
    quick = page.dialect.fast_functions.get(key) if page.fast else None
    word = quick or page.dialect.functions[key]
    return page.call(word, x) if word in page.dialect.helpers else Text(f"{word}({x.words})", PRIMARY, deeper(x))


def reciprocal(page: Page, value: Value) -> Text:
    """RECIP."""
    x = runtime(page, value.src[0])
    return Text(f"{page.constant(1.0, value.dtype).words}/{x.at(UNARY)}", data_text.SIGNS[Op.IDIV].rank, deeper(x))


def maximum(page: Page, value: Value) -> Text:
    """MAX. NaN if a float operand is, by its bits: a device may believe that there is none."""
    first, second = value.src
    x, y = (page.text(second), page.text(first)) if first.is_const else data_text.in_order(page.text(first), page.text(second))
    if not value.dtype.is_float or page.fast:
        return Text(f"max({x.words}, {y.words})", PRIMARY, deeper(x, y))
    return page.call_of("greater_half" if value.dtype is FLOAT16 else "greater", x, y)


def comparison(page: Page, value: Value, *, negated: bool = False) -> Text:
    """CMPLT CMPNE. Of floats, which a device may believe to be no NaN, by a function that looks at bits; negated: of integers, or CMPNE."""
    a, b = value.src
    if not a.dtype.is_float or page.fast:
        return data_text.comparison(page, value, negated=negated)
    x, y = (_single(page, s) for s in (a, b))
    if value.op is Op.CMPLT:
        return page.call_of("is_less", x, y)
    if a is b:
        found = page.call("is_nan", x)
    else:
        found = page.call_of("differ", *((y, x) if a.is_const else (x, y)))
    return Text(f"!{found.words}", UNARY, found.depth + 1) if negated else found


def _single(page: Page, value: Value) -> Text:
    """A float as a float32."""
    x = page.text(value)
    return x if value.dtype is FLOAT32 else Text(f"f32({x.words})", PRIMARY, deeper(x))


def where(page: Page, value: Value) -> Text:
    """WHERE; both sides are evaluated."""
    return chosen(*(page.text(s) for s in value.src))


def vector(page: Page, value: Value) -> Text:
    """VECTOR."""
    parts = [page.text(s) for s in value.src]
    made = page.vector(value.dtype, value.lanes, ", ".join(argument(t) for t in parts))
    return Text(made.words, PRIMARY, deeper(*parts))


def extract(page: Page, value: Value) -> Text:
    """EXTRACT, of a name or a constant."""
    source = value.src[0]
    if source.is_const:
        return page.constant(content(source), source.dtype)
    x = page.text(source)
    return Text(x.at(PRIMARY) + data_text.lane_word(integer(value), source.lanes), PRIMARY, 0, None, x.moves, x.name)


# ---- conversions ---------------------------------------------------------------------------------------------------------------


def converted(page: Page, value: Value) -> Text:
    """CAST and INDEX_OF."""
    source, dtype = value.src[0], value.dtype
    narrow = page.narrow(dtype)
    if narrow is not None:
        return page.call(narrow.bits, page.text(source))
    narrow = page.narrow(source.dtype)
    if narrow is not None:
        return page.call(narrow.value, page.text(source))
    x = runtime(page, source)
    if dtype.is_float or dtype.is_index or source.dtype is BOOL:
        return _as(page, x, source.dtype, dtype)
    text = _as(page, x, source.dtype, dtype)
    return text if _holds(dtype, source) else wrapped(dtype, text)


def _as(page: Page, x: Text, source: DType, dtype: DType) -> Text:
    """In the language's type for `dtype`."""
    word = page.word(dtype)
    return x if page.word(source) == word else Text(f"{word}({x.words})", PRIMARY, deeper(x))


def _holds(dtype: DType, value: Value) -> bool:
    """Whether every value of this integer is one of the type."""
    return value.lo is not None and value.hi is not None and value.lo >= dtype.least and value.hi <= dtype.greatest


def reinterpreted(page: Page, value: Value) -> Text:
    """BITCAST."""
    source, dtype = value.src[0], value.dtype
    x = page.text(source)
    if dtype is FLOAT32:
        if source.is_const:
            return page.call("float_of", Text(f"0x{integer(source) & 0xFFFFFFFF:08x}u", PRIMARY))
        return Text(f"bitcast<f32>({x.words})", PRIMARY, deeper(x))
    if source.dtype is FLOAT32:
        return Text(f"bitcast<{page.word(dtype)}>({runtime(page, source).words})", PRIMARY, deeper(x))
    if source.dtype is FLOAT16 and page.native_half:
        bits = page.call("half_to_bits", x)
        return wrapped(dtype, Text(f"i32({bits.words})", PRIMARY, bits.depth + 1)) if dtype.is_signed else bits
    unsigned = x if page.word(source.dtype) == "u32" else Text(f"u32({x.words})", PRIMARY, deeper(x))
    if dtype.is_signed:
        return wrapped(dtype, x if unsigned is not x else Text(f"i32({x.words})", PRIMARY, deeper(x)))
    bits = wrapped(dtype, unsigned) if unsigned is not x and dtype.bits < 32 and not dtype.is_float else unsigned
    if dtype.is_float:
        bits = Text(f"{unsigned.at(UNARY)} & 0xffffu", BIT_AND, unsigned.depth + 1) if unsigned is not x else x
        return page.call("half_of", bits) if dtype is FLOAT16 and page.native_half else bits
    return bits


def rounded(page: Page, value: Value) -> Text:
    """ROUND."""
    narrow = value.arg
    assert isinstance(narrow, DType)
    return page.call(page.dialect.narrow[narrow].rounded, page.text(value.src[0]))
