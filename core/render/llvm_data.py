"""Operations as instructions of LLVM IR: each gives the name or constant of its value.

Indices never overflow, which is said (`nsw`); data wraps. Quotients and shifts are defined for every operand before they come here.
"""

from __future__ import annotations

from core.dtypes import BOOL, DType, Kind
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import coefficients, content, integer
from core.ir.value import Value
from core.render.llvm_page import Page
from core.render.llvm_words import lanes_of, mangled

_FLOATS = {Op.ADD: "fadd", Op.MUL: "fmul"}
_INTEGERS = {
    Op.ADD: "add", Op.MUL: "mul", Op.IDIV: "div", Op.REM: "rem", Op.AND: "and", Op.OR: "or", Op.XOR: "xor", Op.SHL: "shl", Op.SHR: "shr",
}  # fmt: skip
_FUNCTIONS = {Op.EXP2: "exp2", Op.LOG2: "log2", Op.SIN: "sin", Op.SQRT: "sqrt"}


def is_signed(dtype: DType) -> bool:
    return dtype.kind is Kind.INT or dtype.kind is Kind.INDEX


def letter_of(value: Value) -> str:
    """The class of a value's name."""
    return "c" if value.dtype is BOOL else "i" if value.dtype.is_index or value.op in (Op.SUM, Op.PRODUCT, Op.DIV, Op.MOD) else "v"


# ---- indices -------------------------------------------------------------------------------------------------------------------


def total(page: Page, value: Value) -> str:
    """SUM: the terms that are added, then the constant, then those that are subtracted."""
    word, exactly = page.word(value.dtype), " nsw" if value.dtype.is_index else ""
    constant, factors = coefficients(value)
    terms = list(zip(factors, value.src, strict=True))
    so_far = "" if any(c > 0 for c, _ in terms) else str(constant)
    for factor, term in sorted(terms, key=lambda t: (t[0] < 0, -abs(t[0]))):
        words = page.operand(term)
        if abs(factor) != 1:
            words = page.index(f"mul{exactly} {word} {words}, {abs(factor)}")
        if not so_far:
            so_far = words
        else:
            so_far = page.index(f"{'add' if factor > 0 else 'sub'}{exactly} {word} {so_far}, {words}")
    if constant and any(c > 0 for c, _ in terms):
        so_far = page.index(f"add{exactly} {word} {so_far}, {constant}")
    return so_far


def product(page: Page, value: Value) -> str:
    word, exactly = page.word(value.dtype), " nsw" if value.dtype.is_index else ""
    so_far, *others = (page.operand(s) for s in value.src)
    for other in others:
        so_far = page.index(f"mul{exactly} {word} {so_far}, {other}")
    return so_far


def quotient(page: Page, value: Value) -> str:
    """DIV, MOD: the numerator is never negative where anybody looks at the result."""
    x, y = value.src
    return page.index(f"{'udiv' if value.op is Op.DIV else 'urem'} {page.typed(x)}, {page.operand(y)}")


def less(page: Page, value: Value) -> str:
    """LESS; a bound beyond the type decides by itself."""
    x, limit = value.src[0], integer(value)
    if not int(x.dtype.least) < limit <= int(x.dtype.greatest):
        return "true" if limit > int(x.dtype.greatest) else "false"
    return page.set("c", f"icmp {'slt' if is_signed(x.dtype) else 'ult'} {page.typed(x)}, {limit}")


def conjunction(page: Page, value: Value) -> str:
    """ALL: computed without a branch, so every part of it is."""
    so_far, *others = (page.operand(s) for s in value.src)
    for other in others:
        so_far = page.set("c", f"and i1 {so_far}, {other}")
    return so_far


# ---- data ----------------------------------------------------------------------------------------------------------------------


def binary(page: Page, value: Value) -> str:
    """ADD MUL IDIV REM AND OR XOR SHL SHR."""
    op, dtype, (x, y) = value.op, value.dtype, value.src
    if dtype.is_float:
        return page.set("v", f"{_FLOATS[op]} {page.flags(value)}{page.typed(x)}, {page.operand(y)}")
    word = _INTEGERS[op]
    if op is Op.IDIV or op is Op.REM:
        word = ("s" if dtype.is_signed else "u") + word
    elif op is Op.SHR:
        word = "ashr" if dtype.is_signed else "lshr"
    other = _amount(page, y, dtype) if op is Op.SHL or op is Op.SHR else page.operand(y)
    return page.set(letter_of(value), f"{word} {page.typed(x)}, {other}")


def _amount(page: Page, amount: Value, dtype: DType) -> str:
    """How far to shift, in the type of what is shifted; it is less than any width."""
    if amount.is_const:
        return page.constant(content(amount), dtype, amount.lanes)
    if amount.dtype.bits == dtype.bits:
        return page.operand(amount)
    how = "trunc" if amount.dtype.bits > dtype.bits else "zext"
    return page.set("v", f"{how} {page.typed(amount)} to {page.type_of(dtype, amount.lanes)}")


def negative(page: Page, value: Value) -> str:
    """NEG."""
    x = value.src[0]
    if value.dtype.is_float:
        return page.set("v", f"fneg {page.typed(x)}")
    return page.set("v", f"sub {page.type_of(value.dtype, value.lanes)} {page.constant(0, value.dtype, value.lanes)}, {page.operand(x)}")


def negation(page: Page, value: Value) -> str:
    """NOT."""
    ones = True if value.dtype is BOOL else -1
    return page.set(letter_of(value), f"xor {page.typed(value.src[0])}, {page.constant(ones, value.dtype, value.lanes)}")


def function(page: Page, value: Value) -> str:
    """EXP2 LOG2 SIN SQRT: of floats and doubles; all but the last are calls of the mathematical library in the end."""
    return _intrinsic(page, value, _FUNCTIONS[value.op], page.flags(value))


def reciprocal(page: Page, value: Value) -> str:
    one = page.constant(1.0, value.dtype, value.lanes)
    typed = page.type_of(value.dtype, value.lanes)
    return page.set("v", f"fdiv {page.flags(value)}{typed} {one}, {page.operand(value.src[0])}")


def maximum(page: Page, value: Value) -> str:
    """MAX: NaN if a float operand is, but under fast math; of two zeros either."""
    x, y = value.src
    if not value.dtype.is_float:
        return _intrinsic(page, value, "smax" if value.dtype.is_signed else "umax", "")
    if page.fast:
        greater = page.set("c", f"fcmp ogt {page.typed(x)}, {page.operand(y)}")
        return page.set("v", f"select {lanes_of('i1', value.lanes)} {greater}, {page.typed(x)}, {page.typed(y)}")
    return _intrinsic(page, value, "maximum", "nsz ")


def _intrinsic(page: Page, value: Value, name: str, flags: str) -> str:
    typed = page.type_of(value.dtype, value.lanes)
    arguments = [(typed, page.operand(s)) for s in value.src]
    return page.set("v", page.call(f"llvm.{name}.{mangled(page.word(value.dtype), value.lanes)}", typed, arguments, flags))


def comparison(page: Page, value: Value) -> str:
    """CMPLT: false where an operand is NaN. CMPNE: true there."""
    x, y = value.src
    if x.dtype.is_float:
        word = "fcmp olt" if value.op is Op.CMPLT else "fcmp une"
    else:
        word = "icmp ne" if value.op is Op.CMPNE else "icmp slt" if is_signed(x.dtype) else "icmp ult"
    return page.set("c", f"{word} {page.typed(x)}, {page.operand(y)}")


def where(page: Page, value: Value) -> str:
    """WHERE: both sides are there."""
    condition, x, y = value.src
    return page.set(letter_of(value), f"select {page.typed(condition)}, {page.typed(x)}, {page.typed(y)}")


def vector(page: Page, value: Value) -> str:
    """VECTOR."""
    typed, first = page.type_of(value.dtype, value.lanes), value.src[0]
    if all(s is first for s in value.src):  # one scalar is repeated in every lane
        one = page.set("v", f"insertelement {typed} poison, {page.typed(first)}, i64 0")
        return page.set(letter_of(value), f"shufflevector {typed} {one}, {typed} poison, <{value.lanes} x i32> zeroinitializer")
    so_far = "poison"
    for lane, part in enumerate(value.src):
        so_far = page.set(letter_of(value), f"insertelement {typed} {so_far}, {page.typed(part)}, i64 {lane}")
    return so_far


def extract(page: Page, value: Value) -> str:
    source = value.src[0]
    if source.is_const:
        return page.constant(content(source), source.dtype)
    return page.set(letter_of(value), f"extractelement {page.typed(source)}, i64 {integer(value)}")


# ---- conversions ---------------------------------------------------------------------------------------------------------------


def converted(page: Page, value: Value) -> str:
    """CAST and INDEX_OF."""
    source, dtype, lanes = value.src[0], value.dtype, value.lanes
    if source.dtype in page.narrow:
        return page.set("v", page.value(page.operand(source), source.dtype, lanes))  # to FLOAT32: nothing else is asked for
    if dtype in page.narrow:
        return page.set("v", page.bits(page.operand(source), dtype, lanes))
    here, there = page.type_of(source.dtype, lanes), page.type_of(dtype, lanes)
    if here == there:
        return page.operand(source)
    if source.dtype.is_float and dtype.is_integer:  # defined for every operand: it saturates, and NaN gives 0
        name = f"llvm.fpto{'s' if dtype.is_signed else 'u'}i.sat"
        name = f"{name}.{mangled(page.word(dtype), lanes)}.{mangled(page.word(source.dtype), lanes)}"
        return page.set("v", page.call(name, there, [(here, page.operand(source))]))
    return page.set(letter_of(value), f"{_conversion(source.dtype, dtype)} {page.typed(source)} to {there}")


def _conversion(source: DType, dtype: DType) -> str:
    if source.is_float and dtype.is_float:
        return "fpext" if dtype.bits > source.bits else "fptrunc"
    if source.is_float or dtype is BOOL:
        raise CompilerBug("render", f"no conversion of {source} to {dtype}: legalize makes it a comparison")
    if dtype.is_float:
        return "sitofp" if is_signed(source) else "uitofp"
    if source is not BOOL and source.bits > dtype.bits:
        return "trunc"
    return "sext" if is_signed(source) else "zext"


def reinterpreted(page: Page, value: Value) -> str:
    """BITCAST."""
    source, there = value.src[0], page.type_of(value.dtype, value.lanes)
    if page.type_of(source.dtype, source.lanes) == there:
        return page.operand(source)
    return page.set("v", f"bitcast {page.typed(source)} to {there}")


def rounded(page: Page, value: Value) -> str:
    """ROUND."""
    narrow = value.arg
    assert isinstance(narrow, DType)
    return page.set("v", page.rounded(page.operand(value.src[0]), narrow, value.lanes))
