"""Bytes that are one JSON text are read; everything else is told what it is."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import LimitExceeded, NotJson
from core.json_text import read_json
from core.limits import Limits

REFUSED = {
    "empty": (b"", "an empty body"),
    "blank": (b" \n\t", "an empty body"),
    "truncated": (b'{"ast": {"version": 1', "Expecting ',' delimiter"),
    "truncated string": (b'{"ast', "Unterminated string"),
    "trailing bytes": (b'{"a": 1} x', "Extra data"),
    "two texts": (b"{}{}", "Extra data"),
    "trailing comma": (b"[1,]", "Expecting value"),
    "single quotes": (b"{'a': 1}", "property name"),
    "comment": (b"{} // no", "Extra data"),
    "NaN": (b'{"value": NaN}', "NaN"),
    "Infinity": (b"[Infinity]", "Infinity"),
    "minus Infinity": (b"[-Infinity]", "-Infinity"),
    "a name twice": (b'{"a": 1, "b": 2, "a": 1}', "'a' twice"),
    "a name twice within": (b'[{"a": {"b": 1, "b": 2}}]', "'b' twice"),
    "a name twice, spelt differently": (b'{"a": 1, "\\u0061": 2}', "'a' twice"),
    "not UTF-8": (b'{"a": "\xff"}', "byte 0xff at 7"),
    "a surrogate in UTF-8": (b'"\xed\xa0\x80"', "byte 0xed"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "byte 0xff at 0"),
    "a byte order mark": (b'\xef\xbb\xbf{"a": 1}', "a byte order mark"),
    "half a surrogate pair": (b'["\\ud800"]', "half of a surrogate pair"),
    "half a surrogate pair in a name": (b'{"\\udc00x": 1}', "half of a surrogate pair"),
    "leading zero": (b"[01]", "Expecting ',' delimiter"),
    "a plus": (b"[+1]", "Expecting value"),
    "hexadecimal": (b"[0x10]", "Expecting ',' delimiter"),
    "a bare point": (b"[1.]", "Expecting ',' delimiter"),
    "a control character": (b'["a\nb"]', "Invalid control character"),
    "closing only": (b"]", "Expecting value"),
    "crossed brackets": (b"[{]}", "property name"),
    "other digits": ("[١]".encode(), "Expecting value"),
}


@pytest.mark.parametrize(("raw", "got"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_one_json_text_is_refused(raw: bytes, got: str) -> None:
    """A 7: truncated, members twice, NaN, something behind the end."""
    with pytest.raises(NotJson) as refusal:
        read_json(raw)

    assert refusal.value.category == "wire"
    assert refusal.value.facts()["pointer"] == ""
    assert got in str(refusal.value.facts()["got"])


@pytest.mark.parametrize("raw", [b"[" * 65 + b"]" * 65, b"[" * 10_000_000, b'{"a":' * 1_000_000, b"[" * 65, b"[{" * 40 + b"}]" * 40])
def test_deep_nesting_is_refused_before_anything_is_parsed(raw: bytes) -> None:
    with pytest.raises(LimitExceeded) as refusal:
        read_json(raw)

    assert refusal.value.facts() == {"pointer": "", "limit": "nesting", "needed": 65, "allowed": 64}


def test_nesting_up_to_the_limit_is_read() -> None:
    value = read_json(b"[" * 64 + b"]" * 64)

    for _ in range(63):
        assert isinstance(value, list)
        (value,) = value
    assert value == []


def test_the_limit_is_the_one_handed_in() -> None:
    assert [[1]] == read_json(b"[[1]]", Limits(nesting=2))
    with pytest.raises(LimitExceeded):
        read_json(b"[[[1]]]", Limits(nesting=2))


@pytest.mark.parametrize("raw", [b'["[[[[["]', b'["]]]", "[[["]', b'["\\"[[[", "\\\\", "[[["]', b'{"[[": {"]": "\\\\\\"[["}}'])
def test_brackets_in_strings_do_not_count(raw: bytes) -> None:
    assert json.loads(raw) == read_json(raw, Limits(nesting=2))


@pytest.mark.parametrize("escaped", [False, True])
def test_closing_brackets_in_strings_hide_no_depth(escaped: bool) -> None:
    closing = b'"]"' if not escaped else b'"\\"]"'
    with pytest.raises(LimitExceeded):
        read_json((b"[" + closing + b",") * 100 + b"0" + b"]" * 100)


def test_numbers_keep_their_kind_and_sign() -> None:
    value = read_json(b"[1, 1.0, -0.0, 1e2, 9007199254740993, true, -0.5, 0]")

    assert "[1, 1.0, -0.0, 100.0, 9007199254740993, True, -0.5, 0]" == repr(value)


def test_minus_zero_is_a_float_however_it_is_written() -> None:
    assert "[-0.0, -0.0, -0.0, '-0', -1]" == repr(read_json(b'[-0, -0.0,-0e0, "-0", -1]'))


def test_a_float_beyond_doubles_is_infinite_and_left_to_the_format() -> None:
    assert [float("inf"), float("-inf"), 0.0] == read_json(b"[1e999, -1e999, 1e-999]")


@pytest.mark.parametrize("digits", [601, 5_000, 3_000_000])
def test_an_integer_with_very_many_digits_costs_little_and_fits_no_range(digits: int) -> None:
    started = time.process_time()
    value = read_json(b'{"a": ' + b"7" * digits + b', "b": [-' + b"7" * digits + b"]}")

    assert {"a": 10**400, "b": [-(10**400)]} == value
    assert time.process_time() - started < 2


def test_integers_within_reach_are_exact() -> None:
    assert int("9" * 599) == read_json(b"9" * 599)


def test_pairs_of_surrogates_are_one_character() -> None:
    assert ["😀"] == read_json(b'["\\ud83d\\ude00"]')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_every_value_written_is_read_back(value: object, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()

    assert repr(value) == repr(read_json(raw))


@given(st.binary(max_size=40) | st.text(alphabet='[]{}",:\\ 0e-tn', max_size=30).map(str.encode))
def test_anything_else_is_refused_in_order(raw: bytes) -> None:
    try:
        value = read_json(raw)
    except (NotJson, LimitExceeded):
        return
    assert repr(json.loads(raw, parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))) == repr(value)
