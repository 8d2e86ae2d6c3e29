"""Redis by TLS, both sides with certificates. A real server, started without a plain port."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from service.address import address_in
from service.errors import StoreDown
from service.store.keys import Key, Kind, Name
from service.store.redis import RedisStore
from service.store.redis_link import Link, Tls
from service.store.store import Entry
from tests.service.redis_servers import PATIENCE_S, free_port

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Secured:
    """url: of the server. folder: with `authority.pem`, and `NAME.pem` and `NAME.key` of each who has a certificate."""

    url: str
    folder: Path

    def tls(self, authority: str = "authority.pem", who: str = "client") -> Tls:
        return Tls(*(str(self.folder / name) for name in (authority, f"{who}.pem", f"{who}.key")))


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    for name, issuer in (("server", authority), ("client", authority), ("stranger", other)):
        certificate = issuer.issue_cert("127.0.0.1", "localhost")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
        certificate.private_key_pem.write_to_path(tmp_path / f"{name}.key")
    port = free_port()
    program = shutil.which("redis-server") or pytest.fail("redis-server is not on the PATH: run the tests by ./run test")
    files = [
        f"--tls-{what}-file={tmp_path / name}"
        for what, name in (("cert", "server.pem"), ("key", "server.key"), ("ca-cert", "authority.pem"))
    ]
    options = [word for file in files for word in file.split("=", 1)]
    command = [program, "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        time.sleep(0.02)
    yield Secured(f"rediss://127.0.0.1:{port}/0", tmp_path)
    process.kill()
    process.wait()


def linked(secured: Secured, tls: Tls) -> RedisStore:
    return RedisStore(Link(address_in(secured.url), timeout_s=10, tls=tls))


async def test_values_go_by_tls_to_a_server_we_believe_that_believes_us(secured: Secured) -> None:
    store = linked(secured, secured.tls())
    name = Name(Kind.PROGRAM, Key(secrets.token_hex(32)))
    await store.put(Entry(name, b"v", 60.0))

    assert [b"v"] == await store.many([name])
    await store.close()


@pytest.mark.parametrize(("authority", "who"), [("other.pem", "client"), ("authority.pem", "stranger")])
async def test_whoever_has_not_the_right_certificate_is_not_believed(secured: Secured, authority: str, who: str) -> None:
    store = linked(secured, secured.tls(authority, who))
    with pytest.raises(StoreDown):
        await store.ping()
    await store.close()
