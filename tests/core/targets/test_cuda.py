"""CUDA: its words, and that NVIDIA's compiler takes them without a warning, for every kind of kernel and several architectures."""

from __future__ import annotations

from typing import Any

import pytest

from core.compiler import compile_kernel
from core.program import Program
from core.request import Request
from core.targets import TARGETS
from core.targets.describe import describe
from tests.core.targets.making import exponentials, maker, masked_sum, sum_of_columns, with_variable
from tests.meaning.build import Build
from tests.meaning.test_ops import DTYPES, GROUPS
from tests.meaning.test_reduces import kinds
from tests.meaning.tiles import matmul
from tests.tools.cuda.nvrtc import compiled
from tests.tools.kernels import KERNELS, ast_of

Json = dict[str, Any]
ARCHES = ("sm_75", "sm_80", "sm_90", "sm_120")


made = maker("cuda")


def test_a_masked_sum() -> None:
    program = made(masked_sum())

    assert (
        'extern "C" __global__ void __launch_bounds__(1) r_8_3(float* __restrict__ d0, const float* __restrict__ d1) {\n'
        "  int g0 = blockIdx.x;\n"
        "  float a0 = 0.0f;\n"
        "  for (int r0 = 0; r0 < 3; r0++) {\n"
        "    a0 = ((g0 + r0 < 6) ? d1[g0 + r0] : 0.0f) + a0;\n"
        "  }\n"
        "  d0[g0] = a0;\n"
        "}\n"
    ) == program.source
    assert ([8, 1, 1], [1, 1, 1]) == (program.global_size, program.local_size)


def test_a_tile_of_a_product_is_one_instruction() -> None:
    """The fragments of `mma.m16n8k16` are pairs of neighbours where the operand has them; the result is stored as it lies."""
    text = made(matmul(16, 8, 32), "TC 0 0").source
    a, b = (
        "make_half8(v0.x, v0.y, v1.x, v1.y, v2.x, v2.y, v3.x, v3.y)",
        ", ".join(f"d2[r0*128 + l0*16 + l1{more}]" for more in ("", " + 8", " + 64", " + 72")),
    )

    assert "    half2 v1 = *((const half2*)(d1 + (l1*32 + r0*16 + l0*2 + 256)));\n" in text
    assert f"    a0 = mma_m16n8k16_f16({a}, make_half4({b}), a0);\n" in text
    assert "  *((float2*)(d0 + (l1*8 + l0*2 + 64))) = make_float2(a0.z, a0.w);\n" in text
    assert '"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"' in text


def test_a_grouped_sum_shares_aligned_memory() -> None:
    text = made(sum_of_columns(), "UPCAST 0 4, GROUP 0 16").source

    assert "  __shared__ __align__(16) float s0[64];\n" in text
    assert "  __syncthreads();\n" in text
    assert "__launch_bounds__(16) " in text


def test_without_locals_the_runtime_chooses_the_block() -> None:
    program = made(exponentials(), "NOLOCALS")

    assert "int g0 = (long long)blockIdx.x*blockDim.x + threadIdx.x;" in program.source
    assert "__launch_bounds__" not in program.source
    assert program.local_size is None


def test_headers_only_where_a_program_has_16_bit_floats() -> None:
    def header(dtype: str, **device: Any) -> list[str]:
        k = Build()
        x = k.load(dtype, [8])
        return [line for line in made(k.store(x + x.exp2()).ast(), **device).source.splitlines() if line.startswith("#include")]

    assert [] == header("float32")
    assert ["#include <cuda_fp16.h>"] == header("float16")
    assert ["#include <cuda_fp16.h>"] == header("float16", float16=False)
    assert ["#include <cuda_bf16.h>"] == header("bfloat16")


def test_where_lines_come_from_is_said_when_asked() -> None:
    k = Build()
    body: Json = {"ast": k.store(k.load("float32", [8]).exp2()).ast(), "device": {"target": "cuda"}, "annotate": True, "optimize": "none"}

    assert "  d0[g0] = exp2f(d1[g0]); /* 0 1 2 */\n" in compile_kernel(Request.from_json(body)).source


def test_names_that_mean_something_are_no_arguments() -> None:
    for name in ("blockIdx", "threadIdx", "float4", "make_float4", "half2", "mma_x", "exp2f", "mutable"):
        text = made(with_variable(name)).source
        assert f"const int arg_{name})" in text


def test_what_the_target_says_of_itself() -> None:
    said = describe(TARGETS["cuda"])

    assert [
        {"dims": [16, 8, 16], "in": "float16", "acc": "float32"}, {"dims": [16, 8, 16], "in": "bfloat16", "acc": "float32"},
        {"dims": [16, 8, 8], "in": "float16", "acc": "float32"},
    ] == said["tensor_cores"]  # fmt: skip
    assert {"sm_75", "sm_80", "sm_90", "sm_120"} <= set(said["architectures"])  # type: ignore[call-overload]
    assert (False, False, ["bfloat16"]) == (said["called"], said["images"], said["emulated"])


# ---- accepted by the compiler --------------------------------------------------------------------------------------------------


def refused(programs: dict[str, Program], arch: str) -> dict[str, str]:
    """What the compiler says of each text it does not take in silence."""
    found = {name: compiled(program.source, arch) for name, program in programs.items()}
    return {name: done.log or "refused" for name, done in found.items() if not done.is_clean}


@pytest.mark.parametrize("arch", ARCHES)
def test_the_compiler_takes_every_op_of_every_dtype(arch: str) -> None:
    programs = {name: made(case.ast, None, arch=arch) for name, case in list(GROUPS.items())[ARCHES.index(arch) :: 2]}
    programs |= {
        f"reduces of {d}": made(kinds(d, [6, 32], (1,)).ast(), "GROUP 0 8, UNROLL 1 2", arch=arch) for d in DTYPES[ARCHES.index(arch) :: 4]
    }

    assert {} == refused(programs, arch)


def test_a_negative_factor_of_a_product_that_wraps_changes_its_sign_explicitly() -> None:
    programs = {}
    for dtype in ("int32", "int64"):
        k = Build()
        programs[dtype] = made(k.store(k.load(dtype, [8]) * -3 + -5).ast())

    assert "d0[g0] = (int)((unsigned int)d1[g0]*(unsigned int)-3 - 5);" in programs["int32"].source
    assert {} == refused(programs, "sm_80")


@pytest.mark.parametrize("part", range(4))
def test_the_compiler_takes_every_kind_of_kernel(part: int) -> None:
    programs = {}
    for name in list(KERNELS)[part::4]:
        _, options, _, device = KERNELS[name]
        programs[name] = made(ast_of(name), options, **device)

    assert {} == refused(programs, ARCHES[part])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_compiler_takes_vectors_and_constants_of_every_dtype(dtype: str) -> None:
    k = Build()
    x = k.load(dtype, [64])
    special: dict[str, float | bool | str] = {"bool": True, "float16": 65504.0, "bfloat16": "-inf"}
    ends = k.const(special.get(dtype, 100), dtype, [64])
    programs = {"copied": made(k.store(x.maximum(ends)).ast(), "UPCAST 0 4, LOCAL 0 4")}
    k = Build()
    programs["masked"] = made(k.store(k.load(dtype, [32], mask=[[0, 16]])).ast(), "UPCAST 0 4")
    k = Build()
    programs["only loaded"] = made(k.store(k.load(dtype, [8, 4]).max(1)).ast(), "UNROLL 0 4")

    assert {} == refused(programs, "sm_80")
    assert "4*)" in programs["masked"].source or dtype in ("int64", "uint64", "float64")


TILES: dict[str, tuple[Json, str, str, Json]] = {
    "half": (matmul(64, 32, 64), "TC 0 0, UPCAST 0 2, UNROLL 0 2", "sm_80", {}),
    "half, padded": (matmul(17, 9, 17), "TC 0 2", "sm_90", {}),
    "half on Turing": (matmul(32, 16, 32), "TC 0 0", "sm_75", {}),
    "half kept as bits": (matmul(32, 16, 32), "TC 0 0", "sm_120", {"float16": False}),
    "half of depth 8": (matmul(32, 16, 24), "TC 0 0", "sm_80", {}),
    "bfloat": (matmul(32, 16, 32, "bfloat16"), "TC 0 0, UNROLL 0 0", "sm_80", {}),
    "bfloat, padded": (matmul(31, 15, 31, "bfloat16"), "TC 0 2, LOCAL 1 2", "sm_120", {}),
    "tf32": (matmul(32, 16, 16, "float32", "float32"), "TC 0 0, UPCAST 0 2", "sm_80", {"fast_math": True}),
}


@pytest.mark.parametrize(("ast", "options", "arch", "device"), TILES.values(), ids=TILES)
def test_the_compiler_takes_every_matrix_instruction(ast: Json, options: str, arch: str, device: Json) -> None:
    program = made(ast, options, arch=arch, **device)

    assert "mma.sync" in program.source
    assert {} == refused({"tile": program}, arch)


def test_a_negative_constant_is_subtracted() -> None:
    programs = {d: made(k.store(k.load(d, [8]) + -3).ast()) for d in ("int8", "int32", "int64") for k in (Build(),)}

    assert "  d0[g0] = (int)((unsigned int)d1[g0] - 3);\n" in programs["int32"].source
    assert {} == refused(programs, "sm_80")
