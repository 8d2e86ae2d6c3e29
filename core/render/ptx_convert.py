"""Conversions in PTX: CAST, BITCAST, ROUND, INDEX_OF. Out-of-range floats saturate, NaN gives 0."""

from __future__ import annotations

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType
from core.ir.value import Value
from core.render.ptx_page import Page, class_of, immediate, type_of

_NATIVE_BFLOAT = 80  # the first architecture that rounds to bfloat16


def normalized(page: Page, register: str, dtype: DType, result: str) -> str:
    """The low 8 bits of a 16-bit integer as the number they are in an 8-bit type."""
    page.emit(f"cvt.s16.s8 {result}, {register}" if dtype.is_signed else f"and.b16 {result}, {register}, 255")
    return result


def converted(page: Page, value: Value) -> str:
    """CAST and INDEX_OF."""
    source, dtype = value.src[0], value.dtype
    x = page.operand(source)
    if source.dtype is BOOL:
        one, zero = (immediate(float(k) if dtype.is_float else k, dtype) for k in (1, 0))
        register = page.result(value)
        page.emit(f"selp.{class_of(dtype)} {register}, {one}, {zero}, {x}")
        return register
    if dtype is BFLOAT16:
        return as_bfloat(page, x, page.result(value))
    if source.dtype is BFLOAT16:
        return from_bfloat(page, x, page.result(value))
    if source.dtype.is_float:
        return _from_float(page, value, x)
    if dtype.is_float:
        register = page.result(value)
        page.emit(f"cvt.rn.{type_of(dtype)}.{type_of(source.dtype)} {register}, {page.in_register(x, class_of(source.dtype))}")
        return register
    return _between_integers(page, value, x)


def _from_float(page: Page, value: Value, x: str) -> str:
    source, dtype = value.src[0].dtype, value.dtype
    register = page.result(value)
    x = page.in_register(x, class_of(source))
    if dtype.is_float:
        rounds = ".rn" if dtype.bits < source.bits else ""
        page.emit(f"cvt{rounds}.{type_of(dtype)}.{type_of(source)} {register}, {x}")
    elif dtype.bits == 8:
        normalized(page, page.computed(f"cvt.rzi.s16.{type_of(source)}", "b16", x), dtype, register)
    else:
        page.emit(f"cvt.rzi.{type_of(dtype)}.{type_of(source)} {register}, {x}")
    return register


def _between_integers(page: Page, value: Value, x: str) -> str:
    source, dtype = value.src[0].dtype, value.dtype
    held, wanted = max(source.bits, 16), max(dtype.bits, 16)
    same_value = not source.is_integer or (int(dtype.least) <= int(source.least) and int(source.greatest) <= int(dtype.greatest))
    if dtype.bits == 8 and source is not dtype and not same_value:
        if held > wanted:
            x = page.computed(f"cvt.u16.u{held}", "b16", page.in_register(x, f"b{held}"))
        return normalized(page, x, dtype, page.result(value))
    if held == wanted:
        return page.alias(value, x)
    register = page.result(value)
    kind = "s" if wanted > held and (source.is_signed or source.is_index) else "u"
    page.emit(f"cvt.{kind}{wanted}.{kind}{held} {register}, {page.in_register(x, f'b{held}')}")
    return register


def reinterpreted(page: Page, value: Value) -> str:
    """BITCAST."""
    source, dtype = value.src[0].dtype, value.dtype
    x = page.operand(value.src[0])
    if dtype.bits == 8:
        return page.alias(value, x) if source is dtype else normalized(page, page.in_register(x, "b16"), dtype, page.result(value))
    if class_of(source) == class_of(dtype):
        return page.alias(value, page.in_register(x, class_of(source)))
    register = page.result(value)
    page.emit(f"mov.b{dtype.bits} {register}, {page.in_register(x, class_of(source))}")
    return register


def rounded(page: Page, value: Value) -> str:
    """ROUND."""
    x, result = page.held_operand(value.src[0]), page.result(value)
    if value.arg is FLOAT16:
        page.emit(f"cvt.f32.f16 {result}, {page.computed('cvt.rn.f16.f32', 'b16', x)}")
        return result
    return from_bfloat(page, as_bfloat(page, x, page.register("b16")), result)


def as_bfloat(page: Page, x: str, result: str) -> str:
    """A float32 rounded to the bits of a bfloat16, to nearest even."""
    x = page.in_register(x, class_of(FLOAT32))
    if page.capability >= _NATIVE_BFLOAT:
        page.emit(f"cvt.rn.bf16.f32 {result}, {x}")
        return result
    bits = page.computed("mov.b32", "b32", x)
    odd = page.computed("and.b32", "b32", page.computed("shr.u32", "b32", bits, "16"), "1")
    up = page.computed("add.u32", "b32", page.computed("add.u32", "b32", bits, "0x7fff"), odd)
    quiet = page.computed("or.b32", "b32", bits, "0x400000")
    is_nan = page.computed("setp.nan.f32", "pred", x, x)
    high = page.computed("shr.u32", "b32", page.computed("selp.b32", "b32", quiet, up, is_nan), "16")
    page.emit(f"cvt.u16.u32 {result}, {high}")
    return result


def from_bfloat(page: Page, bits: str, result: str) -> str:
    """The bits of a bfloat16 as a float32: its upper half."""
    page.emit(f"mov.b32 {result}, {{{page.constant('0', 'b16')}, {page.in_register(bits, 'b16')}}}")
    return result
