"""No tool finds anything: gcc's address and undefined-behaviour sanitizers in C; Oclgrind's bounds, races and lost values in OpenCL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.compiler import compile_kernel
from core.request import Request
from tests.core.schedule.scheduling import options_of
from tests.tools.kernels import IMAGES, KERNELS, ast_of
from tests.tools.watched import Watched, sanitized, simulated, watched

Json = dict[str, Any]


def program(name: str, ast: Json, target: str, options: str, device: Json, *, special: bool = False) -> Watched:
    body: Json = {"ast": ast, "device": {"target": target, **device}, "optimize": options_of(options)}
    return watched(f"{name}: {options or 'none'}", compile_kernel(Request.from_json(body)), body, special=special)


@pytest.mark.parametrize("part", range(4))
def test_the_sanitizers_find_nothing_in_c(part: int, tmp_path: Path) -> None:
    items: list[Watched] = []
    for name in list(KERNELS)[part::4]:
        _, _, options, _ = KERNELS[name]
        items.append(program(name, ast_of(name), "c", "", {}, special=True))
        items += [program(name, ast_of(name), "c", options, {}, special=True)] if options else []

    assert {} == sanitized(items, tmp_path)


def test_oclgrind_finds_nothing_in_opencl(tmp_path: Path) -> None:
    items: list[Watched] = []
    for name, (_, options, _, device) in KERNELS.items():
        items.append(program(name, ast_of(name), "opencl", options, device))
    for name, (build, options) in IMAGES.items():
        items.append(program(name, build.ast(), "opencl", options, {}))

    assert {} == simulated(items, tmp_path)


def broken(item: Watched, old: str, new: str) -> Watched:
    source = item.program["source"]
    assert old in source
    return Watched(item.name, item.program | {"source": source.replace(old, new, 1)}, item.buffers, item.variables, item.expected)


def test_the_sanitizers_see_a_read_beside_a_buffer(tmp_path: Path) -> None:
    """The tests above mean something."""
    item = program("biased", ast_of("biased"), "c", "", {})

    said = sanitized([broken(item, "r0*16 +", "r0*16 + 1 +")], tmp_path)

    assert "heap-buffer-overflow" in said[item.name]


def test_the_sanitizers_see_an_overflow(tmp_path: Path) -> None:
    item = program("biased", ast_of("biased"), "c", "", {})

    said = sanitized([broken(item, "float a0 = 0.0f;", "int least = -2147483647 - 1; least -= r0 + 1; float a0 = least;")], tmp_path)

    assert "signed integer overflow" in said[item.name]


def test_oclgrind_sees_a_missing_barrier_a_read_beside_a_buffer_and_an_uninitialized_value(tmp_path: Path) -> None:
    item = program("grouped", ast_of("odd-rows"), "opencl", "PADTO 1 4, GROUP 0 4", {})
    race = broken(item, "barrier(CLK_LOCAL_MEM_FENCE);", "")
    beside = broken(item, "*13 +", "*13 + 5 +")
    unwritten = broken(item, "s0[l0] = ", "if (l0 < 3) s0[l0] = ")

    assert "race" in simulated([race], tmp_path / "race")[item.name]
    assert "Invalid read" in simulated([beside], tmp_path / "beside")[item.name]
    assert "ninitialized" in simulated([unwritten], tmp_path / "unwritten")[item.name]
