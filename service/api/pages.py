"""`/docs`: the OpenAPI description as a page, and what the categories of errors mean. Works without a network.

The assets of Swagger UI come from an installed package; nothing is loaded from anywhere else.
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


@cache
def asset(name: str) -> bytes:
    return files("fastapi_offline").joinpath("static", name).read_bytes()


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
    head = "<!doctype html><html lang=en><meta charset=utf-8><title>Lathe: problems</title>"
    page = f"{head}<h1>Problems</h1><dl>{rows}</dl></html>"
    return Response(page, media_type="text/html; charset=utf-8")
