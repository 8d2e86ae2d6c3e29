"""Each device option has the effect its page says (acceptance M 246); limits as preconditions of options are with the options."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import LimitExceeded, TargetError
from tests.core.schedule.test_options import copy, product, row_sum
from tests.meaning.build import Build
from tests.meaning.harness import compiled
from tests.meaning.test_programs import listing, loads, made, stores

Json = dict[str, Any]


@pytest.mark.parametrize(("alignment", "lanes"), [(128, [4, 4]), (16, [4, 4]), (8, [2] * 4), (4, [1] * 8), (1, [1] * 8)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_no_vector_access_assumes_more_alignment_than_there_is(dtype: str, alignment: int, lanes: list[int]) -> None:
    """And no argument asks for more."""
    k = Build()
    program, body = made(k.store(k.load(dtype, [64])).ast(), "UPCAST 0 8", alignment=alignment)

    assert (lanes, lanes) == (loads(body), stores(body))
    assert [min(4 * lanes[0], alignment)] * 2 == [a.members["alignment"] for a in program.arguments]


def test_narrow_elements_take_less_alignment() -> None:
    k = Build()

    assert [4, 4] == loads(listing(k.store(k.load("uint8", [64])).ast(), "UPCAST 0 8", alignment=4))


def test_without_vectors_each_element_is_by_itself() -> None:
    assert [1] * 4 == loads(listing(copy(64), "UPCAST 0 4", supports_float4=False))


def test_without_doubles_they_are_refused() -> None:
    k = Build()
    ast = k.store(k.load("float64", [4])).ast()

    assert compiled(ast, "opencl", device={"float64": True})[0].source
    with pytest.raises(TargetError):
        compiled(ast, "opencl", device={"float64": False})


def test_launch_limits_shape_the_launch_and_are_said_where_nothing_fits() -> None:
    assert [64, 1, 1] == compiled(copy(64), "opencl", device={"global_max": [64, 1, 1]})[0].global_size
    assert [8, 8, 1] == compiled(copy(64), "opencl", device={"global_max": [8, 16, 16]})[0].global_size
    with pytest.raises(LimitExceeded) as refused:
        compiled(copy(64), "opencl", device={"global_max": [2, 2, 2]})
    assert ("group_max", [64], [2, 2, 2]) == tuple(refused.value.facts()[name] for name in ("limit", "needed", "allowed"))


def test_the_heuristic_keeps_to_lanes_and_local_memory() -> None:
    for lanes_max, shared_max in ((256, 32768), (16, 32768), (256, 64)):
        program, _ = compiled(row_sum(1, 4096), "opencl", "heuristic", {"lanes_max": lanes_max, "shared_max": shared_max})
        lanes = 1
        for extent in program.local_size or ():
            lanes *= int(extent)
        assert 1 < lanes <= min(lanes_max, shared_max // 4)
        assert 4 * lanes == program.shared_bytes


def test_a_device_without_work_groups_gets_none() -> None:
    program, _ = compiled(product(16, 16, 16), "opencl", "heuristic", {"has_local": False, "has_shared": False})

    assert ([1, 1, 1], [1, 1, 1], 0) == (program.global_size, program.local_size, program.shared_bytes)


def test_fast_math_allows_what_rounds_otherwise() -> None:
    """I 187, M 245: and the two have different keys."""
    k = Build()
    x, y = k.load("float32", [4]), k.load("float32", [4])
    ast = k.store(x * y * y.recip()).ast()
    strict, fast = (compiled(ast, "opencl", device={"fast_math": fast})[0] for fast in (False, True))

    assert ("/" in strict.source, "/" in fast.source) == (True, False)
    assert strict.key != fast.key


def test_the_class_of_the_device_decides_the_schedule() -> None:
    gpu, cpu = (compiled(row_sum(6, 4096), "opencl", "heuristic", {"device_class": name})[0].applied for name in ("gpu", "cpu"))

    assert (["GROUPTOP"], ["GROUP"]) == ([o["op"] for o in gpu], [o["op"] for o in cpu])
