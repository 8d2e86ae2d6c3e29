"""What operators do to stores: export, import, warm, replay. By the command line, with real workers and real stores."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from typer.testing import CliRunner

from service.__main__ import cli
from service.api.examples import COMPILES
from service.app import build
from service.codings import pack
from service.metrics import Metrics
from service.origin import dumped, origin_of
from service.services import Services
from service.store.keys import Key, Kind
from service.use import Use, most_used
from tests.service.fake import running, settings

pytestmark = pytest.mark.anyio

REQUESTS = list(COMPILES.values())
ENVIRONMENT = {"LATHE_WORKERS": "1", "LATHE_DEVICES": "none"}


def lathe(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(cli, list(words), env=ENVIRONMENT)
    assert code == result.exit_code, (result.stdout, result.stderr, result.exception)
    return result


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'one.db'}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.ndjson"
    path.write_text("\n".join(json.dumps(request) for request in REQUESTS) + "\n")
    return path


def services(store: str) -> Services:
    return build(settings(store=store, devices="none"), Metrics())[1]


def test_requests_are_compiled_before_anybody_asks_and_only_once(store: str, file: Path) -> None:
    assert f"{len(REQUESTS)} compiled\n" == lathe("warm", str(file), "--store", store).stdout
    assert f"{len(REQUESTS)} hit\n" == lathe("warm", str(file), "--store", store).stdout


@pytest.mark.parametrize("text", [json.dumps(REQUESTS), json.dumps(REQUESTS[0], indent=2)])
def test_requests_may_be_an_array_or_one(store: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "some.json").write_text(text)

    assert "compiled" in lathe("warm", str(tmp_path / "some.json"), "--store", store).stdout


def test_a_request_that_is_refused_is_told_and_concerns_no_other(store: str, tmp_path: Path) -> None:
    (tmp_path / "some.json").write_text(json.dumps([REQUESTS[0], {"ast": {}}]))
    result = lathe("warm", str(tmp_path / "some.json"), "--store", store, code=1)

    assert "1 compiled, 1 wire\n" == result.stdout
    assert result.stderr.startswith("lathe: request 1: wire: /device")


def test_what_is_no_file_of_requests_is_said_in_one_line(store: str, tmp_path: Path) -> None:
    (tmp_path / "some.json").write_text("{")

    assert 1 == lathe("warm", str(tmp_path / "some.json"), "--store", store, code=1).stderr.count("\n")
    assert 1 == lathe("warm", str(tmp_path / "some.json"), "--store", "memory://", code=2).stderr.count("\n")


def test_programs_go_from_one_store_to_another_byte_for_byte(store: str, file: Path, tmp_path: Path, redis_url: str) -> None:
    lathe("warm", str(file), "--store", store)
    archive = tmp_path / "programs.zst"

    assert lathe("export", str(archive), "--store", store).stdout.startswith(f"{len(REQUESTS)} programs")
    ENVIRONMENT["LATHE_STORE_PREFIX"] = f"t{tmp_path.name.replace('_', '-')}"
    ENVIRONMENT["LATHE_STORE_SECRET"] = "another secret"
    try:
        assert lathe("import", str(archive), "--store", redis_url).stdout.startswith(f"{len(REQUESTS)} new programs")
        assert lathe("import", str(archive), "--store", redis_url).stdout.startswith("0 new programs")
        back = tmp_path / "back.zst"
        lathe("export", str(back), "--store", redis_url)
    finally:
        del ENVIRONMENT["LATHE_STORE_PREFIX"], ENVIRONMENT["LATHE_STORE_SECRET"]

    assert lines(archive) == lines(back)


def lines(archive: Path) -> list[bytes]:
    with archive.open("rb") as raw:
        return sorted(zstandard.ZstdDecompressor().stream_reader(raw).read().splitlines())


@pytest.mark.parametrize("damage", ["flipped", "cut", "another format", "no program"])
def test_a_damaged_archive_is_refused_and_says_so_in_one_line(store: str, tmp_path: Path, file: Path, damage: str) -> None:
    archive = tmp_path / "programs.zst"
    lathe("warm", str(file), "--store", store)
    lathe("export", str(archive), "--store", store)
    content = bytearray(archive.read_bytes())
    match damage:
        case "flipped":
            content[len(content) // 2] ^= 1
        case "cut":
            del content[len(content) // 2 :]
        case "another format":
            content = bytearray(zstandard.compress(b'{"lathe":"programs","version":2}\n'))
        case "no program":
            content = bytearray(zstandard.compress(b'{"lathe":"programs","version":1}\n{"program":{}}\n'))
    archive.write_bytes(content)
    result = lathe("import", str(archive), "--store", f"sqlite:///{tmp_path / 'two.db'}", code=1)

    assert (1, "") == (result.stderr.count("\n"), result.stdout)
    assert "programs.zst" in result.stderr


def test_a_store_that_does_not_answer_is_said_in_one_line(tmp_path: Path) -> None:
    result = lathe("export", str(tmp_path / "x"), "--store", "redis://127.0.0.1:1/0", code=1)

    assert 1 == result.stderr.count("\n")
    assert [] == list(tmp_path.iterdir())


async def of_another_compiler(store: str, changed: bool) -> Key:
    """A program in the store as if an older compiler had made it, and somebody had asked for it."""
    parts = services(store)
    key = await anext(parts.catalog.keys(Kind.PROGRAM))
    answer, request = await parts.catalog.program(key), await parts.catalog.request(key)
    assert answer is not None
    assert request is not None
    program = answer.program() | {"compiler": "lathe-older", "key": "1" * 64}
    if changed:
        program["source"] = "// another text"
    old, body = Key("1" * 64), dumped(program)
    await parts.catalog.keep(old, body, pack(body), origin_of(json.loads(request), str(program["ast_hash"])), 1.0)
    use = Use()
    for _ in range(3):
        use.count(old)
    await use.keep(parts.catalog, now=True)
    await parts.catalog.close()
    return key


@pytest.mark.parametrize("changed", [False, True])
async def test_a_replay_tells_what_an_upgrade_has_changed(store: str, file: Path, changed: bool) -> None:
    await asyncio.to_thread(lathe, "warm", str(file), "--store", store)
    new = await of_another_compiler(store, changed)
    result = await asyncio.to_thread(lathe, "replay", "--store", store)

    assert result.stderr.endswith(f"{1 - changed} same, {changed + 0} changed, 0 refused, 0 gone\n")
    if changed:
        told = json.loads(result.stdout)
        assert ("1" * 64, new, ["source"], 3) == (told["key"], told["new_key"], told["what"], told["used"])
    else:
        assert "" == result.stdout


async def test_the_count_of_a_process_is_added_to_those_of_others() -> None:
    async with running() as service:
        one, two = Use(), Use()
        for use, key, times in ((one, "a", 3), (two, "a", 4), (two, "b", 5)):
            for _ in range(times):
                use.count(Key(key))
            await use.keep(service.services.catalog, now=True)

        assert {"a": 7, "b": 5} == await most_used(service.services.catalog)


async def test_every_answer_counts_and_counts_are_kept_at_the_end() -> None:
    async with running() as service:
        for _ in range(2):
            await service.compile({"kernel": 1})
        response = await service.compile({"kernel": 1})
        await service.client.get(response.headers["location"])
        await service.services.flow.use.keep(service.services.catalog, now=True)
        (key,) = await most_used(service.services.catalog)

        assert 4 == (await most_used(service.services.catalog))[key]


async def test_counts_are_kept_now_and_then_and_bounded() -> None:
    now = 0.0
    use = Use(lambda: now)
    async with running(memory_bytes=1 << 26) as service:
        catalog = service.services.catalog
        for i in range(25_000):
            use.count(Key(f"{i}"))
        use.count(Key("24999"))
        await use.keep(catalog)
        assert {} == await most_used(catalog)
        now = 61.0
        await use.keep(catalog)

        assert ("24999", 2) == (await most_used(catalog)).most_common(1)[0]
        assert 2000 >= len(await most_used(catalog))
