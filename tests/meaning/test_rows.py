"""Whole rows in one kernel: softmax, layernorm, attention, outputs over an axis they reduced (acceptance N 258-267, G 145, L 220)."""

from __future__ import annotations

from tests.meaning.build import Build, Term
from tests.meaning.cases import Case, each, plain, special, symbolic

LOG2_E = 1.4426950408889634


def exponentials(x: Term, *axes: int) -> Term:
    return ((x - x.max(*axes)) * LOG2_E).exp2()


def softmax(shape: list[int | str], *axes: int, dtype: str = "float32", mask: list[list[int | str]] | None = None) -> Build:
    k = Build(n=(0, 40))
    e = exponentials(k.load(dtype, shape, mask=mask), *axes)
    return k.store(e * e.sum(*axes).recip())


def log_softmax() -> Build:
    k = Build()
    x = k.load("float32", [4, 11])
    shifted = x - x.max(1)
    return k.store(shifted - (shifted * LOG2_E).exp2().sum(1).op("LOG2") * 0.6931471805599453)


def layernorm(rows: int, width: int, dtype: str = "float32") -> Build:
    k = Build()
    x, scale, shift = k.load(dtype, [rows, width]), k.load(dtype, [1, width]), k.load(dtype, [1, width])
    centred = x - x.sum(1) * (1 / width)
    variance = (centred * centred).sum(1) * (1 / width)
    return k.store(centred * (variance + 1e-5).sqrt().recip() * scale + shift)


def attention(queries: int, keys: int, depth: int, *, causal: bool = False) -> Build:
    """Scores, softmax and the weighted sum in one kernel: axes query, key, depth, value."""
    k = Build()
    values = 3
    q = k.index("float32", [queries, keys, depth, 1], f"axis0*{depth} + axis2")
    key = k.index("float32", [queries, keys, depth, 1], f"axis1*{depth} + axis2")
    v = k.index("float32", [queries, keys, 1, values], f"axis1*{values} + axis3")
    scores = (q * key).sum(2) * 0.5
    if causal:
        later = k.ramp("axis1 - axis0", "int32", [queries, keys, 1, 1])
        scores = (k.const(0, "int32", [1, 1, 1, 1]) < later).where(k.const("-inf", "float32", [1, 1, 1, 1]), scores)
    e = exponentials(scores, 1)
    return k.store((e * e.sum(1).recip() * v).sum(1))


def minus_maximum(shape: list[int | str], *axes: int, dtype: str = "float32") -> Build:
    k = Build(n=(0, 40))
    x = k.load(dtype, shape)
    return k.store(x - x.max(*axes))


def two_outputs() -> Build:
    """N 266."""
    k = Build()
    x = k.load("float32", [4, 9])
    shifted = x - x.max(1)
    return k.store(shifted).store(shifted.exp2())


def merged_axes() -> Build:
    """N 267."""
    k = Build()
    e = exponentials(k.load("float32", [5, 8, 4]), 1, 2)
    return k.store(e * e.sum(1, 2).recip())


def plain_with_a_tail() -> Build:
    """N 263: out[i, j] = sum over k of a[i, k], plus b[i, j]."""
    k = Build()
    return k.store(k.load("float32", [4, 1, 8]).sum(2) + k.load("float32", [4, 6, 1]))


def normalised() -> Build:
    """L 220."""
    k = Build()
    x = k.load("float32", [6, 20])
    return k.store(x * ((x * x).sum(1) * 0.05 + 1e-6).sqrt().recip() * k.load("float32", [1, 20]))


def rotary() -> Build:
    k = Build(start=(0, 80))
    x = k.load("float32", [4, 6], [12, 2])
    y = k.load("float32", [4, 6], [12, 2], offset=1, buffer="in0")
    cos, sin = k.load("float32", [1, 6], [0, 1], offset="start*6"), k.load("float32", [1, 6], [0, 1], offset="start*6")
    return k.store(x * cos - y * sin, [4, 6], [12, 2]).store(x * sin + y * cos, [4, 6], [12, 2])


ROWS = {
    "softmax-5-8": softmax([5, 8], 1),
    "softmax-1-13": softmax([1, 13], 1),
    "softmax-rows-of-one": softmax([5, 1], 1),
    "softmax-first-axis": softmax([6, 7], 0),
    "softmax-both-axes": softmax([3, 5], 0, 1),
    "softmax-one-row": softmax([16], 0),
    "softmax-512": softmax([2, 512], 1),
    "softmax-float16": softmax([4, 13], 1, dtype="float16"),
    "softmax-bfloat16": softmax([4, 13], 1, dtype="bfloat16"),
    "softmax-float64": softmax([4, 13], 1, dtype="float64"),
    "softmax-masked": softmax([4, 13], 1, mask=[[0, 4], [2, 11]]),
    "log-softmax": log_softmax(),
    "layernorm": layernorm(4, 12),
    "layernorm-float16": layernorm(3, 16, "float16"),
    "layernorm-one-column": layernorm(3, 1),
    "attention": attention(4, 6, 5),
    "attention-causal": attention(5, 5, 4, causal=True),
    "minus-maximum": minus_maximum([5, 8], 1),
    "minus-maximum-int32": minus_maximum([5, 8], 1, dtype="int32"),
    "minus-maximum-of-all": minus_maximum([5, 8], 0, 1),
    "two-outputs": two_outputs(),
    "merged-axes": merged_axes(),
    "plain-with-a-tail": plain_with_a_tail(),
    "normalised": normalised(),
}


@each({name: plain(build) for name, build in ROWS.items()})
def test_rows_come_out_whole(case: Case, target: str) -> None:
    case.holds(target)


@each(
    {
        "softmax-n": symbolic(softmax([3, "n"], 1)), "softmax-n-rows": symbolic(softmax(["n", 5], 1)),
        "minus-maximum-n": symbolic(minus_maximum(["n", 4], 0)), "rotary": symbolic(rotary()),
    }
)  # fmt: skip
def test_rows_of_a_length_known_at_launch(case: Case, target: str) -> None:
    """N 262: of nothing too."""
    case.holds(target)


@each({f"softmax-{dtype}": special(softmax([6, 9], 1, dtype=dtype), (0, 1)) for dtype in ("float16", "float32")})
def test_rows_with_special_values(case: Case, target: str) -> None:
    case.holds(target)
