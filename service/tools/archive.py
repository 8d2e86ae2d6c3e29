"""Programs out of one store into a file, and from a file into another: for a move, a copy, or a place without a network.

The file is NDJSON in one zstd frame with a checksum: a line that says what it is, then a line for each program with the request it was
compiled from and what devices have said of it. Every value was checked when it was read, and is sealed anew when it is written, so the two
stores may have different secrets.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from service.catalog import Catalog
from service.codings import pack
from service.errors import Quarantined
from service.origin import dumped, origin_of
from service.store.keys import Key, Kind, as_key

FORMAT = {"lathe": "programs", "version": 1}
LINE_MOST = 256 << 20  # characters; no program is larger


class BadArchive(ValueError):
    """The file is not an archive, or is damaged; the message says where."""


async def exported(catalog: Catalog, file: Path, told: Callable[[], None]) -> int:
    """Writes every program to the file, which appears once it is whole. How many there were. Raises StoreDown and OSError."""
    count = 0
    partial = file.with_name(f"{file.name}.partial")
    with partial.open("wb") as raw, zstandard.ZstdCompressor(level=9, write_checksum=True).stream_writer(raw) as out:
        out.write(dumped(FORMAT) + b"\n")
        async for key in catalog.keys(Kind.PROGRAM):
            line = await _line(catalog, key)
            if line is not None:
                out.write(line + b"\n")
                count += 1
                told()
    partial.replace(file)
    return count


async def _line(catalog: Catalog, key: Key) -> bytes | None:
    """One program's line; None for one that is gone, damaged or in quarantine."""
    try:
        answer = await catalog.program(key)
    except Quarantined:
        return None
    if answer is None:
        return None
    request = await catalog.request(key)
    validations = await catalog.validations(key)
    catalog.forget_ready(key)
    beside = b',"seconds":%s,"request":%s,"validations":%s}' % (dumped(answer.seconds), request or b"null", dumped(validations))
    return b'{"program":' + answer.body + beside


async def imported(catalog: Catalog, file: Path, told: Callable[[], None]) -> int:
    """Keeps every program in the file; what the store has already under its key stays. How many are new.

    Raises BadArchive, OSError, and StoreDown where the store takes no more.
    """
    count = 0
    for number, value in _lines(file):
        try:
            key = as_key(value["program"]["key"])
            program, request, seconds = value["program"], value["request"], float(value["seconds"])
            validations = list(value["validations"])
            origin = None if request is None else origin_of(request, str(program["ast_hash"]))
        except (KeyError, TypeError, ValueError):
            raise BadArchive(f"{file}: line {number} is not a program") from None
        if key is None:
            raise BadArchive(f"{file}: line {number} has no key")
        told()
        if await catalog.program(key) is not None or origin is None:
            continue
        body = dumped(program)
        await catalog.keep(key, body, pack(body), origin, seconds)
        for report in validations:
            await catalog.keep_validation(key, report)
        await catalog.check()
        catalog.forget_ready(key)
        count += 1
    return count


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines after the first, with their numbers."""
    with file.open("rb") as raw:
        try:
            text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(raw), encoding="utf-8", newline="\n")
            first = text.readline(1000)
            if not first.endswith("\n") or json.loads(first) != FORMAT:
                raise BadArchive(f"{file}: not an archive of programs of version 1")
            number = 1
            while line := text.readline(LINE_MOST):
                number += 1
                if not line.endswith("\n"):
                    raise BadArchive(f"{file}: line {number} is cut off")
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise BadArchive(f"{file}: line {number} is not a program")
                yield number, value
        except (zstandard.ZstdError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise BadArchive(f"{file}: damaged: {error}") from None
