"""Bytes to the value they spell, if they are one JSON text (RFC 8259) that every reader reads alike.

The first thing that happens to a request. Refused beyond the grammar: a member name twice in one object, NaN and Infinity,
a byte order mark, half of a surrogate pair. How deep arrays and objects lie within each other is found by a scan in linear
time before anything is parsed, so deep input costs no stack; a number too long to be meant is cut to one that no rule of
the format can hold.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from core.errors import LimitExceeded, NotJson, Said
from core.limits import Limits

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_MINUS_ZERO = re.compile(rb"-0(?![.0-9eE])")  # how some languages write -0.0; an integer would lose the sign
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_DIGITS = bytes(0x30 if byte in b"0123456789" else 0x20 for byte in range(256))
_LONGEST_NUMBER = 600  # digits; sys.set_int_max_str_digits allows no setting under 640
_BEYOND = 10**400  # stands for an integer with more digits: outside every range of the format, doubles included


def read_json(raw: bytes, limits: Limits | None = None) -> object:
    """The value of one JSON text in UTF-8. Raises NotJson, or LimitExceeded where it nests deeper than `limits.nesting`."""
    if not raw or raw.isspace():
        raise NotJson("", expected="a JSON text", got=Said("an empty body"))
    limits = limits or Limits()
    outside = _STRING.sub(b'"', raw) if b"\\" in raw else b'"'.join(raw.split(b'"')[::2])
    _check_nesting(outside, limits)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson("", expected="UTF-8", got=Said(f"byte {raw[error.start]:#04x} at {error.start}, {error.reason}")) from None
    if text.startswith("\ufeff"):
        raise NotJson("", expected="a JSON text without a byte order mark", got=Said("a byte order mark"))
    careful = (b"-0" in outside and _MINUS_ZERO.search(outside)) or b"0" * _LONGEST_NUMBER in outside.translate(_DIGITS)
    decoder = _CAREFUL if careful else _PLAIN
    try:
        value: object = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson("", expected="one JSON text", got=Said(f"{error.msg} (line {error.lineno}, column {error.colno})")) from None
    except RecursionError:
        raise LimitExceeded("", limit="nesting", needed="more than the interpreter's stack", allowed=limits.nesting) from None
    if _SURROGATE.search(raw):
        _check_surrogates(value)
    return value


def _check_nesting(outside: bytes, limits: Limits) -> None:
    """`outside`: the text without its strings. Pairs of brackets fall out of it from within, one level a turn."""
    brackets = outside.translate(_BRACKETS, _NOT_BRACKETS)
    for _ in range(limits.nesting):
        left = brackets.replace(b"[]", b"")
        if len(left) == len(brackets):
            break
        brackets = left
    if b"[]" in brackets or brackets.count(b"[") > limits.nesting:  # the latter: never closed; the parser must not follow them
        raise LimitExceeded("", limit="nesting", needed=limits.nesting + 1, allowed=limits.nesting)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NotJson("", expected="each member name once in an object", got=Said(f"{twice[:60]!r} twice"))
    return members


def _no_constant(name: str) -> NoReturn:
    raise NotJson("", expected="a JSON number", got=Said(name))


def _integer(digits: str) -> int | float:
    if digits == "-0":
        return -0.0
    if len(digits) <= _LONGEST_NUMBER:
        return int(digits)
    return -_BEYOND if digits[0] == "-" else _BEYOND


def _check_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotJson("", expected="Unicode text in strings", got=Said("half of a surrogate pair")) from None


_PLAIN = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
_CAREFUL = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer)
