"""Tokens and scopes: who is let in, who is not, and that no secret is written anywhere."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from service.__main__ import cli
from service.access import NEEDED, Access, Token, demand, scopes_in, tokens_in
from service.caller import EVERYTHING, Caller, Scope
from service.errors import HttpRefused
from service.settings import SettingsError, load
from tests.service.fake import running, settings, told
from tests.service.process import served

pytestmark = pytest.mark.anyio


def token(name: str, *scopes: Scope) -> tuple[str, Token]:
    """A token as `made` makes them, but always the same."""
    shown = f"{name}-shows-this"
    return shown, Token(name, frozenset(scopes), hashlib.sha256(shown.encode()).hexdigest())


READER, READER_TOKEN = token("reader", Scope.READ)
MAKER, MAKER_TOKEN = token("maker", Scope.READ, Scope.COMPILE)
CHIEF, CHIEF_TOKEN = token("chief", *Scope)
TOKENS = f"{READER_TOKEN} {MAKER_TOKEN} {CHIEF_TOKEN}"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_without_tokens_everyone_may_do_everything_and_with_them_nobody_anything() -> None:
    assert settings().access.open
    assert not settings(tokens=TOKENS).access.open
    assert frozenset() == settings(tokens=TOKENS).access.caller(None, "somewhere").scopes
    assert {Scope.READ} == settings(tokens=TOKENS, anonymous="read").access.caller(None, "somewhere").scopes
    assert not settings(anonymous="").access.open


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("POST", "/compile", None, 401), ("POST", "/compile", READER, 403), ("POST", "/compile", MAKER, 200),
        ("POST", "/compile", CHIEF, 200),
        ("POST", "/compile/batch", READER, 403), ("POST", "/compile/batch", MAKER, 422),
        ("GET", f"/program/{'0' * 64}", None, 401), ("HEAD", f"/program/{'0' * 64}", None, 401),
        ("GET", f"/program/{'0' * 64}", READER, 404),
        ("GET", f"/program/{'0' * 64}/source", None, 401), ("POST", "/programs/lookup", None, 401), ("GET", "/targets", READER, 200),
        ("GET", "/limits", None, 401), ("GET", "/metrics", READER, 403), ("GET", "/metrics", CHIEF, 200), ("POST", "/tune", MAKER, 403),
        ("POST", "/validate", MAKER, 403), ("GET", f"/jobs/{'0' * 64}", None, 401), ("DELETE", f"/jobs/{'0' * 64}", READER, 404),
        ("GET", "/healthz", None, 200), ("GET", "/readyz", None, 200), ("GET", "/docs", None, 200), ("GET", "/openapi.json", None, 200),
        ("GET", "/targets", "nobody's", 401), ("GET", "/healthz", "nobody's", 401),
    ],
)  # fmt: skip
async def test_each_call_has_its_scope(method: str, path: str, token: str | None, status: int) -> None:
    async with running(tokens=TOKENS) as service:
        response = await service.client.request(
            method, path, headers={} if token is None else bearer(token), json={"kernel": 1} if method == "POST" else None
        )

        assert status == response.status_code
        if status in (401, 403):
            assert response.headers["www-authenticate"].startswith('Bearer realm="lathe"')
            if method != "HEAD":
                told(response, status, "request")


async def test_who_is_refused_is_refused_before_anything_is_read() -> None:
    async with running(tokens=TOKENS, body_bytes=10) as service:
        told(await service.client.post("/compile", content=bytes(1000), headers={"content-type": "x/y"}), 401, "request")


async def test_a_body_seen_before_opens_no_door() -> None:
    async with running(tokens=TOKENS) as service:
        assert 200 == (await service.compile({"kernel": 1}, **bearer(MAKER))).status_code
        told(await service.compile({"kernel": 1}), 401, "request")
        told(await service.compile({"kernel": 1}, **bearer(READER)), 403, "request")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", f"Bearer {READER}x", f"Token {READER}", f"Bearer {'x' * 5000}", "Bearer ä"]
)
async def test_what_is_no_token_of_ours_is_a_401(header: str) -> None:
    async with running(tokens=TOKENS, anonymous="read") as service:
        told(await service.client.get("/targets", headers={b"authorization": header.encode()}), 401, "request")


async def test_requiring_a_validation_needs_its_scope() -> None:
    async with running(tokens=TOKENS) as service:
        told(await service.compile({"kernel": 1, "require": "validated"}, **bearer(MAKER)), 403, "request")
        told(await service.compile({"kernel": 1, "require": "validated"}, **bearer(CHIEF)), 422, "option")


async def test_a_job_is_settled_by_its_client_or_an_admin() -> None:
    other, kept = token("other", Scope.READ, Scope.COMPILE)
    async with running(tokens=f"{TOKENS} {kept}") as service:
        service.compiler.gate.clear()
        path = (await service.compile({"kernel": 1}, prefer="wait=0", **bearer(MAKER))).headers["location"]

        told(await service.client.delete(path, headers=bearer(other)), 403, "request")
        assert "cancelled" == (await service.client.delete(path, headers=bearer(MAKER))).json()["state"]
        path = (await service.compile({"kernel": 2}, prefer="wait=0", **bearer(MAKER))).headers["location"]
        assert "cancelled" == (await service.client.delete(path, headers=bearer(CHIEF))).json()["state"]


async def test_caches_may_keep_for_many_only_what_anyone_may_read() -> None:
    for anonymous, kept in (("read", "public"), ("", "private")):
        async with running(tokens=TOKENS, anonymous=anonymous) as service:
            at = (await service.compile({"kernel": 1}, **bearer(CHIEF))).headers["location"]
            for path in (at, f"{at}/source"):
                response = await service.client.get(path, headers=bearer(CHIEF))
                assert f"{kept}, max-age=31536000, immutable" == response.headers["cache-control"]


async def test_every_call_has_a_scope_or_needs_none() -> None:
    """A new endpoint must be thought of here."""
    async with running() as service:
        paths = set((await service.client.get("/openapi.json")).json()["paths"])

    assert {"/healthz", "/readyz"} == {path for path in paths if not any(path.startswith(beginning) for beginning, _ in NEEDED)}


@pytest.mark.parametrize("text", ["x", "a:read:00", f"a:fly:{'0' * 64}", f"a b:read:{'0' * 64}", f"a:read:{'0' * 64} a:read:{'1' * 64}"])
async def test_what_is_no_token_setting_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="tokens"):
        load(environ={"LATHE_TOKENS": text})


async def test_scopes_are_read_as_they_are_written() -> None:
    assert {Scope.READ, Scope.TUNE} == scopes_in("read+tune")
    assert EVERYTHING == scopes_in("admin")
    assert frozenset() == scopes_in("")
    assert tokens_in(TOKENS) == tokens_in(" ".join(str(token) for token in tokens_in(TOKENS)))
    with pytest.raises(SettingsError, match="anonymous"):
        load(environ={"LATHE_ANONYMOUS": "everything"})


async def test_a_scope_that_nobody_needs_is_not_demanded() -> None:
    demand(Caller("x", frozenset()), None)
    with pytest.raises(HttpRefused):
        demand(Caller("x", frozenset()), Scope.READ)


async def test_the_command_line_makes_a_token_that_is_let_in() -> None:
    result = CliRunner().invoke(cli, ["token", "ci", "--scope", "read", "--scope", "compile"])
    shown, kept = result.stdout.split()

    assert hashlib.sha256(shown.encode()).hexdigest() == Token.parse(kept).digest
    assert Caller("ci", frozenset((Scope.READ, Scope.COMPILE))) == Access(tokens_in(kept), frozenset()).caller(
        f"Bearer {shown}".encode(), "x"
    )
    assert 2 == CliRunner().invoke(cli, ["token", "c i", "--scope", "read"]).exit_code
    assert 2 == CliRunner().invoke(cli, ["token", "ci", "--scope", "fly"]).exit_code


def test_no_secret_is_written_anywhere(redis_url: str) -> None:
    """Every line that a service has written, and all that it answers, after what might tempt it to tell."""
    secrets: dict[str, Any] = {"store_secret": "hushed-mac", "tokens": TOKENS}
    kept = [READER, CHIEF, "hushed-mac", CHIEF_TOKEN.digest, "hushed-password"]
    store = redis_url.replace("redis://", "redis://default:hushed-password@")  # refused by this Redis: what is said of that?
    with served(["tests.service.fake_service"], store=store, log_level="debug", **secrets) as service:
        answers: list[Any] = [
            service.client.get("/targets", headers=bearer(READER)), service.client.get("/targets", headers=bearer(f"{CHIEF}x")),
            service.client.post("/compile", json={"kernel": 1}, headers=bearer(CHIEF)),
            service.client.get("/metrics", headers=bearer(CHIEF)),
            service.client.post("/compile", json={"kernel": 1, "do": "crash"}, headers=bearer(CHIEF)), service.client.get("/readyz"),
        ]  # fmt: skip
        assert [200, 401, 200, 200, 500, 200] == [answer.status_code for answer in answers]
        assert 0 == service.end()
    text = json.dumps(service.lines) + "".join(service.other) + "".join(answer.text + str(answer.headers) for answer in answers)

    assert [] == [secret for secret in kept if secret in text]
    assert {"chief", "reader"} <= {line.get("client") for line in service.lines}
