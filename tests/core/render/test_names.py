"""Arguments keep their names unless these mean something; different names stay different."""

from __future__ import annotations

import pytest

from core.render.names import KEYWORDS, Names
from core.targets.c import DIALECT as C
from core.targets.opencl import DIALECT as OPENCL


@pytest.mark.parametrize("name", ["n", "N", "start_pos", "rows", "x", "size0", "Batch", "global_rows", "c", "d"])
def test_an_ordinary_name_is_kept(name: str) -> None:
    for dialect in (OPENCL, C):
        assert name == Names(dialect, "r_4_n").variable(name).words


@pytest.mark.parametrize(
    "name",
    [
        "int",
        "d0",
        "g12",
        "v3",
        "while",
        "double",
        "r_4_n",
        "linux",
        "_x",
        "a__b",
        "NAN",
        "INFINITY",
        "INT32_MAX",
        "half_bits",
        "size_t",
        "arg_n",
    ],
)
def test_a_name_that_means_something_is_prefixed(name: str) -> None:
    for dialect in (OPENCL, C):
        assert f"arg_{name}" == Names(dialect, "r_4_n").variable(name).words


@pytest.mark.parametrize(
    "name", ["kernel", "float4", "uchar16", "smp", "get_group_id", "barrier", "as_float", "convert_int4", "vload4", "global"]
)
def test_words_of_opencl_are_prefixed_there(name: str) -> None:
    assert f"arg_{name}" == Names(OPENCL, "r").variable(name).words


def test_different_variables_stay_different() -> None:
    wild = [*KEYWORDS, *(f"arg_{word}" for word in KEYWORDS), "arg_arg_int", "arg_", "n", "arg_n"]
    names = Names(OPENCL, "r")

    assert len(wild) == len({names.variable(name).words for name in wild})


def test_names_are_numbered_by_class() -> None:
    names = Names(C, "r")

    assert ["r0", "r1", "a0", "r2"] == [names.next(letter).words for letter in "rrar"]
