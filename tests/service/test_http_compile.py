"""`POST /compile` over HTTP, in this process. Only the compiling is not real."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import zstandard

from service.errors import QueueFull, WorkerLost
from tests.service.fake import Running, key_of, running, told

pytestmark = pytest.mark.anyio


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
