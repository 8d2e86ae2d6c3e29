"""Conversions as text: CAST, BITCAST, ROUND, INDEX_OF."""

from __future__ import annotations

from core.dtypes import BOOL, DTYPES, FLOAT32, DType, Kind
from core.ir.value import Value
from core.render.page import Page
from core.render.text import PRIMARY, UNARY, Text, deeper


def converted(page: Page, value: Value) -> Text:
    """CAST and INDEX_OF."""
    source, dtype = value.src[0], value.dtype
    x = page.text(source)
    words = page.narrow(dtype)
    if words is not None:
        return page.call(words.bits, x, value.lanes)
    words = page.narrow(source.dtype)
    if words is not None:
        made = page.call(words.value, x, value.lanes)
        return made if dtype is FLOAT32 else page.cast(made, page.word(dtype))
    if value.lanes > 1:
        return _vector(page, value, x)
    word = page.word(dtype)
    if page.word(source.dtype) == word or (_is_signed(source.dtype) and _is_signed(dtype) and source.dtype.bits == dtype.bits):
        return x
    if source.dtype.is_float and not dtype.is_float and page.dialect.saturate:
        return Text(page.dialect.saturate.format(t=word, x=x.words), PRIMARY, deeper(x))
    if x.unsigned is not None and not dtype.is_float and dtype.bits <= source.dtype.bits:  # the low bits are those of the unsigned form
        inner = Text(x.unsigned[0], x.unsigned[1], x.depth)
        return inner if word == page.dialect.types[f"uint{source.dtype.bits}"] else page.cast(inner, word)
    return page.cast(x, word)


def _is_signed(dtype: DType) -> bool:
    return dtype.kind is Kind.INT or dtype.kind is Kind.INDEX


def _vector(page: Page, value: Value, x: Text) -> Text:
    source, dtype, words = value.src[0], value.dtype, page.vectors
    t = page.type_of(dtype, value.lanes)
    if source.dtype is BOOL:
        return Text(words.convert.format(t=t, x=f"-{x.at(UNARY)}"), PRIMARY, deeper(x))
    how = words.saturate if source.dtype.is_float and not dtype.is_float else words.convert
    return Text(how.format(t=t, x=x.words), PRIMARY, deeper(x))


def reinterpreted(page: Page, value: Value) -> Text:
    """BITCAST."""
    source, dtype = value.src[0], value.dtype
    x = page.text(source)
    here, there = page.type_of(source.dtype, value.lanes), page.type_of(dtype, value.lanes)
    if here == there:
        return x
    if value.lanes > 1:
        return Text(page.dialect.reinterpret.format(t=there, x=x.words), PRIMARY, deeper(x))
    if not _is_float(page, source.dtype) and not _is_float(page, dtype):
        return x if x.unsigned is not None and there == here else page.cast(x, there)
    if page.dialect.reinterpret:
        return Text(page.dialect.reinterpret.format(t=there, x=page.exactly(x, here)), PRIMARY, deeper(x))
    if _is_float(page, source.dtype):
        made = page.call(page.dialect.reinterpreters[source.dtype, unsigned_of(dtype)], x)
        return made if not dtype.is_signed else page.cast(made, there)
    unsigned = x if x.unsigned is None else Text(x.unsigned[0], x.unsigned[1], x.depth)
    return page.call(page.dialect.reinterpreters[unsigned_of(dtype), dtype], unsigned)


def unsigned_of(dtype: DType) -> DType:
    """The unsigned integer of the same width."""
    return DTYPES[f"uint{dtype.bits}"]


def _is_float(page: Page, dtype: DType) -> bool:
    return dtype.is_float and page.narrow(dtype) is None


def rounded(page: Page, value: Value) -> Text:
    """ROUND."""
    x = page.text(value.src[0])
    narrow = value.arg
    assert isinstance(narrow, DType)
    words = page.dialect.narrow[narrow]
    return page.call(words.rounded, x, value.lanes)
