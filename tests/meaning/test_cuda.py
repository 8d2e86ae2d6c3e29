"""CUDA texts, run on the CPU, mean what their kernels mean: every kernel of the other tests, and every matrix instruction.

The texts of a test are one text for the compiler. Threads are fibers; undefined behaviour and threads that part fail the test.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

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
from tests.meaning.test_options import CLASSES, PLAIN
from tests.meaning.tiles import matmul
from tests.tools.cuda import emulator
from tests.tools.kernels import KERNELS, ast_of

Json = dict[str, Any]
PARTS = 4  # texts that all kernels are compiled as
MODULES = ("ops", "places", "reduces", "rows", "gathers", "traps")


def attempt(ast: Json, *lists: object, seeds: Any = ((0, False), (1, True)), **device: Any) -> Attempt:
    """A kernel under several schedules."""
    bodies = [{"ast": ast, "device": {"target": "cuda", **device}, "optimize": options} for options in lists]
    return Attempt(bodies, [compiled_with_listing(body)[0].to_json() for body in bodies], (), seeds)


def hold(attempts: dict[str, Attempt]) -> None:
    outcome = try_all("cuda", list(attempts.values()))
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


SIZES = ((1, 1, 1), (2, 3, 2))
OPTIONS = ("TC 0 0", "TC 0 0, UPCAST 0 0, UNROLL 0 0", "TC 0 0, LOCAL 1 0")


def test_every_matrix_instruction_means_a_product() -> None:
    """H 153, 157, 160: whatever the order of the factors and what is done beside the instruction."""
    attempts: dict[str, Attempt] = {}
    for arch in ("sm_75", "sm_80"):
        for layout in layouts_of("cuda", arch, True):
            m, n, k = layout.core.dims
            device: Json = {"arch": arch, "fast_math": layout.core.operand == "float32", "tensor_cores": [layout.core.to_json()]}
            for swapped in (False, True):
                ast = matmul(2 * m, 3 * n, 2 * k, layout.core.operand, layout.core.accumulator, swapped=swapped)
                attempts[f"{layout} {arch} {swapped}"] = attempt(ast, *(options_of(o) for o in OPTIONS), seeds=((0, False),), **device)
            small = matmul(m, n, k, layout.core.operand, layout.core.accumulator)
            padded = matmul(m + 1, n + 1, k + 1, layout.core.operand, layout.core.accumulator, rectified=True)
            attempts[f"{layout} {arch} minimal"] = attempt(small, options_of("TC 0 0"), seeds=((0, False),), **device)
            attempts[f"{layout} {arch} padded"] = attempt(padded, options_of("TC 0 2"), seeds=((0, False),), **device)
    others = (("convolution", convolution(2, 2, 16), 2), ("converted", of("converted"), 0), ("widened", of("widened"), 0))
    for name, other, choice in others:
        attempts[name] = attempt(other, options_of(f"TC {choice} 1"), seeds=((0, False),))
    attempts["halves as bits"] = attempt(matmul(32, 16, 32), options_of("TC 0 0"), seeds=((0, False),), float16=False)
    attempts["chosen"] = attempt(matmul(160, 80, 48), "heuristic", seeds=((0, False),))

    hold(attempts)


def test_random_kernels_mean_the_same_under_random_schedules() -> None:
    tally = Tally()

    assert [] == fuzz_batch("cuda", [Choices.random(f"cuda/{n}") for n in range(40)], tally)
    assert tally.schedules > 60


# ---- the tests above mean something --------------------------------------------------------------------------------------------


def broken(program: Json, old: str, new: str) -> Json:
    assert old in program["source"]
    return program | {"source": program["source"].replace(old, new, 1)}


def grouped() -> tuple[Json, Json]:
    k = Build()
    ast = k.store(k.load("float32", [4, 64]).sum(1)).ast()
    program, _ = compiled_with_listing({"ast": ast, "device": {"target": "cuda"}, "optimize": options_of("GROUP 0 16")})
    return ast, program.to_json()


def test_a_barrier_that_not_all_reach_is_a_fault() -> None:
    ast, program = grouped()
    runner = emulator.CudaRunner()
    inputs = sample_inputs(Request.from_json({"ast": ast, "device": {"target": "c"}}).kernel, {}, 0)
    parted = broken(program, "__syncthreads();", "if (l0 < 15) __syncthreads();")

    with pytest.raises(Fault, match="wait at different places"):
        runner.run(parted, runner.build(parted), inputs, {})


def test_a_missing_barrier_and_a_wrong_fragment_are_seen() -> None:
    ast, program = grouped()
    unordered = broken(program, "__syncthreads();", "")
    product = attempt(matmul(16, 8, 16), options_of("TC 0 0"), seeds=((0, False),))
    turned = broken(dict(product.programs[0]), "v1.x, v1.y, v2.x, v2.y", "v2.x, v2.y, v1.x, v1.y")

    assert try_all("cuda", [Attempt([{"ast": ast, "device": {"target": "cuda"}}], [unordered])]).differences
    assert try_all("cuda", [Attempt(product.bodies, [turned], (), product.seeds)]).differences


def test_undefined_behaviour_ends_the_process() -> None:
    k = Build()
    ast = k.store(k.load("int32", [64])).ast()
    program, _ = compiled_with_listing({"ast": ast, "device": {"target": "cuda"}, "optimize": options_of("UPCAST 0 4")})
    misaligned = broken(program.to_json(), "g0*4", "g0*4 + 1")

    (difference,) = try_all("cuda", [Attempt([{"ast": ast, "device": {"target": "cuda"}}], [misaligned])]).differences
    assert "the process ended" in difference.why
