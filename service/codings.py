"""Content codings: gzip and zstd in both directions, with a bound on what a body may inflate to.

A bomb costs no more than the bound: inflating stops at the first byte beyond it.
"""

from __future__ import annotations

import gzip
import threading
import zlib
from functools import lru_cache
from typing import Literal

import zstandard

from service.errors import BodyTooLarge, HttpRefused

Coding = Literal["identity", "gzip", "zstd"]

OFFERED = "gzip, zstd"
ZSTD_LEVEL = 3  # 4 KB in some 30 µs, to about a quarter of the size
GZIP_LEVEL = 6
WINDOW_MOST = 8 << 20  # bytes of window a zstd frame may ask for; what RFC 9659 allows in HTTP
CHUNK = 1 << 16
ZSTD_STEP = 256  # bytes inflated at once: one block of four may stand for 128 KiB, so a step for 8 MiB at most
PARTS_MOST = 64  # gzip members or zstd frames in one body: what follows each is copied, so many small ones would take quadratic time
WORTH_CODING = 1024  # bytes below which an answer is sent as it is

_THREAD = threading.local()  # a compressor for each thread: making one takes as long as compressing a program


def pack(content: bytes) -> bytes:
    """The content as one zstd frame that tells its size."""
    compressor: zstandard.ZstdCompressor | None = getattr(_THREAD, "compressor", None)
    if compressor is None:
        compressor = _THREAD.compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=True)
    return compressor.compress(content)


def encoded(content: bytes, coding: Coding) -> bytes:
    """The content in a coding."""
    if coding == "zstd":
        return pack(content)
    return gzip.compress(content, GZIP_LEVEL, mtime=0) if coding == "gzip" else content


def inflated(sent: bytes, coding: str, most: int) -> bytes:
    """What was sent in the coding that `Content-Encoding` names ("" or "identity": as it is).

    Raises BodyTooLarge beyond `most` bytes, HttpRefused (415) for a coding we do not know and (400) for a body that is not in
    the coding it claims.
    """
    match coding.strip().lower():
        case "" | "identity":
            content = sent
        case "gzip" | "x-gzip":
            content = _gunzipped(sent, most)
        case "zstd":
            content = _unzstd(sent, most)
        case _:
            raise HttpRefused(415, "the body's content coding is unknown", {"accept-encoding": OFFERED}, expected=OFFERED)
    if len(content) > most:
        raise BodyTooLarge(limit="inflated_bytes", allowed=most)
    return content


def _gunzipped(sent: bytes, most: int) -> bytes:
    parts: list[bytes] = []
    held = 0
    rest = sent
    try:
        for _ in range(PARTS_MOST):
            if not rest:
                return b"".join(parts)
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                part = member.decompress(rest, CHUNK)
                rest = member.unconsumed_tail or member.unused_data
                if not part and not rest and not member.eof:
                    raise HttpRefused(400, "the gzip body ends too soon")
                parts.append(part)
                held += len(part)
                if held > most:
                    raise BodyTooLarge(limit="inflated_bytes", allowed=most)
    except zlib.error as error:
        raise HttpRefused(400, f"the body is not gzip: {error}") from None
    raise HttpRefused(400, f"the gzip body has more than {PARTS_MOST} members")


def _unzstd(sent: bytes, most: int) -> bytes:
    parts: list[bytes] = []
    held = 0
    rest = sent
    try:
        for _ in range(PARTS_MOST):
            if not rest:
                return b"".join(parts)
            frame = zstandard.ZstdDecompressor(max_window_size=WINDOW_MOST).decompressobj()
            for start in range(0, len(rest), ZSTD_STEP):  # one call inflates all it is given
                part = frame.decompress(rest[start : start + ZSTD_STEP])
                parts.append(part)
                held += len(part)
                if held > most:
                    raise BodyTooLarge(limit="inflated_bytes", allowed=most)
                if frame.eof:
                    rest = frame.unused_data + rest[start + ZSTD_STEP :]
                    break
            else:
                raise HttpRefused(400, "the zstd body ends too soon")
    except zstandard.ZstdError as error:
        raise HttpRefused(400, f"the body is not zstd: {error}") from None
    raise HttpRefused(400, f"the zstd body has more than {PARTS_MOST} frames")


@lru_cache(maxsize=256)
def chosen(accept_encoding: bytes) -> Coding:
    """The coding to answer in, by the header `Accept-Encoding` (b"" where it was not sent): the best liked one we have.

    Among equals zstd comes first, since programs are stored in it.
    """
    weights: dict[str, float] = {}
    for part in accept_encoding.decode("latin-1").split(","):
        name, _, parameters = part.partition(";")
        weights[name.strip().lower()] = weight(parameters)
    other = weights.get("*", 0.0)
    zstd, gz = weights.get("zstd", other), weights.get("gzip", weights.get("x-gzip", other))
    if zstd > 0 and zstd >= gz:
        return "zstd"
    return "gzip" if gz > 0 else "identity"


def weight(parameters: str) -> float:
    """The `q` among the parameters of an item of an `Accept…` header; 1 where it is absent, 0 where it is nonsense."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                q = float(value.strip())
            except ValueError:
                return 0.0
            return q if 0.0 <= q <= 1.0 else 0.0
    return 1.0
