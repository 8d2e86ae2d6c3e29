"""Indices, conditions and addresses in PTX: sums as chains of `mad`, an address as a pointer and a constant number of bytes."""

from __future__ import annotations

from core.dtypes import BOOL, DType
from core.ir.op import Op
from core.ir.parts import Access, coefficients, integer
from core.ir.value import Value
from core.render.ptx_page import Page, class_of, type_of

_FARTHEST = 1 << 31  # bytes: an address's constant part is a 32-bit integer


def index(page: Page, value: Value) -> str:
    """SUM, PRODUCT, DIV, MOD of machine integers."""
    if value.op is Op.SUM:
        constant, factors = coefficients(value)
        return total(page, value.dtype, constant, list(zip(factors, value.src, strict=True)), page.result(value))
    bits = value.dtype.bits
    operands = [page.operand(s) for s in value.src]
    if value.op is Op.PRODUCT:
        product = operands[0]
        for at, factor in enumerate(operands[1:], start=2):
            register = page.result(value) if at == len(operands) else page.register(f"b{bits}")
            page.emit(f"mul.lo.s{bits} {register}, {product}, {factor}")
            product = register
        return product
    by = value.src[1]
    power = integer(by).bit_length() - 1 if by.op is Op.CONST and not integer(by) & (integer(by) - 1) else None
    register = page.result(value)
    if power is None:  # nothing is negative, or nobody looks
        page.emit(f"{'div' if value.op is Op.DIV else 'rem'}.u{bits} {register}, {operands[0]}, {operands[1]}")
    elif value.op is Op.DIV:
        page.emit(f"shr.u{bits} {register}, {operands[0]}, {power}")
    else:
        page.emit(f"and.b{bits} {register}, {operands[0]}, {integer(by) - 1}")
    return register


def total(page: Page, dtype: DType, constant: int, terms: list[tuple[int, Value]], result: str | None = None) -> str:
    """constant + Σ factor·term. A term alone is itself where no register is asked for."""
    bits = dtype.bits
    words = [(factor, page.operand(term)) for factor, term in terms]
    first = next((k for k, (factor, _) in enumerate(words) if factor == 1), None)
    steps: list[tuple[str, tuple[str, ...]]] = []
    if first is not None:
        so_far: str | None = words.pop(first)[1]
    else:
        so_far, constant = (str(constant), 0) if constant else (None, 0)
    for factor, word in words:
        if so_far is None:
            steps.append(_scaled(bits, word, factor))
        elif factor == 1:
            steps.append((f"add.s{bits}", ("", word)))
        elif factor == -1:
            steps.append((f"sub.s{bits}", ("", word)))
        else:
            steps.append((f"mad.lo.s{bits}", (word, str(factor), "")))
        if so_far is None:
            so_far = ""
    if constant:
        steps.append((f"add.s{bits}", ("", str(constant))))
    if not steps:
        assert so_far is not None
        if result is None:
            return so_far
        steps.append((f"mov.b{bits}", ("",)))
    for k, (instruction, operands) in enumerate(steps):
        register = result if result is not None and k == len(steps) - 1 else page.register(f"b{bits}")
        page.emit(f"{instruction} {register}, {', '.join(word or str(so_far) for word in operands)}")
        so_far = register
    assert so_far is not None
    return so_far


def _scaled(bits: int, word: str, factor: int) -> tuple[str, tuple[str, ...]]:
    if factor == -1:
        return f"neg.s{bits}", (word,)
    if factor > 0 and not factor & (factor - 1):
        return f"shl.b{bits}", (word, str(factor.bit_length() - 1))
    return f"mul.lo.s{bits}", (word, str(factor))


# ---- conditions ----------------------------------------------------------------------------------------------------------------


def less(page: Page, value: Value) -> str:
    """LESS: x < t."""
    x, limit = value.src[0], integer(value)
    least, greatest = int(x.dtype.least), int(x.dtype.greatest)
    register = page.result(value)
    if not least < limit <= greatest:  # a bound beyond the type decides by itself
        page.emit(f"mov.pred {register}, {int(limit > greatest)}")
    else:
        page.emit(f"setp.lt.{type_of(x.dtype)} {register}, {page.operand(x)}, {limit}")
    return register


def conjunction(page: Page, value: Value) -> str:
    """ALL."""
    operands = [page.operand(s) for s in value.src]
    held = operands[0]
    for at, other in enumerate(operands[1:], start=2):
        register = page.result(value) if at == len(operands) else page.register(class_of(BOOL))
        page.emit(f"and.pred {register}, {held}, {other}")
        held = register
    return held


# ---- addresses -----------------------------------------------------------------------------------------------------------------


def address(page: Page, parts: Access) -> str:
    """Where an access's first element lies, between brackets."""
    array, at = parts.array, parts.addresses[0]
    size = array.dtype.itemsize
    if at.op is Op.CONST:
        return _bracketed(page.array(array), integer(at) * size)
    if at in page.flow.addresses:
        constant, _ = coefficients(at)
        if _is_near(constant * size):
            return _bracketed(pointer(page, array, at), constant * size)
    return f"[{pointer(page, array, at)}]"


def _bracketed(base: str, offset: int) -> str:
    return f"[{base}+{offset}]" if offset else f"[{base}]"


def _is_near(offset: int) -> bool:
    return -_FARTHEST <= offset < _FARTHEST


def pointer(page: Page, array: Value, at: Value) -> str:
    """Where the element lies that an index names, but for a constant that can be part of the access."""
    constant, terms = 0, [(1, at)]
    if at in page.flow.addresses:
        constant, factors = coefficients(at)
        terms = list(zip(factors, at.src, strict=True))
        if _is_near(constant * array.dtype.itemsize):
            constant = 0
    key = (array, constant, tuple(terms))
    known = page.known(key)
    if known is not None:
        return known
    size, base = array.dtype.itemsize, page.array(array)
    if constant == 0 and len(terms) == 1:
        factor, word = terms[0][0], page.operand(terms[0][1])
    else:
        factor, word = 1, _index(page, at.dtype, constant, terms)
    return page.know(key, _moved(page, array, base, word, factor * size, at.dtype))


def _index(page: Page, dtype: DType, constant: int, terms: list[tuple[int, Value]]) -> str:
    key = (dtype, constant, tuple(terms))
    return page.known(key) or page.know(key, total(page, dtype, constant, terms))


def _moved(page: Page, array: Value, base: str, word: str, step: int, dtype: DType) -> str:
    """base + step·word."""
    wide = dtype.bits == 64
    if array.op is Op.SHARED:
        if wide:
            word = page.computed("cvt.u32.u64", "b32", word)
        return page.computed("add.s32", "b32", base, word) if step == 1 else page.computed("mad.lo.s32", "b32", word, str(step), base)
    if wide:
        return page.computed("add.s64", "b64", base, word) if step == 1 else page.computed("mad.lo.s64", "b64", word, str(step), base)
    if not -_FARTHEST <= step < _FARTHEST:
        return page.computed("mad.lo.s64", "b64", page.computed("cvt.s64.s32", "b64", word), str(step), base)
    return page.computed("mad.wide.s32", "b64", word, str(step), base)
