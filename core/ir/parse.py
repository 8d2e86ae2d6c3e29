"""The text of `core.ir.text`, read back: `parse(show(g)) is g`."""

from __future__ import annotations

import re
from collections.abc import Callable

from core.dtypes import VOID, DType, Number, dtype_named
from core.ir.op import OPS, Op
from core.ir.text import place_type
from core.ir.value import Arg, Value, constant, make

_TOKEN = re.compile(
    r"""\s*(?: "((?:[^"\\]|\\.)*)" | (//|[][(){},=+*:<%-]) | ([0-9][0-9.]*(?:e[+-]?[0-9]+)?) | ([A-Za-z_?][A-Za-z0-9_.]*) )""", re.VERBOSE
)
_TYPE = re.compile(r" *[a-z0-9]+(\*[0-9]+)?( \[.*\])? *")
_WORDS = {info.name: op for op, info in OPS.items()} | {"loop": Op.RANGE}
_NAMED = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}

Source = Value | Number | tuple[Number, str]  # a constant whose type is the place's, or is said


def parse(text: str) -> Value:
    """The graph whose last line is its root. Raises ValueError, which names the line not understood."""
    values: dict[str, Value] = {}
    last: Value | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                name, last = _line(line.strip(), values)
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise ValueError(f"line {number}: {line.strip()}: {error}") from error
            values[name] = last
    if last is None:
        raise ValueError("no value at all")
    return last


def _line(line: str, values: dict[str, Value]) -> tuple[str, Value]:
    name, _, rest = line.partition("=")
    body, _, kind = rest.rpartition(" : ")
    typed = _TYPE.fullmatch(kind) is not None and bool(body)  # a value that is nothing has no type
    dtype, lanes, bounds = _type(kind) if typed else (VOID, 1, None)
    reader = _Reader(body if typed else rest, values)
    op, src, arg = reader.operation()
    reader.end()
    known: list[Value | None] = [s if isinstance(s, Value) else None for s in src]
    operands = []
    for place, item in enumerate(src):
        operands.append(item if isinstance(item, Value) else _constant(item, place_type(op, dtype, lanes, place, arg, known)))
    if op is Op.CONST:
        number = reader.number
        return name.strip(), constant(number, dtype, lanes)
    return name.strip(), make(op, dtype, tuple(operands), arg, lanes, bounds)


def _type(text: str) -> tuple[DType, int, tuple[int | None, int | None] | None]:
    kind, bracket, limits = text.strip().partition(" [")
    dtype, lanes = _lanes_of(kind.strip())
    if not bracket:
        return dtype, lanes, None
    low, high = (None if part.strip() == "none" else int(part) for part in limits.rstrip("]").split(","))
    return dtype, lanes, (low, high)


def _lanes_of(text: str) -> tuple[DType, int]:
    name, _, lanes = text.partition("*")
    return dtype_named(name), int(lanes or 1)


def _constant(item: Number | tuple[Number, str], expected: tuple[DType, int] | None) -> Value:
    if isinstance(item, tuple):
        return constant(item[0], *_lanes_of(item[1]))
    if expected is None:
        raise ValueError(f"the constant {item} needs a type here, as in {item}:int32")
    return constant(item, *expected)


class _Reader:
    """The tokens of one operation, left to right."""

    def __init__(self, text: str, values: dict[str, Value]) -> None:
        self._values = values
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        self.number: Number = 0
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"nothing known at {text[at : at + 20]!r}")
            kind = ("string", "mark", "number", "word")[(match.lastindex or 1) - 1]
            self._tokens.append((kind, match[match.lastindex or 1]))
            at = match.end()

    def operation(self) -> tuple[Op, list[Source], Arg]:
        kind, word = self._peek()
        if kind != "word" or word in self._values or word in _NAMED:
            return self._written_out()
        self._at += 1
        if word.startswith("launch."):
            dimension = self._arg()
            self._take(",")
            return Op.SPECIAL, [self._source()], (word.removeprefix("launch."), dimension)
        op = _WORDS[word]
        if (op is Op.LOAD or op is Op.STORE) and not self._is("{"):
            return self._access(op)
        arg = self._braces() if self._is("{") else None
        if op is Op.CONST:
            self.number = arg  # type: ignore[assignment]  # a CONST's arg is its number
            return op, [], arg
        return op, self._sources() if self._more() else [], arg

    def _written_out(self) -> tuple[Op, list[Source], Arg]:
        """x // y, x % y, x < 5, or a sum."""
        if len(self._tokens) > 1:
            for k, (_, mark) in enumerate(self._tokens):
                if mark in ("//", "%", "<") and k:
                    first = self._source()
                    self._take(mark)
                    if mark == "<":
                        return Op.LESS, [first], self._arg()
                    return (Op.DIV if mark == "//" else Op.MOD), [first, self._source()], None
        return self._sum()

    def _sum(self) -> tuple[Op, list[Source], Arg]:
        first, coefficients, src = 0, [], []
        sign = -1 if self._skip("-") else 1
        while True:
            item = self._source()
            if isinstance(item, int) and not isinstance(item, bool):
                first += sign * item
            else:
                src.append(item)
                coefficients.append(sign * (self._signed() if self._skip("*") else 1))
            if self._skip("+"):
                sign = 1
            elif self._skip("-"):
                sign = -1
            else:
                return Op.SUM, src, (first, tuple(coefficients))

    def _signed(self) -> int:
        sign = -1 if self._skip("-") else 1
        return sign * int(self._next()[1])

    def _access(self, op: Op) -> tuple[Op, list[Source], Arg]:
        src = [self._source()]
        self._take("[")
        addresses = self._sources()
        self._take("]")
        src += addresses
        if op is Op.STORE:
            self._take("=")
            src.append(self._source())
        gated = self._skip("if")
        if gated:
            src.append(self._source())
            if op is Op.LOAD:
                self._take("else")
                src.append(self._source())
        if self._skip("after"):
            src += self._sources()
        return op, src, (len(addresses), gated)

    def _sources(self) -> list[Source]:
        return self._listed(self._source)

    def _listed(self, read: Callable[[], Source]) -> list[Source]:
        items = [read()]
        while self._skip(","):
            items.append(read())
        return items

    def _source(self) -> Source:
        kind, word = self._peek()
        if kind == "word" and word in self._values:
            self._at += 1
            return self._values[word]
        number = self._arg()
        if not isinstance(number, (bool, int, float)):
            raise ValueError(f"{word!r} is no value known here")
        if self._skip(":"):
            kind = self._next()[1]
            return number, kind + ("*" + self._next()[1] if self._skip("*") else "")
        return number

    def _braces(self) -> Arg:
        """{a, b} is the tuple, {a} the thing alone, {(a)} the tuple of one; {} the empty tuple."""
        self._take("{")
        items: list[Arg] = []
        while not self._is("}"):
            items.append(self._arg())
            self._skip(",")
        self._take("}")
        return items[0] if len(items) == 1 else tuple(items)

    def _arg(self) -> Arg:
        kind, word = self._next()
        if kind == "string":
            return re.sub(r"\\(.)", r"\1", word)
        if kind == "number":
            return float(word) if "." in word or "e" in word else int(word)
        if word == "-":
            number = self._arg()
            if not isinstance(number, (int, float)):
                raise ValueError("a number after -")
            return -number
        if word == "(":
            items: list[Arg] = []
            while not self._skip(")"):
                items.append(self._arg())
                self._skip(",")
            return tuple(items)
        if kind == "word":
            return _NAMED[word] if word in _NAMED else dtype_named(word)
        raise ValueError(f"{word!r} was not expected")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _more(self) -> bool:
        return self._at < len(self._tokens)

    def _is(self, mark: str) -> bool:
        return self._more() and self._tokens[self._at] in (("mark", mark), ("word", mark))

    def _skip(self, mark: str) -> bool:
        if not self._is(mark):
            return False
        self._at += 1
        return True

    def _take(self, mark: str) -> None:
        if not self._skip(mark):
            raise ValueError(f"{mark!r} expected")

    def end(self) -> None:
        if self._more():
            raise ValueError(f"{self._peek()[1]!r} was not expected")
