"""Buffers and local arrays of WGSL, and their accesses.

There are no pointers to other types. So an array that is only accessed in vectors of so many lanes is declared as one of those, and any
other as one of scalars. A buffer's elements of 8 or 16 bits share words of 32 with their neighbours, which other work-items may be writing:
what is less than a whole word is written by two atomic operations that touch its own bits alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.dtypes import BOOL, FLOAT16, FLOAT32, DType
from core.ir.op import Op
from core.ir.parts import Access, coefficients, moved
from core.ir.value import Value
from core.render import index_text
from core.render.data_text import lane_word
from core.render.page import Page
from core.render.text import PRIMARY, TIMES, Text, deeper

WORD = 32  # bits of the smallest element of a buffer


@dataclass(frozen=True, slots=True)
class Array:
    """lanes: of an element as it is declared. bits: of one that shares its word with others, else 0. atomic: words are written in parts."""

    name: str
    element: str
    lanes: int = 1
    bits: int = 0
    atomic: bool = False


class Arrays:
    """The arrays of one program by their values, and the functions that read and write packed ones, in the order of their first use."""

    def __init__(self, page: Page, accesses: Iterable[Value]) -> None:
        self.page = page
        self.lanes: dict[Value, set[int]] = {}
        self.stores: dict[Value, set[int]] = {}
        for value in accesses:
            array, lanes = value.src[0], moved(value).lanes
            self.lanes.setdefault(array, set()).add(lanes)
            if value.op is Op.STORE:
                self.stores.setdefault(array, set()).add(lanes)
        self.found: dict[Value, Array] = {}
        self.functions: dict[str, str] = {}

    def declare(self, value: Value, name: str) -> Array:
        """How this array is declared."""
        page, dtype, lanes = self.page, value.dtype, self.lanes.get(value, {1})
        if value.op is Op.PARAM and dtype.bits < WORD and not (dtype is FLOAT16 and page.native_half):
            parts = any(n * dtype.bits % WORD for n in self.stores.get(value, ()))
            found = Array(name, "atomic<u32>" if parts else "u32", 1, dtype.bits, parts)
        elif len(lanes) == 1 and dtype is not BOOL:
            (whole,) = lanes
            found = Array(name, page.type_of(dtype, whole), whole)
        else:
            found = Array(name, page.word(dtype))
        self.found[value] = found
        return found

    # ---- accesses --------------------------------------------------------------------------------------------------------------

    def is_apart(self, value: Value) -> bool:
        """Whether a vector access is one of each lane alone, so that its index and value should be names."""
        array = self.found[value.src[0]]
        return not array.bits and moved(value).lanes != array.lanes

    def load(self, value: Value, parts: Access, place: Text) -> Text:
        """A LOAD whose gate, if any, is open, from the element at `place` on."""
        page, array = self.page, self.found[parts.array]
        if array.bits:
            read = self._call(self._reader(array, parts.array.dtype, value.lanes), place)
            narrow = page.narrow(parts.array.dtype)
            return page.call(narrow.value, read) if narrow is not None and value.dtype is FLOAT32 else read
        if value.lanes == array.lanes:
            return Text(f"{array.name}[{self._index(parts.addresses[0], place, array.lanes)}]", PRIMARY, place.depth + 1)
        lanes = ", ".join(f"{array.name}[{_beyond(place, k)}]" for k in range(value.lanes))
        made = page.vector(value.dtype, value.lanes, lanes)
        return Text(made.words, PRIMARY, place.depth + 2)

    def store(self, parts: Access, place: Text, stored: Text) -> list[str]:
        """A STORE whose gate, if any, is open, as statements."""
        assert parts.stored is not None
        page, array, value = self.page, self.found[parts.array], parts.stored
        narrow = page.narrow(parts.array.dtype)
        if narrow is not None and value.dtype is FLOAT32:
            stored = page.call(narrow.bits, stored)
        if array.bits:
            return [f"{self._writer(array, parts.array.dtype, value.lanes)}({place.words}, {stored.words});"]
        if value.lanes == array.lanes:
            return [f"{array.name}[{self._index(parts.addresses[0], place, array.lanes)}] = {stored.words};"]
        return [f"{array.name}[{_beyond(place, k)}] = {stored.words}{lane_word(k, value.lanes)};" for k in range(value.lanes)]

    def _index(self, address: Value, place: Text, lanes: int) -> str:
        """The number of a vector, from the number of its first element: a multiple of the lanes."""
        if lanes == 1:
            return place.words
        if address.is_const:
            return str(int(place.words) // lanes)
        if address.op is Op.SUM and not place.is_name:
            constant, factors = coefficients(address)
            if not any(c % lanes for c in (constant, *factors)):
                terms = [(c // lanes, self.page.text(s)) for c, s in zip(factors, address.src, strict=True)]
                return index_text.sum_of(terms, constant // lanes).words
        return f"{place.at(TIMES)}/{lanes}"

    # ---- packed elements -------------------------------------------------------------------------------------------------------

    def _call(self, function: str, place: Text) -> Text:
        return Text(f"{function}({place.words})", PRIMARY, deeper(place))

    def _reader(self, array: Array, dtype: DType, lanes: int) -> str:
        name = f"read{lanes if lanes > 1 else ''}_{array.name}"
        if name not in self.functions:
            each = WORD // array.bits
            words = [self._word(array, k) for k in range(max(lanes * array.bits // WORD, 1))]
            lines = [f"fn {name}(i: i32) -> {self.page.type_of(dtype, lanes)} {{"]
            if lanes == 1:
                lines.append(f"  return {_taken(dtype, words[0], f'u32(i%{each})*{array.bits}u', array.bits)};")
            else:
                shift = f" >> (u32(i%{each})*{array.bits}u)" if lanes * array.bits < WORD else ""
                lines += [f"  let w{k} = {word}{shift};" for k, word in enumerate(words)]
                taken = [_taken(dtype, f"w{k // each}", f"{k % each * array.bits}u", array.bits) for k in range(lanes)]
                lines.append(f"  return {self.page.type_of(dtype, lanes)}({', '.join(taken)});")
            self.functions[name] = "\n".join([*lines, "}"])
        return name

    def _writer(self, array: Array, dtype: DType, lanes: int) -> str:
        name = f"write{lanes if lanes > 1 else ''}_{array.name}"
        if name not in self.functions:
            each, size = WORD // array.bits, lanes * array.bits
            lines = [f"fn {name}(i: i32, x: {self.page.type_of(dtype, lanes)}) {{"]
            if size < WORD:
                mask, bits = f"{(1 << size) - 1:#x}u", _packed(dtype, "x", range(lanes), lanes, array.bits)
                bits = f"({bits})" if lanes > 1 else bits
                lines += [f"  let at = u32(i%{each})*{array.bits}u;", f"  atomicAnd(&{array.name}[i/{each}], ~({mask} << at));"]
                lines.append(f"  atomicOr(&{array.name}[i/{each}], {bits} << at);")
            for k in range(size // WORD):
                word, place = _packed(dtype, "x", range(k * each, (k + 1) * each), lanes, array.bits), _place(each, k)
                lines.append(f"  atomicStore(&{array.name}[{place}], {word});" if array.atomic else f"  {array.name}[{place}] = {word};")
            self.functions[name] = "\n".join([*lines, "}"])
        return name

    def _word(self, array: Array, number: int) -> str:
        place = f"{array.name}[{_place(WORD // array.bits, number)}]"
        return f"atomicLoad(&{place})" if array.atomic else place


def _beyond(place: Text, k: int) -> str:
    return f"{place.at(TIMES)} + {k}" if k else place.words


def _place(each: int, number: int) -> str:
    return f"i/{each} + {number}" if number else f"i/{each}"


def _taken(dtype: DType, word: str, at: str, bits: int) -> str:
    """The element that starts at this bit of a word."""
    if dtype.is_signed:
        return f"extractBits(i32({word}), {at}, {bits}u)"
    found = f"extractBits({word}, {at}, {bits}u)"
    return f"{found} != 0u" if dtype is BOOL else found


def _packed(dtype: DType, name: str, lanes: range, of: int, bits: int) -> str:
    """Elements side by side, the first lowest."""
    parts = []
    for k in lanes:
        x = name + (lane_word(k, of) if of > 1 else "")
        low = f"(u32({x}) & {(1 << bits) - 1:#x}u)" if dtype.is_signed else f"u32({x})" if dtype is BOOL else x
        parts.append(f"({low} << {(k - lanes.start) * bits}u)" if k > lanes.start else low)
    return " | ".join(parts)
