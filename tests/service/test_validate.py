"""Validations over HTTP, with a device that says what it is told to, and one that is real."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from core import LimitExceeded
from service.api.examples import SUM
from service.api.validate import VALIDATES
from service.app import build_app
from service.device import attached
from service.device.device import Device, Facts, RunTimedOut, Trial, Verdict
from service.device.opencl import Conditions
from service.metrics import Metrics
from service.services import Services
from service.store.memory import MemoryStore
from tests.service.fake import RealCompiler, settings

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


class Told:
    """A device that gives the verdicts it was told, and counts its runs."""

    facts = Facts("told", "none 1.0", "opencl", {"target": "opencl"})
    alive = True

    def __init__(self, *verdicts: Verdict | Exception) -> None:
        self.verdicts = list(verdicts)
        self.trials: list[Trial] = []

    async def start(self) -> bool:
        return True

    async def judge(self, trial: Trial) -> Verdict:
        self.trials.append(trial)
        verdict = self.verdicts.pop(0) if self.verdicts else Verdict("right")
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    async def close(self) -> None:
        return None


@asynccontextmanager
async def serving(*devices: Device, attach: Callable[[], list[Device]] | None = None) -> AsyncIterator[tuple[httpx.AsyncClient, Services]]:
    find = attach or (lambda: list(devices))
    front, services = build_app(settings(), MemoryStore(1 << 24), RealCompiler(), Metrics(), find)
    transport = httpx.ASGITransport(front, raise_app_exceptions=False)
    async with front.life(), httpx.AsyncClient(transport=transport, base_url="http://lathe", timeout=60) as client:
        yield client, services


def request(target: str = "opencl", **more: Any) -> Json:
    return {"ast": SUM, "device": {"target": target}, "optimize": "none", **more}


async def test_a_program_is_validated_by_request_and_by_key() -> None:
    device = Told()
    async with serving(device) as (client, services):
        first = await client.post("/validate", json={"request": request()})
        second = await client.post("/validate", json={"key": first.json()["key"], "seeds": [7], "special": True, "device": "told"})

        assert ["right", "right"] == [first.json()["verdict"], second.json()["verdict"]]
        assert ([(0, False), (1, False)], [(7, True)]) == (device.trials[0].runs, device.trials[1].runs)
        assert 2 == len(await services.catalog.validations(first.json()["key"]))


async def test_a_validation_changes_no_byte_of_the_program() -> None:
    """M 251."""
    async with serving(Told()) as (client, _):
        before = await client.post("/compile", json=request())
        await client.post("/validate", json={"key": before.json()["key"]})
        after = [await client.post("/compile", json=request()), await client.get(f"/program/{before.json()['key']}")]

        assert [before.content] * 2 == [answer.content for answer in after]


async def test_a_wrong_program_is_served_no_more() -> None:
    async with serving(Told(Verdict("wrong", "outputs", "3 elements are wrong"))) as (client, _):
        compiled = await client.post("/compile", json=request())
        report = await client.post("/validate", json={"key": compiled.json()["key"]})
        gone = await client.get(f"/program/{compiled.json()['key']}")
        again = await client.post("/compile", json=request())

        assert (200, "wrong", "outputs") == (report.status_code, report.json()["verdict"], report.json()["why"])
        assert (410, 500, "internal") == (gone.status_code, again.status_code, again.json()["category"])
        assert 410 == (await client.post("/validate", json={"key": compiled.json()["key"]})).status_code


async def test_a_program_can_be_required_to_have_run_right() -> None:
    device = Told()
    async with serving(device) as (client, _):
        first = await client.post("/compile", json=request(require="validated"))
        second = await client.post("/compile", json=request(require="validated"))

        assert ("told", "told") == (first.headers["lathe-validated"], second.headers["lathe-validated"])
        assert 1 == len(device.trials)
        assert first.json()["key"] == second.json()["key"]


async def test_what_was_required_and_ran_wrong_is_a_defect() -> None:
    async with serving(Told(Verdict("wrong", "crash"))) as (client, _):
        assert 500 == (await client.post("/compile", json=request(require="validated"))).status_code


async def test_what_no_device_can_run_cannot_be_required() -> None:
    async with serving(Told(Verdict("unfit", "launch", "too few work-items"))) as (client, _):
        unfit = await client.post("/compile", json=request(require="validated"))
        of_c = await client.post("/compile", json=request("c", require="validated"))

        assert [(422, "option", "/require")] * 2 == [(r.status_code, r.json()["category"], r.json()["pointer"]) for r in (unfit, of_c)]


async def test_a_run_that_was_stopped_says_nothing_of_the_program() -> None:
    async with serving(Told(RunTimedOut("stopped", retry_after_s=3))) as (client, services):
        stopped = await client.post("/validate", json={"request": request()})

        assert (503, "unavailable", "3") == (stopped.status_code, stopped.json()["category"], stopped.headers["retry-after"])
        assert 200 == (await client.post("/compile", json=request())).status_code
        assert 1.0 == services.metrics.registry.get_sample_value(
            "lathe_device_jobs_total", {"device": "told", "kind": "validate", "result": "unavailable"}
        )


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, ""),
        ({"key": "0" * 64, "request": {}}, ""),
        ({"key": 7}, "/key"),
        ({"key": "0" * 64, "seed": 1}, "/seed"),
        ({"key": "0" * 64, "seeds": []}, "/seeds"),
        ({"key": "0" * 64, "seeds": [True]}, "/seeds/0"),
        ({"key": "0" * 64, "seeds": [1, -1]}, "/seeds/1"),
        ({"key": "0" * 64, "special": 1}, "/special"),
        ({"key": "0" * 64, "device": 1}, "/device"),
        ({"request": {"ast": SUM}}, "/request/device"),
        ({"request": request(optimise=1)}, "/request/optimise"),
    ],
)
async def test_a_body_that_is_none_is_refused_with_its_place(body: Any, pointer: str) -> None:
    async with serving(Told()) as (client, _):
        refused = await client.post("/validate", json=body)

        assert (422, "wire", pointer) == (refused.status_code, refused.json()["category"], refused.json()["pointer"])


@pytest.mark.parametrize(("body", "status", "category"), [
    ({"key": "0" * 64}, 404, "request"), ({"key": "none"}, 404, "request"), ({"request": request("c")}, 422, "option"),
    ({"request": request(), "device": "another"}, 422, "option"),
])  # fmt: skip
async def test_what_cannot_be_validated(body: Json, status: int, category: str) -> None:
    async with serving(Told()) as (client, _):
        refused = await client.post("/validate", json=body)

        assert (status, category) == (refused.status_code, refused.json()["category"])


async def test_devices_are_listed() -> None:
    async with serving(Told()) as (client, _):
        listed = (await client.get("/devices")).json()

        assert {
            "devices": [{"name": "told", "driver": "none 1.0", "target": "opencl", "alive": True, "options": {"target": "opencl"}}]
        } == listed


async def test_without_a_device_there_is_no_validation() -> None:
    async with serving() as (client, _):
        assert 404 == (await client.post("/validate", json={"request": request()})).status_code
        assert "/validate" not in (await client.get("/openapi.json")).json()["paths"]
        assert {"devices": []} == (await client.get("/devices")).json()
        refused = await client.post("/compile", json=request(require="validated"))
        assert (422, "option", "/require") == (refused.status_code, refused.json()["category"], refused.json()["pointer"])


async def test_the_examples_of_the_description_run_right_on_a_real_device() -> None:
    async with serving(attach=lambda: attached(Conditions())) as (client, _):
        assert "/validate" in (await client.get("/openapi.json")).json()["paths"]
        for example in VALIDATES.values():
            answered = await client.post("/validate", json=example)
            assert (200, "right") == (answered.status_code, answered.json()["verdict"]), answered.text
        listed = (await client.get("/devices")).json()["devices"]
        assert [True] == [device["alive"] for device in listed]


async def test_a_reference_beyond_its_budget_is_a_limit_of_the_service() -> None:
    refused = LimitExceeded("/ast", limit="reference points", needed=9, allowed=5)
    async with serving(Told(refused)) as (client, services):
        told = (await client.post("/validate", json={"request": request()})).json()

        assert ("limit", "validate_points", 9, 5) == (told["category"], told["limit"], told["needed"], told["allowed"])
        assert "validate_points" in (await client.get("/limits")).json()
        assert [] == await services.catalog.validations(told.get("key", "0" * 64))
