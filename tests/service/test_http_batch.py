"""`POST /compile/batch`: lines as they are done, bounded, and gone with the client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.service.fake import Running, key_of, running, told

pytestmark = pytest.mark.anyio

KIND = {"content-type": "application/json"}


async def lines(service: Running, requests: list[Any]) -> list[dict[str, Any]]:
    response = await service.client.post("/compile/batch", json={"requests": requests})
    assert (200, "application/x-ndjson") == (response.status_code, response.headers["content-type"])
    assert response.text.endswith("\n") or not requests
    return [json.loads(line) for line in response.text.splitlines()]


async def test_each_request_has_its_line(service: Running) -> None:
    await service.compile({"kernel": 1})
    answered = {line["index"]: line for line in await lines(service, [{"kernel": 1}, {"kernel": 2}, {"kernel": 1, "do": "refuse"}, {}])}

    assert [(200, "hit"), (200, "compiled"), (422, None), (422, None)] == [(answered[i]["status"], answered[i]["result"]) for i in range(4)]
    assert ["k_1", "k_2"] == [answered[i]["program"]["name"] for i in (0, 1)]
    assert [("ast", "/ast/nodes/3"), ("wire", "/kernel")] == [
        (answered[i]["problem"]["category"], answered[i]["problem"]["pointer"]) for i in (2, 3)
    ]
    assert [[]] * 4 == [answered[i]["links"] for i in range(4)]
    assert all(("program" in line) != ("problem" in line) for line in answered.values())


async def test_a_program_in_a_line_is_the_one_that_stands_under_its_key(service: Running) -> None:
    (line,) = await lines(service, [{"kernel": 1}])

    assert (await service.client.get(f"/program/{key_of({'kernel': 1})}")).json() == line["program"]


async def test_equal_requests_are_compiled_once(service: Running) -> None:
    answered = await lines(service, [{"kernel": 1}] * 50)

    assert {"compiled": 1, "coalesced": 31, "hit": 18} == {
        result: sum(line["result"] == result for line in answered) for result in ("compiled", "coalesced", "hit")
    }
    assert 1 == len(service.compiler.compiled)


async def test_a_batch_has_only_so_many_under_way_at_once() -> None:
    async with running(batch_parallel=3) as service:
        service.compiler.gate.clear()
        asking = asyncio.ensure_future(lines(service, [{"kernel": i} for i in range(10)]))
        while len(service.compiler.compiled) < 3:
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        assert 3 == len(service.compiler.compiled)
        service.compiler.gate.set()

        assert 10 == len(await asking)


async def test_what_is_done_first_is_told_first(service: Running) -> None:
    """The order is that of completion, and a line leaves before the batch has ended."""
    await service.compile({"kernel": 2})
    service.compiler.gate.clear()
    body = json.dumps({"requests": [{"kernel": 1}, {"kernel": 2}]}).encode()
    sent: asyncio.Queue[bytes] = asyncio.Queue()
    asking = asyncio.ensure_future(by_hand(service, body, sent))
    first = json.loads(await sent.get())
    service.compiler.gate.set()
    second = json.loads(await sent.get())
    await asking

    assert [1, 0] == [first["index"], second["index"]]


async def by_hand(service: Running, body: bytes, sent: asyncio.Queue[bytes], leaves: asyncio.Event | None = None) -> None:
    """A batch through the ASGI door: each piece of the answer is put into `sent`; the client closes when `leaves` is set."""
    bodies = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if bodies:
            return bodies.pop()
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body"):
            sent.put_nowait(message["body"])

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/compile/batch", "raw_path": b"/compile/batch", "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("lathe", 80),
    }  # fmt: skip
    await service.front(scope, receive, send)


async def test_a_client_that_goes_away_takes_with_it_what_has_not_begun() -> None:
    async with running(batch_parallel=2) as service:
        service.compiler.gate.clear()
        leaves = asyncio.Event()
        body = json.dumps({"requests": [{"kernel": i} for i in range(10)]}).encode()
        asking = asyncio.ensure_future(by_hand(service, body, asyncio.Queue(), leaves))
        while len(service.compiler.compiled) < 2:
            await asyncio.sleep(0)
        leaves.set()
        await asyncio.wait_for(asking, 60)
        service.compiler.gate.set()
        await service.services.flow.flights.settle()

        assert 2 == len(service.compiler.compiled)


async def test_an_empty_batch_is_an_empty_answer(service: Running) -> None:
    assert [] == await lines(service, [])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [("[]", ""), ("{}", "/requests"), ('{"requests": {}}', "/requests"), ('{"requests": [], "more": 1}', "/more")],
)
async def test_what_is_no_batch_is_refused_with_the_place(service: Running, body: str, pointer: str) -> None:
    response = await service.client.post("/compile/batch", content=body, headers=KIND)

    assert pointer == told(response, 422, "wire")["pointer"]


async def test_a_batch_that_is_too_long_is_refused_with_the_numbers() -> None:
    async with running(batch_requests=3) as service:
        response = await service.client.post("/compile/batch", json={"requests": [{"kernel": 1}] * 4})
        body = told(response, 422, "limit")

        assert ("batch_requests", 4, 3) == (body["limit"], body["needed"], body["allowed"])
        assert [] == service.compiler.compiled


async def test_a_defect_in_one_request_is_its_own(service: Running) -> None:
    answered = await lines(service, [{"kernel": 1, "do": "crash"}, {"kernel": 2}])

    assert {0: 500, 1: 200} == {line["index"]: line["status"] for line in answered}


async def test_a_client_that_takes_no_lines_is_told(service: Running) -> None:
    response = await service.client.post("/compile/batch", json={"requests": []}, headers={"accept": "text/html"})

    told(response, 406, "request")
