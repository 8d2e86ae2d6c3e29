"""Metal: its words, and that they are C++ by a header with its types, address spaces and functions; attributes by a list.

What Apple's compiler says of them is not known here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.compiler import compile_kernel
from core.errors import TargetError
from core.request import Request
from core.targets import TARGETS
from core.targets.describe import describe
from tests.core.targets.making import exponentials, maker, masked_sum, sum_of_columns, with_variable
from tests.meaning.build import Build
from tests.meaning.test_ops import DTYPES, GROUPS
from tests.meaning.test_reduces import kinds
from tests.meaning.tiles import matmul
from tests.tools.kernels import KERNELS, ast_of
from tests.tools.metal import complaints

Json = dict[str, Any]
TYPES = tuple(dtype for dtype in DTYPES if dtype != "float64")


made = maker("metal")


def test_a_masked_sum() -> None:
    program = made(masked_sum())

    assert (
        "#include <metal_stdlib>\n"
        "#pragma METAL fp math_mode(safe)\n"
        "using namespace metal;\n"
        "\n"
        "[[max_total_threads_per_threadgroup(1)]] kernel void r_8_3("
        "device float* d0 [[buffer(0)]], device const float* d1 [[buffer(1)]], uint3 gid [[threadgroup_position_in_grid]]) {\n"
        "  int g0 = gid.x;\n"
        "  float a0 = 0.0f;\n"
        "  for (int r0 = 0; r0 < 3; r0++) {\n"
        "    a0 = ((g0 + r0 < 6) ? d1[g0 + r0] : 0.0f) + a0;\n"
        "  }\n"
        "  d0[g0] = a0;\n"
        "}\n"
    ) == program.source
    assert ([8, 1, 1], [1, 1, 1]) == (program.global_size, program.local_size)


def test_a_grouped_sum_shares_aligned_memory() -> None:
    text = made(sum_of_columns(), "UPCAST 0 4, GROUP 0 16").source

    assert "  alignas(16) threadgroup float s0[64];\n" in text
    assert "  *((threadgroup float4*)(s0 + l0*4)) = float4(a0, a1, a2, a3);\n" in text
    assert "  threadgroup_barrier(mem_flags::mem_threadgroup);\n" in text
    assert "d1 [[buffer(1)]], uint3 lid [[thread_position_in_threadgroup]]) {\n" in text


def test_without_locals_the_runtime_chooses_the_group() -> None:
    program = made(exponentials(), "NOLOCALS")

    assert "\nkernel void " in program.source
    assert "[[buffer(1)]], uint3 tid [[thread_position_in_grid]]) {\n  int g0 = tid.x;\n" in program.source
    assert program.local_size is None


def test_variables_follow_the_buffers() -> None:
    k = Build(n=(1, 8))
    text = made(k.store(k.load("int32", ["n"], [1])).ast()).source

    assert "device const int* d1 [[buffer(1)]], constant int& n [[buffer(2)]], uint3 gid" in text


def test_arithmetic_is_not_taken_for_finite_unless_that_is_asked_for() -> None:
    k = Build()
    x = k.load("float32", [8])
    ast = k.store(x.exp2().maximum(x)).ast()
    k = Build()
    integers = made(k.store(k.load("int32", [8])).ast()).source

    exact, quick = made(ast).source, made(ast, fast_math=True).source

    assert ("#pragma METAL fp math_mode(safe)" in exact, "precise::exp2(" in exact) == (True, True)
    assert ("#pragma" in quick, "fast::exp2(" in quick, "fast::fmax(" in quick) == (False, True, True)
    assert "#pragma" not in integers


def test_names_that_mean_something_are_no_arguments() -> None:
    for name in ("kernel", "device", "threadgroup", "gid", "lid", "float4", "half8x8", "simdgroup_x", "bfloat", "precise", "exp2"):
        assert f"constant int& arg_{name} [[" in made(with_variable(name)).source


def test_what_the_language_has_not_is_refused_by_name() -> None:
    k = Build()
    image = k.store(k.load("float32", [4, 4], image=[1, 4, 4]), image=[1, 4, 4], storage="float32").ast()
    k = Build()
    double = k.store(k.load("float64", [4])).ast()

    with pytest.raises(TargetError, match="images"):
        made(image)
    with pytest.raises(TargetError, match="float64"):
        made(double)
    with pytest.raises(TargetError, match="float64"):
        made(double, float64=True)


@pytest.mark.parametrize("device", [{"target": "metal"}, {"target": "opencl", "float64": False}, {"target": "wgsl"}])
def test_a_double_that_nothing_reads_is_refused_too(device: Json) -> None:
    k = Build()
    ast = k.store(k.load("float64", [8]).cast("bool").op("AND", k.const(False, "bool", [8]))).ast()

    with pytest.raises(TargetError, match="float64"):
        compile_kernel(Request.from_json({"ast": ast, "device": device}))


@pytest.mark.parametrize("target", ["c", "cuda", "hip", "metal", "ptx", "wgsl", "llvm"])
def test_an_image_that_nothing_reads_is_refused_too(target: str) -> None:
    k = Build()
    x = k.load("float32", [4, 4], image=[1, 4, 4])
    ast = k.store(x.differs(x).op("AND", k.const(False, "bool", [4, 4]))).ast()

    with pytest.raises(TargetError, match="images"):
        compile_kernel(Request.from_json({"ast": ast, "device": {"target": target}}))


def test_a_kernel_has_as_many_arguments_as_the_table_has_entries() -> None:
    def copies(count: int) -> Json:
        k = Build()
        total = k.load("float32", [4])
        for _ in range(count - 2):
            total = total + k.load("float32", [4])
        return k.store(total).ast()

    assert "[[buffer(30)]]" in made(copies(31)).source
    with pytest.raises(TargetError, match="more than 31 buffers and variables"):
        made(copies(32))


def test_places_beyond_two_gigabytes_have_64_bits() -> None:
    k = Build()
    program = made(k.store(k.load("float32", [70000, 40000])).ast())

    assert "  long g0 = gid.x;\n  d0[g0] = d1[g0];\n" in program.source
    assert {} == complaints({"large": program})


def test_what_the_target_says_of_itself() -> None:
    said = describe(TARGETS["metal"])

    assert [("float32", "float32"), ("float16", "float32"), ("float16", "float16")] == [
        (core["in"], core["acc"])
        for core in said["tensor_cores"]  # type: ignore[attr-defined]
    ]
    assert "float64" not in said["dtypes"]  # type: ignore[operator]
    assert (False, False, ["bfloat16"]) == (said["called"], said["images"], said["emulated"])
    assert "NaN and infinities" in said["promises"][0]  # type: ignore[index]


# ---- accepted by the header ----------------------------------------------------------------------------------------------------


def test_every_op_of_every_dtype_is_in_order() -> None:
    programs = {name: made(case.ast, None) for name, case in GROUPS.items() if "float64" not in name}
    programs |= {f"reduces of {d}": made(kinds(d, [6, 32], (1,)).ast(), "GROUP 0 8, UNROLL 1 2") for d in TYPES}

    assert {} == complaints(programs)


def test_every_kind_of_kernel_is_in_order() -> None:
    rows = {name: row for name, row in KERNELS.items() if "float64" not in str(ast_of(name))}

    assert {} == complaints({name: made(ast_of(name), row[1], **row[3]) for name, row in rows.items()})


def test_vectors_and_constants_of_every_dtype_are_in_order() -> None:
    programs = {}
    for dtype in TYPES:
        special: dict[str, float | bool | str] = {"bool": True, "float16": 65504.0, "bfloat16": "-inf", "float32": "nan"}
        k = Build()
        x = k.load(dtype, [64])
        programs[f"{dtype} copied"] = made(k.store(x.maximum(k.const(special.get(dtype, 100), dtype, [64]))).ast(), "UPCAST 0 4, LOCAL 0 4")
        k = Build()
        programs[f"{dtype} masked"] = made(k.store(k.load(dtype, [32], mask=[[0, 16]])).ast(), "UPCAST 0 4")
        k = Build()
        programs[f"{dtype} loaded"] = made(k.store(k.load(dtype, [8, 4]).max(1)).ast(), "UNROLL 0 4")

    assert {} == complaints(programs)


def test_every_matrix_instruction_is_in_order() -> None:
    programs = {}
    for types in (("float32", "float32"), ("float16", "float32"), ("float16", "float16")):
        for device in ({}, {"float16": False}):
            program = programs[f"{types} {device}"] = made(matmul(16, 16, 16, *types), "TC 0 0, UPCAST 0 2", **device)
            assert "simdgroup_multiply_accumulate(z, x, y, z);" in program.source

    assert {} == complaints(programs)


def test_what_is_out_of_order_is_found() -> None:
    k = Build()
    program = made(k.store(k.load("float32", [64, 8], [1, 64]).sum(0)).ast(), "UPCAST 0 4, GROUP 0 16")

    def said(old: str, new: str) -> str:
        assert old in program.source
        return "".join(complaints({"broken": replace(program, source=program.source.replace(old, new, 1))}).values())

    assert "" == said("d1[", "d1[")
    assert "parameters" in said("threadgroup_position_in_grid", "threadgroup_position")
    assert "buffers" in said("[[buffer(1)]]", "[[buffer(2)]]")
    assert "no kernel function" in said("max_total_threads_per_threadgroup", "max_threads")
    assert "address space" in said("(threadgroup float4*)", "(device float4*)")
    assert "undeclared" in said("gid.x", "g.x")
