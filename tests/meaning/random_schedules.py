"""Legal schedules at random: option after option is tried on the axes as they are, and kept where it can be applied."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from core.compiler import compile_kernel
from core.errors import RequestError
from core.limits import Limits
from core.request import Request
from core.schedule.axis import EXPANDED, AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options import OPTIONS
from core.schedule.options.base import Context
from tests.meaning.choices import Choices

Json = dict[str, Any]

OPS = (*("UPCAST", "UNROLL", "LOCAL", "GROUP", "GROUPTOP", "LOOP") * 3, "UPCAST", "UNROLL", "UPCASTMID", "PADTO", "PADTO", "NOLOCALS")
AMOUNTS = (2, 4, 0, 3, 8, 5, 6, 7, 16)
MULTIPLES = (2, 4, 3, 8, 5, 32)
TRIES = 6  # ops tried for each option that is wanted
MOST = 5  # options of a list


def initial_nest(request: Request) -> Nest:
    """The nest of a request before any option, the mandatory ones included. Raises what compiling raises."""
    found: list[Nest] = []

    def watch(stage: str, value: object) -> None:
        if stage == "build" and isinstance(value, Nest):
            found.append(value)
            raise _Enough

    with suppress(_Enough):
        compile_kernel(request, watch=watch)
    return found[0]


class _Enough(Exception):
    """Compiling went far enough."""


def random_schedule(choices: Choices, nest: Nest, request: Request) -> list[Json]:
    """A list of options that can be applied in this order, perhaps none."""
    context = Context(request.device, Limits(), "/optimize")
    options: list[Json] = []
    for _ in range(choices.between(0, MOST)):
        for _ in range(TRIES):
            candidates = _candidates(nest, choices.one_of(OPS))
            if not candidates:
                continue
            option = choices.one_of(candidates)
            try:
                nest = OPTIONS[option.op](nest, option, context)
            except RequestError:
                continue
            options.append(option.to_json())
            break
    return options


def _candidates(nest: Nest, op: str) -> list[ScheduleOption]:
    """Options of one kind that may well be legal: the axis is one of those the op counts, the amount divides its extent."""
    if op == "NOLOCALS":
        return [ScheduleOption(op)]
    first = nest.first_reduce
    begin, end = (first, len(nest.axes)) if op in ("UNROLL", "GROUP", "GROUPTOP") else (0, first)
    if op in ("GROUP", "GROUPTOP"):
        begin += len(nest.of_kind(AxisKind.GROUP, AxisKind.MID))
    if op == "PADTO":
        end = len(nest.axes)
    amounts = {"PADTO": MULTIPLES, "UPCASTMID": (4,)}.get(op, AMOUNTS)
    found: list[ScheduleOption] = []
    for at in range(begin, end):
        axis = nest.axes[at]
        if axis.kind in EXPANDED:
            continue
        for amount in amounts:
            fits = isinstance(axis.extent, int) and (op == "PADTO" or amount == 0 or axis.extent % amount == 0)
            if fits or (op == "LOOP" and amount == 0):
                found.append(ScheduleOption(op, at - begin if op in ("UNROLL", "GROUP", "GROUPTOP") else at, amount))
    return found
