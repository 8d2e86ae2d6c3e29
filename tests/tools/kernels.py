"""Small kernels whose accesses, races and overflows are worth a tool's look, each with schedules for OpenCL and for C."""

from __future__ import annotations

from typing import Any

from tests.meaning.build import Build
from tests.meaning.test_gathers import pooled_embedding, switched, table, under_a_reduce
from tests.meaning.test_images import copied, one_channel
from tests.meaning.test_images import reduced as reduced_image
from tests.meaning.test_ops import together
from tests.meaning.test_places import cache_rows, clipped_mask, stored
from tests.meaning.test_reduces import beside, convolved, matmul, nested, pooled, pooled_any, variance
from tests.meaning.test_rows import attention, layernorm, minus_maximum, plain_with_a_tail, softmax
from tests.meaning.test_small_kernels import added_in_place, minus_maximum_in_place, row_in_place

Json = dict[str, Any]


def masked_copy() -> Build:
    k = Build()
    x = k.load("float32", [12, 10], [10, 1], offset=-21, mask=[[2, 12], [1, 10]])
    return k.store(x, [12, 10], [10, 1], mask=[[0, 11], [0, 9]])


def odd_rows(dtype: str = "float32") -> Build:
    k = Build()
    return k.store(k.load(dtype, [7, 13]).sum(1))


def biased(rows: int, width: int) -> Build:
    k = Build()
    return k.store(k.load("float32", [rows, width]).sum(1) + k.load("float32", [rows, 1]))


def scaled_in_place() -> Build:
    """What a grouped reduce reads of the buffer that its kernel writes."""
    k = Build()
    a, y = k.load("float32", [6, 8]), k.load("float32", [6, 1], buffer="out0")
    return k.store((a * y).sum(1))


def total_in_place() -> Build:
    k = Build()
    a, y = k.load("int32", [6, 8]), k.load("int32", [6, 1], buffer="out0")
    return k.store(a.sum(1) + y)


def two_totals(dtype: str) -> Build:
    k = Build()
    x = k.load(dtype, [4, 24])
    return k.store(x.sum(1)).store(x.max(1) + x.sum(1))


def windows() -> Build:
    """Overlapping windows of a padded row, and a gate on each end."""
    k = Build()
    padded = {"shape": [14], "strides": [1], "offset": -2, "mask": [[2, 12]]}
    return k.store(k.load("int16", [], views=[padded, {"shape": [12, 3], "strides": [1, 1], "offset": 0}]).max(1))


def blocked() -> Build:
    k = Build()
    return k.store(k.index("uint8", [6, 8], "(axis0*8 + axis1)//5*7 + (axis0*8 + axis1)%5"))


def shifted(dtype: str) -> Build:
    k = Build()
    x = k.load(dtype, [16])
    return k.store(x.op("SHL", 3)).store(x.op("SHR", 1)).store(-x * x)


def divided() -> Build:
    k = Build()
    x, y = k.load("int32", [16]), k.load("int32", [16])
    return k.store(x.op("IDIV", y)).store(x.op("MOD", y))


def bools() -> Build:
    k = Build()
    x, y = k.load("bool", [4, 6]), k.load("bool", [4, 6])
    return k.store((x + y).prod(1)).store(x.op("XOR", y).sum(1))


def overflowing(dtype: str) -> Build:
    k = Build()
    x, y = k.load(dtype, [4, 12]), k.load(dtype, [4, 12])
    return k.store((x * y + x.op("MAX", y) - x).sum(1)).store((x + y * y).prod(1))


def prime() -> Build:
    k = Build()
    return k.store(k.load("float32", [37, 3], [3, 1]).max(1))


NONE: Json = {}
SMALL_LAUNCH: Json = {"global_max": [16, 16, 16]}

# name → kernel, OpenCL's options, C's options, OpenCL's device
KERNELS: dict[str, tuple[Build, str, str, Json]] = {
    "masked-copy": (masked_copy(), "UPCAST 1 2, LOCAL 0 4", "UPCAST 1 5", NONE),
    "masked-copy-padded": (masked_copy(), "PADTO 1 4, UPCAST 1 4, PADTO 0 8, LOCAL 0 8", "PADTO 1 4, UPCAST 1 4, PADTO 0 5", NONE),
    "odd-rows": (odd_rows(), "PADTO 1 4, GROUP 0 4", "PADTO 1 4, UNROLL 0 4", NONE),
    "odd-rows-contiguous-parts": (odd_rows(), "PADTO 1 16, GROUPTOP 0 8, PADTO 0 4, LOCAL 0 4", "PADTO 0 4, UPCAST 0 4", NONE),
    "odd-rows-of-halves": (odd_rows("float16"), "PADTO 1 4, GROUP 0 4, UNROLL 1 2", "PADTO 1 4, UNROLL 0 4", NONE),
    "biased": (biased(8, 16), "UPCAST 0 4, GROUPTOP 0 8", "UPCAST 0 4", NONE),
    "scaled-in-place": (scaled_in_place(), "GROUP 0 4", "UNROLL 0 4", NONE),
    "total-in-place": (total_in_place(), "GROUP 0 4, UPCAST 0 2", "UPCAST 0 2", NONE),
    "two-totals": (two_totals("int32"), "GROUP 0 8, UNROLL 1 3", "UNROLL 0 3", NONE),
    "two-totals-of-bfloats": (two_totals("bfloat16"), "GROUPTOP 0 4, LOCAL 0 2", "UNROLL 0 4", NONE),
    "two-groups": (biased(4, 64), "GROUP 0 4, GROUP 0 4", "UNROLL 0 8", NONE),
    "product": (matmul(8, 12, 16, "float32", "float32"), "LOCAL 0 4, LOCAL 0 2, UPCAST 1 4, UNROLL 0 4", "UPCAST 1 4, UNROLL 0 4", NONE),
    "grouped-product": (matmul(4, 8, 16, "float32", "float32"), "LOCAL 1 4, GROUP 0 8, UPCAST 0 2", "UPCAST 0 4", NONE),
    "padded-product": (matmul(5, 7, 9, "int8", "int32"), "PADTO 0 8, PADTO 1 8, PADTO 2 12, LOCAL 1 8", "PADTO 2 12, UNROLL 0 4", NONE),
    "variance": (variance("float32"), "GROUP 0 4, UNROLL 1 2", "UNROLL 0 8", NONE),
    "variance-of-halves": (variance("float16"), "GROUPTOP 0 4", "UPCAST 0 3", NONE),
    "pooled": (pooled(), "LOCAL 0 2, UNROLL 0 3", "UNROLL 0 3, UPCAST 1 4", NONE),
    "pooled-padded": (pooled(), "PADTO 2 4, UPCAST 1 4", "PADTO 3 4, UNROLL 1 4", NONE),
    "pooled-any": (pooled_any(), "PADTO 1 8, GROUP 0 4", "PADTO 1 8, UNROLL 0 8", NONE),
    "convolved": (convolved(), "UPCAST 2 4, LOCAL 0 3", "UPCAST 2 4, UNROLL 2 3", NONE),
    "nested": (nested("REDUCE_SUM", "REDUCE_MAX"), "UNROLL 0 2, PADTO 0 4, LOCAL 0 2", "UNROLL 1 0", NONE),
    "beside": (beside("float32"), "UPCAST 1 3, LOCAL 0 4", "UNROLL 0 2, UPCAST 1 2", NONE),
    "softmax": (softmax([4, 12], 1), "LOOP 1 0, UPCAST 1 4, LOCAL 0 2, UNROLL 0 4", "LOOP 1 0, UPCAST 1 4", NONE),
    "softmax-padded": (softmax([3, 13], 1), "LOOP 1 0, PADTO 1 16, UPCAST 1 4, PADTO 2 16", "PADTO 1 16, LOOP 1 0, UNROLL 0 13", NONE),
    "softmax-n": (softmax([3, "n"], 1), "LOOP 1 0, UPCAST 0 3", "LOOP 1 0", NONE),
    "layernorm": (layernorm(4, 12), "LOOP 1 4, LOCAL 0 4", "LOOP 1 0, UPCAST 1 4", NONE),
    "attention": (attention(4, 6, 5), "LOCAL 0 2, UPCAST 1 3", "UPCAST 1 3, UNROLL 0 3", NONE),
    "less-its-maximum": (minus_maximum([6, 8], 1), "LOOP 1 2, UPCAST 0 2", "LOOP 1 0, UPCAST 1 8", NONE),
    "less-its-maximum-in-place": (minus_maximum_in_place(), "LOCAL 0 2", "", NONE),
    "tail": (plain_with_a_tail(), "GROUP 0 4, UPCAST 1 2", "LOOP 1 0, UNROLL 0 4", NONE),
    "added-in-place": (added_in_place(), "LOCAL 0 2", "UPCAST 0 2", NONE),
    "a-row-in-place": (row_in_place(), "", "", NONE),
    "gather": (table(rows=20), "UPCAST 1 4, LOCAL 1 4", "UPCAST 1 4", NONE),
    "gather-under-a-reduce": (under_a_reduce("float32"), "PADTO 1 8, GROUP 0 4, UNROLL 1 2", "PADTO 1 8, UNROLL 0 4", NONE),
    "pooled-embedding": (pooled_embedding(), "UPCAST 1 4, GROUP 0 2", "UPCAST 1 4, UNROLL 0 3", NONE),
    "switched-store": (switched([4, 8], "src1 < 3"), "UPCAST 1 4, LOCAL 0 2", "UPCAST 1 4", NONE),
    "windows": (windows(), "UNROLL 0 3, LOCAL 0 4", "UNROLL 0 3, UPCAST 0 4", NONE),
    "blocked": (blocked(), "UPCAST 1 4, LOCAL 0 2", "UPCAST 1 8", NONE),
    "cache-rows": (cache_rows(), "", "", NONE),
    "clipped-mask": (clipped_mask(), "", "", NONE),
    "rows-backwards": (stored([4, 8], strides=[-8, 1], offset=24), "UPCAST 1 4, LOCAL 0 4", "UPCAST 1 4", NONE),
    "narrow-shifts": (shifted("int8"), "LOCAL 0 4", "UPCAST 0 4", NONE),
    "wide-shifts": (shifted("int64"), "UPCAST 0 4", "UPCAST 0 4", NONE),
    "overflowing": (overflowing("int32"), "UNROLL 0 6, UPCAST 0 2", "UNROLL 0 4, UPCAST 0 2", NONE),
    "overflowing-64": (overflowing("int64"), "UNROLL 0 4, GROUP 0 3", "UNROLL 0 0", NONE),
    "overflowing-16": (overflowing("int16"), "UNROLL 0 4, GROUP 0 3", "UNROLL 0 0", NONE),
    "divided": (divided(), "UPCAST 0 4, LOCAL 0 4", "UPCAST 0 4", NONE),
    "bools": (bools(), "GROUP 0 3, UPCAST 0 2", "UNROLL 0 3", NONE),
    "a-prime-of-groups": (prime(), "UNROLL 0 0", "UNROLL 0 0", SMALL_LAUNCH),
    "a-prime-of-groups-with-a-barrier": (prime(), "GROUP 0 3", "", SMALL_LAUNCH),
    "every-op": (Build(), "", "", NONE),
}  # fmt: skip
EVERY_OP = together("int32", ("ADD", "MUL", "NEG", "IDIV", "MOD", "SHL", "SHR", "MULACC")).ast

IMAGES: dict[str, tuple[Build, str]] = {
    "image": (copied("float32"), ""), "image-of-halves": (copied("float16"), ""), "one-channel": (one_channel(), ""),
    "image-sum": (reduced_image(), ""),
}  # fmt: skip


def ast_of(name: str) -> Json:
    """The kernel of a row."""
    return EVERY_OP if name == "every-op" else KERNELS[name][0].ast()
