"""Who may do what: tokens with scopes, and the scope that each call needs. Asked before anything of a request is read.

Settings hold digests of tokens, never tokens. A token is 256 random bits, so a plain SHA-256 of it tells nobody anything.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from service.caller import EVERYTHING, Caller, Scope
from service.errors import HttpRefused

_TOKEN = re.compile(r"([A-Za-z0-9_.-]{1,64}):([a-z+]+):([0-9a-f]{64})")
_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]{1,512}) *")

# The scope a call needs, by the beginning of its path: the first row that fits decides. What fits none (health, documentation) needs none.
NEEDED: Sequence[tuple[str, Scope]] = (
    ("/compile", Scope.COMPILE),
    ("/program", Scope.READ),  # /program/{key} and what lies under it, /programs/lookup
    ("/explain-key", Scope.READ),
    ("/jobs/", Scope.READ),
    ("/validate", Scope.VALIDATE),
    ("/tune", Scope.TUNE),
    ("/targets", Scope.READ),
    ("/devices", Scope.READ),
    ("/limits", Scope.READ),
    ("/metrics", Scope.ADMIN),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A client's name, what it may do, and the digest of what it has to show."""

    name: str
    scopes: frozenset[Scope]
    digest: str

    @staticmethod
    def parse(text: str) -> Token:
        """`NAME:SCOPE+SCOPE:DIGEST`. `admin` includes all others. Raises ValueError."""
        found = _TOKEN.fullmatch(text)
        if found is None:
            raise ValueError("expected NAME:SCOPE+SCOPE:SHA256 (`lathe token` prints one)")
        return Token(found[1], scopes_in(found[2]), found[3])

    def __str__(self) -> str:
        return f"{self.name}:{'+'.join(scope for scope in Scope if scope in self.scopes)}:{self.digest}"


def tokens_in(text: str) -> list[Token]:
    """The tokens of a setting, separated by spaces. Raises ValueError, also where a name stands twice."""
    tokens = [Token.parse(word) for word in text.split()]
    if len({token.name for token in tokens}) != len(tokens):
        raise ValueError("expected each name once")
    return tokens


def scopes_in(text: str) -> frozenset[Scope]:
    """`read+compile`, or nothing. Raises ValueError."""
    try:
        scopes = frozenset(Scope(word) for word in text.split("+") if word)
    except ValueError:
        raise ValueError(f"expected scopes among {', '.join(Scope)}, joined by +") from None
    return EVERYTHING if Scope.ADMIN in scopes else scopes


def made(name: str, scopes: frozenset[Scope]) -> tuple[str, Token]:
    """A new token: what the client shows, and what belongs into the settings."""
    shown = secrets.token_urlsafe(32)
    return shown, Token(name, scopes, hashlib.sha256(shown.encode()).hexdigest())


def needed(path: str) -> Scope | None:
    """The scope that a call of this path needs."""
    return next((scope for beginning, scope in NEEDED if path.startswith(beginning)), None)


class Access:
    """Lets clients in. anonymous: what those without a token may do."""

    def __init__(self, tokens: Sequence[Token], anonymous: frozenset[Scope]) -> None:
        self._tokens = tokens
        self._anonymous = anonymous

    @property
    def open(self) -> bool:
        """May everyone do everything?"""
        return not self._tokens and self._anonymous == EVERYTHING

    @property
    def reads_are_public(self) -> bool:
        """May a cache between us and many clients keep what one of them has read?"""
        return Scope.READ in self._anonymous

    def caller(self, authorization: bytes | None, address: str) -> Caller:
        """Who asks. Raises HttpRefused (401) for a token nobody has."""
        if authorization is None:
            return Caller(address, self._anonymous)
        shown = _BEARER.fullmatch(authorization)
        digest = hashlib.sha256(b"" if shown is None else shown[1]).hexdigest()
        found = None
        for token in self._tokens:  # all of them, whichever it is: the time taken tells nothing
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None:
            raise _unauthorized("the token is not known", ', error="invalid_token"')
        return Caller(found.name, found.scopes)

    def admit(self, authorization: bytes | None, address: str, path: str) -> Caller:
        """Who asks, if they may ask for this. Raises HttpRefused: 401 where a token would help, 403 where theirs has not the scope."""
        caller = self.caller(authorization, address)
        demand(caller, needed(path), known=authorization is not None)
        return caller


def demand(caller: Caller, scope: Scope | None, *, known: bool = True) -> None:
    """Raises HttpRefused where the caller lacks the scope. known: has it shown a token?"""
    if scope is None or scope in caller.scopes:
        return
    if not known:
        raise _unauthorized(f"this needs a token with the scope {scope}", f', scope="{scope}"')
    headers = {"www-authenticate": f'Bearer realm="lathe", error="insufficient_scope", scope="{scope}"', "connection": "close"}
    raise HttpRefused(403, f"this needs the scope {scope}, which the token of {caller.name!r} does not have", headers, expected=scope)


def _unauthorized(detail: str, more: str) -> HttpRefused:
    return HttpRefused(401, detail, {"www-authenticate": f'Bearer realm="lathe"{more}', "connection": "close"})
