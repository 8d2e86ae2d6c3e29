"""WGSL: its words, and that Dawn and naga take them, for every kind of kernel."""

from __future__ import annotations

from typing import Any

import pytest

from core.compiler import compile_kernel
from core.errors import LimitExceeded, OptionRefused, TargetError
from core.program import Program
from core.request import Request
from core.targets import TARGETS
from core.targets.describe import describe
from tests.core.targets.making import maker, masked_sum, with_variable
from tests.meaning.build import Build
from tests.meaning.harness import PROCESSES
from tests.meaning.test_ops import DTYPES, GROUPS
from tests.meaning.test_reduces import kinds
from tests.tools.kernels import KERNELS, ast_of
from tests.tools.wgsl import LACKING, MOST, buffers, lacks, within
from tests.tools.wgsl.judges import JUDGES, objection

Json = dict[str, Any]
OWN = tuple(dtype for dtype in DTYPES if dtype not in LACKING)


made = maker("wgsl")


def test_a_masked_sum() -> None:
    program = made(masked_sum())

    assert (
        "@group(0) @binding(0) var<storage, read_write> d0: array<f32>;\n"
        "@group(0) @binding(1) var<storage, read> d1: array<f32>;\n"
        "\n"
        "@compute @workgroup_size(1, 1, 1)\n"
        "fn r_8_3(@builtin(workgroup_id) group: vec3<u32>) {\n"
        "  let g0 = i32(group.x);\n"
        "  var a0 = 0.0f;\n"
        "  for (var r0 = 0; r0 < 3; r0++) {\n"
        "    var v0 = 0.0f;\n"
        "    if (g0 + r0 < 6) { v0 = d1[g0 + r0]; }\n"
        "    a0 = v0 + a0;\n"
        "  }\n"
        "  d0[g0] = a0;\n"
        "}\n"
    ) == program.source
    assert ([8, 1, 1], [1, 1, 1]) == (program.global_size, program.local_size)


def test_a_grouped_sum_shares_vectors() -> None:
    k = Build()
    program = made(k.store(k.load("float32", [64, 4], [1, 64]).sum(0)).ast(), "UPCAST 0 4, GROUP 0 16")

    assert "var<workgroup> s0: array<vec4<f32>, 16>;\n" in program.source
    assert "  s0[l0] = vec4<f32>(a0, a1, a2, a3);\n  workgroupBarrier();\n  if (l0 < 1) {\n" in program.source
    assert "@workgroup_size(16, 1, 1)" in program.source
    assert 256 == program.shared_bytes


def test_a_buffer_of_vectors_alone_is_one_of_vectors() -> None:
    k = Build()
    text = made(k.store(k.load("float32", [64]) * 3.0).ast(), "UPCAST 0 4").source

    assert "d0: array<vec4<f32>>;\n" in text
    assert "d1: array<vec4<f32>>;\n" in text
    assert "  let v0 = d1[i0/4];\n" in text


def test_bytes_are_written_by_the_word_or_by_their_own_bits() -> None:
    k = Build()
    ast = k.store(k.load("int8", [64]) + 3).ast()
    words, bits = made(ast, "UPCAST 0 4").source, made(ast).source

    assert (
        "  d0[i/4] = (u32(x.x) & 0xffu) | ((u32(x.y) & 0xffu) << 8u) | ((u32(x.z) & 0xffu) << 16u) | ((u32(x.w) & 0xffu) << 24u);\n"
        in words
    )
    assert "atomic" not in words
    assert "var<storage, read_write> d0: array<atomic<u32>>;\n" in bits
    assert "  atomicAnd(&d0[i/4], ~(0xffu << at));\n  atomicOr(&d0[i/4], (u32(x) & 0xffu) << at);\n" in bits
    assert "  write_d0(g0, extractBits(read_d1(g0) + 3, 0u, 8u));\n" in bits


def test_every_argument_has_its_binding_used_or_not() -> None:
    k = Build(n=(1, 4), unused=(1, 4))
    x, y = k.load("int32", [8, "n"], [1, 8]), k.load("int32", [8, "n"], [1, 8])
    text = made(k.store((x * 0 + y).sum(1)).ast()).source

    assert "@group(0) @binding(3) var<uniform> n: i32;\n@group(0) @binding(4) var<uniform> unused: i32;\n" in text
    assert "  _ = &d1;\n  _ = &unused;\n" in text
    assert "_ = &n;" not in text


def test_what_no_constant_expression_may_be_is_made_at_run_time() -> None:
    k = Build()
    for value in ("inf", "-inf", "nan", 1e-45, -0.0, 3.4028234663852886e38):
        k.store(k.const(value, "float32", [2]))
    text = made(k.ast()).source
    k = Build()
    k.store(k.const(-(2**31), "int32", [2]))
    k.store(k.const(2**32 - 1, "uint32", [2]))
    integers = made(k.ast()).source

    for bits in ("7f800000", "ff800000", "7fc00000", "00000001"):
        assert f" = float_of(0x{bits}u);\n" in text
    assert " = -0.0f;\n" in text
    assert " = 3.4028235e+38f;\n" in text
    assert " = i32(-2147483648);\n" in integers
    assert " = 4294967295u;\n" in integers


def test_without_locals_the_text_chooses_a_group_that_divides_the_work() -> None:
    k = Build()
    program = made(k.store(k.load("float32", [2, 96], [1, 2]).exp2()).ast(), "NOLOCALS")

    assert "@workgroup_size(48, 1, 1)\n" in program.source
    assert "let g1 = i32(item.x);\n" in program.source
    assert ([2, 2, 1], [48, 1, 1]) == (program.global_size, program.local_size)


def test_halves_are_native_where_the_device_has_them() -> None:
    k = Build()
    x = k.load("float16", [8])
    ast = k.store((x + x.exp2()).maximum(1.5)).ast()
    native, kept = made(ast, float16=True).source, made(ast).source

    assert native.startswith("enable f16;\n")
    assert "d0: array<f16>;\n" in native
    assert "1.5h" in native
    assert "enable" not in kept
    assert "d0: array<atomic<u32>>;\n" in kept


def test_fast_math_takes_the_functions_of_the_language() -> None:
    k = Build()
    x = k.load("float32", [8])
    ast = k.store(x.exp2() + x.op("LOG2") + x.op("SIN").maximum(x)).ast()

    assert "precise" not in made(ast, fast_math=True).source
    assert {"precise_exp2(", "precise_log2(", "precise_sin(", "greater("} <= set(made(ast).source.replace("(", "( ").split())


def test_where_lines_come_from_is_said_when_asked() -> None:
    k = Build()
    body: Json = {"ast": k.store(k.load("float32", [8]).sqrt()).ast(), "device": {"target": "wgsl"}, "annotate": True, "optimize": "none"}

    assert "  d0[g0] = sqrt(d1[g0]); /* 0 1 2 */\n" in compile_kernel(Request.from_json(body)).source


def test_names_that_mean_something_are_no_arguments() -> None:
    for name in ("group", "lane", "vec4", "select", "is_nan", "read_d0", "write4_d1", "precise_sin", "priv", "atomic", "fn", "r_n"):
        text = made(with_variable(name)).source
        assert f"var<uniform> {name if name == 'r_n' else f'arg_{name}'}: i32;" in text


def test_what_the_target_lacks_is_refused_by_name() -> None:
    k = Build()
    image = k.store(k.load("float32", [4, 4], image=[1, 4, 4]), image=[1, 4, 4], storage="float32").ast()
    k = Build()
    for _ in range(5):
        k.store(k.load("float32", [4]))
    for refused, what in ((image, "images"), (k.ast(), "room for 10 buffers: a device need take no more than 8")):
        with pytest.raises(TargetError, match=f"wgsl has no {what}"):
            made(refused)
    k = Build(**{f"n{x}": (1, 4) for x in "abcdefghijklm"})
    with pytest.raises(TargetError, match="room for 13 variables"):
        made(k.store(k.load("float32", [4])).ast())
    with pytest.raises(TargetError, match="wgsl has no float64"):
        made(masked_sum(), float64=True)
    k = Build()
    unused = k.load("int64", [4]) * 0
    with pytest.raises(TargetError, match="wgsl has no int64"):
        made(k.store(unused.cast("int32")).ast())


def test_indices_beyond_32_bits_are_refused() -> None:
    k = Build()
    with pytest.raises(LimitExceeded, match="beyond 32-bit integers"):
        made(k.store(k.load("float32", [4], [2**31])).ast())


def test_local_memory_counts_in_words() -> None:
    k = Build()
    ast = k.store(k.load("int8", [64, 4], [1, 64]).sum(0)).ast()

    assert 4 * 64 == made(ast, "UPCAST 0 4, GROUP 0 16").shared_bytes
    with pytest.raises(OptionRefused, match="bytes of local memory would be 256, allowed are 255"):
        made(ast, "UPCAST 0 4, GROUP 0 16", shared_max=255)


def test_what_the_target_says_of_itself() -> None:
    said = describe(TARGETS["wgsl"])

    assert list(OWN) == said["dtypes"]
    assert ["float16", "bfloat16"] == said["emulated"]
    assert ([], False, False) == (said["tensor_cores"], said["called"], said["images"])
    assert ["NaN and infinities", "Rounding", "Subnormals", "Bindings"] == [text.split(":")[0] for text in said["promises"]]  # type: ignore[attr-defined]


# ---- accepted by both judges ---------------------------------------------------------------------------------------------------


def refused(programs: dict[str, Program]) -> dict[str, str]:
    """What a judge has against a text; asked in a process of its own."""
    pool = PROCESSES.of("wgsl")
    asked = {
        (name, judge): pool.schedule(objection, args=[judge, program.source, program.name]) for name, program in programs.items()
        for judge in JUDGES
    }  # fmt: skip
    answers = {key: future.result() for key, future in asked.items()}
    return {f"{name} by {judge}": f"{answer}\n{programs[name].source}" for (name, judge), answer in answers.items() if answer is not None}


def test_both_judges_take_every_op_of_every_dtype() -> None:
    programs = {
        f"{name} {number}": made(ast, None)
        for name, case in GROUPS.items()
        if not lacks(case.ast)
        for number, ast in enumerate(within(case.ast))
    }
    programs |= {f"reduces of {d}": made(kinds(d, [6, 32], (1,)).ast(), "GROUP 0 8, UNROLL 1 2") for d in OWN}

    assert len(programs) > 50
    assert {} == refused(programs)


def test_both_judges_take_every_kind_of_kernel() -> None:
    programs = {}
    for name in KERNELS:
        _, options, _, device = KERNELS[name]
        ast = ast_of(name)
        images = any("image" in node for node in ast["nodes"])
        if not images and not lacks(ast) and device.get("device_class") != "cpu" and len(buffers(ast["nodes"])) <= MOST:
            programs[name] = made(ast, options, **device)

    assert len(programs) > 15
    assert {} == refused(programs)


def test_both_judges_take_vectors_constants_and_halves_of_every_dtype() -> None:
    programs = {}
    for dtype in OWN:
        special: dict[str, float | bool | str] = {"bool": True, "float16": 65504.0, "bfloat16": "-inf", "float32": "nan", "int32": -(2**31)}
        for half in (False, True) if dtype == "float16" else (False,):
            k = Build()
            ends = k.const(special.get(dtype, 100), dtype, [64])
            ast = k.store(k.load(dtype, [64]).maximum(ends)).ast()
            programs[f"copied {dtype} {half}"] = made(ast, "UPCAST 0 4, LOCAL 0 4", float16=half)
            k = Build()
            programs[f"masked {dtype} {half}"] = made(k.store(k.load(dtype, [32], mask=[[0, 16]])).ast(), "UPCAST 0 2", float16=half)
            k = Build()
            programs[f"only loaded {dtype} {half}"] = made(k.store(k.load(dtype, [8, 4]).max(1)).ast(), "UNROLL 0 4", float16=half)

    assert {} == refused(programs)


def test_dawn_sees_that_all_lanes_reach_every_barrier() -> None:
    """Behind a guard of the launch, within a loop whose end is an argument, beside stores to what was read."""
    k = Build()
    guarded = k.store(k.load("float32", [37, 64]).sum(1)).ast()
    k = Build(n=(1, 8))
    looped = k.store(k.load("float32", [4, "n", 32], [320, 40, 1]).sum(1, 2)).ast()
    k = Build()
    in_place = k.store(k.load("int8", [8, 1], [1, 0], buffer="out0") + k.load("int8", [8, 16]).max(1)).ast()
    programs = {
        "guarded": made(guarded, "GROUP 0 16", global_max=[16, 3, 1]),
        "looped": made(looped, "GROUP 1 8"),
        "in place": made(in_place, "GROUP 0 4"),
    }

    assert " < 37) {\n" in programs["guarded"].source
    assert "r0 < n;" in programs["looped"].source
    assert "  storageBarrier(); workgroupBarrier();\n" in programs["in place"].source
    assert all("workgroupBarrier" in program.source for program in programs.values())
    assert {} == refused(programs)


def test_the_judges_judge() -> None:
    k = Build()
    program = made(k.store(k.load("float32", [4, 64]).sum(1)).ast(), "GROUP 0 16")

    def changed(old: str, new: str) -> set[str]:
        assert old in program.source
        source = program.source.replace(old, new)
        pool = PROCESSES.of("wgsl")
        return {judge for judge in JUDGES if pool.schedule(objection, args=[judge, source, program.name]).result() is not None}

    assert set() == changed("  workgroupBarrier();", "  workgroupBarrier(); ")
    assert "dawn" in changed("  workgroupBarrier();", "  if (l0 < 3) { workgroupBarrier(); }")
    assert "dawn" in changed("var a0 = 0.0f;", "var a0 = bitcast<f32>(0x7f800000u);")
    assert {"dawn", "naga"} == changed("var a0 = 0.0f;", "var a0 = 0u;")
