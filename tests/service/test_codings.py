"""Content codings: what was coded comes back, bombs stop at their bound, and clients get the coding they like best."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from service.codings import Coding, chosen, encoded, inflated
from service.errors import BodyTooLarge, HttpRefused

MOST = 1 << 20
CODINGS: list[Coding] = ["identity", "gzip", "zstd"]


@given(content=st.binary(max_size=20_000), coding=st.sampled_from(CODINGS))
def test_what_was_coded_comes_back(content: bytes, coding: Coding) -> None:
    assert content == inflated(encoded(content, coding), coding, MOST)


def test_several_members_and_frames_in_a_row_are_one_body() -> None:
    assert b"onetwo" == inflated(gzip.compress(b"one") + gzip.compress(b"two"), "gzip", MOST)
    assert b"onetwo" == inflated(encoded(b"one", "zstd") + encoded(b"two", "zstd"), "ZSTD", MOST)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_just_within_the_bound_is_taken_and_one_byte_more_is_not(coding: Coding) -> None:
    assert MOST == len(inflated(encoded(bytes(MOST), coding), coding, MOST))
    with pytest.raises(BodyTooLarge):
        inflated(encoded(bytes(MOST + 1), coding), coding, MOST)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_bomb_costs_no_more_memory_than_a_few_times_its_bound(coding: str) -> None:
    flat = bytes(1 << 24)
    if coding == "gzip":
        packer = zlib.compressobj(wbits=31)
        bomb = b"".join([packer.compress(flat) for _ in range(16)]) + packer.flush()
    else:
        frame = zstandard.ZstdCompressor(level=1).compressobj()
        bomb = b"".join([frame.compress(flat) for _ in range(16)]) + frame.flush()
    tracemalloc.start()
    with pytest.raises(BodyTooLarge):
        inflated(bomb, coding, MOST)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 64 * MOST < 16 * len(flat)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_what_is_not_in_the_coding_it_claims_is_refused(coding: Coding) -> None:
    whole = encoded(b"a kernel " * 100, coding)
    for sent in (b"plain text", whole[:-3], whole[: len(whole) // 2], whole + b"rest"):
        with pytest.raises(HttpRefused) as refused:
            inflated(sent, coding, MOST)
        assert 400 == refused.value.status


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "deflate", "x"])
def test_an_unknown_coding_is_refused_with_those_there_are(coding: str) -> None:
    with pytest.raises(HttpRefused) as refused:
        inflated(b"", coding, MOST)

    assert 415 == refused.value.status
    assert "gzip, zstd" == refused.value.headers["accept-encoding"]


def test_a_zstd_window_beyond_what_http_allows_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=27, write_content_size=False)
    huge = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = huge.compress(bytes(1 << 20)) + huge.flush()

    with pytest.raises(HttpRefused):
        inflated(frame, "zstd", 1 << 24)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", "identity"),
        ("identity", "identity"),
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("gzip;q=0, zstd;q=0", "identity"),
        ("*", "zstd"),
        ("*;q=0, gzip;q=0.1", "gzip"),
        ("GZIP;Q=0.5", "gzip"),
        ("zstd;q=nonsense", "identity"),
        ("zstd;q=7", "identity"),
        (";;,,", "identity"),
    ],
)
def test_the_coding_a_client_likes_best_is_chosen(header: str, expected: Coding) -> None:
    assert expected == chosen(header.encode())


@given(st.binary(max_size=60))
def test_no_header_is_too_odd_to_choose_by(header: bytes) -> None:
    assert chosen(header) in CODINGS
