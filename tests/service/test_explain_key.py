"""`POST /explain-key`: what a key is made of, and why two differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import pytest

from core import COMPILER, Request, program_key
from service.api.examples import COMPILES
from tests.service.fake import RealCompiler, Running, running, told

pytestmark = pytest.mark.anyio

ONE: dict[str, Any] = COMPILES["without a schedule, in C"]


@pytest.fixture
async def real() -> AsyncIterator[Running]:
    async with running(compiler=RealCompiler()) as started:
        yield started


async def explained(service: Running, **body: Any) -> dict[str, Any]:
    response = await service.client.post("/explain-key", json=body)
    assert 200 == response.status_code, response.text
    found: dict[str, Any] = response.json()
    return found


def changed(**members: Any) -> dict[str, Any]:
    return {**deepcopy(ONE), **members}


async def test_the_parts_of_one_key_are_those_it_is_the_digest_of(service: Running) -> None:
    found = await explained(service, request=ONE)
    (parts,) = found["parts"]
    text = json.dumps({name: part["value"] for name, part in parts.items()}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert [program_key(Request.from_json(ONE))] == found["keys"] == [hashlib.sha256(text.encode()).hexdigest()]
    assert {"ast", "device", "optimize", "annotate", "compiler"} == set(parts)
    assert (COMPILER, Request.from_json(ONE).ast_hash) == (parts["compiler"]["value"], parts["ast"]["digest"])


async def test_one_kernel_written_in_two_ways_has_one_key(service: Running) -> None:
    spelt = changed(optimize=[])
    spelt["ast"]["nodes"][0]["views"][0]["offset"] = 0
    found = await explained(service, requests=[ONE, spelt])

    assert 1 == len(set(found["keys"]))
    assert ([], []) == (found["differ"], found["differences"])


@pytest.mark.parametrize(
    ("other", "differ", "pointer", "values"),
    [
        (changed(annotate=True), ["annotate"], "", [False, True]),
        (changed(optimize="heuristic"), ["optimize"], "", [[], "heuristic"]),
        (changed(device={"target": "c", "alignment": 64}), ["device"], "/alignment", [16, 64]),
    ],
)
async def test_what_differs_is_named_with_its_place(service: Running, other: Any, differ: list[str], pointer: str, values: Any) -> None:
    found = await explained(service, requests=[ONE, other])

    assert differ == found["differ"]
    assert [{"part": differ[0], "pointer": pointer, "values": values}] == found["differences"]


async def test_kernels_are_compared_in_their_canonical_form(service: Running) -> None:
    other = changed()
    other["ast"]["nodes"][1]["op"] = "REDUCE_MAX"
    found = await explained(service, requests=[ONE, other])

    assert ["ast"] == found["differ"]
    assert [{"part": "ast", "pointer": "/nodes/1/op", "values": ["REDUCE_SUM", "REDUCE_MAX"]}] == found["differences"]


async def test_a_request_is_compared_with_what_is_stored_under_a_key(real: Running) -> None:
    key = (await real.compile(ONE)).json()["key"]

    assert [] == (await explained(real, request=ONE, key=key))["differ"]
    assert ["annotate"] == (await explained(real, request=changed(annotate=True), key=key))["differ"]
    assert [key] == (await explained(real, key=key))["keys"]


async def test_a_key_that_is_not_here_is_a_404(service: Running) -> None:
    told(await service.client.post("/explain-key", json={"request": ONE, "key": "0" * 64}), 404, "request")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""), ([], ""), ({"requests": []}, ""), ({"requests": [ONE, ONE, ONE]}, ""), ({"requests": {}}, "/requests"),
        ({"more": 1}, "/more"),
        ({"request": {}}, "/request/ast"), ({"requests": [ONE, {**ONE, "annotate": 1}]}, "/requests/1/annotate"), ({"key": 1}, "/key"),
    ],
)  # fmt: skip
async def test_what_can_t_be_explained_is_refused_with_the_place(service: Running, body: Any, pointer: str) -> None:
    assert pointer == told(await service.client.post("/explain-key", json=body), 422, "wire")["pointer"]
