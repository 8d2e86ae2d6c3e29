"""LLVM IR: its text, what it needs of whoever compiles it, and where other languages' habits would be wrong."""

from __future__ import annotations

import math
import re
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it says nothing of its types
import numpy as np
import pytest

from core.compiler import compile_kernel
from core.dtypes import BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, INDEX, INT32, UINT64, Number, dtype_named
from core.index import scale, total
from core.ir.op import Op
from core.ir.value import alu, constant, make
from core.render.llvm_words import literal
from core.request import Request
from tests.core.render.building import LLVM, as_type, below, load, loop, param, point, program, register, store, updated, variable
from tests.core.render.running import Run, run
from tests.meaning.build import Build

Json = dict[str, Any]
LIBRARY = frozenset(("exp2", "exp2f", "log2", "log2f", "sin", "sinf"))


def text(k: Build, optimize: object = "none", annotate: bool = False, **device: object) -> str:
    body: Json = {"ast": k.ast(), "device": {"target": "llvm", **device}, "optimize": optimize, "annotate": annotate}
    return compile_kernel(Request.from_json(body)).source


def test_a_masked_sum_is_written_in_blocks_and_phis() -> None:
    """Both loops have a turn at least, so they are tested at their end; what the gate closes off stands in a block of its own."""
    out, data = param(0, FLOAT32, "write"), param(1, FLOAT32, "read")
    i, r = point(LLVM, 8), loop(3)
    at = total((i, r))
    acc = register(FLOAT32, 0, r)
    sums = updated(acc, alu(Op.ADD, load(data, at, gate=below(at, 6)), acc))
    built = program(LLVM, (store(out, i, sums),), (out, data), "sums")

    assert built.source.splitlines() == [
        "define void @sums(ptr noalias writeonly %d0, ptr noalias readonly %d1) nounwind {",
        "entry:",
        "  br label %loop0",
        "loop0:",
        "  %r0 = phi i32 [ 0, %entry ], [ %r0.next, %done1 ]",
        "  br label %loop1",
        "loop1:",
        "  %r1 = phi i32 [ 0, %loop0 ], [ %r1.next, %loaded0 ]",
        "  %a0 = phi float [ 0.0, %loop0 ], [ %v2, %loaded0 ]",
        "  %i0 = add nsw i32 %r1, %r0",
        "  %c0 = icmp slt i32 %i0, 6",
        "  %i1 = sext i32 %i0 to i64",
        "  br i1 %c0, label %load0, label %loaded0",
        "load0:",
        "  %p0 = getelementptr inbounds float, ptr %d1, i64 %i1",
        "  %v0 = load float, ptr %p0, align 4",
        "  br label %loaded0",
        "loaded0:",
        "  %v1 = phi float [ %v0, %load0 ], [ 0.0, %loop1 ]",
        "  %v2 = fadd float %v1, %a0",
        "  %r1.next = add nuw nsw i32 %r1, 1",
        "  %r1.more = icmp slt i32 %r1.next, 3",
        "  br i1 %r1.more, label %loop1, label %done1",
        "done1:",
        "  %i2 = sext i32 %r0 to i64",
        "  %p1 = getelementptr inbounds float, ptr %d0, i64 %i2",
        "  store float %v2, ptr %p1, align 4",
        "  %r0.next = add nuw nsw i32 %r0, 1",
        "  %r0.more = icmp slt i32 %r0.next, 8",
        "  br i1 %r0.more, label %loop0, label %done0",
        "done0:",
        "  ret void",
        "}",
    ]
    got = run([Run(built, (np.zeros(8, np.float32), np.arange(1, 7, dtype=np.float32)))])[0][0]
    assert [6, 9, 12, 15, 11, 6, 0, 0] == got.tolist()


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_register_leaves_loops_that_may_have_no_turn(turns: int) -> None:
    out, data = param(0, INT32, "write"), param(1, INT32, "read")
    i, n = point(LLVM, 4), variable("n", 0, 5)
    outer = make(Op.RANGE, INDEX, (n,), (0, "reduce"), 1, (0, 4))
    inner = make(Op.RANGE, INDEX, (n,), (1, "reduce"), 1, (0, 4))
    acc = register(INT32, 7, outer, inner)
    x = load(data, total((scale(i, 25), scale(outer, 5), inner)))
    built = program(LLVM, (store(out, i, updated(acc, alu(Op.ADD, x, acc))),), (out, data), variables=(("n", 0, 5),))
    values = np.arange(100, dtype=np.int32)
    got = run([Run(built, (np.zeros(4, np.int32), values), integers=(turns,))])[0][0]

    assert (7 + values.reshape(4, 5, 5)[:, :turns, :turns].sum(axis=(1, 2))).tolist() == got.tolist()


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (True, "bool", "true"), (-128, "int8", "-128"), (2**64 - 1, "uint64", "18446744073709551615"), (-(2**63), "int64", str(-(2**63))),
        (0.5, "float32", "0.5"), (-0.0, "float32", "-0.0"), (dtype_named("float32").round(0.1), "float32", "0x3FB99999A0000000"),
        (2.0**-149, "float32", "0x36A0000000000000"), (math.inf, "float32", "0x7FF0000000000000"),
        (math.nan, "float32", "0x7FF8000000000000"),
        (-math.inf, "float64", "0xFFF0000000000000"), (0.1, "float64", "0x3FB999999999999A"), (65504.0, "float16", "65504.0"),
        (2.0**-24, "float16", "0xH0001"), (-math.inf, "float16", "0xHFC00"), (math.nan, "float16", "0xH7E00"),
    ],
)  # fmt: skip
def test_constants_keep_every_bit(number: Number, dtype: str, expected: str) -> None:
    assert expected == literal(number, dtype_named(dtype), as_bits=False)


def test_names_of_variables_do_not_meet_ours() -> None:
    k = Build()
    names = ("entry", "r0", "loop1", "arg_r0", "loads")
    out, i = param(0, INT32, "write"), point(LLVM, 1)
    held = [(name, 0, 9) for name in sorted(names)]
    sums = total([variable(*each) for each in held])
    built = program(LLVM, (store(out, i, as_type(Op.CAST, sums, INT32)),), (out,), variables=tuple(held))

    assert "i32 %arg_arg_r0, i32 %arg_entry, i32 %loads, i32 %arg_loop1, i32 %arg_r0)" in built.source
    assert [[15]] == [run([Run(built, (np.zeros(1, np.int32),), integers=(1, 2, 3, 4, 5))])[0][0].tolist()]
    assert k.ast()["variables"] == []


def every_conversion() -> Build:
    """All types from all types, each function, a sum and a greatest element."""
    k = Build()
    for source in DTYPES:
        x = k.load(source, [4])
        for dtype in DTYPES:
            k.store(x.cast(dtype))
        if DTYPES[source].is_float:
            for op in ("EXP2", "LOG2", "SIN", "SQRT", "RECIP"):
                k.store(x.op(op))
            k.store(x.maximum(x * x + x))
    return k


@pytest.mark.parametrize(
    ("triple", "features", "device"),
    [
        ("x86_64-unknown-linux-gnu", "", {"float16": False}),
        ("x86_64-unknown-linux-gnu", "+avx2,+f16c", {}),
        ("x86_64-unknown-linux-gnu", "+avx2,+f16c", {"supports_float4": True}),
        ("aarch64-unknown-linux-gnu", "", {}),
        ("aarch64-unknown-linux-gnu", "", {"float16": False}),
    ],
)
def test_a_text_calls_nothing_but_the_mathematical_library(triple: str, features: str, device: Json) -> None:
    """Not even the compiler's own runtime, which a JIT may not find: a double goes to a half by way of a float that is rounded to odd."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text(every_conversion(), **device))
    module.verify()
    assembly = llvm.Target.from_triple(triple).create_target_machine(features=features, codemodel="default").emit_assembly(module)
    called = {name.removesuffix("@PLT") for name in re.findall(r"^\s+(?:callq?|jmp|bl?)\s+([A-Za-z_][\w@]*)", assembly, re.MULTILINE)}

    assert LIBRARY == {name for name in called if not re.match(r"half_|bfloat_|round_", name)}


def test_fast_math_says_what_each_operation_allows() -> None:
    """Infinities and NaN may come up all the same: masks are made of them."""
    k = Build()
    x, y = k.load("float32", [4, 64]), k.load("float32", [4, 64])
    k.store(((x * y).sum(1)) * 3.0)
    strict, fast = text(k), text(k, fast_math=True)

    assert not re.search(r"\b(nsz|arcp|contract|afn|reassoc|nnan|ninf|fast)\b", strict)
    assert not re.search(r"\b(nnan|ninf|fast)\b", fast)
    assert re.search(r"fadd reassoc nsz arcp contract afn float %a0, %v\d+", fast)
    assert ["fmul nsz arcp contract afn float"] * 2 == re.findall(r"fmul [a-z ]*float", fast)


def test_comments_name_the_nodes_and_nothing_else_differs() -> None:
    k = Build()
    k.store((k.load("float32", [8, 16]) * 2.0).sum(1))
    plain, annotated = text(k), text(k, annotate=True)

    assert plain == re.sub(r" ; [\d ]+$", "", annotated, flags=re.MULTILINE)
    assert re.search(r"load float, ptr %p0, align 4 ; 0$", annotated, re.MULTILINE)


@pytest.mark.parametrize(("alignment", "said"), [(16, 16), (8, 4), (128, 16)])
def test_a_vector_counts_on_no_more_alignment_than_its_buffer_has(alignment: int, said: int) -> None:
    out, a = param(0, FLOAT32, "write", alignment=alignment), param(1, FLOAT32, "read", alignment=alignment)
    i = scale(point(LLVM, 4), 4)
    built = program(LLVM, (store(out, i, load(a, i, lanes=4)),), (out, a))

    assert f"load <4 x float>, ptr %p0, align {said}" in built.source
    assert f"store <4 x float> %v0, ptr %p1, align {said}" in built.source


def test_what_wraps_and_what_is_out_of_range_is_never_undefined() -> None:
    """An optimiser takes poison for whatever suits it: only indices promise not to overflow, and each shift is by less than its width."""
    k = Build()
    x, y = k.load("int32", [8]), k.load("int32", [8])
    k.store(x * y + x)
    k.store(x.op("SHL", y))
    k.store(x.op("IDIV", y))
    k.store(k.load("float32", [8]).cast("int32"))
    source = text(k)

    assert "mul i32 %v" in source
    assert not re.search(r"nsw i32 %v", source)
    assert re.search(r"= and i32 %v\d+, 31\n  %v\d+ = shl i32 ", source)
    assert "call i32 @llvm.fptosi.sat.i32.f32(float" in source
    assert "fptosi " not in source


@pytest.mark.parametrize("level", ["plain", "passes"])
def test_a_nan_is_neither_less_nor_equal_and_wins_every_maximum(level: str) -> None:
    from tests.core.render.running import CHECKED, FAST

    values = [math.nan, 1.0, -math.inf]
    below_, differs, greatest = (param(n, d, "write") for n, d in enumerate((BOOL, BOOL, FLOAT64)))
    a = param(3, FLOAT64, "read")
    i = point(LLVM, 3)
    x, one = load(a, i), constant(1.0, FLOAT64)
    stores = (
        store(below_, i, alu(Op.CMPLT, x, constant(2.0, FLOAT64))),
        store(differs, i, alu(Op.CMPNE, x, x)),
        store(greatest, i, alu(Op.MAX, one, x)),
    )
    built = program(LLVM, stores, (below_, differs, greatest, a))
    arrays = (np.zeros(3, np.uint8), np.zeros(3, np.uint8), np.zeros(3), np.array(values))
    got = run([Run(built, arrays)], FAST if level == "passes" else CHECKED)[0]

    assert [[0, 1, 1], [1, 0, 0]] == [b.tolist() for b in got[:2]]
    assert math.isnan(got[2][0])
    assert [1.0, 1.0] == got[2][1:].tolist()


def test_wide_integers_become_halves_with_one_rounding() -> None:
    """Exactly in between two halves, and one beside it: by way of a float that is rounded, all would be alike."""
    values = [2049, 2051, 65519, 65520, 2**63, 2**24 + 1]
    out, a = param(0, FLOAT16, "write"), param(1, UINT64, "read")
    i = point(LLVM, len(values))
    built = program(LLVM, (store(out, i, as_type(Op.CAST, load(a, i), FLOAT16)),), (out, a))
    got = run([Run(built, (np.zeros(len(values), np.float16), np.array(values, np.uint64)))])[0][0]

    assert [FLOAT16.round(n) for n in values] == got.tolist()
