"""Kernels that read or store by an index, and what is said of their places."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import KernelError
from core.ir.size_text import expression_text
from core.kernel.leaves import Leaves
from core.kernel.places import Places, check_places, touched_sizes
from core.request import Request
from tests.kernels import Json, kernel, request, view


def formula(op: str, buffer: int, shape: list[Any], index: Any, *valid: str, src: list[int] | None = None, **more: Any) -> Json:
    leaf: Json = {"op": op, "buffer": buffer, "dtype": "float32", "shape": shape, "index": index, "valid": list(valid), **more}
    return leaf if src is None else {**leaf, "src": src}


def read(index: Any, shape: list[Any], *valid: str, **more: Any) -> Json:
    """A kernel that reads by this index and stores where it is."""
    return kernel(formula("LOAD", 1, shape, index, *valid), store_at(0, shape), **more)


def store_at(src: int, shape: list[Any]) -> Json:
    texts = [str(e) for e in shape]
    strides = ["*".join(texts[k + 1 :]) or 1 for k in range(len(texts))]
    return {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [view(shape, strides)], "src": [src]}


def written(index: Any, shape: list[Any], *valid: str, variables: list[Json] | None = None, **more: Any) -> Json:
    """A kernel that stores ones by this index."""
    one = {"op": "CONST", "value": 1.0, "dtype": "float32", "shape": [1] * len(shape)}
    return kernel(one, formula("STORE", 0, shape, index, *valid, src=[0], **more), variables=variables)


def checked(ast: Json) -> Places:
    found = Request.from_json(request(ast))
    return check_places(found.kernel, Leaves(found.kernel), found.rows)


def sizes(ast: Json) -> dict[int, str]:
    found = Request.from_json(request(ast))
    return {buffer: expression_text(size) for buffer, size in touched_sizes(found.kernel, Leaves(found.kernel)).items()}


def refused(ast: Json) -> KernelError:
    with pytest.raises(KernelError) as caught:
        checked(ast)
    return caught.value


def facts(ast: Json) -> tuple[str, str, str]:
    """Pointer, what was expected, what came."""
    error = refused(ast).facts()
    return str(error["pointer"]), str(error["expected"]), str(error["got"])
