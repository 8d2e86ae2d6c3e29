"""The OpenAPI description: every example in it is sent as it stands, and what is answered is what is described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from service.api.examples import COMPILES
from service.app import build_app
from service.store.memory import MemoryStore
from tests.service.fake import FakeCompiler, settings
from tests.service.process import Service, served

METHODS = ("get", "head", "post", "put", "delete")


def described() -> dict[str, Any]:
    front, _ = build_app(settings(), MemoryStore(1000), FakeCompiler())
    schema: dict[str, Any] = front.openapi()
    return schema


DESCRIPTION = described()
OPERATIONS = [
    (path, method, operation) for path, item in DESCRIPTION["paths"].items() for method, operation in item.items() if method in METHODS
]
EXAMPLES = [
    (path, name, example["value"], operation)
    for path, _, operation in OPERATIONS
    for media in operation.get("requestBody", {}).get("content", {}).values()
    for name, example in media.get("examples", {}).items()
]
EXAMPLE_KEYS = [
    (path, example, operation)
    for path, method, operation in OPERATIONS
    for parameter in operation.get("parameters", ())
    for example in parameter["schema"].get("examples", ())
    if method == "get"
]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with served(["service", "serve"], store="memory://", compile_seconds=120) as started:
        yield started


def test_it_is_openapi_3_1_and_has_the_calls_there_are() -> None:
    assert DESCRIPTION["openapi"].startswith("3.1")
    assert {"/compile", "/program/{key}", "/program/{key}/source", "/program/{key}/explain", "/programs/lookup"} <= set(
        DESCRIPTION["paths"]
    )
    assert {"/targets", "/limits", "/healthz", "/readyz", "/metrics"} <= set(DESCRIPTION["paths"])
    assert {"get", "head"} <= set(DESCRIPTION["paths"]["/program/{key}"])


def test_every_reference_leads_somewhere() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    for reference in references(DESCRIPTION):
        place: Any = DESCRIPTION
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        assert isinstance(place, dict)


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]

    assert len(names) == len(set(names))


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=[f"{method} {path}" for path, method, _ in OPERATIONS])
def test_every_operation_says_what_it_answers(path: str, method: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert "200" in operation["responses"]
    if method == "post":
        assert {"400", "413", "415", "422"} <= set(operation["responses"])
        assert operation["requestBody"]["content"]["application/json"]["examples"]
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            assert {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}} == response["content"]


@pytest.mark.parametrize(("path", "name", "body", "operation"), EXAMPLES, ids=[f"{path} {name}" for path, name, _, _ in EXAMPLES])
def test_every_example_can_be_sent_as_it_stands(
    service: Service, path: str, name: str, body: dict[str, Any], operation: dict[str, Any]
) -> None:
    response = service.client.post(path, json=body)
    kind, media = next(iter(operation["responses"]["200"]["content"].items()))
    answered = media["schema"]

    assert (200, kind) == (response.status_code, response.headers["content-type"]), response.text
    for line in response.text.splitlines() if kind == "application/x-ndjson" else [response.text]:
        assert set(answered["required"]) <= set(json.loads(line)) <= set(answered["properties"])


@pytest.mark.parametrize(("path", "key", "operation"), EXAMPLE_KEYS, ids=[path for path, _, _ in EXAMPLE_KEYS])
def test_every_example_of_a_key_leads_somewhere_once_the_kernels_were_sent(
    service: Service, path: str, key: str, operation: dict[str, Any]
) -> None:
    for body in COMPILES.values():
        service.compile(**body)
    response = service.client.get(path.format(key=key))
    (kind, media), *_ = operation["responses"]["200"]["content"].items()

    assert (200, kind) == (response.status_code, response.headers["content-type"].partition(";")[0]), response.text
    if kind == "application/json":
        assert set(media["schema"]["required"]) <= set(response.json()) <= set(media["schema"]["properties"])


@pytest.mark.parametrize("path", ["/targets", "/limits", "/healthz", "/readyz", "/metrics"])
def test_what_takes_no_body_answers_as_described(service: Service, path: str) -> None:
    response = service.client.get(path)
    kinds = DESCRIPTION["paths"][path]["get"]["responses"]["200"]["content"]

    assert 200 == response.status_code
    assert response.headers["content-type"].partition(";")[0] in kinds
