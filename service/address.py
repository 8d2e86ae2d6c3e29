"""Where a Redis is, as one URL says it: a server, the master that Sentinels name, or a cluster.

    redis://[user[:password]@]host[:port][/db]                                   one server; rediss:// by TLS
    unix://[user[:password]@]/path[?db=N]                                        one server, by a socket
    redis+sentinel://[user[:password]@]host[:port][,host[:port]…]/service[/db]   rediss+sentinel:// by TLS
    redis+cluster://[user[:password]@]host[:port][,host[:port]…]                 rediss+cluster:// by TLS

User and password are an ACL user's; what is not plain in them is percent-encoded. Sentinels that ask for a password of their own
get it from the query: `?sentinel_user=…&sentinel_password=…`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl, unquote, urlsplit

PORT = 6379
SENTINEL_PORT = 26379


class Manner(StrEnum):
    """How the server is found."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


SCHEMES = {
    "redis": (Manner.SINGLE, False),
    "rediss": (Manner.SINGLE, True),
    "unix": (Manner.SINGLE, False),
    "redis+sentinel": (Manner.SENTINEL, False),
    "rediss+sentinel": (Manner.SENTINEL, True),
    "redis+cluster": (Manner.CLUSTER, False),
    "rediss+cluster": (Manner.CLUSTER, True),
}


@dataclass(frozen=True, slots=True)
class Address:
    """hosts: with their ports; empty where `path` is a socket's. service: the master's name among Sentinels."""

    manner: Manner
    hosts: tuple[tuple[str, int], ...] = ()
    path: str = ""
    tls: bool = False
    db: int = 0
    user: str | None = None
    password: str | None = None
    service: str = ""
    sentinel_user: str | None = None
    sentinel_password: str | None = None


def address_in(url: str) -> Address:
    """The address a URL spells. Raises ValueError, which never repeats a password, where it spells none."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"expected one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    manner, tls = SCHEMES[parts.scheme]
    who, _, where = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    query = dict(parse_qsl(parts.query))
    words = [word for word in parts.path.split("/") if word]
    service, socket = "", ""
    if parts.scheme == "unix":
        if where or not words:
            raise ValueError("expected unix:// and the path of a socket")
        socket, words = parts.path, [query.pop("db", "0")]
    elif manner is Manner.SENTINEL:
        if not words:
            raise ValueError("expected the name of the service, as the Sentinels know it, after the hosts: …/service")
        service, words = words[0], words[1:]
    elif manner is Manner.CLUSTER and words:
        raise ValueError("expected no database: a cluster has only one")
    if len(words) > 1 or (words and not words[0].isdecimal()):
        raise ValueError("expected a database's number at the end")
    known = {"sentinel_user", "sentinel_password"} if manner is Manner.SENTINEL else set()
    if set(query) - known:
        raise ValueError(f"unknown in the query: {', '.join(sorted(set(query) - known))}")
    return Address(
        manner,
        () if socket else _hosts(where, manner),
        socket,
        tls,
        int(words[0]) if words else 0,
        unquote(user) or None,
        unquote(password) or None,
        service,
        query.get("sentinel_user"),
        query.get("sentinel_password"),
    )


def _hosts(where: str, manner: Manner) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for part in where.split(","):
        bracket = part.rfind("]")  # of an IPv6 address
        colon = part.find(":", bracket + 1)
        host = (part if colon < 0 else part[:colon]).strip("[]")
        port = part[colon + 1 :] if colon >= 0 else str(SENTINEL_PORT if manner is Manner.SENTINEL else PORT)
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError("expected host[:port]" + ("" if manner is Manner.SINGLE else ", several with commas between them"))
        found.append((host, int(port)))
    if manner is Manner.SINGLE and len(found) > 1:
        raise ValueError("expected one host: several are written redis+sentinel:// or redis+cluster://")
    return tuple(found)
