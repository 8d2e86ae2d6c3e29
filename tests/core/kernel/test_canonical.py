"""Tables of one DAG have one canonical form; the text of it is RFC 8785 JSON; different kernels have different ones."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.kernel.canonical import ast_hash, canonical, canonical_ast, canonicalize
from core.kernel.check import check_kernel
from core.kernel.node import Kernel
from core.kernel.read import read_kernel
from core.kernel.write import kernel_to_json
from tests.kernels import DROP, add_kernel, const, edited, every_form, kernel, load, node, store, variable

Json = dict[str, Any]


def checked(ast: Json) -> Kernel:
    return check_kernel(read_kernel(ast))


def hash_of(ast: Json) -> str:
    return ast_hash(checked(ast))


@st.composite
def asts(draw: st.DrawFn) -> Json:
    """Small kernels of float32 and int32 nodes over one shape, some rows of which no output needs."""
    shapes: list[list[Any]] = [[], [4], [3, 5], [2, 1, "n"]]
    shape = draw(st.sampled_from(shapes))
    strides = list(range(1, len(shape) + 1))
    nodes: list[Json] = []
    for buffer in range(draw(st.integers(1, 3))):
        nodes.append(load(2 + buffer, shape, strides=strides, offset=draw(st.sampled_from([0, 3, "n", "n * 2 + 1"]))))
    for _ in range(draw(st.integers(0, 3))):
        nodes.append(const(draw(st.sampled_from([0.0, -0.0, 1.5, "nan", "inf", 1e-45])), shape))
    if shape:
        nodes.append({"op": "LOAD", "buffer": 2, "dtype": "float32", "shape": shape, "index": "axis0 + n", "valid": ["axis0 < n"]})
    for _ in range(draw(st.integers(0, 12))):
        op = draw(st.sampled_from(["NEG", "ADD", "MUL", "MAX", "MULACC"]))
        count = {"NEG": 1, "MULACC": 3}.get(op, 2)
        nodes.append(node(op, *[draw(st.integers(0, len(nodes) - 1)) for _ in range(count)]))
    outputs = []
    for buffer in range(2):
        nodes.append(store(draw(st.integers(0, len(nodes) - 1 - buffer)), shape, buffer, strides=strides))
        outputs.append(len(nodes) - 1)
    used = sorted({n["buffer"] for n in needed_nodes(nodes, outputs) if n["op"] == "LOAD"})
    for each in nodes:
        if each["op"] == "LOAD" and each["buffer"] in used:
            each["buffer"] = 2 + used.index(each["buffer"])
    return kernel(*nodes, outputs=outputs, variables=[variable("n", 1, 9), variable("a", -1, 1)])


def needed_nodes(nodes: list[Json], outputs: list[int]) -> list[Json]:
    needed, waiting = set(), list(outputs)
    while waiting:
        row = waiting.pop()
        if row not in needed:
            needed.add(row)
            waiting += nodes[row].get("src", [])
    return [nodes[row] for row in sorted(needed)]


def spaced(text: str, chance: random.Random) -> str:
    tokens = re.findall(r"\d+|\w+|//|<=|>=|.", text.replace(" ", ""))
    return "".join(" " * chance.randrange(3) + token for token in tokens) + " " * chance.randrange(3)


def rewritten(ast: Json, chance: random.Random) -> Json:
    """The same DAG as another table: rows shuffled, doubled, padded, variables reordered, defaults in and out, spaces."""
    nodes = copy.deepcopy(ast["nodes"])
    for _ in range(chance.randrange(4)):  # doubled: a user of a row may use its copy instead
        row = chance.randrange(len(nodes))
        if nodes[row]["op"] != "STORE":
            nodes.append(copy.deepcopy(nodes[row]))
            for later in nodes[:-1]:
                if "src" in later:
                    later["src"] = [len(nodes) - 1 if s == row and chance.random() < 0.5 else s for s in later["src"]]
    for _ in range(chance.randrange(3)):  # padded
        nodes.append(chance.choice([load(7, [3, 3]), const(2.0, [4]), node("NEG", 0)]))
    order: list[int] = []
    left = list(range(len(nodes)))
    while left:  # any topological order
        ready = [row for row in left if all(s in order for s in nodes[row].get("src", []))]
        row = chance.choice(ready)
        order.append(row)
        left.remove(row)
    place = {row: k for k, row in enumerate(order)}
    table = []
    for row in order:
        moved = nodes[row]
        if "src" in moved:
            moved["src"] = [place[s] for s in moved["src"]]
        for each in moved.get("views", []):
            if each.get("offset") == 0 and chance.random() < 0.5:
                del each["offset"]
            if "mask" not in each and chance.random() < 0.5:
                each["mask"] = None
            if isinstance(each.get("offset"), str):
                each["offset"] = spaced(each["offset"], chance)
            each["shape"] = [spaced(e, chance) if isinstance(e, str) else chance.choice([e, f" {e}"]) for e in each["shape"]]
        if "index" in moved:
            moved["index"] = spaced(str(moved["index"]), chance)
            moved["valid"] = [spaced(text, chance) for text in moved.get("valid", [])]
        table.append(dict(chance.sample(list(moved.items()), len(moved))))
    variables = chance.sample(ast["variables"], len(ast["variables"]))
    return kernel(*table, outputs=[place[row] for row in ast["outputs"]], variables=variables)


@given(asts(), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_tables_of_one_dag_are_one_canonical_kernel(ast: Json, chance: random.Random) -> None:
    """A 2: other order, duplicates, unreachable nodes; the source follows from the canonical kernel alone."""
    other = rewritten(ast, chance)
    one, two = canonical(checked(ast)), canonical(checked(other))

    assert one.text == two.text
    assert one.ast_hash == two.ast_hash
    assert repr(one.kernel) == repr(two.kernel)  # as text: a NaN is not equal to itself


@given(asts())
@settings(max_examples=100)
def test_the_canonical_form_of_a_canonical_kernel_is_itself(ast: Json) -> None:
    once = canonical(checked(ast))
    twice = canonical(checked(kernel_to_json(once.kernel)))

    assert once.text == twice.text
    assert repr(once.kernel) == repr(twice.kernel)
    assert tuple(range(len(once.kernel.nodes))) == twice.rows


@given(asts())
@settings(max_examples=100)
def test_the_text_is_rfc_8785(ast: Json) -> None:
    text = canonical(checked(ast)).text

    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert text.isascii()


@given(asts())
@settings(max_examples=50)
def test_rows_say_where_each_node_came_from(ast: Json) -> None:
    found = canonical(checked(ast))

    assert len(set(found.rows)) == len(found.kernel.nodes)
    assert [ast["nodes"][row]["op"] for row in found.rows] == [each.op for each in found.kernel.nodes]


def test_nodes_stand_in_the_order_a_depth_first_walk_finishes_them() -> None:
    ast = kernel(
        load(3, [4]),
        load(2, [4]),
        node("NEG", 0),
        node("MUL", 1, 2),
        node("ADD", 3, 0),
        store(4, [4], 1),
        store(2, [4]),
        outputs=[6, 5],
    )

    assert ["LOAD 3", "NEG", "STORE 0", "LOAD 2", "MUL", "ADD", "STORE 1"] == [
        f"{n['op']} {n['buffer']}" if "buffer" in n else n["op"] for n in nodes_of(ast)
    ]


def nodes_of(ast: Json) -> list[Json]:
    nodes: Any = canonical_ast(checked(ast))["nodes"]
    return list(nodes)


def test_the_text_of_every_form_is_as_the_page_says() -> None:
    found = canonical_ast(checked(every_form()))

    assert {
        "version": 1,
        "variables": [{"name": "n", "min": 1, "max": 8}],
        "nodes": [
            {
                "op": "LOAD",
                "buffer": 2,
                "dtype": "float32",
                "views": [{"shape": [4, 8], "strides": [8, 1], "offset": 0, "mask": [[0, 4], [0, 8]]}],
            },
            {
                "op": "CONST",
                "value": "3ff8000000000000",
                "dtype": "float32",
                "views": [{"shape": [4, 8], "strides": [0, 0], "offset": 0, "mask": None}],
            },
            {"op": "CMPLT", "src": [0, 1]},
            {"op": "LOAD", "buffer": 3, "dtype": "int32", "shape": [4, 8], "index": "axis0*8+axis1", "valid": ["axis1<n"]},
            {
                "op": "LOAD",
                "buffer": 4,
                "dtype": "float32",
                "src": [3],
                "shape": [4, 8],
                "index": "src0*8+axis1",
                "valid": ["src0>=0", "src0<50"],
            },
            {"op": "ADD", "src": [0, 4]},
            {"op": "CONST", "expr": "axis0+n", "dtype": "int32", "shape": [4, 8], "valid": []},
            {"op": "CAST", "dtype": "float32", "src": [6]},
            {"op": "MULACC", "src": [5, 1, 7]},
            {"op": "WHERE", "src": [2, 8, 0]},
            {"op": "REDUCE_SUM", "axes": [1], "src": [9]},
            {
                "op": "STORE",
                "buffer": 0,
                "dtype": "float32",
                "src": [10],
                "views": [{"shape": [4, 1], "strides": [1, 1], "offset": 0, "mask": None}],
            },
            {"op": "REDUCE_MAX", "axes": [1], "src": [3]},
            {
                "op": "STORE",
                "buffer": 1,
                "dtype": "float32",
                "shape": [4, 1],
                "index": "axis0",
                "valid": ["src1<3"],
                "src": [10, 12],
            },
        ],
        "outputs": [11, 13],
    } == found


SAME: dict[str, Json] = {
    "mask null": {"/nodes/3/views/0/mask": None},
    "offset 0": {"/nodes/3/views/0/offset": 0},
    "no offset": {"/nodes/0/views/0/offset": DROP},
    "valid empty": {"/nodes/4/valid": []},
    "src of a LOAD empty": {"/nodes/1/src": []},
    "spaces": {"/nodes/1/index": " axis0 * 8+ axis1 ", "/nodes/2/valid": ["src0>=0", "  src0  <50"]},
    "an integer as text": {"/nodes/0/views/0/shape": ["4", " 8 "], "/nodes/0/views/0/mask": [["0", 4], [0, "8"]]},
    "a negative integer with a space": {"/nodes/3/views/0/offset": "- 0"},
    "1.5 as 15e-1": {"/nodes/3/value": 15e-1},
}


@pytest.mark.parametrize("edits", SAME.values(), ids=SAME)
def test_what_is_written_otherwise_hashes_alike(edits: Json) -> None:
    assert hash_of(every_form()) == hash_of(edited(every_form(), edits))


OTHER: dict[str, Json] = {
    "operands exchanged": {"/nodes/5/src": [2, 0]},
    "another mask that covers all": {"/nodes/0/views/0/mask": None},
    "terms exchanged": {"/nodes/1/index": "axis1 + axis0*8"},
    "parentheses": {"/nodes/1/index": "(axis0*8) + axis1"},
    "zeros before a digit": {"/nodes/1/index": "axis0*08 + axis1"},
    "a condition turned round": {"/nodes/1/valid": ["n > axis1"]},
    "conditions exchanged": {"/nodes/2/valid": ["src0 < 50", "src0 >= 0"]},
    "other bounds of a variable": {"/variables/0/max": 7},
    "one more variable": {"/variables/-": variable("unused", 0, 1)},
    "another op": {"/nodes/10/op": "REDUCE_MAX"},
    "other axes": {"/nodes/11/axes": [0, 1]},
    "another buffer": {"/nodes/0/buffer": 4, "/nodes/2/buffer": 2},
    "another constant": {"/nodes/3/value": 1.25},
}


@pytest.mark.parametrize("edits", OTHER.values(), ids=OTHER)
def test_what_is_another_kernel_hashes_otherwise(edits: Json) -> None:
    assert hash_of(every_form()) != hash_of(edited(every_form(), edits))


def test_zeros_of_either_sign_are_two_constants() -> None:
    ast = kernel(
        const(0.0, [4]),
        const(-0.0, [4]),
        const("nan", [4]),
        const("nan", [4]),
        node("ADD", 0, 1),
        node("ADD", 2, 3),
        node("MUL", 4, 5),
        store(6, [4]),
    )

    assert ["0000000000000000", "8000000000000000", "7ff8000000000000"] == [n["value"] for n in nodes_of(ast) if n["op"] == "CONST"]


@pytest.mark.parametrize(
    ("written", "dtype", "value"),
    [
        (0.1, "float32", "3fb999999999999a"),
        (1, "float32", "3ff0000000000000"),
        ("inf", "float16", "7ff0000000000000"),
        ("-inf", "float64", "fff0000000000000"),
        (5e-324, "float64", "0000000000000001"),
        (2**62, "int64", "4611686018427387904"),
        (2**62 + 1, "int64", "4611686018427387905"),
        (-(2**63), "int64", "-9223372036854775808"),
        (True, "bool", "true"),
        (False, "bool", "false"),
        (7, "uint8", "7"),
    ],
)
def test_a_constants_value_is_a_string(written: object, dtype: str, value: str) -> None:
    assert value == nodes_of(kernel(const(written, [4], dtype), store(0, [4], dtype=dtype)))[0]["value"]


@pytest.mark.parametrize(
    ("offset", "canonical_offset"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53, "9007199254740992"),
        (-(2**53), "-9007199254740992"),
        (str(2**60), str(2**60)),
        ("-7", -7),
        (f"n + {2**53}", f"n+{2**53}"),
    ],
)
def test_integers_a_double_does_not_hold_are_strings(offset: object, canonical_offset: object) -> None:
    ast = kernel(load(1, [4], offset=offset), store(0, [4]), variables=[variable("n", 0, 1)])

    assert canonical_offset == nodes_of(ast)[0]["views"][0]["offset"]


def test_images_are_written_where_there_are_any() -> None:
    image = edited(add_kernel([16]), {"/nodes/0/image": [2, 2, 4]})

    assert [[2, 2, 4], None] == [n.get("image") for n in nodes_of(image)[:2]]


def test_which_of_equal_extents_stands_for_all_follows_from_the_canonical_order() -> None:
    variables = [variable("n", 1, 4)]
    first, second = load(1, ["n*2"], strides=[1]), load(2, ["n+n"], strides=[1])
    one = kernel(first, second, node("ADD", 0, 1), store(2, ["2*n"], strides=[1]), variables=variables)
    two = kernel(second, first, node("ADD", 1, 0), store(2, ["2*n"], strides=[1]), variables=variables)

    assert hash_of(one) == hash_of(two)
    assert canonicalize(checked(one)).shapes == canonicalize(checked(two)).shapes
    assert ["n*2"] == [str(extent) for extent in canonicalize(checked(two)).full]


def test_a_long_chain_is_canonical_without_recursion() -> None:
    nodes = [load(1, [4])] + [node("ADD", k, 0) for k in range(20_000)] + [store(20_000, [4])]

    assert 20_002 == len(canonicalize(checked(kernel(*nodes))).nodes)


@pytest.mark.parametrize("ast", [every_form(), add_kernel(), edited(add_kernel([16]), {"/nodes/0/image": [2, 2, 4]})])
def test_a_kernel_written_reads_back_the_same(ast: Json) -> None:
    read = checked(ast)

    assert read == checked(json.loads(json.dumps(kernel_to_json(read))))
