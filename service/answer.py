"""A program as it goes to clients: its bytes and headers, made once and sent as often as somebody asks.

Between the store (`record`) and HTTP (`front`, `api`): whatever a hit would otherwise do again is done here once. The bytes are
those that were first stored; nothing is encoded anew, and clients that take zstd get the stored frame as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property

from core import TARGETS
from service.codings import Coding, encoded
from service.store.keys import Key
from service.store.record import Record

Headers = list[tuple[bytes, bytes]]


def immutable(public: bool) -> bytes:
    """`Cache-Control` of what never changes. public: may caches that many clients share keep it?"""
    return b"public, max-age=31536000, immutable" if public else b"private, max-age=31536000, immutable"


class Answer:
    """One stored program, ready to be sent.

    body: the program's JSON. packed: the same as one zstd frame. seconds: what compiling it took. links: to its binaries, as far as they
    are known here, as `Link` headers.
    """

    def __init__(self, key: Key, record: Record, links: Sequence[str] = ()) -> None:
        self.key = key
        self.body = record.content
        self.packed = record.packed
        self.seconds = record.seconds
        self.tag = hashlib.sha256(record.content).hexdigest()[:32]
        self._whole: dict[tuple[Coding, bool], tuple[bytes, bytes]] = {}
        self._sent: dict[Coding, tuple[Headers, bytes]] = {}
        self.link(links)

    @property
    def size(self) -> int:
        """Bytes of memory it takes, roughly."""
        return len(self.body) + 2 * len(self.packed) + 2000  # the second for gzip, which is made when it is asked for

    def link(self, links: Sequence[str]) -> None:
        """Has it sent with these links from now on, in place of those it had."""
        self.links: Headers = [(b"link", link.encode("latin-1", "replace")) for link in links]
        self._whole.clear()

    def program(self) -> dict[str, object]:
        """The program as a JSON value; read anew at each call, for a hit needs none of it."""
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError("a program is a JSON object")
        return value

    @cached_property
    def target(self) -> str:
        return str(self.program().get("target", ""))

    @cached_property
    def arch(self) -> str | None:
        """The device option of that name."""
        device = self.program().get("device")
        found = device.get("arch") if isinstance(device, dict) else None
        return found if isinstance(found, str) else None

    @property
    def file_name(self) -> str:
        """The name for the source as a file: the kernel's own and the ending of the language."""
        target = TARGETS.get(self.target)
        return f"{self.program().get('name') or 'kernel'}.{'txt' if target is None else target.file_suffix.lstrip('.')}"

    def etag(self, coding: Coding) -> str:
        """The strong entity tag of the body in this coding."""
        return f'"{self.tag}"' if coding == "identity" else f'"{self.tag}-{coding}"'

    def is_tagged(self, if_none_match: str) -> bool:
        """Does the header `If-None-Match` name this program, in whichever coding?"""
        named = (part.strip().removeprefix("W/") for part in if_none_match.split(","))
        return any(part == "*" or part in (self.etag("identity"), self.etag("gzip"), self.etag("zstd")) for part in named)

    def sent(self, coding: Coding) -> tuple[Headers, bytes]:
        """What a client that takes `coding` is sent: the headers that belong to the body, and the body. Not to be changed."""
        found = self._sent.get(coding)
        if found is None:
            found = self._sent[coding] = self._encoded(coding)
        return found

    def whole(self, coding: Coding, public: bool) -> tuple[bytes, bytes]:
        """What a plain `GET` is answered with: the lines of the head that belong to the program, as HTTP/1.1 has them, and the body."""
        found = self._whole.get((coding, public))
        if found is None:
            headers, body = self.sent(coding)
            lines = [*headers, (b"cache-control", immutable(public)), *self.links]
            found = self._whole[coding, public] = b"".join(b"%b: %b\r\n" % line for line in lines), body
        return found

    def _encoded(self, coding: Coding) -> tuple[Headers, bytes]:
        headers: Headers = [(b"content-type", b"application/json")]
        if coding == "zstd":
            body = self.packed
        elif coding == "gzip":
            body = encoded(self.body, "gzip")
        else:
            body = self.body
        if coding != "identity":
            headers.append((b"content-encoding", coding.encode()))
        headers += [
            (b"content-length", str(len(body)).encode()),
            (b"etag", self.etag(coding).encode()),
            (b"vary", b"accept-encoding"),
        ]
        return headers, body
