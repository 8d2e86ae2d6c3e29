"""Stored values prove themselves: what was not put there under this name is never believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codings import pack
from service.store.keys import Key, Kind, Name
from service.store.record import OVERHEAD, Damaged, seal, unseal

NAME = Name(Kind.PROGRAM, Key("a" * 64))
OTHER = Name(Kind.PROGRAM, Key("b" * 64))


@given(content=st.binary(max_size=5000), seconds=st.floats(0, 1e6), secret=st.text(max_size=20))
def test_what_is_sealed_is_unsealed(content: bytes, seconds: float, secret: str) -> None:
    record = unseal(NAME, seal(NAME, content, seconds=seconds, secret=secret), secret=secret)

    assert (content, seconds) == (record.content, record.seconds)
    assert pack(content) == record.packed


@given(content=st.binary(max_size=300), at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(content: bytes, at: int, bit: int) -> None:
    value = bytearray(seal(NAME, content))
    value[at % len(value)] ^= 1 << bit

    with pytest.raises(Damaged):
        unseal(NAME, bytes(value))


@given(content=st.binary(max_size=300), cut=st.integers(1, 400))
def test_a_value_cut_short_or_grown_is_noticed(content: bytes, cut: int) -> None:
    value = seal(NAME, content)

    with pytest.raises(Damaged):
        unseal(NAME, value[: -min(cut, len(value))])
    with pytest.raises(Damaged):
        unseal(NAME, value + b"x" * cut)


@given(st.binary(max_size=200))
def test_any_other_bytes_are_no_value(value: bytes) -> None:
    with pytest.raises(Damaged):
        unseal(NAME, value)


@pytest.mark.parametrize("name", [OTHER, Name(Kind.REQUEST, NAME.key)])
def test_a_value_under_another_name_is_foreign(name: Name) -> None:
    with pytest.raises(Damaged):
        unseal(name, seal(NAME, b"content"))


@pytest.mark.parametrize(("written", "read"), [("", "secret"), ("secret", ""), ("secret", "another")])
def test_with_another_secret_no_value_is_believed(written: str, read: str) -> None:
    with pytest.raises(Damaged):
        unseal(NAME, seal(NAME, b"content", secret=written), secret=read)


def test_a_value_of_another_format_version_is_not_read() -> None:
    value = bytearray(seal(NAME, b"content"))
    value[3] += 1

    with pytest.raises(Damaged, match="version"):
        unseal(NAME, bytes(value))


def test_a_frame_that_inflates_to_more_than_it_says_is_not_inflated() -> None:
    with pytest.raises(Damaged, match="length"):
        unseal(NAME, seal(NAME, b"short", packed=pack(b"x" * 1_000_000)))


def test_a_value_costs_little_beside_its_content() -> None:
    assert 57 >= OVERHEAD
