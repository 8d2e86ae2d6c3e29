"""WGSL, run on the CPU's Vulkan within the limits every WebGPU device has, means what its kernels mean: every kernel of the other tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.dtypes import dtype_named
from core.errors import LimitExceeded, TargetError
from core.ir.value import bits_of
from core.reference.bounded import Array
from tests.core.schedule.scheduling import options_of
from tests.meaning.batches import Attempt, try_all
from tests.meaning.build import Build
from tests.meaning.choices import Choices
from tests.meaning.fuzz import Tally, compiled_with_listing, fuzz_batch
from tests.meaning.harness import run
from tests.meaning.test_gpus import cases
from tests.meaning.test_options import PLAIN
from tests.tools.kernels import KERNELS, ast_of
from tests.tools.wgsl import MOST, buffers, keeps_specials, lacks, within

Json = dict[str, Any]
PARTS = 2
UNBOUNDED = ("value-under-a-mask", "unguarded-int32")  # tables looked up by values that nothing bounds: their indices need 64 bits


def attempt(ast: Json, *lists: object, seeds: Any = ((0, False), (1, True)), **device: Any) -> Attempt:
    """A kernel under several schedules."""
    bodies = [{"ast": ast, "device": {"target": "wgsl", **device}, "optimize": options} for options in lists]
    tried = [(seed, special) for seed, special in seeds if not special or keeps_specials(ast)]
    return Attempt(bodies, [compiled_with_listing(body)[0].to_json() for body in bodies], (), tried)


def hold(attempts: dict[str, Attempt]) -> None:
    outcome = try_all("wgsl", list(attempts.values()))
    for difference in outcome.differences[:1]:
        name, tried = list(attempts.items())[difference.attempt]
        program = tried.programs[difference.program]
        raise AssertionError(f"{name}: {difference.why}\n{program['applied']}\n{program['source']}")
    assert 0 == outcome.untried
    assert sum(len(tried.programs) for tried in attempts.values()) == outcome.right


def is_unbounded(name: str) -> bool:
    return any(word in name for word in UNBOUNDED)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_kernel_means_the_same_as_on_other_targets(part: int) -> None:
    found = [(name, case) for name, case in cases() if not lacks(case.ast) and not is_unbounded(name)][part::PARTS]

    assert len(found) > 40
    hold(
        {
            f"{name} {number}": attempt(ast, case.optimize, "heuristic", seeds=[(case.seeds[0], s) for s in {False, case.special}])
            for name, case in found
            for number, ast in enumerate(within(case.ast))
        }
    )


def test_what_needs_64_bits_is_refused_by_name() -> None:
    """L 197."""
    wide = {name: case for name, case in cases() if lacks(case.ast)}
    unbounded = {name: case for name, case in cases() if is_unbounded(name)}

    assert len(wide) > 40
    for case in wide.values():
        with pytest.raises(TargetError, match=r"wgsl has no (float64|int64|uint64)"):
            attempt(case.ast, case.optimize)
    assert 2 == len(unbounded)
    for case in unbounded.values():
        with pytest.raises(LimitExceeded, match="beyond 32-bit integers"):
            attempt(case.ast, case.optimize)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_option_means_the_same_as_on_other_targets(part: int) -> None:
    rows = {**PLAIN, **{name: (ast_of(name), KERNELS[name][1], KERNELS[name][3]) for name in KERNELS}}
    chosen = {name: row for name, row in list(rows.items())[part::PARTS] if fits(row)}

    assert len(chosen) > 15
    hold({name: attempt(row[0], options_of(row[1]), **devices(row)) for name, row in chosen.items()})


def devices(row: tuple[Any, ...]) -> Json:
    return {k: v for k, v in (row[2] if len(row) > 2 else {}).items() if k != "device_class"}


def fits(row: tuple[Any, ...]) -> bool:
    """Rows that are about wider values than a gpu has, about images, 64 bits, or more buffers than a device must take, are not WGSL's."""
    wide = len(row) > 2 and row[2].get("device_class") == "cpu"
    nodes = row[0]["nodes"]
    return not wide and not lacks(row[0]) and not any("image" in node for node in nodes) and len(buffers(nodes)) <= MOST


def test_random_kernels_mean_the_same_under_random_schedules() -> None:
    tally = Tally()

    assert [] == fuzz_batch("wgsl", [Choices.random(f"wgsl/{n}") for n in range(40)], tally)
    assert tally.schedules > 40


# ---- what is WGSL's own ----------------------------------------------------------------------------------------------------------


def ran(ast: Json, options: object, given: dict[int, Array], **device: Any) -> dict[int, Array]:
    """What a program leaves in its buffers."""
    (program,) = attempt(ast, options, **device).programs
    return run("wgsl", program, given).buffers


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "uint16", "int16", "float16", "bfloat16"])
def test_neighbours_in_a_word_may_be_other_work_items(dtype: str) -> None:
    """L 197: one lane per element, and what no store names keeps what it held."""
    k = Build()
    ast = k.store(k.load(dtype, [64]), [64], [3], offset=1).ast()
    size = 1 if dtype in ("uint8", "int8", "bool") else 2
    held, values = np.full(191, 7, f"u{size}"), (np.arange(64) % 2).astype(f"u{size}")
    expected = held.copy()
    expected[1::3] = values

    for options in ([], options_of("LOCAL 0 32"), "heuristic"):
        assert expected.tolist() == ran(ast, options, {0: held, 1: values})[0].view(f"u{size}")[: len(expected)].tolist()


def test_functions_are_accurate_where_the_language_is_not() -> None:
    """L 208: within 4 units in the last place; sines of great arguments, logarithms near 1, and 2**17 arguments of every size."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 17, dtype=np.uint64).astype(np.uint32).view(np.float32)
    hard = np.array([1e6, 3e38, 1.0 + 2.0**-20, 1.0 - 2.0**-20, 0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 127.99999, -149.5], np.float32)
    x = np.concatenate([hard, bits, np.linspace(-200.0, 200.0, 1 << 15, dtype=np.float32)])
    with np.errstate(all="ignore"):
        for op, function in (("SIN", np.sin), ("EXP2", np.exp2), ("LOG2", np.log2)):
            k = Build()
            got = ran(k.store(k.load("float32", [len(x)]).op(op)).ast(), "heuristic", {0: np.zeros_like(x), 1: x})[0]
            exact = function(x.astype(np.longdouble))
            rounded = exact.astype(np.float32)
            normal = np.isfinite(rounded) & (np.abs(exact) >= 2.0**-126)
            distance = np.abs(got[normal].astype(np.longdouble) - exact[normal]) / np.spacing(np.abs(rounded[normal])).astype(np.longdouble)

            assert distance.max() < 4, (op, x[normal][distance.argmax()])
            assert np.array_equal(np.isnan(exact), np.isnan(got)), op
            assert np.array_equal(rounded[np.isinf(exact)], got[np.isinf(exact)]), op
            assert (np.abs(got[np.abs(exact) < 2.0**-126]) <= 2.0**-126).all(), op


def test_every_half_is_read_and_every_float_rounded_by_bits() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    floats = np.random.default_rng(1).integers(0, 1 << 32, 1 << 17, dtype=np.uint64).astype(np.uint32)
    near = np.concatenate(
        [halves.view(np.float16).astype(np.float32).view(np.uint32) + np.uint32(k) for k in (0, 1, 0xFFF, 0x1000, 0x1001)]
    )
    wide = np.concatenate([floats, near]).view(np.float32)
    k = Build()
    widened = ran(k.store(k.load("float16", [1 << 16]).cast("float32")).ast(), "heuristic", {0: np.zeros(1 << 16, "f4"), 1: halves})[0]
    k = Build()
    narrowed = ran(k.store(k.load("float32", [len(wide)]).cast("float16")).ast(), "heuristic", {0: np.zeros(len(wide), "u2"), 1: wide})[0]
    with np.errstate(all="ignore"):
        exact, rounded = halves.view(np.float16).astype(np.float32), wide.astype(np.float16)

    assert np.array_equal(exact, widened, equal_nan=True)
    assert np.array_equal(rounded, narrowed.view(np.float16), equal_nan=True)


def test_constants_arrive_bit_by_bit() -> None:
    values: dict[str, list[float | str]] = {
        "float32": ["inf", "-inf", "nan", -0.0, 1e-45, 3.4028234663852886e38, 0.1],
        "int32": [-(2**31), 2**31 - 1, -1],
        "uint32": [2**32 - 1, 2**31],
        "int8": [-128, 127],
        "uint16": [65535],
        "float16": ["-inf", 6e-8, 65504.0, -0.0],
        "bfloat16": ["nan", 1e-40, -0.0],
    }
    for dtype, constants in values.items():
        k = Build()
        for value in constants:
            k.store(k.const(value, dtype, [2]))
        given = {n: np.zeros(2, f"u{dtype_named(dtype).itemsize}") for n in range(len(constants))}
        held = ran(k.ast(), [], given)
        for n, value in enumerate(constants):
            number = float(value) if dtype_named(dtype).is_float else int(value)
            stored = dtype_named(dtype).round(number) if isinstance(number, float) else number
            bits = bits_of(stored, dtype_named(dtype)) if isinstance(stored, float) else stored & ((1 << dtype_named(dtype).bits) - 1)
            assert [bits] * 2 == held[n].tolist(), (dtype, value)


def test_nan_is_kept_by_whatever_goes_by_bits() -> None:
    x, y = np.array([np.nan, 1.0, np.nan, 2.0], np.float32), np.array([1.0, np.nan, np.nan, 1.0], np.float32)
    k = Build()
    a, b = k.load("float32", [4]), k.load("float32", [4])
    for term in (a < b, a.differs(b), a.differs(a), a.cast("bool"), a.maximum(b)):
        k.store(term)
    given: dict[int, Array] = {n: np.zeros(4, np.uint8) for n in range(4)} | {4: np.zeros(4, np.float32), 5: x, 6: y}
    held = ran(k.ast(), [], given)

    assert [[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 1]] == [held[n].tolist() for n in range(4)]
    assert [True, True, True, False] == np.isnan(held[4]).tolist()
    assert 2.0 == held[4][3]


@pytest.mark.parametrize("target", ["wgsl", "cuda"])
def test_halves_in_place_are_read_before_they_are_written(target: str) -> None:
    """A load that widens a vector of halves is what a store to the same buffer comes after."""
    k = Build()
    ast = k.store(k.load("float16", [64], buffer="out0") * 0.5 + k.load("float16", [64])).ast()
    body = {"ast": ast, "device": {"target": target, "float16": False}, "optimize": options_of("UPCAST 0 4, LOCAL 0 16")}
    tried = Attempt([body], [compiled_with_listing(body)[0].to_json()], (), [(0, False)])

    outcome = try_all(target, [tried])

    assert ((), 1) == (outcome.differences, outcome.right)


@pytest.mark.parametrize("native", [False, True])
def test_halves_are_moved_and_reinterpreted_bit_by_bit(native: bool) -> None:
    halves = np.array([1, 2, -0.0, np.inf, 6e-8, 65504, -np.inf, -1], np.float16)
    bits = np.array([0x3C00, 0x7C00, 1, 0x8000, 0xFC00, 0x7BFF, 0x0400, 0x03FF], np.uint16)
    k = Build()
    x, u = k.load("float16", [8]), k.load("uint16", [8])
    for term in (
        x.bitcast("uint16"),
        u.bitcast("float16"),
        x.bitcast("int16"),
        x.maximum(k.const("-inf", "float16", [8])),
        k.const("inf", "float16", [8]),
    ):
        k.store(term)
    k.store(x.cast("float32"))
    given: dict[int, Array] = {n: np.zeros(8, np.uint16) for n in range(5)} | {5: np.zeros(8, np.float32), 6: halves, 7: bits}

    held = ran(k.ast(), [], given, float16=native)

    for n, expected in ((0, halves), (1, bits), (2, halves), (3, halves), (4, np.full(8, np.inf, np.float16))):
        assert expected.view(np.uint16).tolist() == held[n].view(np.uint16).tolist(), n
    assert halves.astype(np.float32).tolist() == held[5].tolist()
