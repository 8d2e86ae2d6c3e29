"""Loads and stores in PTX. What stands behind a gate is done under its predicate; several lanes are one access of at most 16 bytes."""

from __future__ import annotations

from core.dtypes import BFLOAT16, BOOL, FLOAT16, DType
from core.ir.op import Op
from core.ir.parts import Access, access, param
from core.ir.value import Value
from core.render.ptx_convert import as_bfloat, from_bfloat
from core.render.ptx_index import address
from core.render.ptx_page import Page, class_of

_WIDEST = 16  # bytes of one access
_MOST = 4  # elements of one


def load(page: Page, value: Value) -> tuple[str, ...]:
    """LOAD: the registers of its lanes. Where the gate is closed they keep the alternative, which is moved there before."""
    parts = access(value)
    array = parts.array
    place, gate = address(page, parts), _gate(page, parts)
    alternatives = page.operands(parts.alternative) if gate is not None and parts.alternative is not None else ()
    how = f"ld.{_space(array)}{'.nc' if array.op is Op.PARAM and param(array).access == 'read' else ''}"
    if array.dtype is BOOL:
        held = [page.register("b16") for _ in range(value.lanes)]
        for register, alternative in zip(held, alternatives, strict=False):
            page.emit(f"selp.b16 {register}, 1, 0, {alternative}")
        _read(page, how, place, gate, held, BOOL)
        return tuple([_as_bool(page, value, register) for register in held])
    results = [page.result(value, lane) for lane in range(value.lanes)]
    for register, alternative in zip(results, alternatives, strict=False):
        if register != alternative:
            page.emit(f"mov.{class_of(value.dtype)} {register}, {alternative}")
    if value.dtype is array.dtype:
        _read(page, how, place, gate, results, array.dtype)
    else:
        (result,) = results
        bits = page.register("b16")
        _read(page, how, place, gate, [bits], array.dtype)
        with page.under(gate):
            if array.dtype is FLOAT16:
                page.emit(f"cvt.f32.f16 {result}, {bits}")
            else:
                from_bfloat(page, bits, result)
    return tuple(results)


def _as_bool(page: Page, value: Value, byte: str) -> str:
    register = page.result(value)
    page.emit(f"setp.ne.u16 {register}, {byte}, 0")
    return register


def _read(page: Page, how: str, place: str, gate: str | None, registers: list[str], dtype: DType) -> None:
    with page.under(gate):
        for at, group in _groups(registers, dtype):
            page.emit(f"{how}{_lanes(group)}.{_memory(dtype)} {_braced(group)}, {_further(place, at * dtype.itemsize)}")


def store(page: Page, value: Value) -> None:
    """STORE."""
    parts = access(value)
    assert parts.stored is not None
    array, stored = parts.array, parts.stored
    place, gate = address(page, parts), _gate(page, parts)
    words = [_stored(page, x, stored.dtype, array.dtype) for x in page.operands(stored)]
    with page.under(gate):
        for at, group in _groups(words, array.dtype):
            kind = "b8" if array.dtype.bits == 8 else _memory(array.dtype)
            page.emit(f"st.{_space(array)}{_lanes(group)}.{kind} {_further(place, at * array.dtype.itemsize)}, {_braced(group)}")


def _stored(page: Page, x: str, dtype: DType, element: DType) -> str:
    """A lane as it lies in memory."""
    if element is BOOL:
        return page.computed("selp.b16", "b16", "1", "0", x)
    if dtype is element:
        return x
    if element is BFLOAT16:
        return as_bfloat(page, x, page.register("b16"))
    return page.computed("cvt.rn.f16.f32", "b16", page.in_register(x, "f32"))


def _gate(page: Page, parts: Access) -> str | None:
    """What has to hold for an access: nothing inside a branch that has asked it."""
    return None if parts.gate is None or parts.gate in page.open_gates else page.operand(parts.gate)


def _space(array: Value) -> str:
    return "shared" if array.op is Op.SHARED else "global"


def _memory(dtype: DType) -> str:
    """The type of an access to elements of this dtype."""
    if dtype is BOOL:
        return "u8"
    if dtype.bits == 8:
        return "s8" if dtype.is_signed else "u8"
    return class_of(dtype)


def _groups(registers: list[str], dtype: DType) -> list[tuple[int, list[str]]]:
    """Lanes that one access has place for, with the number of the first."""
    many = min(_MOST, _WIDEST // dtype.itemsize)
    return [(at, registers[at : at + many]) for at in range(0, len(registers), many)]


def _lanes(group: list[str]) -> str:
    return f".v{len(group)}" if len(group) > 1 else ""


def _braced(group: list[str]) -> str:
    return f"{{{', '.join(group)}}}" if len(group) > 1 else group[0]


def _further(place: str, offset: int) -> str:
    """An address some bytes on."""
    if not offset:
        return place
    base, _, constant = place[1:-1].partition("+")
    return f"[{base}+{int(constant or 0) + offset}]"
