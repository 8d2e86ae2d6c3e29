"""Loads and stores as text. What stands behind a gate is not touched where the gate is closed."""

from __future__ import annotations

from core.dtypes import BOOL, FLOAT32
from core.ir.op import Op
from core.ir.parts import Access, access, param
from core.ir.value import Value
from core.render.index_text import choice
from core.render.page import Page
from core.render.text import EQUAL, PRIMARY, TIMES, UNARY, Text, deeper


def load(page: Page, value: Value) -> Text:
    """A LOAD as an expression; of one lane, or without a gate."""
    parts = access(value)
    read, gate = opened(page, value, parts), gate_of(page, parts)
    if gate is None or parts.alternative is None:
        return read
    return choice(page.text(gate), read, page.text(parts.alternative))


def gate_of(page: Page, parts: Access) -> Value | None:
    """What has to be asked before an access: nothing inside a branch that has asked it."""
    return None if parts.gate in page.open_gates else parts.gate


def opened(page: Page, value: Value, parts: Access) -> Text:
    """A LOAD whose gate, if any, is open."""
    array, lanes = parts.array, value.lanes
    p = page.text(array).words
    if len(parts.addresses) == 2:
        assert page.dialect.images is not None
        x, y = (_coordinate(page, a) for a in parts.addresses)
        return Text(page.dialect.images.read.format(p=p, x=x, y=y), PRIMARY, deeper(*(page.text(a) for a in parts.addresses)))
    place = page.text(parts.addresses[0])
    narrow = page.narrow(array.dtype)
    if narrow is None or value.dtype is not FLOAT32:
        read = Text(_element(page, value, parts, p, place), PRIMARY if lanes == 1 else UNARY, place.depth + 1)
        return _as_bool(page, read, lanes) if array.dtype is BOOL else read
    if narrow.element is not None:
        how = narrow.load if lanes == 1 else narrow.vector_load
        return Text(how.format(p=p, i=_index(place, lanes), n=lanes), PRIMARY, place.depth + 1)
    return page.call(narrow.value, Text(_element(page, value, parts, p, place), PRIMARY, place.depth + 1), lanes)


def _as_bool(page: Page, read: Text, lanes: int) -> Text:
    if lanes == 1:
        return Text(f"{read.words} != 0", EQUAL, read.depth + 1)
    if not page.vectors.computes:
        return read
    zero = page.vectors.make.format(t=page.vector_word(page.element(BOOL), lanes), x="0")
    return Text(page.vectors.convert.format(t=page.type_of(BOOL, lanes), x=f"{read.words} != {zero}"), PRIMARY, read.depth + 2)


def store(page: Page, value: Value) -> str:
    """A STORE as a statement."""
    parts = access(value)
    words, gate = _opened_store(page, parts), gate_of(page, parts)
    return words if gate is None else f"if ({page.text(gate).words}) {words}"


def _opened_store(page: Page, parts: Access) -> str:
    assert parts.stored is not None
    array, stored = parts.array, parts.stored
    p, x, lanes = page.text(array).words, page.text(stored), stored.lanes
    if len(parts.addresses) == 2:
        assert page.dialect.images is not None
        at_x, at_y = (_coordinate(page, a) for a in parts.addresses)
        return page.dialect.images.write.format(p=p, x=at_x, y=at_y, v=x.words)
    place = page.text(parts.addresses[0])
    narrow = page.narrow(array.dtype)
    if narrow is not None and stored.dtype is FLOAT32:
        if narrow.element is not None:
            how = narrow.store if lanes == 1 else narrow.vector_store
            return how.format(p=p, i=_index(place, lanes), x=x.words, n=lanes)
        x = page.call(narrow.bits, x, lanes)
    if array.dtype is BOOL and lanes > 1 and page.vectors.computes:
        bytes_type = page.vector_word(page.element(BOOL), lanes)
        x = Text(page.vectors.convert.format(t=bytes_type, x=f"-{x.at(UNARY)}"), PRIMARY)
    return f"{_element(page, stored, parts, p, place)} = {x.words};"


def _element(page: Page, value: Value, parts: Access, p: str, place: Text) -> str:
    """The element, or the elements, an access is of."""
    lanes = value.lanes
    if lanes == 1:
        return f"{p}[{place.words}]"
    const = page.dialect.const if parts.array.op is Op.PARAM and param(parts.array).access == "read" else ""
    space, pointer = f"{page.dialect.space[parts.array.op]}{const}", f"{p} + {_index(place, lanes)}"
    if not is_aligned(parts, lanes):
        return page.anywhere(parts.array.dtype, lanes, space, pointer)
    return f"*(({space}{page.vector_word(page.element(parts.array.dtype), lanes)}*)({pointer}))"


def is_aligned(parts: Access, lanes: int) -> bool:
    """Whether such an access may go through a pointer to a vector: shared arrays are declared for it."""
    return parts.array.op is not Op.PARAM or lanes * parts.array.dtype.itemsize <= param(parts.array).alignment


def _index(place: Text, lanes: int) -> str:
    return place.words if lanes == 1 else place.at(TIMES)


def _coordinate(page: Page, address: Value) -> str:
    place = page.text(address)
    return place.words if page.word(address.dtype) == "int" else page.cast(place, "int").words


def element_word(page: Page, array: Value, widened: bool) -> str:
    """The type an array's elements are declared with. widened: the language converts them to float32 at each access."""
    narrow = page.narrow(array.dtype)
    if narrow is not None and narrow.element is not None and widened and array.op is Op.PARAM:
        return narrow.element
    return page.element(array.dtype)
