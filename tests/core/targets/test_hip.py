"""HIP: its words, and that clang takes them without a warning, for every kind of kernel and each generation of matrix instructions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from core.targets import TARGETS
from core.targets.describe import describe
from tests.core.targets.making import exponentials, maker, masked_sum, sum_of_columns, with_variable
from tests.meaning.build import Build
from tests.meaning.test_ops import DTYPES, GROUPS
from tests.meaning.test_reduces import kinds
from tests.meaning.tiles import matmul
from tests.tools.amdgpu import compiled, complaints
from tests.tools.kernels import KERNELS, ast_of

Json = dict[str, Any]
ARCHES = ("gfx90a", "gfx942", "gfx1100")


made = maker("hip")


def test_a_masked_sum() -> None:
    program = made(masked_sum())

    assert (
        'extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 1))) '
        "void r_8_3(float* __restrict__ d0, const float* __restrict__ d1) {\n"
        "  int g0 = __builtin_amdgcn_workgroup_id_x();\n"
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

    assert "  __attribute__((shared, aligned(16))) float s0[64];\n" in text
    assert "  *((floatx4*)(s0 + l0*4)) = make_floatx4(a0, a1, a2, a3);\n  barrier();\n" in text
    assert "amdgpu_flat_work_group_size(1, 16)" in text
    assert ["#define barrier() "] == re.findall(r"^#\w+ \w+\(\) ", text, re.MULTILINE)


def test_without_locals_the_runtime_chooses_the_group() -> None:
    program = made(exponentials(), "NOLOCALS")

    x = "__builtin_amdgcn_workgroup_id_x()*__builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x()"
    assert f"int g0 = (long long){x};" in program.source
    assert "amdgpu_flat_work_group_size" not in program.source
    assert program.local_size is None


def test_nothing_is_declared_that_is_not_used() -> None:
    k = Build()
    x = k.load("float32", [8])

    assert made(k.store(x + x).ast()).source.startswith('extern "C" __attribute__((global')
    declared = 'extern "C" __attribute__((device, const)) float __ocml_sin_f32(float);\n'
    assert made(k.store(x.op("SIN")).ast()).source.startswith(declared)


def test_quick_functions_are_asked_for() -> None:
    k = Build()
    x = k.load("float32", [8])
    ast = k.store(x.op("SIN")).store(x.op("LOG2").maximum(x)).store(x.sqrt().recip() + x.exp2()).ast()

    exact, quick = made(ast), made(ast, fast_math=True)

    assert ["__builtin_exp2f", "__builtin_log2f", "__builtin_sqrtf"] == sorted(set(re.findall(r"__builtin_\w+f\b", exact.source)))
    words = {"exp2f", "logf", "sqrtf", "rcpf"}
    assert {f"__builtin_amdgcn_{word}" for word in words} | {"__builtin_sinf", "__builtin_fmaxf"} == set(
        re.findall(r"__builtin_\w+f\b", quick.source)
    )
    assert {} == complaints({"quick": quick}, "gfx942")


def test_names_that_mean_something_are_no_arguments() -> None:
    for name in ("blockIdx", "threadIdx", "floatx4", "make_floatx4", "halfx2", "mfma_x", "barrier", "mutable"):
        text = made(with_variable(name)).source
        assert f"const int arg_{name})" in text


def test_the_greatest_integers_are_compared_as_integers() -> None:
    """M 195: exact beyond 2**24."""
    k = Build()
    text = made(k.store(k.load("int32", [64]).max(0)).ast()).source

    assert "fmax" not in text
    assert "(-2147483647 - 1)" in text


def test_places_beyond_two_gigabytes_have_64_bits() -> None:
    k = Build()
    program = made(k.store(k.load("float32", [40000, 70000], [1, 40000])).ast())

    assert "(long long)g" in program.source
    assert {} == complaints({"large": program}, "gfx90a")


def test_what_the_target_says_of_itself() -> None:
    said = describe(TARGETS["hip"])

    assert [
        {"dims": [16, 16, 16], "in": "float16", "acc": "float32"}, {"dims": [16, 16, 16], "in": "float16", "acc": "float16"},
    ] == said["tensor_cores"]  # fmt: skip
    assert {"gfx90a", "gfx942", "gfx1100"} <= set(said["architectures"])  # type: ignore[call-overload]
    assert (False, False, ["bfloat16"]) == (said["called"], said["images"], said["emulated"])


# ---- accepted by the compiler --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
def test_the_compiler_takes_every_op_of_every_dtype(arch: str) -> None:
    programs = {name: made(case.ast, None, arch=arch) for name, case in list(GROUPS.items())[ARCHES.index(arch) :: 3]}
    programs |= {
        f"reduces of {d}": made(kinds(d, [6, 32], (1,)).ast(), "GROUP 0 8, UNROLL 1 2", arch=arch) for d in DTYPES[ARCHES.index(arch) :: 3]
    }

    assert {} == complaints(programs, arch)


@pytest.mark.parametrize("arch", ARCHES)
def test_the_compiler_takes_every_kind_of_kernel(arch: str) -> None:
    programs = {}
    for name in list(KERNELS)[ARCHES.index(arch) :: 3]:
        _, options, _, device = KERNELS[name]
        programs[name] = made(ast_of(name), options, **device)

    assert {} == complaints(programs, arch)


def test_the_compiler_takes_vectors_and_constants_of_every_dtype() -> None:
    programs = {}
    for dtype in DTYPES:
        special: dict[str, float | bool | str] = {"bool": True, "float16": 65504.0, "bfloat16": "-inf", "float32": "nan", "float64": "inf"}
        k = Build()
        x = k.load(dtype, [64])
        programs[f"{dtype} copied"] = made(k.store(x.maximum(k.const(special.get(dtype, 100), dtype, [64]))).ast(), "UPCAST 0 4, LOCAL 0 4")
        k = Build()
        programs[f"{dtype} masked"] = made(k.store(k.load(dtype, [32], mask=[[0, 16]])).ast(), "UPCAST 0 4")
        k = Build()
        programs[f"{dtype} loaded"] = made(k.store(k.load(dtype, [8, 4]).max(1)).ast(), "UNROLL 0 4")

    assert {} == complaints(programs, "gfx1100")


TILES: dict[str, tuple[Json, str, str, Json]] = {
    "wmma_f32_16x16x16_f16": (matmul(64, 32, 64), "TC 0 0, UPCAST 0 2, UNROLL 0 2", "gfx1100", {}),
    "wmma_f16_16x16x16_f16": (matmul(32, 32, 32, "float16", "float16"), "TC 0 0", "gfx1100", {}),
    "wmma_f16_16x16x16_f16 of bits": (matmul(32, 32, 32, "float16", "float16"), "TC 0 0", "gfx1101", {"float16": False}),
    "mfma_f32_16x16x16f16": (matmul(17, 9, 17), "TC 0 2", "gfx90a", {}),
    "mfma_f32_16x16x16_f16 of bits": (matmul(32, 16, 32), "TC 0 0", "gfx942", {"float16": False}),
    "mfma_f32_16x16x16_bf16": (matmul(32, 32, 32, "bfloat16"), "TC 0 0, UNROLL 0 0", "gfx942", {}),
    "mfma_f32_16x16x16bf16_1k": (matmul(32, 32, 32, "bfloat16"), "TC 0 0", "gfx90a", {}),
    "mfma_f32_16x16x4_f32": (matmul(32, 16, 16, "float32", "float32"), "TC 0 0, UPCAST 0 2", "gfx942", {}),
    "mfma_f32_16x16x4f32": (matmul(31, 15, 15, "float32", "float32"), "TC 0 2", "gfx90a", {}),
}


@pytest.mark.parametrize(("name", "ast", "options", "arch", "device"), [(name, *row) for name, row in TILES.items()], ids=TILES)
def test_the_compiler_makes_a_matrix_instruction_of_each(name: str, ast: Json, options: str, arch: str, device: Json) -> None:
    code, said = compiled(made(ast, options, arch=arch, **device).source, arch)

    assert "" == said
    assert f"v_{name.split()[0]}" in code
