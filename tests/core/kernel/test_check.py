"""Kernels that are well formed and meaningless are refused with node, rule and what came; those that mean something are not."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import KernelError
from core.kernel.ops import ELEMENTWISE
from tests.core.kernel.checking import IMAGE, NODES, assert_refused, checked, extent_of, gather, image_load, image_store, masked
from tests.kernels import DROP, add_kernel, edited, every_form, kernel, load, node, store, variable

REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # dtypes
    "float32 + int32": (
        kernel(load(1, [4]), load(2, [4], "int32"), node("ADD", 0, 1), store(2, [4])),
        f"{NODES}/2",
        "of one dtype (nothing is promoted)",
        "float32 and int32",
    ),
    "int32 < uint32": (
        kernel(load(1, [4], "int32"), load(2, [4], "uint32"), node("CMPLT", 0, 1), store(2, [4], dtype="bool")),
        f"{NODES}/2",
        "of one dtype",
        "int32 and uint32",
    ),
    "a*b + c of two dtypes": (
        kernel(load(1, [4]), load(2, [4], "float16"), node("MULACC", 0, 0, 1), store(2, [4])),
        f"{NODES}/2",
        "of one dtype",
        "float16",
    ),
    "a condition of int32": (
        kernel(load(1, [4], "int32"), load(2, [4]), node("WHERE", 0, 1, 1), store(2, [4])),
        f"{NODES}/2/src/0",
        "bool, the condition",
        "int32",
    ),
    "then and else of two dtypes": (
        kernel(load(1, [4], "bool"), load(2, [4]), load(3, [4], "int32"), node("WHERE", 0, 1, 2), store(3, [4], dtype="int32")),
        f"{NODES}/3",
        "of one dtype",
        "float32 and int32",
    ),
    "a shift by float": (
        kernel(load(1, [4], "int32"), load(2, [4]), node("SHL", 0, 1), store(2, [4], dtype="int32")),
        f"{NODES}/2/src/1",
        "an integer",
        "float32",
    ),
    "a shift by bool": (
        kernel(load(1, [4], "int32"), load(2, [4], "bool"), node("SHR", 0, 1), store(2, [4], dtype="int32")),
        f"{NODES}/2/src/1",
        "an integer",
        "bool",
    ),
    "a bitcast of 32 to 16 bits": (
        kernel(load(1, [4]), node("BITCAST", 0, dtype="int16"), store(1, [4], dtype="int16")),
        f"{NODES}/1/dtype",
        "32 bits",
        "int16 of 16",
    ),
    "a store of another dtype": (
        kernel(load(1, [4]), store(0, [4], dtype="float16")),
        f"{NODES}/1/src/0",
        "float16, the dtype of the store",
        "float32",
    ),
    "bool stored as uint8": (kernel(load(1, [4], "bool"), store(0, [4], dtype="uint8")), f"{NODES}/1/src/0", "uint8", "bool"),
    "a float looked up by": (gather("float32"), f"{NODES}/1/src/0", "an integer or bool", "float32"),
    "a float in a store's condition": (
        edited(every_form(), {"/nodes/13/src": [10, 10]}),
        f"{NODES}/13/src/1",
        "an integer or bool",
        "float32",
    ),
    "a value fuller than its leaf": (
        gather(src_shape=[4, 8], shape=[4, 1]),
        f"{NODES}/1/src/0",
        "the leaf's extents (4, 1)",
        "(4, 8)",
    ),
    "a value of another rank": (gather(src_shape=[4]), f"{NODES}/1/src/0", "the leaf's extents (4, 8)", "(4,)"),
    # outputs and buffers
    "an output that is no store": (
        edited(add_kernel(), {"/outputs": [2]}),
        "/ast/outputs/0",
        "the index of a STORE",
        "a ADD (node 2)",
    ),
    "a store as operand": (
        kernel(load(1, [4]), store(0, [4]), node("NEG", 1), store(2, [4])),
        f"{NODES}/2/src/0",
        "an operand with a value",
        "a STORE (node 1)",
    ),
    "an output twice": (edited(add_kernel(), {"/outputs": [3, 3]}), "/ast/outputs/1", "a store to buffer 1", "one to buffer 0"),
    "two stores to one buffer": (
        kernel(load(1, [4]), store(0, [4]), store(0, [4]), outputs=[1, 2]),
        "/ast/outputs/1",
        "a store to buffer 1",
        "one to buffer 0 (node 2)",
    ),
    "outputs out of order": (
        kernel(load(2, [4]), store(0, [4], 0), store(0, [4], 1), outputs=[2, 1]),
        "/ast/outputs/0",
        "a store to buffer 0",
        "one to buffer 1",
    ),
    "no output to buffer 0": (
        kernel(load(0, [4]), store(0, [4], 1)),
        "/ast/outputs/0",
        "a store to buffer 0",
        "one to buffer 1",
    ),
    "a gap in the buffers": (kernel(load(2, [4]), store(0, [4])), f"{NODES}/0/buffer", "without a gap (1 is not in use)", "2"),
    "a huge buffer": (kernel(load(10**30, [4]), store(0, [4])), f"{NODES}/0/buffer", "without a gap", "10"),
    "one buffer, two dtypes": (
        kernel(load(1, [4]), load(1, [4], "float16"), node("CAST", 1, dtype="float32"), node("ADD", 0, 2), store(3, [4])),
        f"{NODES}/1/dtype",
        "float32, the dtype of buffer 1 in node 0",
        "float16",
    ),
    "loaded and stored as two dtypes": (
        kernel(load(0, [4], "int32"), node("CAST", 0, dtype="float32"), store(1, [4])),
        f"{NODES}/2/dtype",
        "int32",
        "float32",
    ),
    # images
    "an image of int32": (
        kernel({**load(1, [16], "int32"), "image": IMAGE}, store(0, [16])),
        f"{NODES}/0/dtype",
        "float16 or float32",
        "int32",
    ),
    "an image of float16 stores float32": (
        kernel(load(1, [16], "float16"), image_store(0, "float16")),
        f"{NODES}/1/src/0",
        "float32, what an image takes",
        "float16",
    ),
    "one buffer, two images": (
        kernel(image_load(1), {**load(1, [16]), "image": [4, 1, 4]}, node("ADD", 0, 1), store(2, [16])),
        f"{NODES}/1/image",
        "image of buffer 1 in node 0, [2, 2, 4]",
        "[4, 1, 4]",
    ),
    "an image and a buffer": (
        kernel(image_load(1), load(1, [16]), node("ADD", 0, 1), store(2, [16])),
        f"{NODES}/1",
        "[2, 2, 4]",
        "none",
    ),
    "an image read and written": (
        kernel(image_load(0), image_store(0)),
        f"{NODES}/1",
        "read or written, not both",
        "a STORE beside the LOAD",
    ),
}


@pytest.mark.parametrize(("ast", "pointer", "expected", "got"), REFUSED.values(), ids=REFUSED)
def test_what_means_nothing_is_refused_with_its_place(ast: dict[str, Any], pointer: str, expected: str, got: str) -> None:
    """A 8, 13, 17, M 237: operands of two dtypes, buffers out of order, images."""
    assert_refused(ast, pointer, expected, got)


WRONG_FOR = {
    "float32": ("IDIV", "MOD", "SHL", "SHR", "XOR", "AND", "OR"),
    "int32": ("EXP2", "LOG2", "SIN", "SQRT", "RECIP"),
    "bool": ("EXP2", "LOG2", "SIN", "SQRT", "RECIP", "IDIV", "MOD", "SHL", "SHR"),
}


def applied(op: str, dtype: str) -> dict[str, Any]:
    operands = ELEMENTWISE[op].operands
    condition = [node("CMPNE", 0, 0)]
    src = [1, 0, 0] if op == "WHERE" else [0] * operands
    out = "bool" if op in ("CMPLT", "CMPNE") else dtype
    return kernel(load(1, [4], dtype), *condition, node(op, *src), store(2, [4], dtype=out))


@pytest.mark.parametrize(("dtype", "op"), [(dtype, op) for dtype in (*WRONG_FOR, "uint8", "bfloat16") for op in ELEMENTWISE])
def test_each_op_takes_the_dtypes_of_its_row(dtype: str, op: str) -> None:
    wrong = WRONG_FOR.get(dtype, WRONG_FOR["int32" if dtype == "uint8" else "float32"])
    if op not in wrong:
        checked(applied(op, dtype))
        return
    with pytest.raises(KernelError) as refusal:
        checked(applied(op, dtype))
    assert (f"{NODES}/2", dtype) == (refusal.value.facts()["pointer"], refusal.value.facts()["got"])


ACCEPTED: dict[str, dict[str, Any]] = {
    "every form": every_form(),
    "(4, 32) and a leaf (4, 1)": kernel(load(1, [4, 32]), load(2, [4, 1]), node("ADD", 0, 1), store(2, [4, 32])),
    "a reduce broadcast back": kernel(load(1, [32, 4]), node("REDUCE_SUM", 0, axes=[0]), store(1, [32, 4])),
    "a (4, 1) value stored to (4, 32)": kernel(load(1, [4, 1]), store(0, [4, 32])),
    "rank 0": kernel(load(1, []), load(2, []), node("ADD", 0, 1), store(2, [])),
    "extent 0": kernel(load(1, [0, 4]), node("REDUCE_SUM", 0, axes=[0]), store(1, [1, 4])),
    "extent 0 beside 1": kernel(load(1, [0]), load(2, [1]), node("ADD", 0, 1), store(2, [0])),
    "mask [3, 3)": masked(8, 3, 3),
    "mask [0, n + 1) on 8": masked(8, 0, "n + 1"),
    "mask [m, n)": masked(8, "m", "n"),
    "mask [0, 9) on n": masked("n", 0, 9),
    "n - 1 for n from 1": extent_of("n - 1"),
    "n - n//2": extent_of("n - n//2"),
    "m*m": extent_of("m*m"),
    "p - p//2": extent_of("p - p//2"),
    "equal extents however written": kernel(
        load(1, ["2*n + 2"], strides=[1]),
        load(2, ["(n + 1)*2"], strides=[1]),
        load(3, ["n + 2 + n"], strides=[1]),
        node("MULACC", 0, 1, 2),
        store(3, ["n + n + 2"], strides=[1]),
        variables=[variable("n", 0, 8)],
    ),
    "an expression that is 1": kernel(
        load(1, [4, "n - n + 1"], strides=[1, 0]),
        load(2, [4, 8]),
        node("ADD", 0, 1),
        store(2, [4, 8]),
        variables=[variable("n", 0, 8)],
    ),
    "a variable of one value": kernel(
        load(1, ["n"], strides=[1]),
        load(2, [5]),
        node("ADD", 0, 1),
        store(2, [5]),
        variables=[variable("n", 5, 5)],
    ),
    "a shift by another integer": kernel(
        load(1, [4], "int64"),
        load(2, [4], "uint8"),
        node("SHL", 0, 1),
        store(2, [4], dtype="int64"),
    ),
    "bool to uint8 by bits": kernel(load(1, [4], "bool"), node("BITCAST", 0, dtype="uint8"), store(1, [4], dtype="uint8")),
    "a gather by bool": gather("bool"),
    "a gather by uint64": gather("uint64", [4, 8]),
    "in place": kernel(load(0, [4]), node("NEG", 0), store(1, [4])),
    "an image of float16": kernel(image_load(1, "float16"), node("NEG", 0), store(1, [16])),
    "reduces over different axes": kernel(
        load(1, [4, 8]),
        node("REDUCE_MAX", 0, axes=[0]),
        node("REDUCE_MAX", 0, axes=[1]),
        node("ADD", 1, 2),
        store(3, [4, 8]),
    ),
    "a reduce of what it has not": kernel(
        load(1, [4, 1]), load(2, [4, 32]), node("REDUCE_SUM", 0, axes=[1]), node("ADD", 1, 2), store(3, [4, 32])
    ),
}


@pytest.mark.parametrize("ast", ACCEPTED.values(), ids=ACCEPTED)
def test_what_means_something_is_accepted(ast: dict[str, Any]) -> None:
    found = checked(ast)

    assert len(found.shapes) == len(found.nodes)


# Rows added to `add_kernel` that no output needs.
LEFT_OUT_REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "of two dtypes": ([load(1, [4], "int32"), node("ADD", 0, 4)], f"{NODES}/5"),
    "of shapes that do not fit": ([load(1, [5]), node("ADD", 0, 4)], f"{NODES}/5"),
    "a mask outside": ([load(1, [4], mask=[[0, 5]])], f"{NODES}/4/views/0/mask/0"),
    "an axis beyond": ([node("REDUCE_SUM", 0, axes=[1])], f"{NODES}/4/axes/0"),
    "a store of another dtype": ([store(0, [4], dtype="int8")], f"{NODES}/4/src/0"),
}


@pytest.mark.parametrize(("rows", "pointer"), LEFT_OUT_REFUSED.values(), ids=LEFT_OUT_REFUSED)
def test_a_node_no_output_needs_is_checked_by_itself(rows: list[dict[str, Any]], pointer: str) -> None:
    with pytest.raises(KernelError) as refusal:
        checked(kernel(*add_kernel()["nodes"], *rows, outputs=[3]))

    assert pointer == refusal.value.facts()["pointer"]


LEFT_OUT_ACCEPTED: dict[str, list[dict[str, Any]]] = {
    "another extent": [load(1, [5])],
    "another rank": [load(1, [2, 2])],
    "a buffer with a gap": [load(9, [4])],
    "another dtype of a buffer": [load(1, [4], "int32")],
    "a second store to buffer 0": [store(0, [4])],
}


@pytest.mark.parametrize("rows", LEFT_OUT_ACCEPTED.values(), ids=LEFT_OUT_ACCEPTED)
def test_a_node_no_output_needs_is_not_held_against_the_kernel(rows: list[dict[str, Any]]) -> None:
    found = checked(kernel(*add_kernel()["nodes"], *rows, outputs=[3]))

    assert (4,) == found.full


def test_shapes_and_full_extents_are_filled_in() -> None:
    found = checked(kernel(load(1, [4, 1]), load(2, [4, 32]), node("MUL", 0, 1), node("REDUCE_SUM", 2, axes=[1]), store(3, [4, 1])))

    assert ((4, 1), (4, 32), (4, 32), (4, 1), (4, 1)) == found.shapes
    assert (4, 32) == found.full
    assert 2 == found.rank


def test_equal_extents_become_one_object() -> None:
    found = checked(ACCEPTED["equal extents however written"])

    assert 1 == len({id(shape[0]) for shape in found.shapes})
    assert found.full[0] is found.shapes[0][0]


def test_an_extent_that_always_is_an_integer_becomes_it() -> None:
    assert ((4, 1), (4, 8)) == checked(ACCEPTED["an expression that is 1"]).shapes[:2]
    assert (5,) == checked(ACCEPTED["a variable of one value"]).full


def test_a_long_chain_is_checked_without_recursion() -> None:
    nodes = [load(1, [4])] + [node("NEG", k) for k in range(20_000)] + [store(20_000, [4])]

    assert (4,) == checked(kernel(*nodes)).full


def test_an_edit_can_take_members_out() -> None:
    assert "offset" not in edited(every_form(), {"/nodes/0/views/0/offset": DROP})["nodes"][0]["views"][0]
