"""Every way a leaf can fail to be in the format is refused with its place and what was expected: members, views, expressions, constants."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import WireError
from core.kernel.read import read_kernel
from tests.kernels import DROP, const, edited, every_form, load

NODES = "/ast/nodes"
# edits of `every_form` → pointer, part of what was expected. Rows: 0 LOAD by views, 1 LOAD by expression, 2 gather, 3 CONST by
# views, 4 CONST by expression, 5 ADD, 6 CAST, 10 REDUCE_SUM, 12 STORE by views, 13 STORE by expression
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
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
def test_a_leaf_that_is_not_the_format_is_refused_with_its_place(edits: dict[str, Any], pointer: str, expected: str) -> None:
    """A 7, 17, M 237."""
    with pytest.raises(WireError) as refusal:
        read_kernel(edited(every_form(), edits))

    assert "wire" == refusal.value.category
    assert pointer == refusal.value.facts()["pointer"]
    assert expected in str(refusal.value.facts()["expected"])
    assert "got" in refusal.value.facts()
