"""A request is read, resolved and given its key; what it may not say is refused with its place."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import KernelError, LimitExceeded, TargetError, WireError
from core.limits import Limits
from core.request import Request, Search, program_key
from core.schedule.option import ScheduleOption
from core.version import COMPILER
from tests.kernels import add_kernel, edited, every_form, request

UPCAST = {"op": "UPCAST", "axis": 0, "amount": 4}

REFUSED: dict[str, tuple[object, str, str]] = {
    "a list": ([], "", "a request: an object"),
    "null": (None, "", "a request: an object"),
    "empty": ({}, "/ast", "requires it"),
    "no ast": ({"device": {"target": "c"}}, "/ast", "requires it"),
    "no device": ({"ast": add_kernel()}, "/device", "requires it"),
    "an unknown member": (request(target="c"), "/target", "no such member"),
    "an unknown member with a slash": ({**request(), "a/b": 1}, "/a~1b", "no such member"),
    "the device": (request(device="opencl"), "/device", "an object"),
    "within the ast": (request(edited(add_kernel(), {"/nodes/0/dtype": "f32"})), "/ast/nodes/0/dtype", "one of bool"),
    "optimize a text": (request(optimize="beam"), "/optimize", '"none", "heuristic", "tuned"'),
    "optimize null": (request(optimize=None), "/optimize", '"none", "heuristic", "tuned"'),
    "optimize true": (request(optimize=True), "/optimize", '"none", "heuristic", "tuned"'),
    "an option": (request(optimize=[UPCAST, UPCAST, {**UPCAST, "axis": "0"}]), "/optimize/2/axis", "an axis number"),
    "an option without amount": (request(optimize=[{"op": "UPCAST", "axis": 0}]), "/optimize/0/amount", "requires it"),
    "a search for nothing": (request(optimize={}), "/optimize/search", '"beam"'),
    "a search for what is not": (request(optimize={"search": "random"}), "/optimize/search", '"beam"'),
    "a search with more": (request(optimize={"search": "beam", "depth": 3}), "/optimize/depth", "no such member"),
    "a search of width 0": (request(optimize={"search": "beam", "width": 0}), "/optimize/width", "a positive integer"),
    "a search of width true": (request(optimize={"search": "beam", "width": True}), "/optimize/width", "a positive integer"),
    "a search of half a candidate": (
        request(optimize={"search": "beam", "candidates": 0.5}),
        "/optimize/candidates",
        "a positive integer",
    ),
    "a search of no time": (request(optimize={"search": "beam", "seconds": 0}), "/optimize/seconds", "a positive number"),
    "a search of true seconds": (
        request(optimize={"search": "beam", "seconds": True}),
        "/optimize/seconds",
        "a positive number",
    ),
    "a search without end": (
        request(optimize={"search": "beam", "seconds": float("inf")}),
        "/optimize/seconds",
        "a positive number",
    ),
    "annotate 1": (request(annotate=1), "/annotate", "true or false"),
    "annotate null": (request(annotate=None), "/annotate", "true or false"),
    "binary false": (request(binary=False), "/binary", "true or a list of formats"),
    "binary a text": (request(binary="clbin"), "/binary", "true or a list of formats"),
    "an unknown binary": (request(binary=["clbin", "exe"]), "/binary/1", "one of cubin"),
    "a binary twice": (request(binary=["clbin", "clbin"]), "/binary/1", "each once"),
    "require true": (request(require=True), "/require", '"validated"'),
    "require null": (request(require=None), "/require", '"validated"'),
    "require what is not": (request(require="tuned"), "/require", '"validated"'),
}


@pytest.mark.parametrize(("body", "pointer", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_a_request_is_refused_with_its_place(body: object, pointer: str, expected: str) -> None:
    with pytest.raises(WireError) as refusal:
        Request.from_json(body)

    assert "wire" == refusal.value.category
    assert pointer == refusal.value.facts()["pointer"]
    assert expected in str(refusal.value.facts()["expected"])


def test_a_kernel_without_meaning_is_refused() -> None:
    with pytest.raises(KernelError) as refusal:
        Request.from_json(request(edited(add_kernel(), {"/nodes/1/dtype": "int32"})))

    assert "/ast/nodes/2" == refusal.value.facts()["pointer"]


def test_limits_are_those_handed_in() -> None:
    with pytest.raises(LimitExceeded) as refusal:
        Request.from_json(request(), Limits(nodes=3))

    assert {"pointer": "/ast/nodes", "limit": "nodes", "needed": 4, "allowed": 3} == refusal.value.facts()


@pytest.mark.parametrize(
    ("target", "binary", "pointer"),
    [
        ("opencl", ["cubin"], "/binary/0"),
        ("opencl", ["clbin", "so"], "/binary/1"),
        ("c", ["spirv"], "/binary/0"),
        ("metal", True, "/binary"),
    ],
)
def test_a_binary_the_target_lacks_is_refused(target: str, binary: object, pointer: str) -> None:
    with pytest.raises(TargetError) as refusal:
        Request.from_json(request(device={"target": target}, binary=binary))

    assert (pointer, target) == (refusal.value.facts()["pointer"], refusal.value.facts()["target"])
    assert "binary format" in str(refusal.value.facts()["feature"])


def test_what_is_left_out_has_its_default() -> None:
    read = Request.from_json(request())

    assert ("heuristic", False, (), None) == (read.optimize, read.annotate, read.binary, read.require)
    assert "opencl" == read.device.target


def test_what_is_asked_for_is_kept() -> None:
    read = Request.from_json(request(optimize=[UPCAST, {"op": "NOLOCALS"}], annotate=True, binary=["spirv", "clbin"], require="validated"))

    assert (ScheduleOption("UPCAST", 0, 4), ScheduleOption("NOLOCALS")) == read.optimize
    assert (True, ("spirv", "clbin"), "validated") == (read.annotate, read.binary, read.require)
    assert ("so",) == Request.from_json(request(device={"target": "c"}, binary=True)).binary


def test_a_search_has_defaults() -> None:
    assert Search(4, 60, 2000) == Request.from_json(request(optimize={"search": "beam"})).optimize
    read = Request.from_json(request(optimize={"search": "beam", "seconds": 0.5, "width": 2, "candidates": 7}))
    assert {"search": "beam", "width": 2, "seconds": 0.5, "candidates": 7} == read.to_json()["optimize"]


def key_of(**more: Any) -> str:
    return program_key(Request.from_json(request(**more)))


def test_none_and_the_empty_list_have_one_key() -> None:
    """M 245."""
    assert key_of(optimize="none") == key_of(optimize=[])
    assert key_of(optimize="none") != key_of()


@pytest.mark.parametrize("optimize", ["tuned", {"search": "beam"}])
def test_what_is_still_to_be_found_has_the_heuristics_key_until_it_is(optimize: object) -> None:
    read = Request.from_json(request(optimize=optimize))

    assert "heuristic" == read.schedule
    assert key_of() == program_key(read)
    assert key_of(optimize=[UPCAST]) == program_key(read.scheduled((ScheduleOption("UPCAST", 0, 4),)))


def test_device_options_written_out_at_their_defaults_leave_the_key() -> None:
    """M 245."""
    written = Request.from_json(request()).device.to_json()

    assert key_of() == key_of(device=written)


CHANGES: dict[str, dict[str, Any]] = {
    "fast_math": {"device": {"target": "opencl", "fast_math": True}},
    "arch": {"device": {"target": "opencl", "arch": "a device"}},
    "alignment": {"device": {"target": "opencl", "alignment": 64}},
    "target": {"device": {"target": "c"}},
    "annotate": {"annotate": True},
    "optimize": {"optimize": [UPCAST]},
    "an option's amount": {"optimize": [{**UPCAST, "amount": 0}]},
    "ast": {"ast": add_kernel([5])},
}


def test_whatever_the_text_depends_on_changes_the_key() -> None:
    """M 245."""
    keys = [key_of(), *(program_key(Request.from_json({**request(), **change})) for change in CHANGES.values())]

    assert len(keys) == len(set(keys))
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys)


@pytest.mark.parametrize("more", [{"binary": True}, {"binary": ["spirv"]}, {"require": "validated"}, {"annotate": False}])
def test_what_the_text_does_not_depend_on_leaves_the_key(more: dict[str, Any]) -> None:
    """M 245."""
    assert key_of() == key_of(**more)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"optimize": "none"},
        {"optimize": [UPCAST]},
        {"optimize": "tuned"},
        {"optimize": {"search": "beam", "width": 3}},
        {"annotate": True, "binary": ["clbin"], "require": "validated"},
        {"device": {"target": "c", "arch": "x86-64-v3"}},
    ],
)
def test_a_request_written_is_the_same_request(more: dict[str, Any]) -> None:
    read = Request.from_json(request(every_form(), **more))
    again = Request.from_json(json.loads(json.dumps(read.to_json())))

    assert tuple(range(14)) == again.rows
    assert Request(read.kernel, again.rows, *[getattr(read, name) for name in Request.__slots__[2:]]) == again
    assert program_key(read) == program_key(again)


def test_a_request_travels_between_processes() -> None:
    read = Request.from_json(request(every_form(), optimize=[UPCAST]))

    assert read == pickle.loads(pickle.dumps(read))


def test_rows_lead_back_to_the_table_that_was_sent() -> None:
    nodes = add_kernel()["nodes"]
    read = Request.from_json(request({**add_kernel(), "nodes": [nodes[1], nodes[0], nodes[2], nodes[3]]}))

    assert ("LOAD", "LOAD", "ADD", "STORE") == tuple(each.op for each in read.kernel.nodes)
    assert (0, 1, 2, 3) == read.rows
    assert read.canonical_ast()["outputs"] == [3]


def test_keys_are_the_same_in_every_process() -> None:
    program = (
        "import json, sys; from core.request import Request, program_key\n"
        "read = Request.from_json(json.load(sys.stdin)); print(program_key(read), read.ast_hash, read.ast_text)"
    )
    body = json.dumps(request(every_form()))
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=body,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
        ).stdout
        for seed in ("0", "1", "77")
    }

    assert 1 == len(texts)
    read = Request.from_json(request(every_form()))
    assert [read.ast_hash, read.ast_text] == texts.pop().split()[1:]


def test_the_compilers_version_follows_from_its_sources() -> None:
    assert COMPILER.startswith("lathe-")
    assert 16 == len(COMPILER.removeprefix("lathe-"))
