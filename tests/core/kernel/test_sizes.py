"""How many elements a buffer must have: the greatest valid index and one; gathers count where their values are bounded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kernel.placing import checked, facts, formula, read, sizes
from tests.kernels import Json, kernel, load, node, store, variable


def gather(dtype: str, *valid: str, index: str = "src0*64 + axis1") -> Json:
    ids: Json = {"op": "LOAD", "buffer": 2, "dtype": dtype, "shape": [6, 1], "index": "axis0"}
    return kernel(ids, formula("LOAD", 1, [6, 64], index, *valid, src=[0]), store(1, [6, 64]))


def test_a_bounded_gather_has_a_size_and_nothing_open() -> None:
    """Acceptance 268."""
    ast = gather("int32", "src0 >= 0", "src0 < 100")

    assert () == checked(ast).open
    assert {0: "384", 1: "6400", 2: "6"} == sizes(ast)


@pytest.mark.parametrize(
    ("dtype", "valid", "size"),
    [
        ("uint16", ("src0 < 100",), "6400"),
        ("int16", ("src0 < 100",), "1"),
        ("int16", ("src0 >= 0",), "1"),
        ("int32", (), "1"),
        ("uint8", (), "1"),
        ("int64", ("src0 >= 0", "src0 < 7"), "448"),
        ("uint64", ("src0 < 7",), "448"),
    ],
)
def test_a_gather_counts_as_one_element_unless_its_values_are_bounded(dtype: str, valid: tuple[str, ...], size: str) -> None:
    """Acceptance 268 and 269: an unsigned value's own lower bound counts, its upper does not."""
    assert size == sizes(gather(dtype, *valid))[1]


def test_an_unbounded_gather_is_named() -> None:
    """Acceptance 269."""
    (unknown,) = checked(gather("int32")).open

    assert ("bounds", 1, 1) == (unknown.of, unknown.argument, unknown.node)
    assert "`valid`" in unknown.why


def test_a_gather_negative_for_every_value_is_refused() -> None:
    assert "/ast/nodes/1" == facts(gather("int32", "src0 < 0", "src0 > -9"))[0]
    assert 1 == len(checked(gather("int32", "src0 < 3", "src0 > -9")).open)


def test_a_remainder_of_a_value_is_bounded() -> None:
    ast = gather("int32", index="src0%16*64 + axis1")

    assert () == checked(ast).open
    assert "1024" == sizes(ast)[1]
    assert "1" == sizes(gather("int32", index="src0%16 + src0"))[1]


# ---- sizes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "shape", "valid", "size"),
    [
        ("axis0*64 + axis1", [128, 128], ("axis1 < 64",), "8192"),
        ("axis0*64 + axis1", ["n", 64], (), "n*64"),
        ("n*64 + axis1", [1, 64], (), "n*64+64"),
        ("axis0*8 + 7 - axis1", [4, 8], (), "32"),
        ("axis0*8 + axis1", [4, 8], ("axis0 > 9",), "0"),
        ("(axis0 + 4)%6", [4], (), "6"),
        ("5", [4], (), "6"),
    ],
)
def test_a_size_is_the_greatest_valid_index_and_one(index: str, shape: list[Any], valid: tuple[str, ...], size: str) -> None:
    """Acceptance 15 and 236."""
    assert size == sizes(read(index, shape, *valid, variables=[variable("n", 1, 20)]))[1]


def test_a_size_holds_every_leaf_of_its_buffer() -> None:
    ast = kernel(load(1, [8]), load(1, [8], offset=20), node("ADD", 0, 1), store(2, [8]))

    assert {0: "8", 1: "28"} == sizes(ast)
