"""Exact indices as machine integers: as narrow as bounds prove, never divided below zero, right where only a gate holds the width."""

from __future__ import annotations

from typing import Any

import pytest

from core import LimitExceeded, Request, compile_kernel
from core.dtypes import INDEX, INDEX64, INT32, VOID
from core.index import all_of, less, number, scale
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make, sink
from core.ir.walk import Graph
from core.passes.narrow import narrow
from tests.core.listings import left, listing_of
from tests.meaning.harness import assert_means

Json = dict[str, Any]


def copy(size: list[int], index: str, valid: list[str] | None = None, dtype: str = "float32") -> Json:
    """out at the row-major place ← in at `index`."""
    dense = " + ".join(f"axis{k}*{_inner(size, k)}" for k in range(len(size)))
    return {
        "version": 1,
        "variables": [],
        "nodes": [
            {"op": "LOAD", "buffer": 1, "dtype": dtype, "shape": size, "index": index, "valid": valid or []},
            {"op": "STORE", "buffer": 0, "dtype": dtype, "shape": size, "index": dense, "src": [0]},
        ],
        "outputs": [1],
    }


def _inner(size: list[int], axis: int) -> int:
    result = 1
    for n in size[axis + 1 :]:
        result *= n
    return result


def gather(dtype: str, valid: list[str], row: int = 64) -> Json:
    """out[i, j] ← table[ids[i]*row + j]."""
    return {
        "version": 1,
        "variables": [],
        "nodes": [
            {"op": "LOAD", "buffer": 1, "dtype": dtype, "shape": [6, 1], "index": "axis0"},
            {"op": "LOAD", "buffer": 2, "dtype": "float32", "src": [0], "shape": [6, 4], "index": f"src0*{row} + axis1", "valid": valid},
            {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": [6, 4], "index": "axis0*4 + axis1", "src": [1]},
        ],
        "outputs": [2],
    }


def types(listing_body: tuple[Value, ...], op: Op) -> set[str]:
    return {v.dtype.name for v in listing_body if v.op is op}


def test_an_index_within_32_bits_is_32_bits() -> None:
    listing, _ = listing_of(copy([8, 8], "axis0*64 + axis1"))

    assert not any(v.dtype is INDEX64 for v in listing.body)


def test_what_fits_as_it_is_stays_the_graph_it_is() -> None:
    for ast, stays in ((copy([8, 8], "axis0*8 + axis1"), True), (copy([60000, 50001], "axis1*60000 + axis0"), False)):
        seen: dict[str, Any] = {}
        compile_kernel(Request.from_json({"ast": ast, "device": {"target": "opencl"}}), watch=seen.__setitem__)

        assert stays is (seen["legalize"] is seen["narrow"])


def test_a_buffer_beyond_2_to_the_31_is_addressed_in_64_bits() -> None:
    """B 39."""
    listing, program = listing_of(copy([60000, 50001], "axis1*60000 + axis0", dtype="float16"), "opencl")
    sums = [v for v in listing.body if v.op is Op.SUM]

    assert {"index64"} == {v.dtype.name for v in sums}
    assert "(long)" in program.source or "long " in program.source


def test_without_64_bit_integers_that_is_a_limit() -> None:
    """B 40."""
    seen: dict[str, Any] = {}
    compile_kernel(
        Request.from_json({"ast": copy([60000, 50001], "axis1*60000 + axis0"), "device": {"target": "c"}}), watch=seen.__setitem__
    )

    with pytest.raises(LimitExceeded):
        narrow(Graph.of(seen["legalize"]), index64=False)


def test_constants_that_cancel_need_no_64_bits() -> None:
    """B 38."""
    listing, program = listing_of(copy([10], "(70001 + axis0)//10*500000 - 3499000000"))

    assert not any(v.dtype is INDEX64 for v in listing.body)
    assert "L" not in program.source.split("{", 1)[1].replace("LL", "L")


def test_no_negative_number_is_divided() -> None:
    """B 36, M 239."""
    ast = copy([6], "(axis0 - 2)//3 + 1")

    listing, _ = listing_of(ast)
    assert all((v.src[0].lo or 0) >= 0 for v in listing.body if v.op in (Op.DIV, Op.MOD))
    assert [7.0 + (i - 2) // 3 + 1 for i in range(6)] == left(ast, {0: [0.0] * 6, 1: [7.0, 8.0, 9.0, 10.0]})[0]


def test_a_bounded_gather_is_addressed_in_32_bits_that_may_wrap() -> None:
    """N 268."""
    listing, program = listing_of(gather("int32", ["src0 >= 0", "src0 < 100"]), "opencl")
    (table,) = [v for v in listing.body if v.op is Op.LOAD and v.arg == (1, True)]

    assert INT32 is table.src[1].dtype
    assert "long" not in program.source
    assert "proved" == program.proofs["bounds"]


def test_a_gate_that_also_asks_the_data_bounds_what_its_comparisons_bound() -> None:
    ids, table = (make(Op.PARAM, INT32, (), (k, "read", None, 4)) for k in (1, 2))
    value = make(Op.LOAD, INT32, (ids, number(0)), (1, False))
    row = make(Op.INDEX_OF, INDEX, (value,), None, 1, (int(INT32.least), int(INT32.greatest)))
    inside = all_of((less(number(-1), row), less(row, number(100))))
    data = alu(Op.CMPNE, value, constant(7, INT32))
    for gate in (alu(Op.AND, data, inside), alu(Op.AND, inside, alu(Op.AND, data, inside))):
        read = make(Op.LOAD, INT32, (table, scale(row, 64), gate, constant(0, INT32)), (1, True))
        out = make(Op.PARAM, INT32, (), (0, "write", None, 4))
        graph, _ = narrow(Graph.of(sink((make(Op.STORE, VOID, (out, number(0), read), (1, False)),))), index64=False)
        (found,) = [v for v in graph.order if v.op is Op.LOAD and v.src[0] is table]

        assert INT32 is found.src[1].dtype


def test_an_unbounded_gather_is_addressed_in_64_bits_and_unknown() -> None:
    """N 269."""
    listing, program = listing_of(gather("int32", []), "opencl")
    (table,) = [v for v in listing.body if v.op is Op.LOAD and v.src[0].dtype.name == "float32"]

    assert INDEX64 is table.src[1].dtype
    assert (1, False) == table.arg
    assert "unknown" == program.proofs["bounds"]


def test_an_unbounded_64_bit_value_times_64_leaves_64_bits() -> None:
    """N 269."""
    with pytest.raises(LimitExceeded, match="valid"):
        listing_of(gather("int64", []))
    listing_of(gather("int64", ["src0 >= 0", "src0 < 100"]))


@pytest.mark.parametrize("target", ["opencl", "c"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_a_bounded_gather_reads_nothing_where_the_value_is_out_of_range(dtype: str, target: str) -> None:
    assert_means(gather(dtype, ["src0 >= 0", "src0 < 9"], 4), target, special=True)


def test_bounds_on_a_bare_value_are_compared_in_its_own_type() -> None:
    listing, _ = listing_of(gather("uint64", ["src0 < 18446744073709551615", "src0 < 7"]))

    assert {"uint64"} == {v.src[0].dtype.name for v in listing.body if v.op is Op.CMPLT}


def test_loops_and_launch_indices_are_narrow() -> None:
    listing, _ = listing_of(copy([8, 8], "axis1*8 + axis0"), "opencl")

    assert {INDEX.name} == types(listing.body, Op.SPECIAL)
