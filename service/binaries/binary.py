"""What a binary is: its format, how it came about, and how it is kept. No compiler is known here.

A binary belongs to a program and is never part of it: the program's key and bytes are the same with and without.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import quote

from service.origin import dumped
from service.store.keys import Key


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of binary, as it goes over HTTP. meaning: in words, for people."""

    name: str
    media_type: str
    suffix: str
    meaning: str


FORMATS: Mapping[str, Format] = {
    row.name: row
    for row in (
        Format("cubin", "application/x-cubin", "cubin", "machine code for one NVIDIA architecture, an ELF file"),
        Format("ptx", "text/x-ptx", "ptx", "NVIDIA's assembly, which a driver compiles at loading"),
        Format("hsaco", "application/x-hsaco", "hsaco", "a code object for one AMD architecture, an ELF file"),
        Format("so", "application/x-sharedlib", "so", "a shared object for the processor, an ELF file"),
        Format("spirv", "application/x-spirv", "spv", "a SPIR-V module"),
        Format("clbin", "application/x-opencl-binary", "clbin", "what `clCreateProgramWithBinary` takes on one device"),
    )
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything beside a program that decides the bytes of its binary.

    arch: what it is compiled for: an architecture, or a device's name. version: of the compiler and whatever else it takes along. options:
    those it is called with, without names of files.
    """

    format: str
    arch: str
    compiler: str
    version: str
    options: tuple[str, ...]

    def key(self, program: Key) -> Key:
        """The name of the binary of a program: SHA-256 over the RFC 8785 JSON of both."""
        text = json.dumps({"program": program, **asdict(self)}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return Key(hashlib.sha256(text.encode()).hexdigest())

    @staticmethod
    def from_json(value: Mapping[str, object]) -> Recipe:
        """Raises KeyError or ValueError where the value is none."""
        format_, arch, compiler, version = (str(value[name]) for name in ("format", "arch", "compiler", "version"))
        options = value["options"]
        if not isinstance(options, list) or format_ not in FORMATS:
            raise ValueError("not the recipe of a binary")
        return Recipe(format_, arch, compiler, version, tuple(str(option) for option in options))

    def path(self, program: Key) -> str:
        """Where the binary can be had."""
        return f"/program/{program}/binary/{self.format}?arch={quote(self.arch, safe='')}"

    def link(self, program: Key) -> str:
        """A `Link` header that names the binary (RFC 8288)."""
        arch = self.arch.replace("\\", "\\\\").replace('"', '\\"')
        return f'<{self.path(program)}>; rel="alternate"; type="{FORMATS[self.format].media_type}"; arch="{arch}"'

    def shown(self, program: Key) -> dict[str, str]:
        """The same as JSON."""
        return {"href": self.path(program), "rel": "alternate", "type": FORMATS[self.format].media_type, "arch": self.arch}


@dataclass(frozen=True, slots=True)
class Tool:
    """A compiler as it was found here; it goes to workers.

    version: of it and of all else that its output depends on. command: the program, empty where it is a library. environment: what the
    program needs beside what every one gets. facts: whatever else it has to know, such as folders and devices.
    """

    version: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Binary:
    """A binary and what it is one of. seconds: what compiling it took."""

    program: Key
    recipe: Recipe
    content: bytes
    seconds: float = 0.0

    @cached_property
    def tag(self) -> str:
        """Of the bytes alone: the strong entity tag's text."""
        return hashlib.sha256(self.content).hexdigest()[:32]

    def entry(self) -> dict[str, object]:
        """What is told of it beside the program."""
        return {**asdict(self.recipe), "bytes": len(self.content), "sha256": hashlib.sha256(self.content).hexdigest()}

    def to_bytes(self) -> bytes:
        """As it is kept: a line of JSON that says what it is, then the bytes."""
        return dumped({"program": self.program, **asdict(self.recipe), "seconds": self.seconds}) + b"\n" + self.content

    @staticmethod
    def from_bytes(key: Key, kept: bytes) -> Binary | None:
        """The binary that `to_bytes` wrote; None where it is none, or not the one whose name is `key`."""
        head, _, content = kept.partition(b"\n")
        try:
            value = json.loads(head)
            found = Binary(Key(value["program"]), Recipe.from_json(value), content, float(value["seconds"]))
        except (ValueError, KeyError, TypeError):
            return None
        return found if found.recipe.key(found.program) == key else None


def entries_in(kept: bytes) -> list[dict[str, object]]:
    """What `entry` said of each binary of a program, as it is kept; none where somebody else wrote it."""
    try:
        value = json.loads(kept)
        for entry in value:
            Recipe.from_json(entry)
        return list(value)
    except (ValueError, KeyError, TypeError):
        return []


class Offers(Protocol):
    """Which binaries this service makes."""

    def __bool__(self) -> bool:
        """Does it make any?"""

    def recipe(self, target: str, format_: str, arch: str | None, pointer: str) -> Recipe:
        """How it makes one. arch: as in the device options. pointer: who asks, in the request.

        Raises TargetError where no compiler for it is installed, or the one that is knows nothing of the architecture.
        """

    def formats(self, target: str) -> Sequence[str]:
        """The formats of a target that it makes, the usual one first."""

    def described(self, target: str) -> dict[str, object]:
        """The compiler of each of these formats, as JSON: its name, version and options, and the architectures it is known to take."""
