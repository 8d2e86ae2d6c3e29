"""PTX, read back from its text and run in numpy, means what its kernels mean: those of the other tests, and every matrix instruction."""

from __future__ import annotations

from typing import Any

import pytest

from core.dtypes import dtype_named
from core.fragments import layouts_of
from core.linear.interpret import Fault
from core.reference import sample_inputs
from core.request import Request
from service.device.run import NotBuilt
from tests.core.schedule.scheduling import options_of
from tests.core.schedule.test_tensor import convolution, of
from tests.meaning.batches import Attempt, try_all
from tests.meaning.build import Build
from tests.meaning.choices import Choices
from tests.meaning.fuzz import Tally, compiled_with_listing, fuzz_batch
from tests.meaning.test_gpus import cases, fits
from tests.meaning.test_options import CLASSES, PLAIN
from tests.meaning.tiles import matmul
from tests.tools.kernels import KERNELS, ast_of
from tests.tools.ptx.assembler import complaints
from tests.tools.ptx.evaluator import PtxRunner

Json = dict[str, Any]
PARTS = 4
EVERY = (("sm_80", True), ("sm_75", True), ("sm_90", False))  # architectures, and whether they compute in half precision


def attempt(ast: Json, *lists: object, seeds: Any = ((0, False), (1, True)), **device: Any) -> Attempt:
    """A kernel under several schedules."""
    bodies = [{"ast": ast, "device": {"target": "ptx", **device}, "optimize": options} for options in lists]
    return Attempt(bodies, [compiled_with_listing(body)[0].to_json() for body in bodies], (), seeds)


def hold(attempts: dict[str, Attempt]) -> None:
    outcome = try_all("ptx", list(attempts.values()))
    for difference in outcome.differences[:1]:
        name, tried = list(attempts.items())[difference.attempt]
        program = tried.programs[difference.program]
        raise AssertionError(f"{name}: {difference.why}\n{program['applied']}\n{program['source']}")
    assert 0 == outcome.untried
    assert sum(len(tried.programs) for tried in attempts.values()) == outcome.right


@pytest.mark.parametrize("part", range(PARTS))
def test_every_kernel_means_the_same_as_on_other_targets(part: int) -> None:
    found = list(cases())[part::PARTS]
    tried: dict[str, Attempt] = {}
    for number, (name, case) in enumerate(found):
        arch, half = EVERY[number % len(EVERY)]
        optimize = case.optimize if number % 2 else "heuristic"
        seeds = [(case.seeds[0], special) for special in sorted({False, case.special})]
        tried[name] = attempt(case.ast, optimize, seeds=seeds, arch=arch, float16=half)

    assert len(found) > 40
    hold(tried)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_option_means_the_same_as_on_other_targets(part: int) -> None:
    rows = {**PLAIN, **CLASSES, **{name: (ast_of(name), KERNELS[name][1], KERNELS[name][3]) for name in KERNELS}}
    chosen = {name: row for name, row in list(rows.items())[part::PARTS] if "UPCASTMID" not in row[1]}
    devices = {name: {k: v for k, v in (row[2] if len(row) > 2 else {}).items() if k != "device_class"} for name, row in chosen.items()}

    hold(
        {
            name: attempt(row[0], options_of(row[1]), seeds=((1, True),), **devices[name])
            for name, row in chosen.items()
            if fits(row, devices[name])
        }
    )


OPTIONS = ("TC 0 0", "TC 0 0, UPCAST 0 0, UNROLL 0 0", "TC 0 0, LOCAL 1 0")


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
def test_every_matrix_instruction_means_a_product(arch: str) -> None:
    """H 153, 157, 160: whatever the order of the factors and what is done beside the instruction."""
    attempts: dict[str, Attempt] = {}
    for layout in layouts_of("ptx", arch, True):
        m, n, k = layout.core.dims
        types = layout.core.operand, layout.core.accumulator
        device: Json = {"arch": arch, "fast_math": types[0] == "float32", "tensor_cores": [layout.core.to_json()]}
        for swapped in (False, True):
            ast = matmul(2 * m, 3 * n, 2 * k, *types, swapped=swapped)
            attempts[f"{layout} {swapped}"] = attempt(ast, *(options_of(o) for o in OPTIONS), seeds=((0, False),), **device)
        attempts[f"{layout} minimal"] = attempt(matmul(m, n, k, *types), options_of("TC 0 0"), seeds=((0, False),), **device)
        padded = matmul(m + 1, n + 1, k + 1, *types, rectified=True)
        attempts[f"{layout} padded"] = attempt(padded, options_of("TC 0 2"), seeds=((0, False),), **device)

    assert attempts
    assert all("mma.sync" in program["source"] for tried in attempts.values() for program in tried.programs)
    hold(attempts)


def test_other_products_by_matrix_instructions() -> None:
    others = (("convolution", convolution(2, 2, 16), 2), ("converted", of("converted"), 0), ("widened", of("widened"), 0))
    attempts = {name: attempt(ast, options_of(f"TC {choice} 1"), seeds=((0, False),)) for name, ast, choice in others}
    attempts["halves as bits"] = attempt(matmul(32, 16, 32), options_of("TC 0 0"), seeds=((0, False),), float16=False)
    attempts["chosen"] = attempt(matmul(80, 40, 48), "heuristic", seeds=((0, False),))

    hold(attempts)


def test_random_kernels_mean_the_same_under_random_schedules() -> None:
    tally = Tally()

    assert [] == fuzz_batch("ptx", [Choices.random(f"ptx/{n}") for n in range(20)], tally)
    assert tally.schedules > 40


# ---- traps of the language -----------------------------------------------------------------------------------------------------


def in_place(dtype: str) -> Json:
    """A buffer that is read and written: what is stored comes after what is read."""
    k = Build()
    x = k.load(dtype, [128], buffer="out0")
    return k.store(x * 0.9 + k.load(dtype, [128]) * 0.1).ast()


def wrapped(dtype: str) -> Json:
    """Sums, products, shifts and complements that leave 8 bits, compared, divided, widened and stored."""
    k = Build()
    x, y = k.load(dtype, [256]), k.load(dtype, [256])
    total = x + y
    compared = total < 5
    k.store(compared).store(total.op("IDIV", k.const(3, dtype, [256]))).store(total.cast("int32"))
    k.store((x * y).cast("int64")).store((-x).op("SHR", k.const(1, dtype, [256])).cast("int16"))
    return k.store(x.op("SHL", k.const(3, dtype, [256])).op("MOD", k.const(7, dtype, [256]))).ast()


def ends(dtype: str) -> Json:
    """The least and the greatest number of a type as constants, wherever a constant may stand."""
    k = Build()
    x = k.load(dtype, [64])
    for end in (int(dtype_named(dtype).least), int(dtype_named(dtype).greatest)):
        constant = k.const(end, dtype, [64])
        k.store(x.maximum(constant)).store(x + constant).store(constant).store(x < constant).store(x.differs(constant).where(constant, x))
    return k.ast()


TRAPS: dict[str, tuple[Json, str, Json]] = {
    "bfloat16 in place": (in_place("bfloat16"), "UPCAST 0 4", {}),
    "bfloat16 in place on Turing": (in_place("bfloat16"), "UPCAST 0 4", {"arch": "sm_75"}),
    "float16 in place": (in_place("float16"), "UPCAST 0 4, LOCAL 0 8", {"float16": False}),
    "uint8 wraps": (wrapped("uint8"), "UPCAST 0 4", {}),
    "int8 wraps": (wrapped("int8"), "", {}),
    **{f"ends of {dtype}": (ends(dtype), "", {}) for dtype in ("int8", "int16", "int32", "uint32", "int64", "uint64")},
}


def test_traps() -> None:
    attempts = {name: attempt(ast, options_of(options), **device) for name, (ast, options, device) in TRAPS.items()}

    hold(attempts)
    assert not any(complaints([tried.programs[0]["source"]])[0] for tried in attempts.values())


# ---- the tests above mean something --------------------------------------------------------------------------------------------


def broken(program: Json, old: str, new: str) -> Json:
    assert old in program["source"]
    return program | {"source": program["source"].replace(old, new, 1)}


def row_sums(options: str) -> tuple[Json, Json]:
    k = Build()
    ast = k.store(k.load("float32", [4, 64]).sum(1)).ast()
    program, _ = compiled_with_listing({"ast": ast, "device": {"target": "ptx"}, "optimize": options_of(options)})
    return ast, program.to_json()


def ran(ast: Json, program: Json) -> None:
    runner = PtxRunner()
    inputs = sample_inputs(Request.from_json({"ast": ast, "device": {"target": "c"}}).kernel, {}, 0)
    runner.run(program, runner.build(program), inputs, {})


FAULTS: dict[str, tuple[str, str, str]] = {
    "a barrier not all arrive at": ("  bar.sync 0;", "  setp.lt.s32 %p0, %l0, 15;\n  @%p0 bar.sync 0;", "not all of 16 threads arrive"),
    "no barrier": ("  bar.sync 0;\n", "", "with no barrier between"),
    "one that all store to": ("@!%p1 bra SKIP_0;", "", "two threads store to one place"),
    "a shared array too short": ("s0[64]", "s0[60]", "outside of a shared array"),
    "an element beyond the buffer": ("[%rd0]", "[%rd0+4096]", "outside of buffer 1"),
    "an access not aligned": ("[%rd0]", "[%rd0+2]", "not aligned"),
    "a register nobody wrote": ("  mov.f32 %a1, 0f00000000;\n", "", "%a1 is read before it is written"),
    "a register of another size": ("add.rn.f32 %a0", "add.rn.f64 %a0", "no register of f64"),
}


@pytest.mark.parametrize(("old", "new", "why"), FAULTS.values(), ids=FAULTS)
def test_what_no_device_promises_is_a_fault(old: str, new: str, why: str) -> None:
    ast, program = row_sums("GROUP 0 16")
    ran(ast, program)

    with pytest.raises(Fault, match=why):
        ran(ast, broken(program, old, new))


def test_what_is_not_declared_is_not_built() -> None:
    _, program = row_sums("GROUP 0 16")

    for old, new in ((".f32 %a0,", ".f32 "), ("LOOP_0:", "LOOP_9:"), ("  bar.sync 0;", "  bar.sync 0")):
        with pytest.raises(NotBuilt):
            PtxRunner().build(broken(program, old, new))


def test_wrong_texts_are_seen() -> None:
    """A branch on the condition instead of its opposite, a fragment turned, a value not brought back to 8 bits, a lost gate."""
    k = Build()
    narrow = k.store((k.load("uint8", [256]) + k.load("uint8", [256])) < 5).ast()
    wrong = {
        "fragment": (attempt(matmul(16, 8, 16), options_of("TC 0 0"), seeds=((0, False),)), "{%r5, %r6,", "{%r6, %r5,"),
        "8 bits": (attempt(narrow, options_of("")), ", 255;", ", 511;"),
        "sign": (attempt(wrapped("int8"), options_of("")), "cvt.s16.s8", "cvt.u16.u8"),
    }
    ast, program = row_sums("GROUP 0 16")
    tried = [Attempt(a.bodies, [broken(dict(a.programs[0]), old, new)], (), a.seeds) for a, old, new in wrong.values()]
    tried.append(Attempt([{"ast": ast, "device": {"target": "ptx"}}], [broken(program, "@!%p1 bra", "@%p1 bra")]))

    assert {0, 1, 2, 3} == {difference.attempt for difference in try_all("ptx", tried).differences}
