"""What a program was compiled from: its canonical AST, which other programs come from too, and the rest of the request.

A worker takes the two apart, they are kept apart, and `request` joins them again for whoever starts from a key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """ast: the canonical AST as JSON, whose hash is `ast_hash`. rest: the canonical request as JSON with the hash in the AST's place."""

    ast_hash: str
    ast: bytes
    rest: bytes


def origin_of(request: Mapping[str, object], ast_hash: str) -> Origin:
    """The origin that a canonical request is."""
    rest = {name: value for name, value in request.items() if name != "ast"}
    return Origin(ast_hash, dumped(request["ast"]), dumped({"ast_hash": ast_hash, **rest}))


def ast_hash_in(rest: bytes) -> str:
    """The hash of the AST that belongs to the rest of a request. Raises ValueError where there is none."""
    value = json.loads(rest)
    if not isinstance(value, dict) or not isinstance(value.get("ast_hash"), str):
        raise ValueError("not the rest of a request")
    return str(value["ast_hash"])


def request_of(ast: bytes, rest: bytes) -> bytes:
    """The canonical request as JSON, joined again."""
    value = {name: member for name, member in json.loads(rest).items() if name != "ast_hash"}
    return b'{"ast":' + ast + (b"," + dumped(value)[1:] if value else b"}")


def dumped(value: object) -> bytes:
    """JSON text without spaces, as it is stored and sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
