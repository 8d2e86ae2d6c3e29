"""Kernels for the checker, and how it refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import KernelError
from core.kernel.check import check_kernel
from core.kernel.node import Kernel
from core.kernel.read import read_kernel
from tests.kernels import kernel, load, store, variable

NODES = "/ast/nodes"
IMAGE = [2, 2, 4]


def checked(ast: dict[str, Any]) -> Kernel:
    return check_kernel(read_kernel(ast))


def image_load(buffer: int, dtype: str = "float32") -> dict[str, Any]:
    return {**load(buffer, [16], dtype), "image": IMAGE}


def image_store(src: int, dtype: str = "float32") -> dict[str, Any]:
    return {**store(src, [16], dtype=dtype), "image": IMAGE}


def masked(extent: object, begin: object, end: object) -> dict[str, Any]:
    """A load of a masked row whose values a second view, of 4 elements, picks."""
    first = {"shape": [extent], "strides": [1], "mask": [[begin, end]]}
    return kernel(
        {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [first, {"shape": [4], "strides": [0]}]},
        store(0, [4]),
        variables=[variable("n", 1, 20), variable("m", -3, 3)],
    )


def gather(dtype: str = "int32", src_shape: list[int] | None = None, shape: list[int] | None = None) -> dict[str, Any]:
    shape = shape or [4, 8]
    return kernel(
        load(1, src_shape or [4, 1], dtype),
        {"op": "LOAD", "buffer": 2, "dtype": "float32", "src": [0], "shape": shape, "index": "src0*8 + axis1"},
        store(1, shape),
    )


def extent_of(extent: object) -> dict[str, Any]:
    """A copy of `extent` elements, over n in [1, 8], m in [-3, 3], p in [0, 2**31 - 1]."""
    variables = [variable("n", 1, 8), variable("m", -3, 3), variable("p", 0, 2**31 - 1)]
    return kernel(load(1, [extent], strides=[1]), store(0, [extent], strides=[1]), variables=variables)


def assert_refused(ast: dict[str, Any], pointer: str, expected: str, got: str) -> None:
    """With its place, what was expected and what came."""
    with pytest.raises(KernelError) as refusal:
        checked(ast)

    facts = refusal.value.facts()
    assert "ast" == refusal.value.category
    assert pointer == facts["pointer"]
    assert expected in str(facts["expected"])
    assert got in str(facts["got"])
    assert isinstance(facts["node"], int)
