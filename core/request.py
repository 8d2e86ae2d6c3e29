"""A request as read: a canonical kernel, a resolved device, and how to schedule. And the key its program stands under.

Everything a client can get wrong before any compiling is refused in `Request.from_json`, with the place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Literal

from core.device import DeviceOptions
from core.errors import Pointer, Said, TargetError, WireError
from core.kernel.canonical import canonical
from core.kernel.check import check_kernel
from core.kernel.node import Kernel
from core.kernel.read import read_kernel
from core.kernel.write import kernel_to_json
from core.limits import Limits
from core.schedule.option import ScheduleOption, read_option
from core.targets import TARGETS
from core.targets.resolve import resolve_device
from core.version import COMPILER

FORMATS = ("cubin", "ptx", "hsaco", "so", "spirv", "clbin")
_REQUIRED = ("ast", "device")
_MEMBERS = (*_REQUIRED, "optimize", "annotate", "binary", "require")

# RFC 8785 for values of our making: member names are ASCII, numbers are integers a double holds, strings are Unicode text.
_RFC8785 = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Search:
    """Search now, on an attached device. width: how many schedules are kept a round; candidates: how many are tried in all."""

    width: int = 4
    seconds: int | float = 60
    candidates: int = 2000

    def to_json(self) -> dict[str, object]:
        return {"search": "beam", "width": self.width, "seconds": self.seconds, "candidates": self.candidates}


Options = tuple[ScheduleOption, ...]
Schedule = Literal["heuristic"] | Options  # what a program was compiled by
Optimize = Literal["heuristic", "tuned"] | Options | Search  # what was asked for; "none" is the empty list


@dataclass(frozen=True, slots=True)
class Request:
    """kernel: canonical, so that equal `ast_hash` means equal kernel; rows: per node of it, the row of the request's table.

    binary: the formats asked for, the target's usual one where it was just `true`. require: "validated" or None.
    """

    kernel: Kernel
    rows: tuple[int, ...]
    ast_hash: str
    ast_text: str
    device: DeviceOptions
    optimize: Optimize = "heuristic"
    annotate: bool = False
    binary: tuple[str, ...] = ()
    require: Literal["validated"] | None = None

    @staticmethod
    def from_json(body: object, limits: Limits | None = None) -> Request:
        """Raises WireError, KernelError, TargetError or LimitExceeded, each with the JSON pointer of the place."""
        limits = limits or Limits()
        at = Pointer("")
        if type(body) is not dict:
            raise WireError(at, expected="a request: an object", got=body)
        for name in body:
            if name not in _MEMBERS:
                raise WireError(at / name, expected=f"no such member: a request has {', '.join(_MEMBERS)}", got=body[name])
        for name in _REQUIRED:
            if name not in body:
                raise WireError(at / name, expected=f"a member {name!r}: a request requires it", got=Said("nothing"))
        device = resolve_device(body["device"], at / "device")
        optimize = _optimize(body.get("optimize", "heuristic"), at / "optimize")
        annotate = body.get("annotate", False)
        if type(annotate) is not bool:
            raise WireError(at / "annotate", expected="true or false", got=annotate)
        binary = _binary(body["binary"], device.target, at / "binary") if "binary" in body else ()
        if "require" in body and body["require"] != "validated":
            raise WireError(at / "require", expected='"validated"', got=body["require"])
        found = canonical(check_kernel(read_kernel(body["ast"], limits, at / "ast"), at / "ast"))
        return Request(
            found.kernel,
            found.rows,
            found.ast_hash,
            found.text,
            device,
            optimize,
            annotate,
            binary,
            "validated" if "require" in body else None,
        )

    @property
    def schedule(self) -> Schedule:
        """What the program is compiled by: of `tuned` and of searches, the heuristic until a list is found."""
        return self.optimize if isinstance(self.optimize, tuple) else "heuristic"

    def scheduled(self, options: Options) -> Request:
        """The same request, with exactly these options."""
        return replace(self, optimize=options)

    def annotated(self) -> Request:
        """The same request, its source with comments."""
        return replace(self, annotate=True)

    def canonical_ast(self) -> dict[str, object]:
        """The canonical AST, as `ast_hash` is over it."""
        value: dict[str, object] = json.loads(self.ast_text)
        return value

    def to_json(self) -> dict[str, object]:
        """A request of the wire that says the same: `from_json` of it is equal to this one but for `rows`."""
        optimize = self.optimize
        asked: object = optimize
        if isinstance(optimize, tuple):
            asked = [option.to_json() for option in optimize]
        elif isinstance(optimize, Search):
            asked = optimize.to_json()
        body: dict[str, object] = {
            "ast": kernel_to_json(self.kernel),
            "device": self.device.to_json(),
            "optimize": asked,
            "annotate": self.annotate,
        }
        if self.binary:
            body["binary"] = list(self.binary)
        if self.require:
            body["require"] = self.require
        return body


def program_key(request: Request) -> str:
    """The name of the program: SHA-256 over the RFC 8785 JSON of all that decides its text."""
    schedule = request.schedule
    optimize = '"heuristic"' if schedule == "heuristic" else _RFC8785([option.to_json() for option in schedule])
    text = (
        f'{{"annotate":{"true" if request.annotate else "false"},"ast":"{request.ast_hash}","compiler":"{COMPILER}",'
        f'"device":{_device_text(request.device)},"optimize":{optimize}}}'
    )
    return sha256(text.encode()).hexdigest()


@lru_cache(maxsize=64)
def _device_text(device: DeviceOptions) -> str:
    return _RFC8785(device.to_json())


def _optimize(value: object, at: Pointer) -> Optimize:
    if type(value) is str:
        if value == "none":
            return ()
        if value == "heuristic":
            return "heuristic"
        if value == "tuned":
            return "tuned"
    if type(value) is list:
        return tuple([read_option(option, at / k) for k, option in enumerate(value)])
    if type(value) is dict:
        return _search(value, at)
    raise WireError(at, expected='"none", "heuristic", "tuned", a list of options or a search', got=value)


def _search(value: dict[str, object], at: Pointer) -> Search:
    for name in value:
        if name not in ("search", "width", "seconds", "candidates"):
            raise WireError(at / name, expected="no such member: a search has search, width, seconds and candidates", got=value[name])
    if value.get("search") != "beam":
        raise WireError(at / "search", expected='"beam"', got=value["search"] if "search" in value else Said("nothing"))
    found = Search()
    for name in ("width", "candidates"):
        if name in value:
            count = value[name]
            if type(count) is not int or not 0 < count < 2**31:
                raise WireError(at / name, expected="a positive integer", got=count)
            found = replace(found, **{name: count})
    if "seconds" in value:
        seconds = value["seconds"]
        if not isinstance(seconds, (int, float)) or type(seconds) is bool or not 0 < seconds < 2**31:
            raise WireError(at / "seconds", expected="a positive number of seconds", got=seconds)
        found = replace(found, seconds=seconds)
    return found


def _binary(value: object, target: str, at: Pointer) -> tuple[str, ...]:
    formats = TARGETS[target].binaries
    if value is True:
        if not formats:
            raise TargetError(at, target=target, feature="binary format")
        return formats[:1]
    if type(value) is not list:
        raise WireError(at, expected=f"true or a list of formats: {', '.join(FORMATS)}", got=value)
    found: list[str] = []
    for k, item in enumerate(value):
        if type(item) is not str or item not in FORMATS or item in found:
            raise WireError(at / k, expected=f"one of {', '.join(FORMATS)}, each once", got=item)
        if item not in formats:
            raise TargetError(at / k, target=target, feature=f"binary format {item}")
        found.append(item)
    return tuple(found)
