"""A view and the expression that says the same are one kernel: the same axes, options that fit alike, the same text (acceptance M 235)."""

from __future__ import annotations

from typing import Any

import pytest

from core import Request, compile_kernel
from core.errors import RequestError
from tests.meaning.choices import Choices
from tests.meaning.random_kernels import random_kernel
from tests.meaning.random_schedules import initial_nest, random_schedule

Json = dict[str, Any]


def by_expressions(ast: Json) -> tuple[Json, int]:
    """The kernel with each leaf of one view spelt as an expression; and how many there were."""
    nodes = [rewritten(n) if len(n.get("views", ())) == 1 else n for n in ast["nodes"]]
    return ast | {"nodes": nodes}, sum(n is not m for n, m in zip(nodes, ast["nodes"], strict=True))


def rewritten(node: Json) -> Json:
    (view,) = node["views"]
    index = " + ".join([f"({view.get('offset', 0)})", *(f"axis{k}*({s})" for k, s in enumerate(view["strides"]))])
    valid = []
    for k, (begin, end) in enumerate(view.get("mask") or ()):
        if begin != 0:
            valid.append(f"axis{k} >= ({begin})")
        if end != view["shape"][k]:
            valid.append(f"axis{k} < ({end})")
    found = {name: value for name, value in node.items() if name != "views"} | {"shape": view["shape"], "valid": valid}
    return found if node["op"] == "CONST" else found | {"index": index}


def answer(ast: Json, device: Json, options: list[Json]) -> tuple[object, ...]:
    """All of the program but what names the kernel itself; or why there is none."""
    try:
        program = compile_kernel(Request.from_json({"ast": ast, "device": device, "optimize": options})).to_json()
    except RequestError as error:
        return error.category, error.facts().get("reason")
    return tuple(value for name, value in program.items() if name not in ("key", "ast_hash"))


@pytest.mark.parametrize("target", ["opencl", "c"])
def test_random_kernels_are_the_same_by_views_and_by_expressions(target: str) -> None:
    """M 235, 236: under no options and under some that fit."""
    spelt = compared = 0
    for number in range(60):
        choices = Choices.random(f"spelt {number}")
        ast = random_kernel(choices)
        other, changed = by_expressions(ast)
        request = Request.from_json({"ast": ast, "device": {"target": target}, "optimize": "none"})
        try:
            nest = initial_nest(request)
        except RequestError:
            continue
        spelt += changed
        for options in ([], random_schedule(choices, nest, request), random_schedule(choices, nest, request)):
            assert answer(ast, {"target": target}, options) == answer(other, {"target": target}, options), (number, options)
            compared += 1
    assert spelt > 60
    assert compared > 120
