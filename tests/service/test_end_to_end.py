"""The whole path, nothing faked: a kernel goes in over HTTP, a program comes out, is kept, and is there again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core import Request, compile_kernel, program_key
from service.api.examples import COMPILES, SUM
from tests.service.process import Service, served

REAL = ["service", "serve"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    store = tmp_path_factory.mktemp("store") / "lathe.db"
    with served(REAL, store=f"sqlite:///{store}", compile_seconds=120) as started:
        yield started


@pytest.mark.parametrize("body", COMPILES.values(), ids=list(COMPILES))
def test_every_example_is_compiled_and_kept_under_its_key(service: Service, body: dict[str, Any]) -> None:
    response = service.compile(**body)
    request = Request.from_json(body)

    assert 200 == response.status_code
    assert compile_kernel(request).to_json() == response.json()
    assert f"/program/{program_key(request)}" == response.headers["location"]
    again = service.client.get(response.headers["location"])
    assert response.content == again.content
    assert "hit" == service.compile(**body).headers["lathe-result"]
    assert response.json()["source"] == service.client.get(f"{response.headers['location']}/source").text


def test_equal_kernels_spelt_differently_are_one_program(service: Service) -> None:
    nodes: list[Any] = [{"op": "CONST", "value": 1, "dtype": "int8", "views": [{"shape": [1], "strides": [0]}]}]
    for node in SUM["nodes"]:
        moved = {**node, "src": [i + 1 for i in node["src"]]} if "src" in node else node
        nodes.append({**moved, "views": [{**moved["views"][0], "offset": 0, "mask": None}]} if "views" in moved else moved)
    padded = {"outputs": [3], "nodes": nodes, "variables": [], "version": 1}
    one = service.compile(ast=SUM, device={"target": "c"})
    two = service.compile(device={"target": "c", "alignment": 16}, annotate=False, optimize="heuristic", ast=padded)

    assert (200, 200, "hit") == (one.status_code, two.status_code, two.headers["lathe-result"])
    assert one.content == two.content


def test_tuned_is_the_heuristic_while_nothing_is_tuned(service: Service) -> None:
    one = service.compile(ast=SUM, device={"target": "c"})
    two = service.compile(ast=SUM, device={"target": "c"}, optimize="tuned")

    assert ("heuristic", one.content) == (two.headers["lathe-optimize"], two.content)


@pytest.mark.parametrize(
    ("more", "category", "pointer"),
    [
        ({"binary": True, "device": {"target": "opencl"}}, "target", "/binary"),
        ({"binary": ["cubin"]}, "target", "/binary/0"),
        ({"optimize": {"search": "beam"}}, "option", "/optimize"),
        ({"device": {"target": "metal", "float64": True}}, "target", "/device/float64"),
        ({"device": {"target": "vax"}}, "wire", "/device/target"),
        ({"more": 1}, "wire", "/more"),
        ({"ast": {**SUM, "outputs": [1]}}, None, "/ast/outputs/0"),
        ({"ast": {**SUM, "version": 2}}, "wire", "/ast/version"),
    ],
)
def test_what_is_not_to_be_had_is_refused_with_the_place(
    service: Service, more: dict[str, Any], category: str | None, pointer: str
) -> None:
    response = service.compile(**{"ast": SUM, "device": {"target": "c"}, **more})
    problem = response.json()

    assert (422, "application/problem+json", pointer) == (
        response.status_code,
        response.headers["content-type"],
        problem["pointer"],
    )
    assert category in (None, problem["category"])


def test_many_clients_at_once_get_the_same_programs(service: Service) -> None:
    def ask(i: int) -> tuple[int, bytes]:
        wide = json.loads(json.dumps(SUM).replace("64", str(100 + i % 5)))
        return i % 5, service.compile(ast=wide, device={"target": "opencl"}).content

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(60)))

    assert 5 == len(set(answers))
    assert 5 == len({content for _, content in answers})


def test_metrics_tell_what_happened(service: Service) -> None:
    for _ in range(2):
        service.compile(ast=SUM, device={"target": "c"})

    assert service.metric('lathe_compile_requests_total{result="hit",target="c"}') >= 1
    assert service.metric('lathe_compile_stage_seconds_count{stage="lower"}') >= 1


def test_a_real_compile_is_stopped_at_its_limits(tmp_path: Path) -> None:
    long = chain(3000)
    with served(REAL, store="memory://", compile_seconds=0.05, workers=1) as service:
        late = service.compile(ast=long, device={"target": "c"})

        assert (504, "compile_seconds") == (late.status_code, late.json()["limit"])
        assert 200 == service.status("/readyz")


def test_a_real_compile_that_wants_too_much_memory_is_refused_and_the_next_one_works() -> None:
    most = 210 << 20  # a worker has some 160 MiB of address space before it does anything
    with served(REAL, store="memory://", worker_memory_bytes=most, compile_seconds=300) as service:
        large = service.compile(ast=chain(45_000), device={"target": "c"})

        assert (422, "worker_memory_bytes", most) == (large.status_code, large.json()["limit"], large.json()["allowed"])
        assert 200 == service.compile(ast=chain(3), device={"target": "c"}).status_code


def chain(length: int) -> dict[str, Any]:
    """A kernel of additions, one upon the other."""
    view = [{"shape": [16], "strides": [1]}]
    nodes: list[dict[str, Any]] = [{"op": "LOAD", "buffer": 1, "dtype": "float32", "views": view}]
    nodes += [{"op": "ADD", "src": [i, 0]} for i in range(length)]
    nodes.append({"op": "STORE", "buffer": 0, "dtype": "float32", "views": view, "src": [length]})
    return {"version": 1, "variables": [], "nodes": nodes, "outputs": [length + 1]}
