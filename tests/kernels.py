"""Kernels of the wire for tests: small builders, and edits by JSON pointer."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]
DROP = object()  # as a value of `edited`: the member is taken out


def dense(shape: list[Any]) -> list[Any]:
    """Row-major strides of integer extents."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def view(shape: list[Any], strides: list[Any] | None = None, **more: Any) -> Json:
    return {"shape": shape, "strides": dense(shape) if strides is None else strides, **more}


def load(buffer: int, shape: list[Any], dtype: str = "float32", strides: list[Any] | None = None, **more: Any) -> Json:
    return {"op": "LOAD", "buffer": buffer, "dtype": dtype, "views": [view(shape, strides, **more)]}


def const(value: Any, shape: list[Any], dtype: str = "float32") -> Json:
    return {"op": "CONST", "value": value, "dtype": dtype, "views": [view(shape, [0] * len(shape))]}


def store(src: int, shape: list[Any], buffer: int = 0, dtype: str = "float32", strides: list[Any] | None = None) -> Json:
    return {"op": "STORE", "buffer": buffer, "dtype": dtype, "views": [view(shape, strides)], "src": [src]}


def node(op: str, *src: int, **more: Any) -> Json:
    return {"op": op, "src": list(src), **more}


def kernel(*nodes: Json, outputs: list[int] | None = None, variables: list[Json] | None = None) -> Json:
    """An AST; outputs: by default the last node."""
    return {
        "version": 1,
        "variables": variables or [],
        "nodes": list(nodes),
        "outputs": [len(nodes) - 1] if outputs is None else outputs,
    }


def variable(name: str, least: int, greatest: int) -> Json:
    return {"name": name, "min": least, "max": greatest}


def edited(value: Any, edits: dict[str, Any]) -> Any:
    """A copy with values put in, or taken out (DROP), at JSON pointers; a last part of `-` appends to a list."""
    result = copy.deepcopy(value)
    for pointer, new in edits.items():
        parts = pointer.split("/")[1:]
        if not parts:
            result = copy.deepcopy(new)
            continue
        place = result
        for part in parts[:-1]:
            place = place[int(part) if isinstance(place, list) else part]
        last: Any = parts[-1]
        if isinstance(place, list):
            if last == "-":
                place.append(copy.deepcopy(new))
                continue
            last = int(last)
        if new is DROP:
            del place[last]
        else:
            place[last] = copy.deepcopy(new)
    return result


def every_form() -> Json:
    """One kernel with every form of node: both spellings of each leaf, a gather, a guarded store, two outputs."""
    return kernel(
        load(2, [4, 8], offset=0, mask=[[0, 4], [0, 8]]),
        {"op": "LOAD", "buffer": 3, "dtype": "int32", "shape": [4, 8], "index": "axis0*8 + axis1", "valid": ["axis1 < n"]},
        {
            "op": "LOAD",
            "buffer": 4,
            "dtype": "float32",
            "src": [1],
            "shape": [4, 8],
            "index": "src0*8 + axis1",
            "valid": ["src0 >= 0", "src0 < 50"],
        },
        const(1.5, [4, 8]),
        {"op": "CONST", "expr": "axis0 + n", "dtype": "int32", "shape": [4, 8]},
        node("ADD", 0, 2),
        node("CAST", 4, dtype="float32"),
        node("MULACC", 5, 3, 6),
        node("CMPLT", 0, 3),
        node("WHERE", 8, 7, 0),
        node("REDUCE_SUM", 9, axes=[1]),
        node("REDUCE_MAX", 1, axes=[1]),
        store(10, [4, 1]),
        {
            "op": "STORE",
            "buffer": 1,
            "dtype": "float32",
            "shape": [4, 1],
            "index": "axis0",
            "valid": ["src1 < 3"],
            "src": [10, 11],
        },
        outputs=[12, 13],
        variables=[variable("n", 1, 8)],
    )


def add_kernel(shape: list[Any] | None = None) -> Json:
    """out = a + b, float32."""
    shape = shape or [4]
    return kernel(load(1, shape), load(2, shape), node("ADD", 0, 1), store(2, shape))


def request(ast: Json | None = None, **more: Any) -> Json:
    return {"ast": ast or add_kernel(), "device": {"target": "opencl"}, **more}
