"""Nests for tests: a kernel with options written as people say them, `UPCAST 0 4`."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import OptionRefused, Pointer
from core.kernel.leaves import Leaves
from core.limits import Limits
from core.request import Request
from core.schedule.apply import scheduled
from core.schedule.build import build_nest
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption, read_option

Json = dict[str, Any]
BIG: Json = {"lanes_max": 4096, "shared_max": 1 << 20}


def options_of(text: str) -> list[Json]:
    """`LOCAL 0 4, NOLOCALS` as the wire has it."""
    found: list[Json] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        op, *numbers = part.split()
        found.append({"op": op, **dict(zip(("axis", "amount"), map(int, numbers), strict=False))})
    return found


def nest_of(ast: Json, options: str = "", *, target: str = "opencl", limits: Limits | None = None, **device: Any) -> Nest:
    """The nest after these options. Raises OptionRefused."""
    request = Request.from_json({"ast": ast, "device": {"target": target, **device}, "optimize": "none"})
    nest = build_nest(request.kernel, Leaves(request.kernel), 1000)
    chosen: list[ScheduleOption] = [read_option(o, Pointer("/optimize") / n) for n, o in enumerate(options_of(options))]
    return scheduled(nest, chosen, request.device, limits or Limits(), request.rows)


def axes_of(ast: Json, options: str = "", *, target: str = "opencl", limits: Limits | None = None, **device: Any) -> str:
    """The axes after these options, as `describe` writes them."""
    return nest_of(ast, options, target=target, limits=limits, **device).describe()


def refusal(ast: Json, options: str, *, target: str = "opencl", limits: Limits | None = None, **device: Any) -> dict[str, Any]:
    """The facts of the refusal of the last of these options: those before it are applied."""
    last = len(options_of(options)) - 1
    with pytest.raises(OptionRefused) as refused:
        nest_of(ast, options, target=target, limits=limits, **device)
    facts: dict[str, Any] = refused.value.facts()
    assert f"/optimize/{last}" == facts["pointer"]
    assert options_of(options)[last] == facts["option"]
    return facts
