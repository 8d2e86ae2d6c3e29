"""Input made to hurt: a real service answers all of it with a refusal, in bounded memory, and goes on.

Nothing here depends on how long an answer takes; what would take for ever runs into the test's own time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import re
import socket
import zlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from service.api.examples import COMPILES, SUM
from tests.service.fake import RealCompiler, running
from tests.service.process import Service, served

MIB = 1 << 20
MEMORY_MOST = 700 * MIB  # of the serving process at its worst: the interpreter, and a few of the largest bodies it may be sent
WORKER_MOST = 1024 * MIB
PLAIN = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    limits = {"compile_seconds": 20, "worker_memory_bytes": WORKER_MOST, "body_seconds": 60}
    with served(["service", "serve"], store="memory://", verify=None, **limits) as started:
        yield started
        assert peak(started.process.pid) < MEMORY_MOST


def peak(pid: int) -> int:
    """The most memory that the process has had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def refused(response: httpx.Response, *statuses: int) -> dict[str, Any]:
    assert response.status_code in statuses, response.text[:500]
    body: dict[str, Any] = response.json()
    assert body["status"] == response.status_code
    return body


def zeros(mebibytes: int, coding: str) -> bytes:
    """So many MiB of blanks and then a JSON text, as a bomb: some kilobytes."""
    part = b" " * MIB
    if coding == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        return b"".join([*(packer.compress(part) for _ in range(mebibytes)), packer.compress(b"{}"), packer.flush()])
    frame = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*(frame.compress(part) for _ in range(mebibytes)), frame.compress(b"{}"), frame.flush()])


@pytest.mark.parametrize("path", ["/compile", "/compile/batch", "/programs/lookup", "/explain-key"])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_bomb_is_inflated_no_further_than_the_limit(service: Service, path: str, coding: str) -> None:
    response = service.client.post(path, content=zeros(100, coding), headers={**PLAIN, "content-encoding": coding})

    assert "inflated_bytes" == refused(response, 413)["limit"]


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(gzip.compress(b"{}" * 1000)), gzip.compress(b"{}") * 100_000, gzip.compress(b"{}")[:-4], b"\x1f\x8b" + bytes(1000),
        zstandard.compress(b"{}") * 100_000,
    ],
    ids=["twice", "many members", "cut", "no gzip", "many frames"],
)  # fmt: skip
def test_what_is_no_one_json_text_in_its_coding_is_refused(service: Service, body: bytes) -> None:
    coding = "gzip" if body.startswith(b"\x1f") else "zstd"
    refused(service.client.post("/compile", content=body, headers={**PLAIN, "content-encoding": coding}), 400)


def test_a_hundred_megabytes_are_refused_long_before_they_have_come(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as raw:
        raw.sendall(b"POST /compile HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while sent < 100 * MIB:
                raw.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                sent += 0x10000
        assert sent < 100 * MIB


NESTED = 1_000_000


@pytest.mark.parametrize(
    "body",
    [
        b"[" * NESTED, b"[" * NESTED + b"]" * NESTED, b'{"ast":' * NESTED, b'{"a":' * NESTED + b"1" + b"}" * NESTED,
        b'{"ast":{"nodes":' + b"[" * NESTED + b"]" * NESTED + b"}}",
    ],
    ids=["opened", "brackets", "opened objects", "objects", "within a request"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/compile", "/compile/batch", "/explain-key", "/programs/lookup"])
def test_a_million_brackets_are_one_refusal(service: Service, path: str, body: bytes) -> None:
    assert "nesting" == refused(service.client.post(path, content=body, headers=PLAIN), 422)["limit"]


@pytest.mark.parametrize(
    "body",
    [
        b"1" * 10_000_000, b"[" + b"1," * 4_000_000 + b"1]", b'{"ast":' + b"9" * 5_000_000 + b"}", b'"' + b"\\u0041" * 2_000_000 + b'"',
        b"{" + b",".join(b'"%d":1' % i for i in range(1_000_000)) + b"}", b"1e999999999", b"-" * 1_000_000, b"\xff" * 1_000_000,
        b'{"ast": "' + b"\xed\xa0\x80" * 1000 + b'"}', b"[" + b"NaN," * 100_000 + b"NaN]",
    ],
    ids=[
        "a long number", "many numbers", "a longer number", "a long string", "many members",
        "a large number", "signs", "no text", "half a pair", "no numbers",
    ],
)  # fmt: skip
def test_json_that_is_slow_to_read_or_no_json_is_refused(service: Service, body: bytes) -> None:
    refused(service.client.post("/compile", content=body, headers=PLAIN), 400, 413, 422)


def kernel(**changes: Any) -> dict[str, Any]:
    return {"ast": deepcopy(SUM), "device": {"target": "c"}, **changes}


def load(**members: Any) -> dict[str, Any]:
    body = kernel()
    body["ast"]["nodes"][0] = {"op": "LOAD", "buffer": 1, "dtype": "float32", **members}
    return body


def unary(length: int, op: str = "NEG") -> dict[str, Any]:
    """A chain of so many nodes between a load and a store."""
    view = {"shape": [16], "strides": [1]}
    nodes = [{"op": "LOAD", "buffer": 1, "dtype": "int32", "views": [view]}]
    nodes += [{"op": op, "src": [i] if op == "NEG" else [i, i]} for i in range(length)]
    nodes.append({"op": "STORE", "buffer": 0, "dtype": "int32", "views": [view], "src": [length]})
    return kernel(ast={"version": 1, "variables": [], "nodes": nodes, "outputs": [length + 1]})


def elementwise(*shape: int, **more: Any) -> dict[str, Any]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    view = {"shape": list(shape), "strides": strides}
    nodes = [
        {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [view]},
        {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [view], "src": [0]},
    ]
    return kernel(ast={"version": 1, "variables": [], "nodes": nodes, "outputs": [1]}, **more)


HUGE = 1 << 62
MANY_VARIABLES = [{"name": f"v{i}", "min": 0, "max": 2**31 - 1} for i in range(64)]
HOSTILE: dict[str, dict[str, Any]] = {
    "a chain of 100000 nodes": unary(100_000),
    "shapes of 2^62": elementwise(HUGE, HUGE),
    "a shape of 2^62": load(views=[{"shape": [16, HUGE], "strides": [HUGE, 1]}]),
    "strides of 2^62": load(views=[{"shape": [16, 64], "strides": [HUGE, HUGE]}]),
    "an offset beyond 64 bits": load(views=[{"shape": [16, 64], "strides": [64, 1], "offset": 2**70}]),
    "many views": load(views=[{"shape": [16, 64], "strides": [64, 1]}] * 100_000),
    "many axes": load(views=[{"shape": [1] * 100_000, "strides": [0] * 100_000}]),
    "a long expression": load(shape=[16, 64], index="+".join(["axis0"] * 100_000)),
    "deep brackets in an expression": load(shape=[16, 64], index="(" * 2000 + "axis0" + ")" * 2000 + "*64"),
    "minus signs": load(shape=[16, 64], index="-" * 4000 + "axis0"),
    "a product of all variables": {
        **load(shape=[16, 64], index="*".join(f"v{i}" for i in range(64))),
        "ast": {**load(shape=[16, 64], index="*".join(f"v{i}" for i in range(64)))["ast"], "variables": MANY_VARIABLES},
    },
    "a product of sums": load(shape=[16, 64], index="*".join(["(axis0+axis1+1)"] * 200)),
    "many variables": kernel(ast={**SUM, "variables": [{"name": f"v{i}", "min": 0, "max": 1} for i in range(10_000)]}),
    "many conditions": load(shape=[16, 64], index="axis0*64+axis1", valid=["axis1 < 60"] * 20_000),
    "everything unrolled": elementwise(4096, 4096, optimize=[{"op": "UNROLL", "axis": 0, "amount": 0}]),
    "everything upcast": elementwise(1 << 20, optimize=[{"op": "UPCAST", "axis": 0, "amount": 0}]),
    "upcast again and again": elementwise(*[16] * 8, optimize=[{"op": "UPCAST", "axis": i, "amount": 16} for i in range(8)]),
    "thousands of options": kernel(optimize=[{"op": "UPCAST", "axis": 0, "amount": 2}] * 20_000),
    "an axis far away": kernel(optimize=[{"op": "UPCAST", "axis": 2**62, "amount": 2**62}]),
    "padded to 2^62": kernel(optimize=[{"op": "PADTO", "axis": 0, "amount": HUGE}]),
    "sources of sources": unary(2000, "ADD"),
    "many outputs": kernel(ast={**SUM, "outputs": [2] * 100_000}),
    "many buffers": kernel(ast={**SUM, "nodes": [{**SUM["nodes"][0], "buffer": i} for i in range(60_000)]}),
}
# These have a meaning, if an unusual one: they may be answered too.
MAY_COMPILE = {
    *("many conditions", "sources of sources", "minus signs", "deep brackets in an expression"),
    *("strides of 2^62", "shapes of 2^62", "a shape of 2^62"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_kernel_made_to_hurt_is_refused(service: Service, name: str) -> None:
    response = service.client.post("/compile", json=HOSTILE[name])
    if name in MAY_COMPILE and response.status_code == 200:
        return
    body = refused(response, 413, 422, 504)

    assert body["category"] in ("wire", "ast", "option", "target", "limit")


def test_and_it_serves_on(service: Service) -> None:
    for body in COMPILES.values():
        assert 200 == service.compile(**body).status_code
    assert 200 == service.status("/readyz")
    assert 0 == service.metric('lathe_compile_requests_total{result="internal",target="c"}')


WORDS = st.sampled_from(
    [
        *("", "x", "axis0", "axis0*64+axis1", "src0", "-", "//0", "inf", "nan", "float32", "int8", "bool"),
        *("LOAD", "STORE", "REDUCE_SUM", "WHERE", "CAST"),
    ]
)
NUMBERS = st.sampled_from([2**31, 2**62, 2**63, 2**64, -(2**63), 10**30])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-2, 5), NUMBERS, st.floats(), WORDS, st.text(max_size=8))
VALUES = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)), max_leaves=12
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    for step in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[step], (*at, step))


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A request of the examples with a few places changed: another value, none, or one more."""
    body: Any = deepcopy(draw(st.sampled_from(list(COMPILES.values()))))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(list(places(body))))
        inner = body
        for step in path:
            inner = inner[step]
        match draw(st.sampled_from(["change", "drop", "more"])):
            case "change":
                inner[last] = draw(VALUES)
            case "drop":
                del inner[last]
            case "more" if isinstance(inner, dict):
                inner[draw(WORDS)] = draw(VALUES)
            case "more":
                inner.append(draw(VALUES))
        if not list(places(body)):
            break
    return body


def asked(path: str, bodies: list[bytes]) -> list[tuple[int, Any]]:
    async def ask() -> list[tuple[int, Any]]:
        async with running(compiler=RealCompiler()) as service:
            return [(r.status_code, r) for r in [await service.client.post(path, content=body, headers=PLAIN) for body in bodies]]

    return asyncio.run(ask())


@given(st.lists(damaged(), min_size=1, max_size=5))
@examples(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_damaged_request_is_answered_or_refused_and_never_a_defect(bodies: list[Any]) -> None:
    texts = [json.dumps(body).encode() for body in bodies]
    for status, response in asked("/compile", texts):
        assert status in (200, 400, 422), response.text
        assert status == 200 or response.json()["category"] in ("wire", "ast", "option", "target", "limit")


@given(st.integers(0, 2**32))
@examples(max_examples=40)
def test_a_text_with_flipped_bits_is_answered_or_refused_too(seed: int) -> None:
    chance = random.Random(seed)
    texts = []
    for body in COMPILES.values():
        text = bytearray(json.dumps(body).encode())
        for _ in range(chance.randint(1, 4)):
            text[chance.randrange(len(text))] ^= 1 << chance.randrange(8)
        texts.append(bytes(text))
    assert {status for status, _ in asked("/compile", texts)} <= {200, 400, 422}
