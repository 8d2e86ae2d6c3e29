"""Images: OpenCL has them, C refuses them (acceptance F 127-129, M 244, C 80)."""

from __future__ import annotations

import pytest

from core import KernelError, TargetError
from tests.meaning.build import Build
from tests.meaning.cases import Case, each
from tests.meaning.harness import compiled

OPENCL = ("opencl",)


def copied(storage: str) -> Build:
    k = Build()
    x = k.load(storage, [3, 5, 4], image=[3, 5, 4])
    return k.store(x, image=[3, 5, 4], storage=storage)


def computed(storage: str) -> Build:
    """Read from an image, computed in float32, stored to a buffer and to an image."""
    k = Build()
    x = k.load(storage, [2, 6, 4], image=[2, 6, 4])
    bias = k.load("float32", [1, 1, 4])
    return k.store(x * 2.0 + bias, image=[2, 6, 4], storage=storage)


def to_a_buffer() -> Build:
    k = Build()
    return k.store(k.load("float16", [6, 8], [8, 1], image=[6, 2, 4]).sum(1))


def one_channel() -> Build:
    """F 128: every other channel."""
    k = Build()
    return k.store(k.load("float32", [8, 4], [4, 2], offset=1, image=[3, 4, 4], mask=[[0, 6], [0, 4]]))


def by_formula() -> Build:
    k = Build()
    x = k.index("float32", [4, 8], "axis0*8 + axis1")
    return k.store(x, index="axis0*8 + axis1", image=[4, 2, 4])


def flat_rows() -> Build:
    k = Build()
    return k.store(k.load("float32", [8, 64]), [8, 64], image=[8, 16, 4])


def reduced() -> Build:
    k = Build()
    x = k.load("float32", [4, 8, 6], [48, 1, 8], image=[4, 12, 4])
    return k.store(x.sum(2), image=[4, 2, 4])


CASES = {
    "copy-float32": copied("float32"),
    "copy-float16": copied("float16"),
    "computed-float32": computed("float32"),
    "computed-float16": computed("float16"),
    "to-a-buffer": to_a_buffer(),
    "one-channel": one_channel(),
    "by-formula": by_formula(),
    "flat-rows": flat_rows(),
    "reduced": reduced(),
}


@each({name: Case(build.ast(), (0, 1), targets=OPENCL) for name, build in CASES.items()})
def test_texels_hold_four_channels_side_by_side(case: Case, target: str) -> None:
    case.holds(target)


def test_c_has_no_images() -> None:
    with pytest.raises(TargetError):
        compiled(copied("float32").ast(), "c")


def test_an_output_image_needs_four_channels_side_by_side() -> None:
    """C 80, M 244, J 198."""
    k = Build()
    across = k.store(k.load("float32", [2, 6]), [2, 6], [1, 2], image=[3, 1, 4])

    with pytest.raises(KernelError):
        compiled(across.ast(), "opencl")


def test_an_image_output_is_stored_four_channels_at_a_time() -> None:
    program, _ = compiled(flat_rows().ast(), "opencl")

    assert ["UPCAST"] == [option["op"] for option in program.applied]
    assert "write_imagef" in program.source
