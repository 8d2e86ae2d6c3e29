"""`docs/keys.md` followed by somebody who has never seen the compiler: its hashes and keys are the service's.

The first half of this file is the recipe, on json, hashlib and struct alone. `tests/vectors/keys.json` holds cases for
other languages; `pytest --bless` is not needed for them: they do not depend on the compiler's version.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from core.request import Request, program_key
from core.targets import TARGETS
from core.version import COMPILER
from tests.core.kernel.test_canonical import asts
from tests.kernels import add_kernel, every_form

Json = dict[str, Any]


def rfc_8785(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha_256(value: object) -> str:
    return hashlib.sha256(rfc_8785(value)).hexdigest()


def an_integer(n: int) -> object:
    return n if abs(n) <= 2**53 - 1 else str(n)


def an_expression(value: object) -> object:
    if isinstance(value, int):
        return an_integer(value)
    text = "".join(re.findall(r"[0-9]+|[A-Za-z_][A-Za-z0-9_]*|//|[-+*%()]", str(value)))
    return an_integer(int(text)) if re.fullmatch("-?[0-9]+", text) else text


def a_condition(text: str) -> str:
    left, relation, right = re.split("(<=|>=|<|>)", text)
    return f"{an_expression(left)}{relation}{an_expression(right)}"


def a_value(value: object, dtype: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if "float" not in dtype:
        return str(value)
    if value == "nan":
        return "7ff8000000000000"
    return struct.pack(">d", float(str(value))).hex()


def a_view(view: Json) -> Json:
    mask = view.get("mask")
    return {
        "shape": [an_expression(e) for e in view["shape"]],
        "strides": [an_expression(s) for s in view["strides"]],
        "offset": an_expression(view.get("offset", 0)),
        "mask": None if mask is None else [[an_expression(begin), an_expression(end)] for begin, end in mask],
    }


def a_node(node: Json) -> Json:
    canonical = {name: value for name, value in node.items() if name != "src" or value}
    for name, write in (("buffer", an_integer), ("index", an_expression), ("expr", an_expression)):
        if name in node:
            canonical[name] = write(node[name])
    if "value" in node:
        canonical["value"] = a_value(node["value"], node["dtype"])
    if "views" in node:
        canonical["views"] = [a_view(view) for view in node["views"]]
    if "shape" in node:
        canonical["shape"] = [an_expression(e) for e in node["shape"]]
        canonical["valid"] = [a_condition(text) for text in node.get("valid", [])]
    return canonical


def the_canonical_ast(ast: Json) -> Json:
    rows = [a_node(node) for node in ast["nodes"]]
    unique: dict[bytes, int] = {}
    same: list[int] = []
    for number, row in enumerate(rows):
        if "src" in row:
            row["src"] = [same[s] for s in row["src"]]
        same.append(unique.setdefault(rfc_8785(row), number))
    finished: dict[int, int] = {}
    stack = [same[row] for row in reversed(ast["outputs"])]
    while stack:
        row_number = stack[-1]
        left = [s for s in rows[row_number].get("src", []) if s not in finished]
        if row_number in finished or not left:
            stack.pop()
            finished.setdefault(row_number, len(finished))
        else:
            stack.extend(reversed(left))
    nodes = []
    for row_number in finished:
        row = rows[row_number]
        nodes.append({**row, "src": [finished[s] for s in row["src"]]} if "src" in row else row)
    return {
        "version": 1,
        "variables": sorted(ast["variables"], key=lambda variable: str(variable["name"])),
        "nodes": nodes,
        "outputs": [finished[same[row]] for row in ast["outputs"]],
    }


def the_key(ast_hash: str, device: Json, optimize: object, annotate: bool, compiler: str) -> str:
    return sha_256(
        {
            "ast": ast_hash,
            "device": device,
            "optimize": [] if optimize == "none" else optimize,
            "annotate": annotate,
            "compiler": compiler,
        }
    )


# ---- the compiler agrees -------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
VECTORS: list[Json] = json.loads((ROOT / "tests/vectors/keys.json").read_text())["asts"]
ONE_DAG: dict[str, str] = {}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["what"] for vector in VECTORS])
def test_a_vector_holds_for_the_recipe_and_for_the_compiler(vector: Json) -> None:
    """M 249."""
    request = Request.from_json({"ast": vector["ast"], "device": {"target": "opencl"}})

    assert vector["canonical"] == rfc_8785(the_canonical_ast(vector["ast"])).decode()
    assert vector["canonical"] == request.ast_text
    assert vector["ast_hash"] == hashlib.sha256(vector["canonical"].encode()).hexdigest()
    assert vector["ast_hash"] == request.ast_hash
    if "same_as" in vector:
        assert vector["ast_hash"] == next(other["ast_hash"] for other in VECTORS if other["what"] == vector["same_as"])


def test_vectors_that_are_not_said_to_be_the_same_differ() -> None:
    hashes = [vector["ast_hash"] for vector in VECTORS if "same_as" not in vector]

    assert len(hashes) == len(set(hashes))


@given(asts())
@settings(max_examples=100)
def test_the_recipe_agrees_on_any_kernel(ast: Json) -> None:
    request = Request.from_json({"ast": ast, "device": {"target": "opencl"}})

    assert sha_256(the_canonical_ast(ast)) == request.ast_hash


@pytest.mark.parametrize("target", ["opencl", "c"])
@pytest.mark.parametrize("annotate", [False, True])
@pytest.mark.parametrize(
    "optimize",
    [
        "none",
        "heuristic",
        [],
        [{"op": "UPCAST", "axis": 0, "amount": 4}, {"op": "NOLOCALS"}],
        [{"op": "TC", "axis": 0, "amount": 0}],
    ],
)
def test_the_recipe_agrees_on_keys(target: str, annotate: bool, optimize: object) -> None:
    ast = every_form()
    request = Request.from_json({"ast": ast, "device": {"target": target}, "optimize": optimize, "annotate": annotate})
    device = TARGETS[target].defaults.to_json()

    assert the_key(sha_256(the_canonical_ast(ast)), device, optimize, annotate, COMPILER) == program_key(request)


@pytest.mark.parametrize("arch", ["GeForce RTX™ «8»", 'a "quoted" \\ name', "x86-64-v3", "デバイス"])
def test_the_recipe_agrees_on_keys_with_any_text(arch: str) -> None:
    request = Request.from_json({"ast": add_kernel(), "device": {"target": "opencl", "arch": arch}})
    device = {**TARGETS["opencl"].defaults.to_json(), "arch": arch}

    assert the_key(request.ast_hash, device, "heuristic", False, COMPILER) == program_key(request)


def test_the_page_shows_what_the_recipe_gives() -> None:
    page = (ROOT / "docs/keys.md").read_text()
    body = json.loads(page.split("```json\n")[1].split("```")[0])
    blocks = [block.strip().split("\n") for block in page.split("\n```\n")[2::2]]
    request = Request.from_json(body)

    assert request.ast_text in page
    assert f"\n{request.ast_hash}\n" in page
    over = {"annotate": False, "ast": request.ast_hash, "compiler": "…", "device": request.device.to_json(), "optimize": []}
    assert f"\n{rfc_8785(over).decode()}\n" in page
    assert blocks
