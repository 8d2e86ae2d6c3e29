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
    # leaves: members
    "LOAD without buffer": ({"/nodes/0/buffer": DROP}, f"{NODES}/0/buffer", "requires it"),
    "LOAD without dtype": ({"/nodes/0/dtype": DROP}, f"{NODES}/0/dtype", "requires it"),
    "LOAD without a place": ({"/nodes/0/views": DROP}, f"{NODES}/0/views", "views, or shape and index"),
    "LOAD with name": ({"/nodes/0/name": "x"}, f"{NODES}/0/name", "no such member"),
    "LOAD of an unknown dtype": ({"/nodes/0/dtype": "float"}, f"{NODES}/0/dtype", "one of bool"),
    "buffer negative": ({"/nodes/0/buffer": -1}, f"{NODES}/0/buffer", "at least 0"),
    "buffer true": ({"/nodes/0/buffer": True}, f"{NODES}/0/buffer", "at least 0"),
    "buffer as expression": ({"/nodes/0/buffer": "1"}, f"{NODES}/0/buffer", "an integer"),
    "views and index": ({"/nodes/0/index": 0}, f"{NODES}/0/index", "either views or shape"),
    "views and shape": ({"/nodes/0/shape": [4, 8]}, f"{NODES}/0/shape", "either views or shape"),
    "views and valid": ({"/nodes/0/valid": []}, f"{NODES}/0/valid", "either views or shape"),
    "views and shape on a CONST": ({"/nodes/3/shape": [4, 8]}, f"{NODES}/3/shape", "either views or shape"),
    "views and index on a STORE": ({"/nodes/12/index": "axis0"}, f"{NODES}/12/index", "either views or shape"),
    "shape without index on a LOAD": ({"/nodes/1/index": DROP}, f"{NODES}/1/index", "requires it"),
    "shape without index on a STORE": ({"/nodes/13/index": DROP}, f"{NODES}/13/index", "requires it"),
    "index without shape": ({"/nodes/1/shape": DROP}, f"{NODES}/1/views", "views, or shape and index"),
    "index on a CONST": ({"/nodes/4/index": "axis0"}, f"{NODES}/4/index", "no such member"),
    "src beside views on a LOAD": ({"/nodes/0": {**load(2, [4, 8]), "src": []}}, f"{NODES}/0/src", "no such member"),
    "src beside views on a CONST": ({"/nodes/3/src": [0]}, f"{NODES}/3/src", "no such member"),
    "src on a CONST by expression": ({"/nodes/4/src": [1]}, f"{NODES}/4/src", "no such member"),
    "STORE without src": ({"/nodes/12/src": DROP}, f"{NODES}/12/src", "requires it"),
    "STORE by views of two": ({"/nodes/12/src": [10, 11]}, f"{NODES}/12/src", "a list of 1 earlier node"),
    "STORE by expression of none": ({"/nodes/13/src": []}, f"{NODES}/13/src", "at least 1"),
    "a gather's src forward": ({"/nodes/2/src": [2]}, f"{NODES}/2/src/0", "from 0 to 1"),
    "image on a CONST": ({"/nodes/3/image": [2, 2, 4]}, f"{NODES}/3/image", "no such member"),
    # views
    "views an object": ({"/nodes/0/views": {}}, f"{NODES}/0/views", "a list of views"),
    "views empty": ({"/nodes/0/views": []}, f"{NODES}/0/views", "at least one"),
    "a view as list": ({"/nodes/0/views/0": [4]}, f"{NODES}/0/views/0", "a view: an object"),
    "a view without shape": ({"/nodes/0/views/0/shape": DROP}, f"{NODES}/0/views/0/shape", "requires it"),
    "a view without strides": ({"/nodes/0/views/0/strides": DROP}, f"{NODES}/0/views/0/strides", "requires it"),
    "a view with more": ({"/nodes/0/views/0/order": 1}, f"{NODES}/0/views/0/order", "no such member"),
    "shape a number": ({"/nodes/0/views/0/shape": 4}, f"{NODES}/0/views/0/shape", "a list"),
    "an extent null": ({"/nodes/0/views/0/shape/1": None}, f"{NODES}/0/views/0/shape/1", "an integer, or a string"),
    "an extent true": ({"/nodes/0/views/0/shape/1": True}, f"{NODES}/0/views/0/shape/1", "an integer, or a string"),
    "an extent a float": ({"/nodes/0/views/0/shape/1": 8.0}, f"{NODES}/0/views/0/shape/1", "an integer, or a string"),
    "too few strides": ({"/nodes/0/views/0/strides": [64]}, f"{NODES}/0/views/0/strides", "a list of 2, one per axis"),
    "too many strides": ({"/nodes/0/views/0/strides": [8, 1, 0]}, f"{NODES}/0/views/0/strides", "a list of 2, one per axis"),
    "strides null": ({"/nodes/0/views/0/strides": None}, f"{NODES}/0/views/0/strides", "a list of 2"),
    "a stride a float": ({"/nodes/0/views/0/strides/0": 8.5}, f"{NODES}/0/views/0/strides/0", "an integer"),
    "offset null": ({"/nodes/0/views/0/offset": None}, f"{NODES}/0/views/0/offset", "an integer"),
    "offset a list": ({"/nodes/0/views/0/offset": [0]}, f"{NODES}/0/views/0/offset", "an integer"),
    "mask of another rank": ({"/nodes/0/views/0/mask": [[0, 4]]}, f"{NODES}/0/views/0/mask", "2 ranges, one per axis"),
    "mask a number": ({"/nodes/0/views/0/mask": 0}, f"{NODES}/0/views/0/mask", "null or a list"),
    "a range of three": ({"/nodes/0/views/0/mask/1": [0, 1, 8]}, f"{NODES}/0/views/0/mask/1", "[begin, end)"),
    "a range null": ({"/nodes/0/views/0/mask/1": None}, f"{NODES}/0/views/0/mask/1", "[begin, end)"),
    "a bound a float": ({"/nodes/0/views/0/mask/1": [0, 8.0]}, f"{NODES}/0/views/0/mask/1/1", "an integer"),
    "the second view": (
        {"/nodes/0/views/-": {"shape": [4, 8], "strides": [8, "x"]}},
        f"{NODES}/0/views/1/strides/1",
        "an integer expression over n",
    ),
    # leaves by expression
    "shape by expression a text": ({"/nodes/1/shape": "n"}, f"{NODES}/1/shape", "a list"),
    "axis2 in a kernel of rank 2": ({"/nodes/1/index": "axis2"}, f"{NODES}/1/index", "axis0 to axis1"),
    "axis00": ({"/nodes/1/index": "axis00"}, f"{NODES}/1/index", "over n, axis0 to axis1"),
    "axis0 in shape": ({"/nodes/1/shape": [4, "axis0"]}, f"{NODES}/1/shape/1", "over n"),
    "axis0 in a view": ({"/nodes/0/views/0/offset": "axis0"}, f"{NODES}/0/views/0/offset", "over n"),
    "axis0 in the expr of a CONST by views": (
        {"/nodes/3": {"op": "CONST", "expr": "axis0", "dtype": "float32", "views": [{"shape": [4, 8], "strides": [0, 0]}]}},
        f"{NODES}/3/expr",
        "over n",
    ),
    "src0 without a source": ({"/nodes/1/index": "src0"}, f"{NODES}/1/index", "over n, axis0 to axis1"),
    "src1 with one source": ({"/nodes/2/index": "src1"}, f"{NODES}/2/index", "src0"),
    "src0 in shape": ({"/nodes/2/shape": ["src0", 8]}, f"{NODES}/2/shape/0", "over n"),
    "src1 in valid with one source": ({"/nodes/2/valid/0": "src1 < 4"}, f"{NODES}/2/valid/0", "src0"),
    "src1 in the index of a STORE": ({"/nodes/13/index": "src1"}, f"{NODES}/13/index", "over n, axis0 to axis1"),
    "src0 in the index of a STORE": ({"/nodes/13/index": "src0"}, f"{NODES}/13/index", "over n, axis0 to axis1"),
    "src0 in the valid of a STORE": ({"/nodes/13/valid/0": "src0 < 3"}, f"{NODES}/13/valid/0", "src1"),
    "src0 in the expr of a CONST": ({"/nodes/4/expr": "src0"}, f"{NODES}/4/expr", "axis0 to axis1"),
    "src0 in the valid of a CONST": ({"/nodes/4/valid": ["src0 < 1"]}, f"{NODES}/4/valid/0", "axis0 to axis1"),
    "an undeclared name": ({"/nodes/1/index": "axis0*m"}, f"{NODES}/1/index", "over n, axis0"),
    "an undeclared name in valid": ({"/nodes/1/valid/0": "axis0 < m"}, f"{NODES}/1/valid/0", "over n, axis0"),
    "index null": ({"/nodes/1/index": None}, f"{NODES}/1/index", "an integer, or a string"),
    "index a list": ({"/nodes/1/index": ["axis0"]}, f"{NODES}/1/index", "an integer, or a string"),
    "valid null": ({"/nodes/1/valid": None}, f"{NODES}/1/valid", "a list of comparisons"),
    "valid a text": ({"/nodes/1/valid": "axis0 < 1"}, f"{NODES}/1/valid", "a list of comparisons"),
    "a condition a number": ({"/nodes/1/valid/0": 1}, f"{NODES}/1/valid/0", "a string with one of < <= > >="),
    "a condition ==": ({"/nodes/1/valid/0": "axis0 == 1"}, f"{NODES}/1/valid/0", "one of < <= > >="),
    "a condition !=": ({"/nodes/1/valid/0": "axis0 != 1"}, f"{NODES}/1/valid/0", "one of < <= > >="),
    "a condition =<": ({"/nodes/1/valid/0": "axis0 =< 1"}, f"{NODES}/1/valid/0", "at character"),
    "a condition with two": ({"/nodes/1/valid/0": "0 < axis0 < 4"}, f"{NODES}/1/valid/0", "once"),
    "a condition without": ({"/nodes/1/valid/0": "axis0"}, f"{NODES}/1/valid/0", "one of < <= > >="),
    "a condition without a side": ({"/nodes/1/valid/0": "axis0 <"}, f"{NODES}/1/valid/0", "an integer expression"),
    "and": ({"/nodes/1/valid/0": "axis0 < 1 and 1"}, f"{NODES}/1/valid/0", "an operator"),
    # expressions
    "empty": ({"/nodes/1/index": ""}, f"{NODES}/1/index", "not an empty text"),
    "blank": ({"/nodes/1/index": "  "}, f"{NODES}/1/index", "not an empty text"),
    "a tab": ({"/nodes/1/index": "axis0\t+1"}, f"{NODES}/1/index", "at character 5"),
    "a float": ({"/nodes/1/index": "axis0*1.5"}, f"{NODES}/1/index", "at character"),
    "a power": ({"/nodes/1/index": "axis0**2"}, f"{NODES}/1/index", "an operand"),
    "a single slash": ({"/nodes/1/index": "axis0/2"}, f"{NODES}/1/index", "at character"),
    "a unary plus": ({"/nodes/1/index": "+axis0"}, f"{NODES}/1/index", "an operand"),
    "two operands": ({"/nodes/1/index": "axis0 axis1"}, f"{NODES}/1/index", "an operator"),
    "2n": ({"/nodes/1/index": "2n"}, f"{NODES}/1/index", "an operator"),
    "ends in an operator": ({"/nodes/1/index": "axis0 +"}, f"{NODES}/1/index", "an operand at the end"),
    "an open parenthesis": ({"/nodes/1/index": "(axis0"}, f"{NODES}/1/index", "a ) for each ("),
    "a closed parenthesis": ({"/nodes/1/index": "axis0)"}, f"{NODES}/1/index", "no ) without its ("),
    "nothing in parentheses": ({"/nodes/1/index": "()"}, f"{NODES}/1/index", "an operand"),
    "a call": ({"/nodes/1/index": "n(1)"}, f"{NODES}/1/index", "an operator"),
    "// by 0": ({"/nodes/1/index": "axis0//0"}, f"{NODES}/1/index", "a positive integer literal after //"),
    "% by 00": ({"/nodes/1/index": "axis0%00"}, f"{NODES}/1/index", "a positive integer literal after %"),
    "// by -2": ({"/nodes/1/index": "axis0//-2"}, f"{NODES}/1/index", "a positive integer literal after //"),
    "// by a variable": ({"/nodes/1/index": "axis0//n"}, f"{NODES}/1/index", "a positive integer literal after //"),
    "% by (2)": ({"/nodes/1/index": "axis0%(2)"}, f"{NODES}/1/index", "a positive integer literal after %"),
    "// at the end": ({"/nodes/1/index": "axis0//"}, f"{NODES}/1/index", "a positive integer literal after //"),
    "other digits": ({"/nodes/1/index": "axis0*٣"}, f"{NODES}/1/index", "at character"),
    # constants
    "no value": ({"/nodes/3/value": DROP}, f"{NODES}/3/value", "value or expr"),
    "value and expr": ({"/nodes/3/expr": "1"}, f"{NODES}/3/expr", "either value or expr"),
    "value null": ({"/nodes/3/value": None}, f"{NODES}/3/value", "a number within"),
    "a float's value true": ({"/nodes/3/value": True}, f"{NODES}/3/value", "a number within"),
    "a float's value a text": ({"/nodes/3/value": "1.0"}, f"{NODES}/3/value", "a number within"),
    "a float's value NaN in capitals": ({"/nodes/3/value": "NaN"}, f"{NODES}/3/value", "a number within"),
    "a float's value 1e999": ({"/nodes/3/value": float("inf")}, f"{NODES}/3/value", "within the range of a double"),
    "a float's value 10**400": ({"/nodes/3/value": 10**400}, f"{NODES}/3/value", "within the range of a double"),
    "300 as uint8": ({"/nodes/3": const(300, [4, 8], "uint8")}, f"{NODES}/3/value", "from 0 to 255, for uint8"),
    "-1 as uint64": ({"/nodes/3": const(-1, [4, 8], "uint64")}, f"{NODES}/3/value", "from 0 to 18446744073709551615"),
    "2**63 as int64": ({"/nodes/3": const(2**63, [4, 8], "int64")}, f"{NODES}/3/value", "to 9223372036854775807, for int64"),
    "2**64 as uint64": ({"/nodes/3": const(2**64, [4, 8], "uint64")}, f"{NODES}/3/value", "for uint64"),
    "10**400 as int32": ({"/nodes/3": const(10**400, [4, 8], "int32")}, f"{NODES}/3/value", "for int32"),
    "1.5 as int32": ({"/nodes/3": const(1.5, [4, 8], "int32")}, f"{NODES}/3/value", "an integer from"),
    "1.0 as int32": ({"/nodes/3": const(1.0, [4, 8], "int32")}, f"{NODES}/3/value", "an integer from"),
    "true as int32": ({"/nodes/3": const(True, [4, 8], "int32")}, f"{NODES}/3/value", "an integer from"),
    "inf as int32": ({"/nodes/3": const("inf", [4, 8], "int32")}, f"{NODES}/3/value", "an integer from"),
    "1 as bool": ({"/nodes/3": const(1, [4, 8], "bool")}, f"{NODES}/3/value", "true or false"),
    "expr null": ({"/nodes/4/expr": None}, f"{NODES}/4/expr", "an integer, or a string"),
    "expr a float": ({"/nodes/4/expr": 1.5}, f"{NODES}/4/expr", "an integer, or a string"),
    # images
    "image null": ({"/nodes/0/image": None}, f"{NODES}/0/image", "[height, width, 4]"),
    "image of two": ({"/nodes/0/image": [2, 4]}, f"{NODES}/0/image", "[height, width, 4]"),
    "image of three channels": ({"/nodes/0/image": [2, 2, 3]}, f"{NODES}/0/image/2", "at most 4"),
    "image without height": ({"/nodes/0/image": [0, 2, 4]}, f"{NODES}/0/image/0", "at least 1"),
    "image with an expression": ({"/nodes/0/image": [2, "n", 4]}, f"{NODES}/0/image/1", "an integer"),
    "image with true": ({"/nodes/0/image": [True, 2, 4]}, f"{NODES}/0/image/0", "an integer"),
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
