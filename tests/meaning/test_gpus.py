"""Texts of gpus, run on the CPU, mean what their kernels mean: every kernel of the other tests, and every matrix instruction.

The texts of a test are one text for the compiler, for each language. Threads are fibers; undefined behaviour and threads that part fail
the test.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from core.errors import TargetError
from core.fragments import layouts_of
from core.linear.interpret import Fault
from core.reference import sample_inputs
from core.request import Request
from tests.core.schedule.scheduling import options_of
from tests.core.schedule.test_tensor import convolution, of
from tests.meaning.batches import Attempt, try_all
from tests.meaning.build import Build
from tests.meaning.cases import Case
from tests.meaning.choices import Choices
from tests.meaning.fuzz import Tally, compiled_with_listing, fuzz_batch
from tests.meaning.harness import compiled
from tests.meaning.test_options import CLASSES, PLAIN
from tests.meaning.tiles import matmul
from tests.tools.fibers.emulator import FiberRunner
from tests.tools.kernels import KERNELS, ast_of

Json = dict[str, Any]
GPUS = ("cuda", "hip", "metal")
PARTS = 4  # texts that all kernels are compiled as
MODULES = ("ops", "places", "reduces", "rows", "gathers", "traps")
each_gpu = pytest.mark.parametrize("gpu", GPUS)


def attempt(ast: Json, *lists: object, gpus: Sequence[str] = GPUS, seeds: Any = ((0, False), (1, True)), **device: Any) -> Attempt:
    """A kernel under several schedules, for several targets: those that have its dtypes."""
    bodies = [
        {"ast": ast, "device": {"target": gpu, **device}, "optimize": options}
        for gpu in gpus
        if gpu != "metal" or not has_doubles(ast)
        for options in lists
    ]
    return Attempt(bodies, [compiled_with_listing(body)[0].to_json() for body in bodies], (), seeds)


def has_doubles(ast: Json) -> bool:
    return any(node.get("dtype") == "float64" for node in ast["nodes"])


def hold(attempts: dict[str, Attempt]) -> None:
    outcome = try_all("fibers", list(attempts.values()))
    for difference in outcome.differences[:1]:
        name, tried = list(attempts.items())[difference.attempt]
        program = tried.programs[difference.program]
        raise AssertionError(f"{name}: {difference.why}\n{program['applied']}\n{program['source']}")
    assert 0 == outcome.untried
    assert sum(len(tried.programs) for tried in attempts.values()) == outcome.right


def cases() -> Iterator[tuple[str, Case]]:
    """The kernels that the tests of every target try, each once."""
    seen: set[int] = set()
    for module in MODULES:
        for name, test in vars(importlib.import_module(f"tests.meaning.test_{module}")).items():
            for mark in getattr(test, "pytestmark", ()):
                for row in mark.args[1] if mark.name == "parametrize" else ():
                    case = getattr(row, "values", (None,))[0]
                    if isinstance(case, Case) and id(case) not in seen and len(case.targets) > 1:
                        seen.add(id(case))
                        yield f"{name} {row.id}", case


@pytest.mark.parametrize("part", range(PARTS))
def test_every_kernel_means_the_same_as_on_other_targets(part: int) -> None:
    found = list(cases())[part::PARTS]

    assert len(found) > 40
    hold(
        {
            name: attempt(
                case.ast, case.optimize, "heuristic", seeds=[(s, special) for s in case.seeds[:1] for special in {False, case.special}]
            )
            for name, case in found
        }
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_every_option_means_the_same_as_on_other_targets(part: int) -> None:
    rows = {**PLAIN, **CLASSES, **{name: (ast_of(name), KERNELS[name][1], KERNELS[name][3]) for name in KERNELS}}
    chosen = {name: row for name, row in list(rows.items())[part::PARTS] if "UPCASTMID" not in row[1]}
    devices = {name: {k: v for k, v in (row[2] if len(row) > 2 else {}).items() if k != "device_class"} for name, row in chosen.items()}

    hold({name: attempt(row[0], options_of(row[1]), **devices[name]) for name, row in chosen.items() if fits(row, devices[name])})


def fits(row: tuple[Any, ...], device: Json) -> bool:
    """Rows that are about wider values than a gpu has, or about images, are other targets' own."""
    body = {"ast": row[0], "device": {"target": "cuda", **device}, "optimize": options_of(row[1])}
    wide = len(row) > 2 and row[2].get("device_class") == "cpu"
    return not wide and not any("image" in node for node in row[0]["nodes"]) and bool(Request.from_json(body))


OPTIONS = ("TC 0 0", "TC 0 0, UPCAST 0 0, UNROLL 0 0", "TC 0 0, LOCAL 1 0")
ARCHES = (("cuda", "sm_75"), ("cuda", "sm_80"), ("hip", "gfx90a"), ("hip", "gfx942"), ("hip", "gfx1100"), ("metal", None))


@pytest.mark.parametrize(("gpu", "arch"), ARCHES)
def test_every_matrix_instruction_means_a_product(gpu: str, arch: str | None) -> None:
    """H 153, 157, 160: whatever the order of the factors and what is done beside the instruction."""
    attempts: dict[str, Attempt] = {}
    for layout in layouts_of(gpu, arch, True):
        m, n, k = layout.core.dims
        types = layout.core.operand, layout.core.accumulator
        device: Json = {"arch": arch, "fast_math": gpu == "cuda" and types[0] == "float32", "tensor_cores": [layout.core.to_json()]}

        def tried(ast: Json, *options: str, device: Json = device, **more: Any) -> Attempt:
            made = attempt(ast, *map(options_of, options), gpus=[gpu], seeds=((0, False),), **device, **more)
            assert all(re.search(r"\b(mma|mfma|wmma)_", program["source"]) for program in made.programs)
            return made

        for swapped in (False, True):
            attempts[f"{layout} {swapped}"] = tried(matmul(2 * m, 3 * n, 2 * k, *types, swapped=swapped), *OPTIONS)
        attempts[f"{layout} minimal"] = tried(matmul(m, n, k, *types), "TC 0 0")
        attempts[f"{layout} padded"] = tried(matmul(m + 1, n + 1, k + 1, *types, rectified=True), "TC 0 2")
        if "float16" in types:
            attempts[f"{layout} as bits"] = tried(matmul(2 * m, n, 2 * k, *types), "TC 0 0, UNROLL 0 2", float16=False)

    assert attempts
    hold(attempts)


@each_gpu
def test_other_products_by_matrix_instructions(gpu: str) -> None:
    others = (("convolution", convolution(2, 2, 16), 2), ("converted", of("converted"), 0), ("widened", of("widened"), 0))
    attempts = {name: attempt(ast, options_of(f"TC {choice} 2"), gpus=[gpu], seeds=((0, False),)) for name, ast, choice in others}
    attempts["chosen"] = attempt(matmul(160, 80, 48), "heuristic", gpus=[gpu], seeds=((0, False),))

    hold(attempts)


@each_gpu
def test_random_kernels_mean_the_same_under_random_schedules(gpu: str) -> None:
    tally = Tally()

    assert [] == fuzz_batch(gpu, [Choices.random(f"{gpu}/{n}") for n in range(20)], tally)
    assert tally.schedules > 25


@each_gpu
def test_what_a_language_would_do_by_itself_is_not_what_is_meant(gpu: str) -> None:
    """I 173, J 192, M 195, 250: C promotes, compares least integers as longs, halves a NaN; a bool in memory may be any byte."""
    k = Build()
    narrow, wide, real, truth = k.load("uint8", [4]), k.load("uint32", [4]), k.load("float32", [4]), k.load("bool", [4])
    k.store((narrow + 10) < k.const(5, "uint8", [4]))
    k.store((wide + 3) < k.const(5, "uint32", [4]))
    k.store(k.load("int32", [4]).maximum(-(2**31)))
    k.store(real.cast("bfloat16"))
    k.store(real.maximum(1.0))
    k.store(real.maximum(k.const("-inf", "float32", [4])).cast("float16"))
    k.store(truth)
    program, _ = compiled(k.ast(), gpu)
    made: Json = program.to_json()
    values: dict[str, Any] = {
        "uint8": np.array([250, 0, 245, 246], np.uint8),
        "uint32": np.array([2**32 - 1, 1, 2, 2**32 - 3], np.uint32),
        "float32": np.array([1.00390625, 1.01171875, 1.0039063692092896, np.nan], np.float32),
        "bool": np.array([0, 1, 7, 255], np.uint8),
        "int32": np.array([-(2**31), 2**24 + 1, -1, 7], np.int32),
    }
    outputs: dict[int, Any] = {
        n: np.zeros(4, t) for n, t in enumerate((np.uint8, np.uint8, np.int32, np.uint16, np.float32, np.float16, np.uint8))
    }
    inputs: dict[int, Any] = {a["index"]: values[a["dtype"]] for a in made["arguments"] if a["index"] not in outputs}

    ran = FiberRunner(gpu).run(made, FiberRunner(gpu).build(made), {**outputs, **inputs}, {}).buffers

    assert [[1, 0, 0, 1], [1, 1, 0, 1]] == [ran[0].tolist(), ran[1].tolist()]
    assert [-(2**31), 2**24 + 1, -1, 7] == ran[2].tolist()
    assert [0x3F80, 0x3F82, 0x3F81] == ran[3][:3].tolist()
    assert np.isnan((ran[3][3:].astype(np.uint32) << 16).view(np.float32)).all()
    assert np.isnan([ran[4][3], ran[5][3]]).all()
    assert [0, 1, 1, 1] == ran[6].tolist()


def test_metal_refuses_doubles_by_name() -> None:
    k = Build()
    ast = k.store(k.load("float32", [8]).cast("float64").exp2().cast("float32")).ast()

    with pytest.raises(TargetError, match="float64"):
        compiled_with_listing({"ast": ast, "device": {"target": "metal"}})


# ---- the tests above mean something --------------------------------------------------------------------------------------------


def broken(program: Json, old: str, new: str) -> Json:
    assert old in program["source"]
    return program | {"source": program["source"].replace(old, new, 1)}


BARRIERS = {"cuda": "__syncthreads();", "hip": "barrier();", "metal": "threadgroup_barrier(mem_flags::mem_threadgroup);"}


def grouped(gpu: str) -> tuple[Json, Json]:
    k = Build()
    ast = k.store(k.load("float32", [4, 64]).sum(1)).ast()
    program, _ = compiled_with_listing({"ast": ast, "device": {"target": gpu}, "optimize": options_of("GROUP 0 16")})
    return ast, program.to_json()


@each_gpu
def test_a_barrier_that_not_all_reach_is_a_fault(gpu: str) -> None:
    ast, program = grouped(gpu)
    runner = FiberRunner(gpu)
    inputs = sample_inputs(Request.from_json({"ast": ast, "device": {"target": "c"}}).kernel, {}, 0)
    parted = broken(program, BARRIERS[gpu], f"if (l0 < 15) {BARRIERS[gpu]}")

    with pytest.raises(Fault, match="wait at different places"):
        runner.run(parted, runner.build(parted), inputs, {})


TURNED = {  # what a product puts into its instruction, and the same in another order
    "cuda": ("v1.x, v1.y, v2.x, v2.y", "v2.x, v2.y, v1.x, v1.y"),
    "hip": ("v1.x, v1.y, v1.z, v1.w", "v1.y, v1.x, v1.z, v1.w"),
    "metal": ("l1*4 + i0*2", "l1*4 + 2 - i0*2"),
}


@each_gpu
def test_a_missing_barrier_and_a_wrong_fragment_are_seen(gpu: str) -> None:
    ast, program = grouped(gpu)
    unordered = broken(program, f"  {BARRIERS[gpu]}", "  ")
    product = attempt(matmul(16, 16, 16), options_of("TC 0 0"), gpus=[gpu], seeds=((0, False),))
    turned = broken(dict(product.programs[0]), *TURNED[gpu])

    assert try_all(gpu, [Attempt([{"ast": ast, "device": {"target": gpu}}], [unordered])]).differences
    assert try_all(gpu, [Attempt(product.bodies, [turned], (), product.seeds)]).differences


@each_gpu
def test_undefined_behaviour_ends_the_process(gpu: str) -> None:
    k = Build()
    ast = k.store(k.load("int32", [64])).ast()
    program, _ = compiled_with_listing({"ast": ast, "device": {"target": gpu}, "optimize": options_of("UPCAST 0 4")})
    misaligned = broken(program.to_json(), "g0*4", "g0*4 + 1")

    (difference,) = try_all(gpu, [Attempt([{"ast": ast, "device": {"target": gpu}}], [misaligned])]).differences
    assert "the process ended" in difference.why
