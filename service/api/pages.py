"""`/`: a workbench in the browser. `/docs`: the OpenAPI description as a page, and what the categories of errors mean. Without a network.

The assets of Swagger UI come from an installed package; nothing is loaded from anywhere else, which the browser is told to see to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

from service.api.bodies import answered, coded
from service.errors import PROBLEM_PAGE, TITLES, HttpRefused

ROUTER = APIRouter(include_in_schema=False)

ASSETS: Mapping[str, str] = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}


WORKBENCH: Mapping[str, str] = {
    "workbench.js": "text/javascript",
    "workbench.css": "text/css",
    "icon.svg": "image/svg+xml",
}
ALONE = {"content-security-policy": "default-src 'self'; frame-ancestors 'none'", "x-content-type-options": "nosniff"}


@cache
def asset(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()


@cache
def part(name: str) -> bytes:
    return files("service.api").joinpath("workbench", name).read_bytes()


@ROUTER.get("/")
async def workbench(request: Request) -> Response:
    """A page on which a kernel is compiled, and all that is known of its program looked at."""
    return coded(request, part("index.html"), "text/html; charset=utf-8", headers={**ALONE, "cache-control": "no-cache"})


@ROUTER.get("/workbench/{name}")
async def workbench_part(request: Request, name: str) -> Response:
    if name not in WORKBENCH:
        raise HttpRefused(404, "there is no such file")
    return coded(request, part(name), f"{WORKBENCH[name]}; charset=utf-8", headers={**ALONE, "cache-control": "no-cache"})


@ROUTER.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """The description itself, OpenAPI 3.1."""
    return answered(request, request.app.openapi(), headers={"cache-control": "no-cache"})


@ROUTER.get("/docs")
async def docs() -> Response:
    """The description as a page to read and to try."""
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Lathe",
        swagger_js_url="docs/assets/swagger-ui-bundle.js",
        swagger_css_url="docs/assets/swagger-ui.css",
        swagger_favicon_url="docs/assets/favicon.png",
    )


@ROUTER.get("/docs/assets/{name}")
async def assets(request: Request, name: str) -> Response:
    if name not in ASSETS:
        raise HttpRefused(404, "there is no such file")
    kind = ASSETS[name]
    headers = {"cache-control": "public, max-age=86400"}
    if kind.startswith("image/"):
        return Response(asset(name), 200, headers, media_type=kind)
    return coded(request, asset(name), f"{kind}; charset=utf-8", headers=headers)


@ROUTER.get(PROBLEM_PAGE)
async def categories() -> Response:
    """What each category of problem means: where the `type` of every problem document leads."""
    rows = "".join(f'<dt id="{escape(name)}"><code>{escape(name)}</code></dt><dd>{escape(title)}.</dd>' for name, title in TITLES.items())
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Lathe: problems</title><link rel="icon" href="../workbench/icon.svg">'
    )
    style = '<link rel="stylesheet" href="../workbench/workbench.css">'
    bar = '<header><h1>Lathe</h1><nav><a href="..">Workbench</a> <a href="../docs">API</a></nav></header>'
    page = f'{head}{style}{bar}<main class="text"><section><h2>Categories of problems</h2><dl>{rows}</dl></section></main></html>'
    return Response(page, 200, ALONE, media_type="text/html; charset=utf-8")
