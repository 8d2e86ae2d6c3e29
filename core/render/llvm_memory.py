"""Loads and stores as instructions of LLVM IR. What stands behind a gate is not touched where the gate is closed: there is a branch.

A `getelementptr` stands right before the access it is for, behind the gate: it is `inbounds` because the access is.
"""

from __future__ import annotations

from core.dtypes import BOOL, FLOAT32, UINT8
from core.ir.parts import Access, access, param
from core.ir.value import Value
from core.render.llvm_page import Page
from core.render.llvm_words import lanes_of


def load(page: Page, value: Value) -> str:
    """LOAD."""
    parts = access(value)
    gate, place = _gate(page, parts), page.wide(parts.addresses[0])
    if gate is None or parts.alternative is None:
        return _read(page, value, place)
    other, before = page.operand(parts.alternative), page.block
    number = page.number("load")
    page.branch(gate, f"load{number}", f"loaded{number}")
    page.label(f"load{number}")
    read = _read(page, value, place)
    inside = page.block
    page.jump(f"loaded{number}")
    page.label(f"loaded{number}")
    letter = "c" if value.dtype is BOOL else "v"
    return page.set(letter, f"phi {page.type_of(value.dtype, value.lanes)} [ {read}, {inside} ], [ {other}, {before} ]")


def _read(page: Page, value: Value, place: str) -> str:
    """A load whose gate, if any, is open."""
    parts, lanes = access(value), value.lanes
    array = parts.array
    word = _memory_word(page, array)
    read = page.set("v", f"load {lanes_of(word, lanes)}, ptr {_pointer(page, array, word, place)}, align {_alignment(parts, lanes)}")
    if array.dtype is BOOL:
        return page.set("c", f"icmp ne {lanes_of(word, lanes)} {read}, {page.constant(0, UINT8, lanes)}")
    if array.dtype in page.narrow and value.dtype is FLOAT32:
        return page.set("v", page.value(read, array.dtype, lanes))
    return read


def store(page: Page, value: Value) -> None:
    """STORE."""
    parts = access(value)
    gate, place = _gate(page, parts), page.wide(parts.addresses[0])
    if gate is None:
        _write(page, parts, place)
        return
    number = page.number("then")
    page.branch(gate, f"then{number}", f"next{number}")
    page.label(f"then{number}")
    _write(page, parts, place)
    page.jump(f"next{number}")
    page.label(f"next{number}")


def _write(page: Page, parts: Access, place: str) -> None:
    array, stored = parts.array, parts.stored
    assert stored is not None
    word, x, lanes = _memory_word(page, array), page.operand(stored), stored.lanes
    if array.dtype is BOOL:
        x = page.set("v", f"zext {page.typed(stored)} to {lanes_of(word, lanes)}")
    elif array.dtype in page.narrow and stored.dtype is FLOAT32:
        x = page.set("v", page.bits(x, array.dtype, lanes))
    pointer = _pointer(page, array, word, place)
    page.line(f"store {lanes_of(word, lanes)} {x}, ptr {pointer}, align {_alignment(parts, lanes)}")


def _gate(page: Page, parts: Access) -> str | None:
    """What has to be asked before an access: nothing inside a branch that has asked it."""
    return None if parts.gate is None or parts.gate in page.open_gates else page.operand(parts.gate)


def _pointer(page: Page, array: Value, word: str, place: str) -> str:
    base = page.operand(array)
    return base if place == "0" else page.set("p", f"getelementptr inbounds {word}, ptr {base}, i64 {place}")


def _memory_word(page: Page, array: Value) -> str:
    """The type of an element in memory."""
    return "i8" if array.dtype is BOOL else page.word(array.dtype)


def _alignment(parts: Access, lanes: int) -> int:
    """Bytes: a vector's own where the buffer's start is aligned for it, else those of one element."""
    size = parts.array.dtype.itemsize
    return lanes * size if lanes * size <= param(parts.array).alignment else size
