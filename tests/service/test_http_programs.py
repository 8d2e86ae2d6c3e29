"""`/program/{key}` and `/programs/lookup` over HTTP, in this process."""

from __future__ import annotations

import pytest

from tests.service.fake import Running, key_of, running, told

pytestmark = pytest.mark.anyio

IMMUTABLE = "public, max-age=31536000, immutable"
NO_KEY = "0" * 64


async def test_a_program_is_served_by_its_key(service: Running) -> None:
    compiled = await service.compile({"kernel": 1})
    response = await service.client.get(compiled.headers["location"])

    assert (200, compiled.content, IMMUTABLE) == (response.status_code, response.content, response.headers["cache-control"])
    assert compiled.headers["etag"] == response.headers["etag"]


async def test_head_answers_as_get_without_the_body(service: Running) -> None:
    path = (await service.compile({"kernel": 1})).headers["location"]
    got, head = await service.client.get(path), await service.client.head(path)

    assert b"" == head.content
    for name in ("content-length", "etag", "cache-control", "content-type", "content-encoding"):
        assert got.headers[name] == head.headers[name]


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
async def test_what_the_client_has_is_not_sent_again(service: Running, coding: str) -> None:
    path = (await service.compile({"kernel": 1})).headers["location"]
    tag = (await service.client.get(path, headers={"accept-encoding": coding})).headers["etag"]
    for wanted in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        response = await service.client.get(path, headers={"if-none-match": wanted, "accept-encoding": coding})
        assert (304, b"", tag) == (response.status_code, response.content, response.headers["etag"])
    response = await service.client.get(path, headers={"if-none-match": '"other"', "accept-encoding": coding})

    assert 200 == response.status_code


@pytest.mark.parametrize("key", [NO_KEY, "short", "A" * 64, NO_KEY + "0", "%00", "..%2f", "0" * 63 + "g"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_is_not_here_is_a_404_that_no_cache_keeps(service: Running, key: str, method: str) -> None:
    response = await service.client.request(method, f"/program/{key}")

    assert (404, "no-store") == (response.status_code, response.headers["cache-control"])
    if method == "GET":
        told(response, 404, "request")


async def test_a_program_survives_this_process_s_memory(service: Running) -> None:
    path = (await service.compile({"kernel": 1})).headers["location"]
    service.services.catalog.forget_ready(key_of({"kernel": 1}))

    assert 200 == (await service.client.get(path)).status_code


async def test_a_client_that_takes_no_json_gets_a_406(service: Running) -> None:
    path = (await service.compile({"kernel": 1})).headers["location"]

    told(await service.client.get(path, headers={"accept": "text/html"}), 406, "request")
    told(await service.client.get(path, headers={"accept": "application/json;q=0, */*"}), 406, "request")
    told(await service.compile({"kernel": 1}, accept="image/png"), 406, "request")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/*;q=0.1", "text/html, application/json;q=0.9"])
async def test_a_client_that_takes_json_among_others_gets_it(service: Running, accept: str) -> None:
    path = (await service.compile({"kernel": 1})).headers["location"]

    assert 200 == (await service.client.get(path, headers={"accept": accept})).status_code


async def test_a_program_in_quarantine_is_410_by_key_and_500_when_compiled(service: Running) -> None:
    path = (await service.compile({"kernel": 1})).headers["location"]
    await service.services.catalog.keep_validation(key_of({"kernel": 1}), {"verdict": "wrong", "device": "d"})

    told(await service.client.get(path), 410, "request")
    told(await service.client.get(f"{path}/source"), 410, "request")
    told(await service.compile({"kernel": 1}), 500, "internal")


async def test_the_source_alone_is_text_with_a_file_name(service: Running) -> None:
    compiled = await service.compile({"kernel": 1})
    response = await service.client.get(f"{compiled.headers['location']}/source")

    assert compiled.json()["source"] == response.text
    assert "text/plain; charset=utf-8" == response.headers["content-type"]
    assert response.headers["content-disposition"].startswith('inline; filename="k_1.')
    tag = response.headers["etag"]
    assert 304 == (await service.client.get(f"{compiled.headers['location']}/source", headers={"if-none-match": tag})).status_code
    told(await service.client.get(f"/program/{NO_KEY}/source"), 404, "request")


async def test_a_look_up_says_which_keys_are_here(service: Running) -> None:
    key = key_of({"kernel": 1})
    await service.compile({"kernel": 1})
    response = await service.client.post("/programs/lookup", json={"keys": [NO_KEY, key]})

    assert {"found": [key], "missing": [NO_KEY]} == response.json()


async def test_a_look_up_brings_the_programs_where_they_are_wanted(service: Running) -> None:
    key = key_of({"kernel": 1})
    compiled = await service.compile({"kernel": 1})
    response = await service.client.post("/programs/lookup", json={"keys": [NO_KEY, key, key], "return": "programs"})

    assert {"found": [key, key], "missing": [NO_KEY], "programs": {key: compiled.json()}} == response.json()


async def test_a_look_up_of_nothing_finds_nothing(service: Running) -> None:
    assert {"found": [], "missing": []} == (await service.client.post("/programs/lookup", json={"keys": []})).json()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""), ({}, "/keys"), ({"keys": "x"}, "/keys"), ({"keys": ["x"]}, "/keys/0"), ({"keys": [NO_KEY, 5]}, "/keys/1"),
        ({"keys": [], "return": "all"}, "/return"), ({"keys": [], "more": 1}, "/more"), ({"keys": None}, "/keys"),
    ],
)  # fmt: skip
async def test_what_is_no_look_up_is_refused_with_the_place(service: Running, body: object, pointer: str) -> None:
    assert pointer == told(await service.client.post("/programs/lookup", json=body), 422, "wire")["pointer"]


async def test_too_many_keys_are_refused_with_the_numbers() -> None:
    async with running(lookup_keys=2) as service:
        body = told(await service.client.post("/programs/lookup", json={"keys": [NO_KEY] * 3}), 422, "limit")

        assert ("lookup_keys", 3, 2) == (body["limit"], body["needed"], body["allowed"])
