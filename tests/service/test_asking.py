"""Bodies become what the service needs to know; what it does not offer is refused by name."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from dataclasses import replace
from typing import Any

import pytest

import service.workers.compiler as compiler
from core import Limits, OptionRefused, Request, TargetError, program_key
from service.api.examples import SUM
from service.asking import Asked, asked_in
from service.binaries.binary import Offers
from service.binaries.toolchain import Toolchain
from service.errors import QueueFull
from service.metrics import Metrics
from service.store.keys import Key
from service.workers.compiler import READ_AT_ONCE, READINGS_MOST, CoreCompiler
from service.workers.job import Failed
from service.workers.pool import Pool
from service.workers.slot import Sizes
from service.workers.task import run

pytestmark = pytest.mark.anyio

PLAIN: dict[str, Any] = {"ast": SUM, "device": {"target": "c"}}


def asked(**more: Any) -> Asked:
    return asked_in(json.dumps({**PLAIN, **more}).encode(), Limits(), Toolchain())


async def test_a_request_is_known_by_its_key_and_target() -> None:
    found = asked()

    assert (program_key(Request.from_json(PLAIN)), "c") == (found.key, found.target)
    assert found.plain


async def test_a_worker_is_handed_the_request_as_it_was_read() -> None:
    body = json.dumps(PLAIN).encode()
    found = asked_in(body, Limits(), Toolchain())

    assert (body, Request.from_json(PLAIN)) == (found.body, pickle.loads(found.job))


async def test_the_largest_expressions_are_handed_on_like_any_other() -> None:
    """Nothing that a client can nest makes a worker's share nest."""
    depth = (Limits().expression_chars - 5) // 2
    leaf = {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [4], "index": "(" * depth + "axis0" + ")" * depth}
    nodes = [leaf, {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [{"shape": [4], "strides": [1]}], "src": [0]}]
    ast = {"version": 1, "variables": [], "nodes": nodes, "outputs": [1]}

    assert Request.from_json({**PLAIN, "ast": ast}) == pickle.loads(asked(ast=ast).job)


async def test_tuned_has_the_key_of_the_heuristic_and_is_looked_up_each_time() -> None:
    found = asked(optimize="tuned")

    assert asked().key == found.key
    assert found.tuned
    assert not found.plain


async def test_what_is_required_is_no_part_of_the_key() -> None:
    found = asked(require="validated")

    assert (asked().key, "validated", False) == (found.key, found.require, found.plain)


@pytest.mark.parametrize(
    ("target", "binary", "pointer"), [("c", True, "/binary"), ("opencl", ["clbin"], "/binary/0"), ("cuda", ["cubin", "ptx"], "/binary/0")]
)
async def test_binaries_no_compiler_is_installed_for_are_refused_by_name(target: str, binary: Any, pointer: str) -> None:
    with pytest.raises(TargetError, match=f"compiler for the binary format {'so' if binary is True else binary[0]}") as refused:
        asked(device={"target": target}, binary=binary)

    assert (pointer, target) == (refused.value.facts()["pointer"], refused.value.facts()["target"])


async def test_a_search_is_refused_as_an_option() -> None:
    with pytest.raises(OptionRefused) as refused:
        asked(optimize={"search": "beam"})

    assert "/optimize" == refused.value.facts()["pointer"]


class Slow:
    """Reading that waits until it is let go, in its thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.read = 0
        monkeypatch.setattr(compiler, "asked_in", self)

    def __call__(self, body: bytes, limits: Limits, offers: Offers) -> Asked:
        self.read += 1
        self.go.wait(60)
        return asked_in(body, limits, offers)


def large(i: int) -> bytes:
    return json.dumps(PLAIN).encode() + b" " * (READ_AT_ONCE + i)


async def test_equal_large_bodies_that_come_together_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    reader = CoreCompiler(Pool(run, Sizes(1), Metrics()), Limits())
    reading = [asyncio.ensure_future(reader.read(large(0))) for _ in range(10)]
    await asyncio.sleep(0)
    slow.go.set()

    assert {asked().key} == {found.key for found in await asyncio.gather(*reading)}
    assert 1 == slow.read


async def test_a_service_whose_compiler_was_replaced_on_disk_takes_no_more_work() -> None:
    pool = Pool(run, Sizes(1), Metrics())
    service = CoreCompiler(pool, Limits())
    await service.start()
    await pool.until_answers()
    right, other = asked(), replace(asked(), key=Key("0" * 64))
    outcome, _ = await service.compile(other, lambda: True)
    ready = [service.answers]
    await service.compile(right, lambda: True)
    ready.append(service.answers)
    await service.close()

    assert isinstance(outcome, Failed)
    assert [False, True] == ready


async def test_more_large_bodies_than_can_be_read_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    reader = CoreCompiler(Pool(run, Sizes(1), Metrics()), Limits())
    reading = [asyncio.ensure_future(reader.read(large(i))) for i in range(READINGS_MOST)]
    await asyncio.sleep(0)
    with pytest.raises(QueueFull):
        await reader.read(large(READINGS_MOST))
    slow.go.set()
    await asyncio.gather(*reading)

    assert asked().key == (await reader.read(large(READINGS_MOST))).key
