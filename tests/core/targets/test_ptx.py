"""PTX: its words, and that NVIDIA's assembler takes them in silence, for every kind of kernel and several architectures."""

from __future__ import annotations

from typing import Any

import pytest

from core.compiler import compile_kernel
from core.program import Program
from core.request import Request
from core.targets import TARGETS
from core.targets.defaults import NVIDIA
from core.targets.describe import describe
from tests.core.targets.making import exponentials, maker, masked_sum, sum_of_columns
from tests.core.targets.test_cuda import TILES
from tests.meaning.build import Build
from tests.meaning.test_ops import DTYPES, GROUPS
from tests.meaning.test_reduces import kinds
from tests.meaning.tiles import matmul
from tests.tools.kernels import KERNELS, ast_of
from tests.tools.ptx.assembler import complaints

Json = dict[str, Any]
ASSEMBLED = ("sm_75", "sm_80", "sm_90", "sm_120")
NEWER = ("sm_110",)  # architectures that the assembler of the tests has no name for


made = maker("ptx")


def text(build: Build, options: str | None = "", **device: Any) -> str:
    return made(build.ast(), options, **device).source


def test_a_masked_sum() -> None:
    program = made(masked_sum())

    assert (
        ".version 7.8\n"
        ".target sm_80\n"
        ".address_size 64\n"
        "\n"
        ".visible .entry r_8_3(.param .u64 d0, .param .u64 d1)\n"
        ".maxntid 1, 1, 1\n"
        "{\n"
        "  .reg .b32 %g0, %loop0;\n"
        "  .reg .b64 %d0, %d1;\n"
        "  .reg .f32 %a0;\n"
        "  .reg .pred %p<2>;\n"
        "  .reg .b32 %r<1>;\n"
        "  .reg .b64 %rd<2>;\n"
        "  .reg .f32 %f<1>;\n"
        "  ld.param.u64 %d0, [d0];\n"
        "  cvta.to.global.u64 %d0, %d0;\n"
        "  ld.param.u64 %d1, [d1];\n"
        "  cvta.to.global.u64 %d1, %d1;\n"
        "  mov.u32 %g0, %ctaid.x;\n"
        "  mov.f32 %a0, 0f00000000;\n"
        "  mov.b32 %loop0, 0;\n"
        "  LOOP_0:\n"
        "    add.s32 %r0, %loop0, %g0;\n"
        "    setp.lt.s32 %p0, %r0, 6;\n"
        "    mad.wide.s32 %rd0, %r0, 4, %d1;\n"
        "    mov.f32 %f0, 0f00000000;\n"
        "    @%p0 ld.global.nc.f32 %f0, [%rd0];\n"
        "    add.rn.f32 %a0, %a0, %f0;\n"
        "    add.s32 %loop0, %loop0, 1;\n"
        "    setp.lt.s32 %p1, %loop0, 3;\n"
        "    @%p1 bra LOOP_0;\n"
        "  mad.wide.s32 %rd1, %g0, 4, %d0;\n"
        "  st.global.f32 [%rd1], %a0;\n"
        "  ret;\n"
        "}\n"
    ) == program.source
    assert ([8, 1, 1], [1, 1, 1]) == (program.global_size, program.local_size)


def test_a_tile_of_a_product_is_one_instruction() -> None:
    source = made(matmul(16, 8, 32), "TC 0 0").source

    assert (
        "    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%a0, %a1, %a2, %a3}, {%r7, %r8, %r9, %r10}, {%r11, %r12}, {%a0, %a1, %a2, %a3};\n"
    ) in source
    assert "    ld.global.nc.v2.b16 {%h2, %h3}, [%rd1+512];\n" in source
    assert "  st.global.v2.f32 [%rd0+256], {%a2, %a3};\n" in source


def test_a_grouped_sum_shares_aligned_memory_and_skips_what_is_not_for_all() -> None:
    source = made(sum_of_columns(), "UPCAST 0 4, GROUP 0 16").source

    assert "  .shared .align 16 .b8 s0[256];\n" in source
    assert "  st.shared.v4.f32 [%r0], {%a0, %a1, %a2, %a3};\n  bar.sync 0;\n" in source
    assert "  @!%p1 bra SKIP_0;\n" in source
    assert ".maxntid 16, 1, 1\n" in source


def test_a_loop_that_may_have_no_turn_is_tested_first() -> None:
    k = Build(n=(0, 8))
    source = text(k.store(k.load("float32", ["n", 3], [3, 1]).sum(0)))

    assert "  setp.lt.s32 %p0, %arg_n, 1;\n  @%p0 bra DONE_0;\n  LOOP_0:\n" in source
    assert "  DONE_0:\n" in source
    assert ".param .s32 arg_n)" in source


def test_without_locals_the_runtime_chooses_the_block() -> None:
    program = made(exponentials(), "NOLOCALS")

    assert "  mad.lo.u32 %g0, %r0, %r1, %r2;\n" in program.source
    assert ".maxntid" not in program.source
    assert program.local_size is None


def test_a_product_and_a_sum_are_one_instruction_with_one_rounding() -> None:
    def body(dtype: str) -> str:
        k = Build()
        return text(k.store(k.load(dtype, [8]) * k.load(dtype, [8]) + k.load(dtype, [8])))

    assert "fma.rn.f32 " in body("float32")
    assert "fma.rn.f64 " in body("float64")
    assert "fma.rn.f16 " in body("float16")
    assert "fma" not in body("bfloat16")  # each is rounded to it
    assert "fma" not in body("int32")


def test_bytes() -> None:
    """8-bit integers are brought back to their range, bools are 0 and 1 in memory."""
    k = Build()
    x, y = k.load("uint8", [8]), k.load("int8", [8])
    k.store(x + x).store(y + y).store(k.load("bool", [8]).op("XOR", x < 5))
    source = text(k)

    assert "  ld.global.nc.u8 " in source
    assert "  ld.global.nc.s8 " in source
    assert ", 255;\n" in source
    assert "  cvt.s16.s8 " in source
    assert "  setp.ne.u16 " in source
    assert "  selp.b16 " in source
    assert 3 == source.count("  st.global.b8 ")


def test_a_maximum_of_a_nan_is_one() -> None:
    def body(dtype: str, **device: Any) -> str:
        k = Build()
        return text(k.store(k.load(dtype, [8]).maximum(k.load(dtype, [8]))), **device)

    assert "max.NaN.f32" in body("float32")
    assert "max.NaN.f16" in body("float16")
    assert "setp.nan.f64" in body("float64")
    assert "setp.nan.f32" in body("float32", arch="sm_75")
    assert "  max.f32" in body("float32", fast_math=True)
    assert "  max.s16" in body("int8")


def test_functions_are_the_machines_where_they_are_good_enough_or_speed_is_asked_for() -> None:
    def body(op: str, dtype: str, **device: Any) -> str:
        k = Build()
        return text(k.store(k.load(dtype, [8]).op(op)), **device)

    assert "ex2.approx.f32" in body("EXP2", "float32")
    assert "sqrt.rn.f32" in body("SQRT", "float32")
    assert "rcp.rn.f64" in body("RECIP", "float64")
    for op, word in (("LOG2", "lg2.approx.f32"), ("SIN", "sin.approx.f32")):
        assert ".approx" not in body(op, "float32")
        assert word in body(op, "float32", fast_math=True)
        assert word in body(op, "float16", fast_math=True)
        assert ".approx" not in body(op, "float64", fast_math=True)
    assert "rcp.approx.f32" in body("RECIP", "float32", fast_math=True)


def test_where_lines_come_from_is_said_when_asked() -> None:
    k = Build()
    body: Json = {"ast": k.store(k.load("float32", [8]).exp2()).ast(), "device": {"target": "ptx"}, "annotate": True, "optimize": "none"}
    annotated = compile_kernel(Request.from_json(body)).source
    plain = compile_kernel(Request.from_json({**body, "annotate": False})).source

    assert "  ex2.approx.f32 %f1, %f0; // 1\n" in annotated
    assert plain == "".join(line.partition(" //")[0] + "\n" for line in annotated.splitlines())


def test_no_name_of_a_variable_is_an_instruction() -> None:
    for name in ("add", "ret", "d0", "LOOP_0", "arg_n", "s0"):
        k = Build(**{name: (1, 4)})
        assert f".param .s32 arg_{name})" in text(k.store(k.load("float32", ["8"], [name])))


def test_what_the_target_says_of_itself() -> None:
    said = describe(TARGETS["ptx"])

    assert describe(TARGETS["cuda"])["tensor_cores"] == said["tensor_cores"]
    assert {"sm_75", "sm_80", "sm_90", "sm_120"} <= set(said["architectures"])  # type: ignore[call-overload]
    assert (False, False, ["bfloat16"], []) == (said["called"], said["images"], said["emulated"], said["promises"])


# ---- accepted by the assembler -------------------------------------------------------------------------------------------------


def refused(programs: dict[str, Program]) -> dict[str, str]:
    """What the assembler says of each text it does not take in silence."""
    said = complaints([program.source for program in programs.values()])
    return {name: words for name, words in zip(programs, said, strict=True) if words}


def test_every_architecture_has_a_version_that_knows_it() -> None:
    programs = {arch: made(matmul(16, 8, 16), None, arch=arch) for arch in NVIDIA if arch not in NEWER}

    assert {} == {name: words for arch, p in programs.items() for name, words in refused({arch: p}).items()}
    assert ".version 9.0\n.target sm_110\n" in made(matmul(16, 8, 16), None, arch="sm_110").source


@pytest.mark.parametrize("arch", ASSEMBLED)
def test_the_assembler_takes_every_op_of_every_dtype(arch: str) -> None:
    part = ASSEMBLED.index(arch)
    programs = {name: made(case.ast, None, arch=arch) for name, case in list(GROUPS.items())[part::2]}
    programs |= {f"reduces of {d}": made(kinds(d, [6, 32], (1,)).ast(), "GROUP 0 8, UNROLL 1 2", arch=arch) for d in DTYPES[part::4]}
    programs |= {f"{name} on bits": made(case.ast, None, arch=arch, float16=False) for name, case in list(GROUPS.items())[part::12]}

    assert {} == refused(programs)


@pytest.mark.parametrize("part", range(4))
def test_the_assembler_takes_every_kind_of_kernel(part: int) -> None:
    programs = {}
    for name in list(KERNELS)[part::4]:
        _, options, _, device = KERNELS[name]
        programs[name] = made(ast_of(name), options, **{"arch": ASSEMBLED[part], **device})

    assert {} == refused(programs)


def test_the_assembler_takes_vectors_and_constants_of_every_dtype() -> None:
    special: dict[str, float | bool | str] = {"bool": True, "float16": 65504.0, "bfloat16": "-inf"}
    programs: dict[str, Program] = {}
    for dtype in DTYPES:
        k = Build()
        x = k.load(dtype, [64])
        programs[f"{dtype} copied"] = made(k.store(x.maximum(k.const(special.get(dtype, 100), dtype, [64]))).ast(), "UPCAST 0 4, LOCAL 0 4")
        k = Build()
        programs[f"{dtype} masked"] = made(k.store(k.load(dtype, [32], mask=[[0, 16]])).ast(), "UPCAST 0 4")
        k = Build()
        programs[f"{dtype} only loaded"] = made(k.store(k.load(dtype, [8, 4]).max(1)).ast(), "UNROLL 0 4")
        k = Build()
        programs[f"{dtype} constant"] = made(k.store(k.const(special.get(dtype, 100), dtype, [8])).ast(), "UPCAST 0 4")

    assert {} == refused(programs)
    assert "ld.global.nc.v4.f32" in programs["float32 copied"].source
    assert 2 == programs["float64 copied"].source.count("ld.global.nc.v2.f64")  # 16 bytes are the widest access


@pytest.mark.parametrize("arch", ASSEMBLED)
def test_the_assembler_takes_every_matrix_instruction(arch: str) -> None:
    chosen = {name: tile for name, tile in TILES.items() if tile[2] == arch}
    programs = {name: made(ast, options, arch=arch, **device) for name, (ast, options, _, device) in chosen.items()}

    assert programs
    assert all("mma.sync" in program.source for program in programs.values())
    assert {} == refused(programs)


def test_what_the_assembler_does_not_take_is_told_text_by_text() -> None:
    good = made(masked_sum()).source
    bad = good.replace("add.rn.f32 %a0", "add.rn.s32 %a0")
    first, second, third = complaints([good, bad, good])

    assert ("", "") == (first, third)
    assert "error" in second


def test_a_negative_is_subtracted() -> None:
    k = Build()
    source = text(k.store(k.load("float32", [8]) - k.load("float32", [8])))

    assert "  sub.rn.f32 %f2, %f0, %f1;\n" in source


def test_nothing_is_promised_of_an_argument_but_what_the_program_says() -> None:
    """An assembler that knew of an alignment could make one access of several."""
    k = Build()
    program = made(k.store(k.load("uint8", [64], offset=1)).ast(), "LOCAL 0 32")

    assert "(.param .u64 d0, .param .u64 d1)\n" in program.source
    said: Json = program.to_json()
    assert [1, 1] == [argument["alignment"] for argument in said["arguments"]]
