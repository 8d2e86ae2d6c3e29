"""What holds for every call, and the calls for those who run the service."""

from __future__ import annotations

import re

import pytest

from service.store.memory import MemoryStore
from tests.service.fake import Running, running, told

pytestmark = pytest.mark.anyio

NO_KEY = "0" * 64


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


async def test_all_methods_of_a_path_are_allowed_together(service: Running) -> None:
    assert "DELETE, GET" == (await service.client.put(f"/jobs/{NO_KEY}")).headers["allow"]
    assert "GET, HEAD" == (await service.client.put(f"/program/{NO_KEY}")).headers["allow"]


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


async def test_the_workbench_loads_only_what_is_here(service: Running) -> None:
    page = await service.client.get("/")
    assert (200, "text/html") == (page.status_code, page.headers["content-type"].partition(";")[0])
    assert "default-src 'self'" in page.headers["content-security-policy"]
    parts = set(re.findall(r'(?:src|href)="(workbench/[^"]+)"', page.text))
    assert {"workbench/workbench.js", "workbench/workbench.css", "workbench/icon.svg"} == parts
    for path in parts:
        assert 200 == (await service.client.get(f"/{path}")).status_code
    told(await service.client.get("/workbench/..%2fcompile.py"), 404, "request")
    told(await service.client.get("/workbench/index.html"), 404, "request")


async def test_what_the_workbench_reaches_for_is_in_its_page(service: Running) -> None:
    page, script = (await service.client.get("/")).text, (await service.client.get("/workbench/workbench.js")).text

    assert set(re.findall(r'\bat\("([\w-]+)"\)', script)) <= set(re.findall(r'id="([\w-]+)"', page))
    described = (await service.client.get("/openapi.json")).json()["paths"]
    for path in re.findall(r'call\("(\w+)"', script):
        assert f"/{path}" in described or path in ("openapi", "validate")
