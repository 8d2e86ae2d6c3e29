"""One language of the C family as a table of words; the printer asks nothing else about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.dtypes import DType
from core.ir.op import Op


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of our own that stands before the kernel where it is used.

    text: its definition, with {n} for the lanes of a vector ("" for one). needs: helpers it calls, of as many lanes.
    """

    text: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NarrowWords:
    """A 16-bit float kept as an unsigned integer. value, bits: the helpers between it and float32.

    load, store: the language's own ways to and from an array of this type, in {p} array, {i} index, {x} value, {n} lanes; None: by helper.
    element: the element type an array accessed that way is declared with.
    """

    value: str
    bits: str
    load: str | None = None
    store: str | None = None
    vector_load: str | None = None
    vector_store: str | None = None
    element: str | None = None


@dataclass(frozen=True, slots=True)
class VectorWords:
    """Values of several lanes. A vector of bools is one of int, each lane 0 or -1, as comparisons of float vectors give it.

    type: of {t} with {n} lanes. make: from {x}, a list or one value for all lanes. convert: {x} to type {t}. choose: {y} where {c}, else {x},
    by masks as wide as the values. maximum: of integers. load, store: through a pointer aligned to the vector; unaligned likewise.
    """

    type: str
    make: str
    convert: str
    saturate: str
    choose: str
    maximum: str
    pointer: str
    load_unaligned: str
    store_unaligned: str

    def lane(self, number: int, lanes: int) -> str:
        """How one element of a named vector is spelled, after its name."""
        return "." + "xyzw"[number] if lanes <= 4 else f".s{number:x}"


@dataclass(frozen=True, slots=True)
class ImageWords:
    """Two-dimensional images of float texels. {p} the image, {x} {y} the texel, {v} four channels, {s} the sampler."""

    read_param: str
    write_param: str
    sampler: str
    read: str
    write: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """Words. Format strings have the holes their comment names.

    types: of values, by dtype name; memory: of array elements where that differs. native_half: float16 is a type to compute in.
    """

    name: str
    comment: str  # {x}
    types: Mapping[str, str]
    memory: Mapping[str, str]
    suffixes: Mapping[str, str]  # of integer literals, by dtype name
    true: str
    false: str
    infinity: str
    nan: str
    head: str  # {name} {params}
    sized_head: str  # the same with {x} {y} {z}, the lanes of a work-group
    no_params: str
    param: str  # {const} {t} {name}
    variable: str  # {name}
    special: Mapping[str, str]  # by kind, {d} the dimension
    shared: str  # {t} {name} {n} elements
    shared_aligned: str  # the same and {a} bytes
    barrier: str
    space: Mapping[Op, str]  # of pointers into a PARAM or a SHARED
    functions: Mapping[tuple[Op, str], str]  # by op and dtype name
    fast_functions: Mapping[tuple[Op, str], str]
    cast: str  # {t} {x}: of scalars
    saturate: str | None  # {t} {x}: a float to an integer
    reinterpret: str | None  # {t} {x}; None: by the helpers of `reinterpreters`
    reinterpreters: Mapping[tuple[str, str], str]  # from a float type to its bits and back
    narrow: Mapping[str, NarrowWords]
    helpers: Mapping[str, Helper]
    preamble: Callable[[frozenset[str]], list[str]]  # lines for what is used: dtype names and "math"
    reserved: frozenset[str]
    vectors: VectorWords | None = None
    images: ImageWords | None = None
    half_pragma: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def type_of(self, dtype: DType, lanes: int = 1) -> str:
        """The type a value is declared with."""
        word = self.types[dtype.name]
        if lanes == 1:
            return word
        assert self.vectors is not None
        return self.vectors.type.format(t="int" if dtype.name == "bool" else word, n=lanes)

    def element_of(self, dtype: DType) -> str:
        """The type an array of it is declared with."""
        return self.memory.get(dtype.name, self.types[dtype.name])
