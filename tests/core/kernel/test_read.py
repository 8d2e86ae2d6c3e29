"""Every way a kernel can fail to be in the format is refused with its place, what was expected and what came."""

from __future__ import annotations

import time
from typing import Any

import pytest

from core.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32
from core.errors import LimitExceeded, Pointer, WireError
from core.kernel.canonical import canonical
from core.kernel.check import check_kernel
from core.kernel.node import Const, Elementwise, Formula, Load, Store, Variable, View, Views
from core.kernel.read import read_kernel
from core.limits import Limits
from tests.kernels import DROP, add_kernel, const, edited, every_form, kernel, load, node, store, variable

NODES = "/ast/nodes"
# edits of `every_form` → pointer, part of what was expected. Rows: 0 LOAD by views, 1 LOAD by expression, 2 gather, 3 CONST by
# views, 4 CONST by expression, 5 ADD, 6 CAST, 10 REDUCE_SUM, 12 STORE by views, 13 STORE by expression
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    # the kernel
    "the AST is a list": ({"": []}, "/ast", "the AST: an object"),
    "the AST is null": ({"": None}, "/ast", "the AST: an object"),
    "unknown member": ({"/name": "x"}, "/ast/name", "no such member"),
    "no version": ({"/version": DROP}, "/ast/version", "requires it"),
    "no variables": ({"/variables": DROP}, "/ast/variables", "requires it"),
    "no nodes": ({"/nodes": DROP}, "/ast/nodes", "requires it"),
    "no outputs": ({"/outputs": DROP}, "/ast/outputs", "requires it"),
    "version 2": ({"/version": 2}, "/ast/version", "1"),
    "version true": ({"/version": True}, "/ast/version", "1"),
    "version 1.0": ({"/version": 1.0}, "/ast/version", "1"),
    "version as text": ({"/version": "1"}, "/ast/version", "1"),
    "variables as object": ({"/variables": {}}, "/ast/variables", "a list of variables"),
    "nodes as object": ({"/nodes": {}}, "/ast/nodes", "a list of nodes"),
    "outputs as number": ({"/outputs": 12}, "/ast/outputs", "a list of indices of STORE nodes"),
    "outputs empty": ({"/outputs": []}, "/ast/outputs", "at least one"),
    "an output beyond the table": ({"/outputs": [12, 14]}, "/ast/outputs/1", "from 0 to 13"),
    "a negative output": ({"/outputs": [-1]}, "/ast/outputs/0", "from 0 to 13"),
    "an output true": ({"/outputs": [True]}, "/ast/outputs/0", "the index of a node"),
    "an output without nodes": ({"/nodes": []}, "/ast/outputs/0", "a node to refer to"),
    # variables
    "a variable as text": ({"/variables": ["n"]}, "/ast/variables/0", "a variable: an object"),
    "a variable without name": ({"/variables/0/name": DROP}, "/ast/variables/0/name", "requires it"),
    "a variable without min": ({"/variables/0/min": DROP}, "/ast/variables/0/min", "requires it"),
    "a variable without max": ({"/variables/0/max": DROP}, "/ast/variables/0/max", "requires it"),
    "a variable with more": ({"/variables/0/dtype": "int32"}, "/ast/variables/0/dtype", "no such member"),
    "a variable's name is a number": ({"/variables/0/name": 1}, "/ast/variables/0/name", "a name"),
    "a variable's name has a dash": ({"/variables/0/name": "a-b"}, "/ast/variables/0/name", "[A-Za-z_]"),
    "a variable's name starts with a digit": ({"/variables/0/name": "1n"}, "/ast/variables/0/name", "[A-Za-z_]"),
    "a variable's name ends in a newline": ({"/variables/0/name": "n\n"}, "/ast/variables/0/name", "[A-Za-z_]"),
    "a variable's name is not ASCII": ({"/variables/0/name": "ñ"}, "/ast/variables/0/name", "[A-Za-z_]"),
    "a variable's name is empty": ({"/variables/0/name": ""}, "/ast/variables/0/name", "a name"),
    "a variable named axis0": ({"/variables/-": variable("axis0", 0, 1)}, "/ast/variables/1/name", "not axis or src"),
    "a variable named src0": ({"/variables/-": variable("src0", 0, 1)}, "/ast/variables/1/name", "not axis or src"),
    "a variable named axis007": ({"/variables/-": variable("axis007", 0, 1)}, "/ast/variables/1/name", "not axis or src"),
    "a variable twice": ({"/variables/-": variable("n", 1, 8)}, "/ast/variables/1/name", "not declared before"),
    "min above max": ({"/variables/0/min": 9}, "/ast/variables/0/max", "at least 9"),
    "min beyond int32": ({"/variables/0/min": -(2**31) - 1}, "/ast/variables/0/min", "at least -2147483648"),
    "max beyond int32": ({"/variables/0/max": 2**31}, "/ast/variables/0/max", "at most 2147483647"),
    "max true": ({"/variables/0/max": True}, "/ast/variables/0/max", "an integer"),
    "min a float": ({"/variables/0/min": 1.0}, "/ast/variables/0/min", "an integer"),
    "min an expression": ({"/variables/0/min": "1"}, "/ast/variables/0/min", "an integer"),
    # nodes of any kind
    "a node as list": ({"/nodes/5": []}, f"{NODES}/5", "a node: an object"),
    "a node null": ({"/nodes/5": None}, f"{NODES}/5", "a node: an object"),
    "no op": ({"/nodes/5/op": DROP}, f"{NODES}/5/op", "one of LOAD, CONST"),
    "op a number": ({"/nodes/5/op": 3}, f"{NODES}/5/op", "one of LOAD, CONST"),
    "unknown op": ({"/nodes/5/op": "SUB"}, f"{NODES}/5/op", "one of LOAD, CONST"),
    "op in lower case": ({"/nodes/5/op": "add"}, f"{NODES}/5/op", "one of LOAD, CONST"),
    "ADD with dtype": ({"/nodes/5/dtype": "float32"}, f"{NODES}/5/dtype", "no such member"),
    "ADD with axes": ({"/nodes/5/axes": [0]}, f"{NODES}/5/axes", "no such member"),
    "a member with a slash": ({"/nodes/5": {"op": "ADD", "src": [0, 2], "a/b~": 1}}, f"{NODES}/5/a~1b~0", "no such member"),
    "ADD without src": ({"/nodes/5/src": DROP}, f"{NODES}/5/src", "requires it"),
    "ADD of one": ({"/nodes/5/src": [0]}, f"{NODES}/5/src", "a list of 2 earlier nodes"),
    "ADD of three": ({"/nodes/5/src": [0, 0, 0]}, f"{NODES}/5/src", "a list of 2 earlier nodes"),
    "NEG of two": ({"/nodes/5": node("NEG", 0, 1)}, f"{NODES}/5/src", "a list of 1 earlier node"),
    "WHERE of two": ({"/nodes/9/src": [8, 7]}, f"{NODES}/9/src", "a list of 3 earlier nodes"),
    "MULACC of two": ({"/nodes/7/src": [5, 3]}, f"{NODES}/7/src", "a list of 3 earlier nodes"),
    "src a number": ({"/nodes/5/src": 0}, f"{NODES}/5/src", "a list of 2"),
    "src itself": ({"/nodes/5/src": [0, 5]}, f"{NODES}/5/src/1", "from 0 to 4"),
    "src forward": ({"/nodes/5/src": [7, 0]}, f"{NODES}/5/src/0", "from 0 to 4"),
    "src negative": ({"/nodes/5/src": [-1, 0]}, f"{NODES}/5/src/0", "from 0 to 4"),
    "src true": ({"/nodes/5/src": [True, 0]}, f"{NODES}/5/src/0", "from 0 to 4"),
    "src a float": ({"/nodes/5/src": [0, 2.0]}, f"{NODES}/5/src/1", "from 0 to 4"),
    "src of the first node": ({"/nodes/0": node("NEG", 0)}, f"{NODES}/0/src/0", "none, since this is the first"),
    # conversions
    "CAST without dtype": ({"/nodes/6/dtype": DROP}, f"{NODES}/6/dtype", "requires it"),
    "CAST to an unknown dtype": ({"/nodes/6/dtype": "float8"}, f"{NODES}/6/dtype", "one of bool, int8"),
    "CAST to a list": ({"/nodes/6/dtype": ["float32"]}, f"{NODES}/6/dtype", "one of bool, int8"),
    "BITCAST of two": ({"/nodes/6": node("BITCAST", 4, 4, dtype="float32")}, f"{NODES}/6/src", "a list of 1"),
    # reduces
    "a reduce without axes": ({"/nodes/10/axes": DROP}, f"{NODES}/10/axes", "requires it"),
    "axes empty": ({"/nodes/10/axes": []}, f"{NODES}/10/axes", "at least one"),
    "axes a number": ({"/nodes/10/axes": 1}, f"{NODES}/10/axes", "a list of axes"),
    "axes descending": ({"/nodes/10/axes": [1, 0]}, f"{NODES}/10/axes/1", "ascending"),
    "axes repeated": ({"/nodes/10/axes": [1, 1]}, f"{NODES}/10/axes/1", "each once"),
    "an axis negative": ({"/nodes/10/axes": [-1]}, f"{NODES}/10/axes/0", "an integer from 0"),
    "an axis as expression": ({"/nodes/10/axes": ["1"]}, f"{NODES}/10/axes/0", "an integer from 0"),
    "an axis true": ({"/nodes/10/axes": [True]}, f"{NODES}/10/axes/0", "an integer from 0"),
    "a reduce with dtype": ({"/nodes/10/dtype": "float32"}, f"{NODES}/10/dtype", "no such member"),
    "a reduce of two": ({"/nodes/10/src": [9, 9]}, f"{NODES}/10/src", "a list of 1"),
}


@pytest.mark.parametrize(("edits", "pointer", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_the_format_is_refused_with_its_place(edits: dict[str, Any], pointer: str, expected: str) -> None:
    """A 7, 17, M 237."""
    with pytest.raises(WireError) as refusal:
        read_kernel(edited(every_form(), edits))

    assert "wire" == refusal.value.category
    assert pointer == refusal.value.facts()["pointer"]
    assert expected in str(refusal.value.facts()["expected"])
    assert "got" in refusal.value.facts()


BIG = 2**63
LIMITED: dict[str, tuple[dict[str, Any], Limits, str, str]] = {
    "nodes": ({}, Limits(nodes=13), "/ast/nodes", "nodes"),
    "rank": ({}, Limits(rank=1), f"{NODES}/0/views/0/shape", "rank"),
    "views": ({"/nodes/0/views/-": {"shape": [4, 8], "strides": [8, 1]}}, Limits(views=1), f"{NODES}/0/views", "views"),
    "variables": ({"/variables/-": variable("m", 0, 1)}, Limits(variables=1), "/ast/variables", "variables"),
    "expression_chars": (
        {"/nodes/1/index": " " * 100 + "0"},
        Limits(expression_chars=100),
        f"{NODES}/1/index",
        "expression_chars",
    ),
    "condition's chars": (
        {"/nodes/1/valid/0": " " * 100 + "0<1"},
        Limits(expression_chars=100),
        f"{NODES}/1/valid/0",
        "expression_chars",
    ),
    "an extent of 65 bits": ({"/nodes/0/views/0/shape/0": BIG}, Limits(), f"{NODES}/0/views/0/shape/0", "integer_bits"),
    "a stride of 65 bits": ({"/nodes/0/views/0/strides/1": -BIG - 1}, Limits(), f"{NODES}/0/views/0/strides/1", "integer_bits"),
    "an offset of 400 digits": ({"/nodes/0/views/0/offset": 10**400}, Limits(), f"{NODES}/0/views/0/offset", "integer_bits"),
    "a bound of 65 bits": ({"/nodes/0/views/0/mask/0": [0, BIG]}, Limits(), f"{NODES}/0/views/0/mask/0/1", "integer_bits"),
    "an index of 65 bits": ({"/nodes/1/index": BIG}, Limits(), f"{NODES}/1/index", "integer_bits"),
    "the same as text": ({"/nodes/1/index": str(BIG)}, Limits(), f"{NODES}/1/index", "integer_bits"),
    "a literal of 65 bits": ({"/nodes/1/index": f"axis0 + {BIG + 1}"}, Limits(), f"{NODES}/1/index", "integer_bits"),
    "a literal of 3000 digits": ({"/nodes/1/index": "axis0 + " + "9" * 3000}, Limits(), f"{NODES}/1/index", "integer_bits"),
    "a divisor of 3000 digits": ({"/nodes/1/index": "axis0 // " + "9" * 3000}, Limits(), f"{NODES}/1/index", "integer_bits"),
    "a literal of 3000 zeros": ({"/nodes/1/index": "0" * 3000}, Limits(), f"{NODES}/1/index", "integer_bits"),
    "a value of 65 bits": ({"/nodes/0/views/0/offset": f"n*{2**60}"}, Limits(), f"{NODES}/0/views/0/offset", "integer_bits"),
    "a sum of 65 bits": ({"/nodes/0/views/0/offset": f"{BIG - 1} + 1"}, Limits(), f"{NODES}/0/views/0/offset", "integer_bits"),
    "a step of 65 bits": ({"/nodes/4/expr": f"n*{2**60}//{2**60}"}, Limits(), f"{NODES}/4/expr", "integer_bits"),
    "a bound on a value of 66 bits": ({"/nodes/2/valid/1": f"src0 < {2**64}"}, Limits(), f"{NODES}/2/valid/1", "integer_bits"),
}


@pytest.mark.parametrize(("edits", "limits", "pointer", "limit"), LIMITED.values(), ids=LIMITED)
def test_what_is_too_large_is_refused_with_the_numbers(edits: dict[str, Any], limits: Limits, pointer: str, limit: str) -> None:
    with pytest.raises(LimitExceeded) as refusal:
        read_kernel(edited(every_form(), edits), limits)

    facts = refusal.value.facts()
    assert "limit" == refusal.value.category
    assert (pointer, limit) == (facts["pointer"], facts["limit"])
    assert {"needed", "allowed"} <= facts.keys()


ACCEPTED: dict[str, dict[str, Any]] = {
    "as it is": {},
    "mask null": {"/nodes/0/views/0/mask": None},
    "no offset": {"/nodes/0/views/0/offset": DROP},
    "no valid": {"/nodes/1/valid": DROP},
    "valid empty": {"/nodes/1/valid": []},
    "src of a LOAD empty": {"/nodes/1/src": []},
    "the least of 64 bits": {"/nodes/1/index": -BIG},
    "the least of 64 bits as text": {"/nodes/1/index": f"- {BIG}"},
    "the least of 64 bits in an expression": {"/nodes/1/index": f"axis0 + -{BIG}"},
    "a bound on a uint64 value": {"/nodes/2/valid/1": f"src0 < {2**64 - 1}"},
    "many zeros before a digit": {"/nodes/1/index": "0" * 500 + "7"},
    "products of variables": {"/nodes/1/index": "axis0*axis1*n*n"},
    "minus minus": {"/nodes/1/index": "--axis0 - -1"},
    "many parentheses": {"/nodes/1/index": "(" * 2000 + "axis0" + ")" * 2000},
    "many minus signs": {"/nodes/1/index": "-" * 4000 + "axis0"},
    "variable of one value": {"/variables/0": variable("n", -5, -5)},
    "a variable named axis": {"/variables/-": variable("axis", 0, 1)},
    "a variable named axisle0": {"/variables/-": variable("axisle0", 0, 1)},
    "a variable named src": {"/variables/-": variable("src", 0, 1)},
    "a value as an integer": {"/nodes/3/value": 1},
    "the least double": {"/nodes/3/value": 5e-324},
    "inf": {"/nodes/3/value": "inf"},
    "beyond float32": {"/nodes/3/value": 1e300},
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_the_format_is_read(edits: dict[str, Any]) -> None:
    assert 14 == len(read_kernel(edited(every_form(), edits)).nodes)


def test_nodes_are_read_as_what_they_are() -> None:
    read = read_kernel(every_form())

    assert (Variable("n", 1, 8),) == read.variables
    assert (12, 13) == read.outputs
    first, gather, ramp = read.nodes[0], read.nodes[2], read.nodes[4]
    assert Load(2, FLOAT32, Views((View((4, 8), (8, 1), 0, ((0, 4), (0, 8))),))) == first
    assert isinstance(gather, Load)
    assert isinstance(gather.place, Formula)
    assert (1,) == gather.src
    assert ["src0>=0", "src0<50"] == [condition.text for condition in gather.place.valid]
    assert isinstance(ramp, Const)
    assert "axis0+n" == str(ramp.expr)
    assert [FLOAT32, FLOAT32, FLOAT32, BOOL, FLOAT32, FLOAT32, INT32] == [n.dtype for n in read.nodes[5:12]]
    assert Elementwise("CMPLT", BOOL, (0, 3)) == read.nodes[8]
    assert isinstance(read.nodes[13], Store)


@pytest.mark.parametrize(
    ("written", "dtype", "kept"),
    [
        (-0.0, "float32", "-0.0"),
        (0, "float32", "0.0"),
        (1, "float64", "1.0"),
        (0.1, "float32", "0.10000000149011612"),
        (65520.0, "float16", "inf"),
        (65519.0, "float16", "65504.0"),
        (-1e39, "float32", "-inf"),
        ("nan", "float16", "nan"),
        ("-inf", "bfloat16", "-inf"),
        (1e-45, "float32", "1.401298464324817e-45"),
        (2**53 + 1, "float64", "9007199254740992.0"),
        (255, "uint8", "255"),
        (-128, "int8", "-128"),
        (2**64 - 1, "uint64", "18446744073709551615"),
        (True, "bool", "True"),
    ],
)
def test_a_constant_is_kept_as_its_dtype_keeps_it(written: object, dtype: str, kept: str) -> None:
    read = read_kernel(kernel(const(written, [4], dtype), store(0, [4], dtype=dtype)))

    constant = read.nodes[0]
    assert isinstance(constant, Const)
    assert kept == repr(constant.value)


def test_the_sign_of_zero_is_kept_in_what_was_written() -> None:
    read = read_kernel(kernel(const(-0.0, [4], "float16"), store(0, [4], dtype="float16")))

    constant = read.nodes[0]
    assert isinstance(constant, Const)
    assert FLOAT16 is constant.dtype
    assert "-0.0" == repr(constant.written)


def test_pointers_start_where_they_are_told() -> None:
    with pytest.raises(WireError) as refusal:
        read_kernel(edited(add_kernel(), {"/nodes/0/dtype": "x"}), Limits(), Pointer("/requests/3/ast"))

    assert "/requests/3/ast/nodes/0/dtype" == refusal.value.facts()["pointer"]


def test_a_long_chain_is_read_without_recursion() -> None:
    nodes = [load(1, [4])] + [node("NEG", k) for k in range(20_000)] + [store(20_000, [4])]

    assert 20_002 == len(read_kernel(kernel(*nodes)).nodes)


def test_every_dtype_casts_to_float64() -> None:
    read = read_kernel(kernel(load(1, [4], "bfloat16"), node("CAST", 0, dtype="float64"), store(1, [4], dtype="float64")))

    assert FLOAT64 is read.nodes[1].dtype


def test_reading_takes_time_in_proportion_to_the_table() -> None:
    def chain(count: int) -> dict[str, Any]:
        return kernel(load(1, [4]), *[node("ADD", k, 0) for k in range(count)], store(count, [4]))

    def seconds(ast: dict[str, Any]) -> float:
        started = time.process_time()
        canonical(check_kernel(read_kernel(ast)))
        return time.process_time() - started

    small, large = chain(2_000), chain(20_000)
    assert min(seconds(large) for _ in range(2)) < 40 * min(seconds(small) for _ in range(3))


def test_messages_stay_short_whatever_came() -> None:
    with pytest.raises(WireError) as refusal:
        read_kernel(edited(every_form(), {"/nodes/5": {"op": "ADD", "src": [0, 2], "x" * 1_000_000: "y" * 1_000_000}}))

    assert len(str(refusal.value)) < 1_000
