"""What one program is written on: the texts of its values so far, its names, the helpers it calls."""

from __future__ import annotations

from collections.abc import Callable
from weakref import proxy

from core.device import DeviceOptions
from core.dtypes import BOOL, FLOAT16, INT32, DType, Number
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.parts import content
from core.ir.value import Value
from core.render.dialect import Dialect, NarrowWords, VectorWords
from core.render.literals import literal
from core.render.names import Names
from core.render.text import PRIMARY, UNARY, Text, deeper


class _Texts(dict[Value, Text]):
    """Of every value written so far; of constants and variables as soon as somebody asks."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page: Page = proxy(page)  # a page has its texts: held both ways, neither would go before the collector comes

    def __missing__(self, value: Value) -> Text:
        if value.op is Op.CONST:
            text = self._page.constant(content(value), value.dtype, value.lanes)
        elif value.op is Op.VARIABLE:
            text = self._page.variables[value.arg[0]]  # type: ignore[index]  # (name, least, greatest)
        else:
            raise CompilerBug("render", f"{value!r} is used before it is written")
        self[value] = text
        return text


class Page:
    """texts: of every value written so far; text: of an operand. inlined: the values that are an expression there, not a name.

    variables: what each is called.
    """

    def __init__(self, dialect: Dialect, device: DeviceOptions, function: str) -> None:
        self.dialect = dialect
        self.fast = device.fast_math
        self.native_half = device.float16
        self.narrow: Callable[[DType], NarrowWords | None] = {
            dtype: words for dtype, words in dialect.narrow.items() if not (dtype is FLOAT16 and device.float16)
        }.get  # how a 16-bit float that is kept as an integer is handled; None of other types
        self.names = Names(dialect, function)
        self.texts = _Texts(self)
        self.text: Callable[[Value], Text] = self.texts.__getitem__
        self.variables: dict[str, Text] = {}
        self.inlined: set[Value] = set()
        self.open_gates: set[Value] = set()  # conditions of the branches around
        self._types: dict[tuple[DType, int], str] = {}
        self.helpers: dict[tuple[str, str], None] = {}  # (name, lanes), in the order to define them

    # ---- values ------------------------------------------------------------------------------------------------------------

    def is_written_out(self, value: Value, op: Op) -> bool:
        """Whether this operand is such an operation and stands here as an expression, so that its own operands may be used instead."""
        return value.op is op and value in self.inlined

    def constant(self, number: Number, dtype: DType, lanes: int = 1) -> Text:
        """A constant, repeated in each lane."""
        if lanes == 1:
            return literal(number, dtype, self.dialect, self.native_half)
        one = literal(number, dtype, self.dialect, self.native_half).words
        if not self.vectors.computes:
            return self.vector(dtype, lanes, ", ".join([one] * lanes))
        return self.vector(dtype, lanes, one if dtype is not BOOL else "-1" if number else "0")

    # ---- words -------------------------------------------------------------------------------------------------------------

    @property
    def vectors(self) -> VectorWords:
        """The words for vectors; only asked for where there are any."""
        assert self.dialect.vectors is not None, f"{self.dialect.name} has no vectors: legalize takes them apart"
        return self.dialect.vectors

    def word(self, dtype: DType) -> str:
        """The type of a scalar."""
        return self.element(dtype) if self.narrow(dtype) is not None else self.dialect.types[dtype.name]

    def element(self, dtype: DType) -> str:
        """The type of an array's element."""
        key = dtype.name
        if dtype is FLOAT16 and self.native_half:
            return self.dialect.types[key]
        return self.dialect.memory.get(key) or self.dialect.types[key]

    def type_of(self, dtype: DType, lanes: int = 1) -> str:
        """The type a value is declared with."""
        found = self._types.get((dtype, lanes))
        if found is None:
            found = self._types[dtype, lanes] = self._type_of(dtype, lanes)
        return found

    def _type_of(self, dtype: DType, lanes: int) -> str:
        if lanes == 1:
            return self.word(dtype)
        if dtype is BOOL:
            return self.vector_word(self.word(INT32) if self.vectors.computes else self.element(BOOL), lanes)
        return self.vector_word(self.word(dtype), lanes)

    def vector_word(self, word: str, lanes: int) -> str:
        """The type of a vector of scalars of this word."""
        return self.vectors.type.format(t=self.vectors.names.get(word, word), n=lanes)

    def call(self, helper: str, operand: Text, lanes: int = 1) -> Text:
        """A call of one of our helpers, which then is defined."""
        n = "" if lanes == 1 else str(lanes)
        self._need(helper, n)
        return Text(f"{helper}{n}({operand.words})", PRIMARY, deeper(operand))

    def call_of(self, helper: str, *operands: Text) -> Text:
        """The same of one that takes several operands."""
        self._need(helper, "")
        return Text(f"{helper}({', '.join(t.words for t in operands)})", PRIMARY, deeper(*operands))

    def anywhere(self, dtype: DType, lanes: int, space: str, pointer: str) -> str:
        """The elements of an array from this pointer on, whatever it is aligned to."""
        word = self.element(dtype)
        self._need(f"any_{word}", str(lanes))
        return self.vectors.anywhere.format(t=word, n=lanes, q=space, p=pointer)

    def _need(self, helper: str, n: str) -> None:
        if (helper, n) in self.helpers:
            return
        for other in self.dialect.helpers[helper].needs:
            self._need(other, n)
        self.helpers[helper, n] = None

    def vector(self, dtype: DType, lanes: int, words: str) -> Text:
        return Text(self.vectors.make.format(t=self.type_of(dtype, lanes), x=words), UNARY)

    def cast(self, operand: Text, word: str) -> Text:
        """A scalar cast to the type of this word."""
        return Text(f"({word}){operand.at(UNARY)}", UNARY, deeper(operand))

    def exactly(self, operand: Text, word: str) -> str:
        """An argument whose type must be just this: small types become int in any expression."""
        return operand.words if operand.is_name else f"({word}){operand.at(UNARY)}"
