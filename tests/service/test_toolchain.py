"""The table of binaries, and each compiler in it on texts written by hand."""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core import TARGETS, TargetError, TextRejected
from service.binaries.binary import FORMATS, Recipe
from service.binaries.compiler import Task
from service.binaries.opencl_program import packed, without_made_up_names
from service.binaries.toolchain import COMPILERS, TABLE, Toolchain
from service.store.keys import Key

ADD = "void add(float* restrict a, const float* restrict b) { for (int i = 0; i < 64; i++) a[i] = b[i] + 1.0f; }"
IR = """define void @add(ptr noalias %a, ptr noalias %b) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %b, i32 %i
  %to = getelementptr float, ptr %a, i32 %i
  %value = load float, ptr %from
  %sum = fadd float %value, 1.0
  store float %sum, ptr %to
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, 64
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
PTX = """.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a)
{
  .reg .b64 %a;
  .reg .f32 %x;
  ld.param.u64 %a, [a];
  ld.global.f32 %x, [%a];
  add.f32 %x, %x, 0f3F800000;
  st.global.f32 [%a], %x;
  ret;
}
"""
HIP = 'extern "C" __attribute__((global)) void add(float* a) { a[__builtin_amdgcn_workitem_id_x()] += 1.0f; }'
SINE = """extern "C" __attribute__((device, const)) float __ocml_sin_f32(float);
extern "C" __attribute__((global)) void sine(float* a) { a[0] = __ocml_sin_f32(a[0]); }
"""


@pytest.fixture(scope="module")
def here() -> Toolchain:
    found = Toolchain()
    found.find(os.environ)
    return found


def made(toolchain: Toolchain, folder: Path, target: str, format_: str, text: str, arch: str | None = None) -> bytes:
    recipe = toolchain.recipe(target, format_, arch, "/binary")
    program = {"source": text, "target": target, "name": "add"}
    task = Task(program, recipe, toolchain.tool(target, recipe), folder, 60.0, 1 << 20)
    return COMPILERS[recipe.compiler].compile(task)


def test_every_row_is_a_format_that_its_target_has_and_the_usual_one_is_the_first() -> None:
    rows: dict[str, list[str]] = {}
    for row in TABLE:
        rows.setdefault(row.target, []).append(row.format)

    assert {format_ for formats in rows.values() for format_ in formats} <= set(FORMATS)
    for target, formats in rows.items():
        assert formats == [name for name in TARGETS[target].binaries if name in formats]
        assert TARGETS[target].binaries[0] == formats[0]


@pytest.mark.parametrize("target", sorted(set(TARGETS) & {row.target for row in TABLE} - {"opencl"}))
def test_the_compiler_of_each_target_is_installed_here(here: Toolchain, target: str) -> None:
    """So that nothing of what is claimed goes untested."""
    assert list(here.formats(target)) == [row.format for row in TABLE if row.target == target]


@pytest.mark.parametrize(("target", "text"), [("c", ADD), ("llvm", IR)])
def test_shared_objects_run(here: Toolchain, tmp_path: Path, target: str, text: str) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "add.so").write_bytes(made(here, tmp_path / "task", target, "so", text))
    a, b = np.zeros(64, np.float32), np.arange(64, dtype=np.float32)
    ctypes.CDLL(str(tmp_path / "add.so")).add(a.ctypes.data_as(ctypes.c_void_p), b.ctypes.data_as(ctypes.c_void_p))

    np.testing.assert_array_equal(b + 1, a)


def test_a_folder_s_name_is_not_in_what_is_made_there(here: Toolchain, tmp_path: Path) -> None:
    rows = [("c", "so", ADD, None), ("llvm", "so", IR, None), ("ptx", "cubin", PTX, "sm_80"), ("hip", "hsaco", HIP, "gfx1100")]
    for target, format_, text, arch in rows:
        one, two = tmp_path / f"{target}1", tmp_path / f"{target}-another"
        one.mkdir()
        two.mkdir()

        assert made(here, one, target, format_, text, arch) == made(here, two, target, format_, text, arch)


EM_CUDA, EM_AMDGPU = 190, 224
EF_AMDGPU_MACH = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx1100": 0x41}  # LLVM's AMDGPU usage page, "ELF Header"


def machine(binary: bytes) -> tuple[int, int]:
    """e_machine and e_flags of an ELF file."""
    found: tuple[int, int] = struct.unpack_from("<18xH28xI", binary)
    return found


def test_ptx_is_assembled_for_its_architecture(here: Toolchain, tmp_path: Path) -> None:
    kind, flags = machine(made(here, tmp_path, "ptx", "cubin", PTX, "sm_80"))

    assert EM_CUDA == kind
    assert 80 in (flags & 0xFF, flags >> 8 & 0xFF)


@pytest.mark.parametrize("arch", EF_AMDGPU_MACH)
def test_code_objects_are_for_their_architecture(here: Toolchain, tmp_path: Path, arch: str) -> None:
    binary = made(here, tmp_path, "hip", "hsaco", HIP, arch)
    kind, flags = machine(binary)

    assert (EM_AMDGPU, EF_AMDGPU_MACH[arch]) == (kind, flags & 0xFF)
    assert b"add.kd" in binary


def test_an_architecture_that_clang_does_not_know_is_refused_by_name(here: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="architecture gfx9999") as refused:
        made(here, tmp_path, "hip", "hsaco", HIP, "gfx9999")

    assert "/device/arch" == refused.value.facts()["pointer"]


def test_functions_of_a_device_library_that_is_not_here_are_refused_by_name(
    here: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.binaries.hip.LIBRARY", tmp_path / "none")
    with pytest.raises(TargetError, match="device library"):
        made(here, tmp_path, "hip", "hsaco", SINE, "gfx1100")


@pytest.mark.parametrize(
    ("target", "format_", "text", "arch", "said"),
    [
        ("c", "so", "void f(", None, "kernel.c:1"),
        ("llvm", "so", "define nonsense", None, "kernel.ll:1"),
        ("ptx", "cubin", PTX.replace("%x, %x", "%x, %y"), "sm_80", "line 10"),
        ("hip", "hsaco", "void f(", "gfx1100", "kernel.hip:1"),
    ],
)
def test_what_a_compiler_refuses_is_told_with_the_place(
    here: Toolchain, tmp_path: Path, target: str, format_: str, text: str, arch: str | None, said: str
) -> None:
    with pytest.raises(TextRejected) as refused:
        made(here, tmp_path, target, format_, text, arch)

    assert said in str(refused.value.facts()["log"])
    assert str(tmp_path) not in str(refused.value.facts()["log"])


def test_each_part_of_a_recipe_makes_another_key() -> None:
    recipe = Recipe("so", "x86-64", "gcc", "12", ("-O3",))
    others = [
        replace(recipe, **other)
        for other in ({"format": "ptx"}, {"arch": "x86-64-v2"}, {"compiler": "clang"}, {"version": "13"}, {"options": ()})
    ]
    keys = {one.key(Key("0" * 64)) for one in (recipe, *others)} | {recipe.key(Key("1" * 64))}

    assert 7 == len(keys)


def test_names_that_pocl_makes_up_are_made_the_same() -> None:
    """As bytes, and as fields of seven bits at any bit."""
    text = b"tempfile_aB3xYz.cl"
    for width, shift in ((8, 0), (7, 0), (7, 3), (7, 5)):
        bits = "1" * shift + packed(text, width)
        bits += "0" * (-len(bits) % 8)
        binary = int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")
        fixed = "1" * shift + packed(b"tempfile_kernel.cl", width)
        fixed += "0" * (-len(fixed) % 8)

        assert int(fixed[::-1], 2).to_bytes(len(binary), "little") == without_made_up_names(binary)
    assert b"nothing of that\0\0" == without_made_up_names(b"nothing of that\0\0")
