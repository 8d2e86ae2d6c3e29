"""`GET /program/{key}/binary/{format}`: a program compiled that far. Nothing here ever compiles: `POST /compile` with `binary` does.

Where no device compiler is installed there is no such path: `app` leaves the router out.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from service.api.bodies import acceptable, problems
from service.api.programs import ABSENT, ByKey, held
from service.binaries.binary import FORMATS, Binary
from service.errors import HttpRefused
from service.services import services

ROUTER = APIRouter(tags=["programs"])

Format = Annotated[str, Path(description=", ".join(f"`{row.name}`: {row.meaning}" for row in FORMATS.values()))]
Arch = Annotated[str | None, Query(description="what it was compiled for; else the program's own `arch`, or whichever is there")]


async def binary(request: Request, key: ByKey, format_: Annotated[Format, Path(alias="format")], arch: Arch = None) -> Response:
    """The bytes as the compiler made them, and in headers which compiler that was, with what options.

    To be asked for anew each time (`no-cache`, with a strong `ETag`): another version of the compiler makes another binary.
    """
    row = FORMATS.get(format_)
    if row is None:
        raise HttpRefused(404, "there is no such format", ABSENT, expected=", ".join(FORMATS), got=format_[:40])
    acceptable(request.headers.get("accept"), row.media_type)
    parts = services(request)
    answer = await held(parts.catalog, key)
    found = await parts.flow.builds.stored(answer, format_, arch)
    if found is None:
        where = "" if arch is None else f" for {arch[:80]!r}"
        told = f"{answer.target} program has no binary of the format {format_}{where} yet"
        raise HttpRefused(404, f"this {told}: POST /compile with binary makes one", ABSENT)
    headers = _headers(found, parts.access.reads_are_public)
    named = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if "*" in named or headers["etag"] in named:
        return Response(status_code=304, headers=headers)
    file_name = f"{answer.file_name.rpartition('.')[0]}.{row.suffix}"
    headers |= {
        "content-type": row.media_type,
        "content-length": str(len(found.content)),
        "content-disposition": f'attachment; filename="{file_name}"',
    }
    return Response(b"" if request.method == "HEAD" else found.content, 200, headers)


def _headers(found: Binary, public: bool) -> dict[str, str]:
    """Those of every answer that is about this binary. It is sent as it is, in no content coding."""
    recipe = found.recipe
    told = {
        "etag": f'"{found.tag}"',
        "cache-control": f"{'public' if public else 'private'}, no-cache",
        "lathe-arch": recipe.arch,
        "lathe-compiler": recipe.compiler,
        "lathe-compiler-version": recipe.version,
        "lathe-compiler-options": " ".join(recipe.options),
    }
    return {name: value.encode("latin-1", "replace").decode("latin-1") for name, value in told.items()}


_BYTES = {"type": "string", "format": "binary"}
_TOLD = {
    "ETag": "strong",
    "Cache-Control": "no-cache: asked for anew, and mostly answered with 304",
    "Lathe-Arch": "what it was compiled for",
    "Lathe-Compiler": "which compiler made it",
    "Lathe-Compiler-Version": "in which version",
    "Lathe-Compiler-Options": "called with what, but for the names of files",
}
for _method, _name in (("GET", "binary_by_key"), ("HEAD", "binary_is_there")):
    ROUTER.add_api_route(
        "/program/{key}/binary/{format}",
        binary,
        methods=[_method],
        operation_id=_name,
        summary="A binary of a stored program" if _method == "GET" else "Whether a program has a binary",
        response_class=Response,
        responses={
            200: {
                "description": "The binary.",
                "headers": {name: {"description": text, "schema": {"type": "string"}} for name, text in _TOLD.items()},
                "content": {row.media_type: {"schema": _BYTES} for row in FORMATS.values()},
            },
            304: {"description": "The client has it already."},
            **problems(404, 406, 410, 422),
        },
    )
