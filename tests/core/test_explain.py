"""What is told of how a program came about (acceptance 210)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from core import TARGETS, LimitExceeded, Limits, OptionRefused, Request, compile_kernel, explain
from core.linear.listing import Listing
from tests.core.schedule.test_heuristic import product, row_sums, softmax
from tests.core.schedule.test_options import image_copy
from tests.kernels import every_form

Json = dict[str, Any]

GROUPED: list[Json] = [{"op": "GROUP", "axis": 0, "amount": 8}, {"op": "LOCAL", "axis": 0, "amount": 4}]
BODIES: dict[str, Json] = {
    "tiles": {"ast": product(48, 64, 96), "device": {"target": "opencl"}},
    "loops, in C": {"ast": softmax(16, 48), "device": {"target": "c"}},
    "without options": {"ast": softmax(16, 48), "device": {"target": "opencl"}, "optimize": "none"},
    "a list": {"ast": row_sums(16, 96), "device": {"target": "opencl"}, "optimize": GROUPED},
    "a guarded launch": {"ast": row_sums(12, 8), "device": {"target": "opencl"}, "optimize": [{"op": "PADTO", "axis": 0, "amount": 32}]},
    "an image": {"ast": image_copy(), "device": {"target": "opencl"}, "optimize": "none"},
    "every form of node": {"ast": every_form(), "device": {"target": "c"}},
}
EACH = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)


def told(body: Json) -> Any:
    return explain(Request.from_json(body))


def kinds(axes: list[Json]) -> list[tuple[str, Any]]:
    return [(axis["kind"], axis["extent"]) for axis in axes]


def test_axes_are_told_before_any_option_and_after_each() -> None:
    before, grouped, local = told(BODIES["a list"])["axes"]

    assert [None, *GROUPED] == [step["option"] for step in (before, grouped, local)]
    assert [("global", 16), ("reduce", 96)] == kinds(before["axes"])
    assert [("global", 16), ("group", 8), ("reduce", 12)] == kinds(grouped["axes"])
    assert [("global", 4), ("local", 4), ("group", 8), ("reduce", 12)] == kinds(local["axes"])
    assert [[0], [0], [1], [1]] == [axis["from"] for axis in local["axes"]]
    assert [None, None, 0, 0] == [axis["reduce_class"] for axis in local["axes"]]


def test_a_symbolic_axis_is_told_as_its_expression() -> None:
    ast = row_sums(4, 8)
    ast["variables"] = [{"name": "n", "min": 1, "max": 64}]
    ast["nodes"][0] |= {"shape": [4, "n"], "index": "axis0*n + axis1"}

    assert ("reduce", "n") in kinds(told({"ast": ast, "device": {"target": "c"}, "optimize": "none"})["axes"][0]["axes"])


@EACH
def test_every_option_has_its_decision_and_its_reason(body: Json) -> None:
    """K 210."""
    explained, program = told(body), compile_kernel(Request.from_json(body))

    assert program.applied == [step["option"] for step in explained["axes"][1:]]
    assert program.applied == [option for decision in explained["decisions"] for option in decision["options"]]
    assert all(decision["reason"] for decision in explained["decisions"])


def test_whose_each_option_is() -> None:
    def whose(name: str) -> list[str]:
        return [decision["step"] for decision in told(BODIES[name])["decisions"]]

    assert (["asked"], ["texels"], []) == (whose("a list"), whose("an image"), whose("without options"))
    assert {"register tiles", "unroll", "lanes"} == set(whose("tiles"))


def test_what_was_tried_in_vain_is_told_with_the_option_and_why() -> None:
    explained = told({"ast": row_sums(16, 4096), "device": {"target": "opencl", "shared_max": 64}})
    decision = next(decision for decision in explained["decisions"] if decision["refused"])
    refused = decision["refused"][0]

    assert ("few outputs", []) == (decision["step"], decision["options"])
    assert {"op": "GROUPTOP", "axis": 0, "amount": 256} == refused["option"]
    assert "local memory would be 1024, allowed are 64" in refused["reason"]
    assert [{"op": "GROUPTOP", "axis": 0, "amount": 16}] == [step["option"] for step in explained["axes"][1:]]


@EACH
def test_every_micro_op_names_the_nodes_it_comes_from(body: Json) -> None:
    """K 210."""
    explained = told(body)
    count = len(explained["ast"]["nodes"])

    for micro_op in explained["micro_ops"]:
        assert micro_op["nodes"], micro_op
        assert sorted(set(micro_op["nodes"])) == micro_op["nodes"]
        assert set(micro_op["nodes"]) <= set(range(count))


def test_operations_come_from_their_own_nodes_and_the_rest_from_those_it_serves() -> None:
    explained = told(BODIES["without options"])
    ops = [node["op"] for node in explained["ast"]["nodes"]]
    lines = {micro_op["text"].partition("=")[2].partition(":")[0].strip(): micro_op["nodes"] for micro_op in explained["micro_ops"]}

    def nodes_of(pattern: str) -> list[list[str]]:
        return [[ops[node] for node in nodes] for text, nodes in lines.items() if re.match(pattern, text)]

    assert [["EXP2"]] == [list(nodes) for nodes in {tuple(nodes) for nodes in nodes_of("exp2")}]
    assert [["RECIP"]] == nodes_of("recip")
    assert all("LOAD" in nodes for nodes in nodes_of("load buf1"))
    assert [["REDUCE_MAX"]] == nodes_of(r"acc\{0\}")
    loops = nodes_of("loop")
    assert all({"LOAD", "REDUCE_MAX"} <= set(nodes) or {"EXP2", "REDUCE_SUM"} <= set(nodes) for nodes in loops)
    assert ["STORE"] in nodes_of("param")


@EACH
def test_without_provenance_the_source_is_the_same_to_the_byte(body: Json) -> None:
    """K 210."""
    request = Request.from_json(body)
    seen: dict[str, Any] = {}
    noted = compile_kernel(request.annotated(), watch=seen.__setitem__)
    listing = seen["order"]
    assert isinstance(listing, Listing)
    plain = compile_kernel(request).source

    assert plain == TARGETS[request.device.target].render(replace(listing, provenance={}), request.device)
    assert plain != noted.source
    assert plain == re.sub(r" (/\*[ \d]*\*/|// [ \d]*)$", "", noted.source, flags=re.MULTILINE)


@EACH
def test_two_runs_tell_the_same(body: Json) -> None:
    assert json.dumps(told(body)) == json.dumps(told(body))


@EACH
def test_what_the_program_says_too_is_as_it_says(body: Json) -> None:
    request = Request.from_json(body)
    explained, program = told(body), compile_kernel(request)

    assert (program.key, program.name, program.proofs) == (explained["key"], explained["name"], explained["proofs"])
    assert {"flops": program.flops, "memory_bytes": program.memory_bytes} == explained["estimates"]
    canonical = json.dumps(explained["ast"], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert request.ast_hash == sha256(canonical.encode()).hexdigest()
    assert all(node["op"].lower() in explained["kernel"] for node in explained["ast"]["nodes"])


def test_what_can_not_be_compiled_is_refused_as_ever() -> None:
    with pytest.raises(OptionRefused, match="/optimize/1"):
        told({**BODIES["a list"], "optimize": [*GROUPED[:1], {"op": "LOCAL", "axis": 0, "amount": 5}]})
    with pytest.raises(LimitExceeded, match="micro_ops"):
        explain(Request.from_json(BODIES["tiles"]), Limits(micro_ops=3))
