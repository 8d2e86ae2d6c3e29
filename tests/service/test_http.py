"""The HTTP contract, call by call, against the service in this process. Only the compiling is not real."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import zstandard

from service.errors import QueueFull, WorkerLost
from service.store.memory import MemoryStore
from tests.service.fake import Running, key_of, running

pytestmark = pytest.mark.anyio

IMMUTABLE = "public, max-age=31536000, immutable"
NO_KEY = "0" * 64


@pytest.fixture
async def service() -> AsyncIterator[Running]:
    async with running() as started:
        yield started


def told(response: httpx.Response, status: int, category: str) -> dict[str, Any]:
    """The problem document of a response, after looking at what all of them have."""
    body: dict[str, Any] = response.json()
    assert (status, "application/problem+json") == (response.status_code, response.headers["content-type"])
    assert (status, category) == (body["status"], body["category"])
    assert {"type", "title", "status", "detail", "instance", "category", "request_id"} <= set(body)
    assert response.headers["x-request-id"] == body["request_id"]
    assert response.request.url.path == body["instance"]
    return body


# POST /compile


async def test_a_new_kernel_is_compiled(service: Running) -> None:
    response = await service.compile({"kernel": 1})
    key = key_of({"kernel": 1})

    assert (200, "application/json", "compiled") == (
        response.status_code, response.headers["content-type"], response.headers["lathe-result"],
    )  # fmt: skip
    assert f"/program/{key}" == response.headers["location"]
    assert "k_1" == response.json()["name"]
    assert response.headers["etag"].startswith('"')
    assert "compile-lower;dur=250.000" in response.headers["server-timing"]


async def test_the_same_kernel_is_a_hit_with_the_same_bytes(service: Running) -> None:
    first = await service.compile({"kernel": 1})
    again = await service.compile({"kernel": 1})
    spelt_otherwise = await service.client.post("/compile", content=b'{ "kernel" :1 }', headers={"content-type": "application/json"})

    assert ["compiled", "hit", "hit"] == [r.headers["lathe-result"] for r in (first, again, spelt_otherwise)]
    assert first.content == again.content == spelt_otherwise.content
    assert 1 == len(service.compiler.compiled)


async def test_who_asks_meanwhile_waits_for_the_same_compile(service: Running) -> None:
    service.compiler.gate.clear()
    asking = [asyncio.ensure_future(service.compile({"kernel": 1})) for _ in range(20)]
    while service.metric("lathe_singleflight_waiters") < 19:
        await asyncio.sleep(0)
    service.compiler.gate.set()
    responses = await asyncio.gather(*asking)

    assert 1 == len(service.compiler.compiled)
    assert {"compiled": 1, "coalesced": 19} == {
        result: sum(r.headers["lathe-result"] == result for r in responses) for result in ("compiled", "coalesced")
    }
    assert 19 == service.metric("lathe_compiles_avoided_total")
    assert 19 * 0.251 == pytest.approx(service.metric("lathe_compile_seconds_saved_total"))


async def test_a_client_that_goes_away_harms_no_other(service: Running) -> None:
    service.compiler.gate.clear()
    asking = [asyncio.ensure_future(service.compile({"kernel": 1})) for _ in range(3)]
    while service.metric("lathe_singleflight_waiters") < 2:
        await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0)
    service.compiler.gate.set()
    responses = await asyncio.gather(*asking[1:])

    assert [200, 200] == [r.status_code for r in responses]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_bodies_may_be_coded_in_both_directions(service: Running, coding: str) -> None:
    body = json.dumps({"kernel": 1}).encode()
    sent = gzip.compress(body) if coding == "gzip" else zstandard.compress(body)
    headers = {"content-type": "application/json", "content-encoding": coding, "accept-encoding": coding}
    first = await service.client.post("/compile", content=sent, headers=headers)
    again = await service.client.post("/compile", content=sent, headers=headers)

    assert [coding, coding] == [r.headers["content-encoding"] for r in (first, again)]
    assert ["compiled", "hit"] == [r.headers["lathe-result"] for r in (first, again)]
    assert "k_1" == first.json()["name"] == again.json()["name"]
    assert "accept-encoding" == first.headers["vary"]


async def test_each_coding_has_its_own_strong_tag(service: Running) -> None:
    await service.compile({"kernel": 1})
    tags = [
        (await service.compile({"kernel": 1}, **{"accept-encoding": coding})).headers["etag"] for coding in ("identity", "gzip", "zstd")
    ]

    assert 3 == len(set(tags))


async def test_tuned_is_answered_by_the_heuristic_and_says_so(service: Running) -> None:
    plain = await service.compile({"kernel": 1})
    for _ in range(2):
        tuned = await service.compile({"kernel": 1, "tuned": True})

        assert "heuristic" == tuned.headers["lathe-optimize"]
        assert plain.content == tuned.content
    assert "lathe-optimize" not in plain.headers


async def test_a_service_without_devices_refuses_to_require_validation_by_name(service: Running) -> None:
    body = told(await service.compile({"kernel": 1, "require": "validated"}), 422, "option")

    assert "/require" == body["pointer"]
    assert [] == service.compiler.compiled


async def test_a_validator_is_asked_where_validation_is_required(service: Running) -> None:
    class Validator:
        async def device_for(self, answer: Any) -> str:
            return f"device of {answer.target}"

    service.services.flow.validator = Validator()
    for _ in range(2):
        response = await service.compile({"kernel": 1, "require": "validated"})

        assert "device of c" == response.headers["lathe-validated"]


async def test_a_refused_kernel_says_where_and_is_refused_again_without_compiling(service: Running) -> None:
    for _ in range(2):
        body = told(await service.compile({"kernel": 1, "do": "refuse"}), 422, "ast")

        assert ("/ast/nodes/3", "a kernel", "'something else'", 3) == tuple(body[name] for name in ("pointer", "expected", "got", "node"))
    assert 1 == len(service.compiler.compiled)
    assert 2 == service.metric("lathe_compile_requests_total", target="c", result="ast")


async def test_a_limit_of_the_compiler_comes_with_its_numbers(service: Running) -> None:
    body = told(await service.compile({"kernel": 1, "do": "too_large"}), 422, "limit")

    assert ("micro_ops", 300_000, 200_000) == (body["limit"], body["needed"], body["allowed"])


async def test_a_defect_of_the_compiler_is_a_500_that_is_never_kept(service: Running) -> None:
    for _ in range(2):
        body = told(await service.compile({"kernel": 1, "do": "bug"}), 500, "internal")

        assert "listing" not in json.dumps(body)
    assert 2 == len(service.compiler.compiled)


async def test_an_unforeseen_exception_is_a_problem_too(service: Running) -> None:
    body = told(await service.compile({"kernel": 1, "do": "crash"}), 500, "internal")

    assert "never raised" not in json.dumps(body)
    assert 200 == (await service.compile({"kernel": 1})).status_code


@pytest.mark.parametrize(
    ("error", "category"),
    [(QueueFull("full", retry_after_s=7), "overload"), (WorkerLost("lost", retry_after_s=7), "unavailable")],
)
async def test_what_is_nobodys_fault_says_when_to_come_back_and_is_not_kept(service: Running, error: Exception, category: str) -> None:
    service.compiler.raises = error
    response = await service.compile({"kernel": 1})
    told(response, 503, category)
    service.compiler.raises = None

    assert "7" == response.headers["retry-after"]
    if category == "overload":
        assert 200 == (await service.compile({"kernel": 1})).status_code
    else:
        told(await service.compile({"kernel": 1}), 503, "unavailable")
        assert 200 == (await service.compile({"kernel": 2})).status_code


@pytest.mark.parametrize("body", [b"", b"{", b'{"kernel": NaN}', b'{"kernel": 1} x', b'{"kernel": 1, "kernel": 2}', b"\xff\xfe", b"\x00"])
async def test_what_is_not_one_json_text_is_a_400(service: Running, body: bytes) -> None:
    told(await service.client.post("/compile", content=body, headers={"content-type": "application/json"}), 400, "wire")


async def test_json_that_is_no_request_is_a_422_with_the_place(service: Running) -> None:
    assert "/kernel" == told(await service.compile({}), 422, "wire")["pointer"]


@pytest.mark.parametrize("kind", ["text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "", "x"])
async def test_another_media_type_is_a_415(service: Running, kind: str) -> None:
    response = await service.client.post("/compile", content=b'{"kernel": 1}', headers={"content-type": kind})
    told(response, 415, "request")

    assert "application/json" == response.headers["accept"]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=UTF-8", "application/vnd.lathe+json", "Application/JSON"])
async def test_every_spelling_of_json_is_taken(service: Running, kind: str) -> None:
    response = await service.client.post("/compile", content=b'{"kernel": 1}', headers={"content-type": kind})

    assert 200 == response.status_code


async def test_a_body_seen_before_is_still_refused_in_another_media_type(service: Running) -> None:
    await service.client.post("/compile", content=b'{"kernel": 1}', headers={"content-type": "application/json"})

    told(await service.client.post("/compile", content=b'{"kernel": 1}', headers={"content-type": "text/html"}), 415, "request")
    headers = {"content-type": "application/json", "accept": "text/html"}
    told(await service.client.post("/compile", content=b'{"kernel": 1}', headers=headers), 406, "request")
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    told(await service.client.post("/compile", content=b'{"kernel": 1}', headers=headers), 400, "request")


async def test_an_unknown_content_coding_is_a_415(service: Running) -> None:
    headers = {"content-type": "application/json", "content-encoding": "br"}
    told(await service.client.post("/compile", content=b"x", headers=headers), 415, "request")


async def test_a_body_that_is_too_large_is_a_413_with_the_numbers() -> None:
    async with running(body_bytes=1000, inflated_bytes=2000) as service:
        kind = {"content-type": "application/json"}
        body = told(await service.client.post("/compile", content=bytes(1001), headers=kind), 413, "limit")
        assert ("body_bytes", 1001, 1000) == (body["limit"], body["needed"], body["allowed"])

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(11):
                yield bytes(100)

        told(await service.client.post("/compile", content=chunks(), headers=kind), 413, "limit")
        bomb = {**kind, "content-encoding": "gzip"}
        body = told(await service.client.post("/compile", content=gzip.compress(bytes(2001)), headers=bomb), 413, "limit")
        assert "inflated_bytes" == body["limit"]


async def test_nesting_beyond_the_limit_is_a_422(service: Running) -> None:
    body = b'{"kernel":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    response = await service.client.post("/compile", content=body, headers={"content-type": "application/json"})

    assert told(response, 422, "limit")["limit"] == "nesting"


# GET and HEAD /program/{key}


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
    service.services.library.forget_ready(key_of({"kernel": 1}))

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
    await service.services.library.keep_validation(key_of({"kernel": 1}), {"verdict": "wrong", "device": "d"})

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


# POST /programs/lookup


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


# the rest


@pytest.mark.parametrize("path", ["/nothing", "/program", "/compile/", "/program/a/b/c"])
async def test_an_unknown_path_is_a_404_problem(service: Running, path: str) -> None:
    told(await service.client.get(path), 404, "request")


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/compile"), ("GET", "/compile"), ("DELETE", f"/program/{NO_KEY}"), ("POST", "/limits")]
)
async def test_another_method_is_a_405_that_names_those_allowed(service: Running, method: str, path: str) -> None:
    response = await service.client.request(method, path)
    told(response, 405, "request")

    assert response.headers["allow"]


async def test_every_limit_is_listed_by_the_name_errors_give_it() -> None:
    async with running(body_bytes=1234, limit_nodes=77) as service:
        limits = (await service.client.get("/limits")).json()

        assert (1234, 77) == (limits["body_bytes"], limits["nodes"])
        assert {"compile_seconds", "worker_memory_bytes", "queue_limit", "lookup_keys", "nesting", "micro_ops"} <= set(limits)


async def test_targets_are_described_with_the_compiler_of_keys(service: Running) -> None:
    described = (await service.client.get("/targets")).json()

    assert {"compiler", "targets"} == set(described)
    assert {"opencl", "c"} <= set(described["targets"])


async def test_alive_is_alive_whatever_else(service: Running) -> None:
    service.compiler.answering = False

    assert {"status": "alive"} == (await service.client.get("/healthz")).json()


async def test_ready_until_told_to_end(service: Running) -> None:
    assert {"status": "ready", "degraded": {}} == (await service.client.get("/readyz")).json()
    assert 1 == service.metric("lathe_ready")
    service.services.phase.draining = True
    body = told(await service.client.get("/readyz"), 503, "unavailable")

    assert {"drain": "about to end"} == body["checks"]
    assert 0 == service.metric("lathe_ready")


async def test_not_ready_without_a_worker_that_answers(service: Running) -> None:
    service.compiler.answering = False

    assert {"workers": "no worker answers"} == told(await service.client.get("/readyz"), 503, "unavailable")["checks"]


async def test_the_end_drains_what_is_running() -> None:
    async with running() as service:
        compiler = service.compiler

    assert compiler.draining


@pytest.mark.parametrize(
    ("accept", "kind"), [("", "text/plain"), ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text")]
)
async def test_metrics_come_as_prometheus_or_openmetrics(service: Running, accept: str, kind: str) -> None:
    await service.compile({"kernel": 1})
    await service.compile({"kernel": 1})
    response = await service.client.get("/metrics", headers={"accept": accept})

    assert response.headers["content-type"].startswith(kind)
    for line in ('lathe_compile_requests_total{result="hit",target="c"} 1.0', "lathe_ready 1.0", "lathe_build_info{"):
        assert line in response.text
    assert response.text.endswith("# EOF\n") == (kind != "text/plain")


async def test_paths_and_methods_of_clients_make_no_new_series(service: Running) -> None:
    for i in range(20):
        await service.client.get(f"/secret-{i}")
        await service.client.request(f"X{i}", "/compile")
        await service.client.get(f"/program/{i:064x}")
    text = (await service.client.get("/metrics")).text

    assert "secret" not in text
    assert 3 == sum(line.startswith("lathe_http_requests_total") for line in text.splitlines())


async def test_a_client_s_request_id_comes_back_if_it_is_sane(service: Running) -> None:
    for sent, same in (("abc-1.2:3_4", True), ("x" * 65, False), ('"quoted"', False), ("", False)):
        response = await service.client.get("/healthz", headers={"x-request-id": sent})
        assert same == (sent == response.headers["x-request-id"])


async def test_ids_given_by_the_service_differ(service: Running) -> None:
    ids = {(await service.client.get("/healthz")).headers["x-request-id"] for _ in range(50)}

    assert 50 == len(ids)


async def test_two_services_over_one_store_serve_each_others_programs() -> None:
    store = MemoryStore(1 << 24)
    async with running(store) as one, running(store) as two:
        first = await one.compile({"kernel": 1})
        second = await two.compile({"kernel": 1})

        assert ("compiled", "hit") == (first.headers["lathe-result"], second.headers["lathe-result"])
        assert first.content == second.content
        assert [] == two.compiler.compiled


async def test_the_docs_need_no_network(service: Running) -> None:
    page = await service.client.get("/docs")
    assert 200 == page.status_code
    assert "//" not in page.text.replace("<!--", "").replace("// ", "").replace("window.location", "")
    for name in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"):
        assert f"docs/assets/{name}" in page.text
        assert 200 == (await service.client.get(f"/docs/assets/{name}")).status_code
    told(await service.client.get("/docs/assets/..%2fcore.py"), 404, "request")
    assert 'id="option"' in (await service.client.get("/docs/problems")).text
