"""Named workloads: a kernel, its inputs, what numpy makes of them, and how much work there is to do.

Each is what a framework launches, or one kernel in place of the several it launches (softmax, layernorm, attention), in float32 and large
enough to be timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Array = NDArray[Any]
LOG2_E = math.log2(math.e)
EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Workload:
    """inputs: shapes of buffers 1, 2, …. output: the shape of buffer 0. flops: additions and multiplications, functions as one each.

    below: by buffer, of integers: they are drawn from 0 up to that. numpy: the result for these inputs. is_fused: one kernel in place of
    several, an element of which needs the whole row.
    """

    name: str
    ast: Json
    output: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    flops: int
    numpy: Callable[..., Any]
    below: Mapping[int, int] = field(default_factory=dict)
    is_fused: bool = False

    @property
    def bytes(self) -> int:
        """Of all buffers, each moved once."""
        return 4 * (math.prod(self.output) + sum(math.prod(shape) for shape in self.inputs))

    def data(self) -> list[Array]:
        """The same inputs each time: floats of -0.5 to 0.5, integers below their bound."""
        draw = np.random.default_rng(7)
        return [
            draw.integers(0, self.below[number], shape, dtype=np.int32)
            if number in self.below
            else draw.random(shape, dtype=np.float32) - np.float32(0.5)
            for number, shape in enumerate(self.inputs, 1)
        ]


class Nodes:
    """A kernel written down node by node; each call gives the number of its node."""

    def __init__(self) -> None:
        self.nodes: list[Json] = []

    def add(self, op: str, *src: int, **members: Any) -> int:
        self.nodes.append({"op": op, **({"src": list(src)} if src else {}), **members})
        return len(self.nodes) - 1

    def load(self, buffer: int, shape: list[int], index: str, dtype: str = "float32", **members: Any) -> int:
        return self.add("LOAD", buffer=buffer, dtype=dtype, shape=shape, index=index, **members)

    def const(self, value: float, rank: int) -> int:
        return self.add("CONST", value=value, dtype="float32", shape=[1] * rank)

    def stored(self, value: int, shape: list[int], index: str) -> Json:
        """The kernel that stores a node in buffer 0."""
        end = self.add("STORE", value, buffer=0, dtype="float32", shape=shape, index=index)
        return {"version": 1, "variables": [], "nodes": self.nodes, "outputs": [end]}

    def less(self, value: int, other: int) -> int:
        return self.add("ADD", value, self.add("NEG", other))

    def exp(self, value: int, rank: int) -> int:
        return self.add("EXP2", self.add("MUL", value, self.const(LOG2_E, rank)))


def matmul(n: int) -> Workload:
    k = Nodes()
    product = k.add("MUL", k.load(1, [n, n, 1], f"axis0*{n} + axis1"), k.load(2, [1, n, n], f"axis1*{n} + axis2"))
    ast = k.stored(k.add("REDUCE_SUM", product, axes=[1]), [n, 1, n], f"axis0*{n} + axis2")
    return Workload(f"matmul {n}", ast, (n, n), ((n, n), (n, n)), 2 * n**3, lambda a, b: a @ b)


def matvec(rows: int, columns: int) -> Workload:
    k = Nodes()
    product = k.add("MUL", k.load(1, [rows, columns], f"axis0*{columns} + axis1"), k.load(2, [1, columns], "axis1"))
    ast = k.stored(k.add("REDUCE_SUM", product, axes=[1]), [rows, 1], "axis0")
    return Workload(f"matvec {rows}", ast, (rows,), ((rows, columns), (columns,)), 2 * rows * columns, lambda a, b: a @ b)


def convolution(channels: int, size: int) -> Workload:
    """3×3 with a border of nothing; axes: output channel, y, x, input channel, two of the window."""
    c, n = channels, size
    k = Nodes()
    valid = ["0 < axis1 + axis4", f"axis1 + axis4 < {n + 1}", "0 < axis2 + axis5", f"axis2 + axis5 < {n + 1}"]
    x = k.load(1, [1, n, n, c, 3, 3], f"axis3*{n * n} + (axis1 + axis4 - 1)*{n} + axis2 + axis5 - 1", valid=valid)
    w = k.load(2, [c, 1, 1, c, 3, 3], f"axis0*{9 * c} + axis3*9 + axis4*3 + axis5")
    ast = k.stored(k.add("REDUCE_SUM", k.add("MUL", x, w), axes=[3, 4, 5]), [c, n, n, 1, 1, 1], f"axis0*{n * n} + axis1*{n} + axis2")

    def reference(x: Array, w: Array) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
        columns = windows.transpose(0, 3, 4, 1, 2).reshape(c * 9, n * n)
        return (w.reshape(c, c * 9) @ columns).reshape(c, n, n)

    return Workload(f"convolution {c}x{n}", ast, (c, n, n), ((c, n, n), (c, c, 3, 3)), 18 * c * c * n * n, reference)


def depthwise(channels: int, size: int) -> Workload:
    """3×3, every second place; axes: channel, y, x, two of the window."""
    c, n, m = channels, size, size // 2
    k = Nodes()
    valid = [f"axis1*2 + axis3 < {n}", f"axis2*2 + axis4 < {n}"]
    x = k.load(1, [c, m, m, 3, 3], f"axis0*{n * n} + (axis1*2 + axis3)*{n} + axis2*2 + axis4", valid=valid)
    w = k.load(2, [c, 1, 1, 3, 3], "axis0*9 + axis3*3 + axis4")
    ast = k.stored(k.add("REDUCE_SUM", k.add("MUL", x, w), axes=[3, 4]), [c, m, m, 1, 1], f"axis0*{m * m} + axis1*{m} + axis2")

    def reference(x: Array, w: Array) -> Any:
        padded = np.pad(x, ((0, 0), (0, 1), (0, 1)))
        parts = [padded[:, i : i + n : 2, j : j + n : 2] * w[:, i, j, None, None] for i in range(3) for j in range(3)]
        return np.sum(parts, axis=0, dtype=np.float32)

    return Workload(f"depthwise {c}x{n}", ast, (c, m, m), ((c, n, n), (c, 3, 3)), 18 * c * m * m, reference)


def _row_wise(
    name: str, rows: int, columns: int, flops: int, body: Callable[[Nodes, int], int], reference: Callable[[Array], Any]
) -> Workload:
    k = Nodes()
    index = f"axis0*{columns} + axis1"
    ast = k.stored(body(k, k.load(1, [rows, columns], index)), [rows, columns], index)
    return Workload(name, ast, (rows, columns), ((rows, columns),), flops * rows * columns, reference, is_fused=True)


def softmax(rows: int, columns: int) -> Workload:
    def body(k: Nodes, x: int) -> int:
        e = k.exp(k.less(x, k.add("REDUCE_MAX", x, axes=[1])), 2)
        return k.add("MUL", e, k.add("RECIP", k.add("REDUCE_SUM", e, axes=[1])))

    def reference(x: Array) -> Any:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return _row_wise("softmax", rows, columns, 5, body, reference)


def log_softmax(rows: int, columns: int) -> Workload:
    def body(k: Nodes, x: int) -> int:
        d = k.less(x, k.add("REDUCE_MAX", x, axes=[1]))
        logarithm = k.add("LOG2", k.add("REDUCE_SUM", k.exp(d, 2), axes=[1]))
        return k.less(d, k.add("MUL", logarithm, k.const(1 / LOG2_E, 2)))

    def reference(x: Array) -> Any:
        d = x - x.max(1, keepdims=True)
        return d - np.log(np.exp(d).sum(1, keepdims=True))

    return _row_wise("log softmax", rows, columns, 5, body, reference)


def _scaled(k: Nodes, x: int, columns: int) -> int:
    """x over the root of its mean square along axis 1."""
    mean = k.add("MUL", k.add("REDUCE_SUM", k.add("MUL", x, x), axes=[1]), k.const(1 / columns, 2))
    return k.add("MUL", x, k.add("RECIP", k.add("SQRT", k.add("ADD", mean, k.const(EPSILON, 2)))))


def layernorm(rows: int, columns: int) -> Workload:
    def body(k: Nodes, x: int) -> int:
        return _scaled(k, k.less(x, k.add("MUL", k.add("REDUCE_SUM", x, axes=[1]), k.const(1 / columns, 2))), columns)

    def reference(x: Array) -> Any:
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + np.float32(EPSILON))

    return _row_wise("layernorm", rows, columns, 6, body, reference)


def rmsnorm(rows: int, columns: int) -> Workload:
    def reference(x: Array) -> Any:
        return x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(EPSILON))

    return _row_wise("rmsnorm", rows, columns, 3, lambda k, x: _scaled(k, x, columns), reference)


def attention(length: int, width: int) -> Workload:
    """softmax(q kᵀ) v as one kernel; axes: query, key, the scores' inner one, the values' own."""
    n, d = length, width
    k = Nodes()
    q = k.load(1, [n, 1, d, 1], f"axis0*{d} + axis2")
    keys = k.load(2, [1, n, d, 1], f"axis1*{d} + axis2")
    values = k.load(3, [1, n, 1, d], f"axis1*{d} + axis3")
    scores = k.add("REDUCE_SUM", k.add("MUL", q, keys), axes=[2])
    e = k.exp(k.less(scores, k.add("REDUCE_MAX", scores, axes=[1])), 4)
    weighted = k.add("REDUCE_SUM", k.add("MUL", e, values), axes=[1])
    result = k.add("MUL", weighted, k.add("RECIP", k.add("REDUCE_SUM", e, axes=[1])))

    def reference(q: Array, keys: Array, values: Array) -> Any:
        scores = q @ keys.T
        e = np.exp(scores - scores.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True)) @ values

    ast = k.stored(result, [n, 1, 1, d], f"axis0*{d} + axis3")
    return Workload("attention", ast, (n, d), ((n, d),) * 3, 4 * n * n * d + 4 * n * n, reference, is_fused=True)


def summed(name: str, rows: int, columns: int, axis: int) -> Workload:
    k = Nodes()
    total = k.add("REDUCE_SUM", k.load(1, [rows, columns], f"axis0*{columns} + axis1"), axes=[axis])
    shape, kept = ([1, columns], 1) if axis == 0 else ([rows, 1], 0)
    ast = k.stored(total, shape, f"axis{kept}")
    return Workload(name, ast, (math.prod(shape),), ((rows, columns),), rows * columns, lambda x: x.sum(axis))


def transpose(n: int) -> Workload:
    k = Nodes()
    ast = k.stored(k.load(1, [n, n], f"axis1*{n} + axis0"), [n, n], f"axis0*{n} + axis1")
    return Workload("transpose", ast, (n, n), ((n, n),), 0, lambda x: np.ascontiguousarray(x.T))


def gather(rows: int, picked: int, width: int) -> Workload:
    """Rows of a table as a sum over a comparison with their numbers, as frameworks without an indexed load write it."""
    k = Nodes()
    ramp = k.add("CONST", dtype="int32", expr="axis1", shape=[1, rows, 1])
    other = k.add("CMPNE", ramp, k.load(2, [picked, 1, 1], "axis0", "int32"))
    chosen = k.add("WHERE", other, k.const(0.0, 3), k.load(1, [1, rows, width], f"axis1*{width} + axis2"))
    ast = k.stored(k.add("REDUCE_SUM", chosen, axes=[1]), [picked, 1, width], f"axis0*{width} + axis2")
    return Workload("gather", ast, (picked, width), ((rows, width), (picked,)), 0, lambda v, i: v[i], {2: rows})


def cumulative(rows: int, n: int) -> Workload:
    """A cumulative sum as a window over padding."""
    k = Nodes()
    index = f"axis0*{n} + axis1 + axis2 - {n - 1}"
    terms = k.load(1, [rows, n, n], index, valid=[f"{n - 2} < axis1 + axis2"])
    ast = k.stored(k.add("REDUCE_SUM", terms, axes=[2]), [rows, n, 1], f"axis0*{n} + axis1")
    return Workload("cumulative sum", ast, (rows, n), ((rows, n),), rows * n, lambda x: np.cumsum(x, 1, dtype=np.float32))


def elementwise(n: int) -> Workload:
    """max(x·y + z, 0)·2 - x."""
    k = Nodes()
    x, y, z = (k.load(buffer, [n], "axis0") for buffer in (1, 2, 3))
    positive = k.add("MAX", k.add("ADD", k.add("MUL", x, y), z), k.const(0.0, 1))
    ast = k.stored(k.less(k.add("MUL", positive, k.const(2.0, 1)), x), [n], "axis0")
    return Workload("elementwise", ast, (n,), ((n,),) * 3, 5 * n, lambda x, y, z: np.maximum(x * y + z, 0) * np.float32(2) - x)


WORKLOADS: tuple[Workload, ...] = (
    matmul(512),
    matvec(2048, 4096),
    convolution(64, 28),
    depthwise(96, 64),
    softmax(1024, 1024),
    log_softmax(1024, 1024),
    layernorm(1024, 1024),
    rmsnorm(1024, 1024),
    attention(256, 64),
    summed("row sum", 2048, 2048, 1),
    summed("column sum", 2048, 2048, 0),
    summed("sum", 1, 1 << 22, 1),
    elementwise(1 << 22),
    transpose(2048),
    gather(1000, 1024, 64),
    cumulative(512, 512),
)
