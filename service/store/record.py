"""One stored value that proves itself: whatever a store hands back is checked here before anybody believes it.

A header (format version, codec, lengths, a digest over everything) and a payload. The digest covers the value's own name, so a
value that ended up under another name is refused like a damaged one. With a secret the digest is an HMAC: then nobody who can
write to the store can make us serve a program of theirs. Nothing here is ever unpickled.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import threading
from dataclasses import dataclass
from enum import IntEnum

import zstandard

from service.codings import pack
from service.store.keys import Name

VERSION = 1
MAGIC = b"LaR"
MOST_INFLATED = 256 << 20  # no value is larger: what says so is damaged

# magic, version, codec, seconds of work in it, length of the content, length of the payload
_HEAD = struct.Struct("<3sBBdIQ")
_DIGEST = hashlib.sha256().digest_size
_THREAD = threading.local()
OVERHEAD = _HEAD.size + _DIGEST


class Codec(IntEnum):
    """How the payload holds the content."""

    PLAIN = 0
    ZSTD = 1


class Damaged(ValueError):
    """The bytes are no value of ours under this name. The message says what gave it away."""


@dataclass(frozen=True, slots=True)
class Record:
    """A value that was checked: content as it was put in, and the same compressed, ready to be sent on.

    seconds: what it took to make the content, for the account of what keeping it saves.
    """

    content: bytes
    packed: bytes
    seconds: float


def seal(name: Name, content: bytes, *, packed: bytes | None = None, seconds: float = 0.0, secret: str = "") -> bytes:
    """The value to store under `name`. packed: `pack(content)`, where somebody has it already."""
    payload = pack(content) if packed is None else packed
    head = _HEAD.pack(MAGIC, VERSION, Codec.ZSTD, seconds, len(content), len(payload))
    return head + _digest(name, head, payload, secret) + payload


def unseal(name: Name, value: bytes, *, secret: str = "") -> Record:
    """The record in a stored value. Raises Damaged where the value is not what `seal` made for this name."""
    if len(value) < OVERHEAD:
        raise Damaged("shorter than a header")
    magic, version, codec, seconds, length, payload_length = _HEAD.unpack_from(value)
    if magic != MAGIC or version != VERSION:
        raise Damaged("another format or version")
    payload = value[OVERHEAD:]
    if payload_length != len(payload):
        raise Damaged("cut short or grown")
    head = value[: _HEAD.size]
    if not hmac.compare_digest(_digest(name, head, payload, secret), value[_HEAD.size : OVERHEAD]):
        raise Damaged("the digest does not fit")
    if length > MOST_INFLATED:
        raise Damaged("larger than any value")
    content = _content(codec, payload, length)
    return Record(content, payload if codec == Codec.ZSTD else pack(content), seconds)


def _content(codec: int, payload: bytes, length: int) -> bytes:
    if codec == Codec.PLAIN:
        content = payload
    elif codec == Codec.ZSTD:
        try:
            if zstandard.frame_content_size(payload) != length:
                raise Damaged("another length than it says")
            content = _inflater().decompress(payload, max_output_size=length)
        except zstandard.ZstdError as error:
            raise Damaged("the payload does not inflate") from error
    else:
        raise Damaged("another codec")
    if len(content) != length:
        raise Damaged("another length than it says")
    return content


def _inflater() -> zstandard.ZstdDecompressor:
    """One for each thread: making one takes three times as long as inflating a program (measured)."""
    found: zstandard.ZstdDecompressor | None = getattr(_THREAD, "inflater", None)
    if found is None:
        found = _THREAD.inflater = zstandard.ZstdDecompressor()
    return found


def _digest(name: Name, head: bytes, payload: bytes, secret: str) -> bytes:
    text = str(name).encode()
    parts = struct.pack("<I", len(text)) + text + head
    if secret:
        mac = hmac.new(secret.encode(), parts, hashlib.sha256)
        mac.update(payload)
        return mac.digest()
    plain = hashlib.sha256(parts)
    plain.update(payload)
    return plain.digest()
