"""One language of the C family as a table of words; the printer asks nothing else about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.dtypes import DType
from core.ir.op import Op


@dataclass(frozen=True, slots=True)
class Helper:
    """A function or type of our own, written before the kernel where it is used.

    text: its definition, {n} being the lanes of a vector ("" for one). needs: helpers it calls, for as many lanes.
    """

    text: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preamble:
    """A line before everything else, where the text matches a pattern. stems: each match has one of them; they are looked for first.

    exact: what it asks of the compiler is right only where the device is not told to be fast rather than exact.
    """

    stems: tuple[str, ...]
    pattern: str
    line: str
    exact: bool = False

    def is_needed(self, text: str) -> bool:
        for stem in self.stems:
            if stem in text:
                return re.search(self.pattern, text) is not None
        return False


@dataclass(frozen=True, slots=True)
class NarrowWords:
    """A 16-bit float kept as an unsigned integer.

    bits, value, rounded: the helpers from float32, to it, and there and back. element: the type of an array that the language itself
    converts from and to; load, store: how, with {p} array, {i} index, {x} value; vector_load, vector_store: likewise {n} lanes from {i} on.
    """

    bits: str
    value: str
    rounded: str
    element: str | None = None
    load: str = ""
    store: str = ""
    vector_load: str = ""
    vector_store: str = ""


@dataclass(frozen=True, slots=True)
class VectorWords:
    """Values of several lanes, {n} of type {t}. A vector of bools is one of int: each lane 0 or -1, as comparisons give it.

    make: from {x}, one value a lane or one for all. names: how a scalar's word is spelled in a vector's, where otherwise. computes: there
    are operators and conversions; if not, vectors are only loaded, put together, taken apart and stored, made of a value a lane, and those
    of bools are of bytes. convert: {x} to {t}, as a scalar's cast; saturate: a float to an integer. choose: {y} where the mask {c} is set,
    else {x}; masks are as wide as values. anywhere: the lanes at {p}, a pointer to any element; {q} its space and const. It may name the
    helper "any_{t}".
    """

    type: str
    make: str
    names: Mapping[str, str] = field(default_factory=dict)
    computes: bool = True
    convert: str = ""
    saturate: str = ""
    choose: str = ""
    greater: str = ""
    anywhere: str = ""


@dataclass(frozen=True, slots=True)
class ImageWords:
    """Two-dimensional images of four float channels a texel: {p} the image, {x} and {y} the texel, {v} the channels."""

    params: Mapping[str, str]  # by access, {name}
    sampler: str
    read: str
    write: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """Words; format strings have the holes named beside them.

    types: of values, by dtype; memory: of array elements, where that is another. A float16 in `narrow` is one only where the device does
    not compute in halves.
    """

    name: str
    comment: str  # {x}
    types: Mapping[str, str]
    memory: Mapping[str, str]
    suffixes: Mapping[str, str]  # of integer literals
    constants: Mapping[str, str]  # true, false, inf, nan
    head: str  # {name} {params}
    sized_head: str  # and {x} {y} {z}, the lanes of a work-group, {lanes} all of them; "" where it can't be said
    no_params: str
    param: str  # {const} {t} {name}, {k} its place among the arguments
    const: str  # {const} of what is only read
    variable: str  # {name} {k}
    special: Mapping[str, str]  # by kind; {d} the dimension, {l} its letter
    shared: str  # {t} {name} {n} elements {align}
    aligned: str  # {a} bytes
    barrier: str
    barrier_of_buffers: str  # one that orders accesses of buffers too
    space: Mapping[Op, str]  # before the type of a pointer into a PARAM or a SHARED, with a blank after it
    functions: Mapping[tuple[Op, DType], str]
    fast_functions: Mapping[tuple[Op, DType], str]
    saturate: str  # {t} {x}: a float to an integer; "": by a cast
    reinterpret: str  # {t} {x}; "": by helpers
    reinterpreters: Mapping[tuple[DType, DType], str]
    narrow: Mapping[DType, NarrowWords]
    helpers: Mapping[str, Helper]
    preamble: tuple[Preamble, ...]
    half_preamble: tuple[Preamble, ...]  # before those, where the device computes in halves
    reserved: frozenset[str]
    vectors: VectorWords | None = None
    matrix: Mapping[object, str] = field(default_factory=dict)  # by name of a matrix instruction's layout: the helper that is it
    images: ImageWords | None = None
    launch_params: Mapping[str, str] = field(default_factory=dict)  # by kind: the parameter that `special` reads, where it is one
    extra_reserved: str = field(default=r"(?!)")  # a pattern of further words no argument may be called
    declare: str = "{t} {name} = {x};"  # of a value
    register: str = "{t} {name} = {x};"  # of what is assigned to later
    loop: str = "for ({t} {name} = 0; {name} < {end}; {name}++) {{"
