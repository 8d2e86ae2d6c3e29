"""Device options: every key of the format, what each target has no way to use, and what excludes each other."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from core.device import DeviceOptions, TensorCore
from core.errors import TargetError, WireError
from core.targets import TARGETS
from core.targets.defaults import tensor_cores_of
from core.targets.resolve import resolve_device

# The table of the wire page: class, arch, local, shared, vectors, global, local, lanes, shared_max, alignment, half, double
GRID, NONE = (2147483647, 65535, 65535), None
PAGE: dict[str, tuple[Any, ...]] = {
    "opencl": ("gpu", None, True, True, True, NONE, NONE, 256, 32768, 128, False, True),
    "cuda": ("gpu", "sm_80", True, True, True, GRID, (1024, 1024, 64), 1024, 49152, 16, True, True),
    "ptx": ("gpu", "sm_80", True, True, True, GRID, (1024, 1024, 64), 1024, 49152, 16, True, True),
    "hip": ("gpu", "gfx1100", True, True, True, GRID, (1024, 1024, 1024), 1024, 65536, 16, True, True),
    "metal": ("gpu", None, True, True, True, NONE, (1024, 1024, 1024), 1024, 32768, 16, True, False),
    "wgsl": ("gpu", None, True, True, True, (65535, 65535, 65535), (256, 256, 64), 256, 16384, 16, False, False),
    "c": ("cpu", None, False, False, False, NONE, NONE, None, 0, 16, False, True),
    "llvm": ("cpu", None, False, False, False, NONE, NONE, None, 0, 16, True, True),
}


@pytest.mark.parametrize("target", PAGE)
def test_defaults_are_those_of_the_page(target: str) -> None:
    assert DeviceOptions(*(target, *PAGE[target], False, True)) == resolve_device({"target": target})


@pytest.mark.parametrize("target", PAGE)
def test_defaults_written_out_are_the_defaults(target: str) -> None:
    written = resolve_device({"target": target}).to_json()

    assert 15 == len(written)
    assert TARGETS[target].defaults == resolve_device(written)


def test_every_table_has_every_target() -> None:
    assert set(PAGE) == set(TARGETS)


WIRE: dict[str, tuple[object, str, str]] = {
    "a text": ("opencl", "/device", "an object with target"),
    "null": (None, "/device", "an object with target"),
    "no target": ({}, "/device/target", "one of opencl"),
    "an unknown target": ({"target": "vulkan"}, "/device/target", "one of opencl"),
    "a target in capitals": ({"target": "OpenCL"}, "/device/target", "one of opencl"),
    "a target that is a list": ({"target": ["c"]}, "/device/target", "one of opencl"),
    "an unknown key": ({"target": "opencl", "warp": 32}, "/device/warp", "no such member"),
    "device_class": ({"target": "opencl", "device_class": "tpu"}, "/device/device_class", '"gpu" or "cpu"'),
    "device_class null": ({"target": "opencl", "device_class": None}, "/device/device_class", '"gpu" or "cpu"'),
    "arch a number": ({"target": "cuda", "arch": 80}, "/device/arch", "null or a string"),
    "arch empty": ({"target": "opencl", "arch": ""}, "/device/arch", "null or a string"),
    "arch of two lines": ({"target": "opencl", "arch": "a\nb"}, "/device/arch", "printable"),
    "arch too long": ({"target": "opencl", "arch": "x" * 101}, "/device/arch", "1 to 100"),
    "global_max of two": ({"target": "opencl", "global_max": [1, 2]}, "/device/global_max", "three limits"),
    "global_max a number": ({"target": "opencl", "global_max": 1024}, "/device/global_max", "three limits"),
    "local_max with 0": ({"target": "opencl", "local_max": [1, 0, 1]}, "/device/local_max/1", "a positive integer, or null"),
    "local_max with true": (
        {"target": "opencl", "local_max": [1, True, 1]},
        "/device/local_max/1",
        "a positive integer, or null",
    ),
    "lanes_max 0": ({"target": "opencl", "lanes_max": 0}, "/device/lanes_max", "a positive integer, or null"),
    "lanes_max a float": ({"target": "opencl", "lanes_max": 256.0}, "/device/lanes_max", "a positive integer, or null"),
    "lanes_max beyond 64 bits": ({"target": "opencl", "lanes_max": 2**63}, "/device/lanes_max", "a positive integer, or null"),
    "shared_max negative": ({"target": "opencl", "shared_max": -1}, "/device/shared_max", "a number of bytes"),
    "shared_max null": ({"target": "opencl", "shared_max": None}, "/device/shared_max", "a number of bytes"),
    "alignment 0": ({"target": "opencl", "alignment": 0}, "/device/alignment", "a power of two"),
    "alignment 12": ({"target": "opencl", "alignment": 12}, "/device/alignment", "a power of two"),
    "alignment true": ({"target": "opencl", "alignment": True}, "/device/alignment", "a power of two"),
    "tensor_cores a text": ({"target": "cuda", "tensor_cores": "yes"}, "/device/tensor_cores", "true, false or a list"),
    "tensor_cores null": ({"target": "cuda", "tensor_cores": None}, "/device/tensor_cores", "true, false or a list"),
    "a tensor core as text": ({"target": "cuda", "tensor_cores": ["x"]}, "/device/tensor_cores/0", "dims, in and acc"),
    "a tensor core without acc": (
        {"target": "cuda", "tensor_cores": [{"dims": [16, 8, 16], "in": "float16"}]},
        "/device/tensor_cores/0/acc",
        "requires it",
    ),
    "a tensor core with more": (
        {"target": "cuda", "tensor_cores": [{"dims": [16, 8, 16], "in": "float16", "acc": "float32", "k": 1}]},
        "/device/tensor_cores/0/k",
        "no such member",
    ),
    "a tensor core of two dims": (
        {"target": "cuda", "tensor_cores": [{"dims": [16, 8], "in": "float16", "acc": "float32"}]},
        "/device/tensor_cores/0/dims",
        "three integers",
    ),
    "a tensor core of dim 0": (
        {"target": "cuda", "tensor_cores": [{"dims": [16, 8, 0], "in": "float16", "acc": "float32"}]},
        "/device/tensor_cores/0/dims/2",
        "a positive integer",
    ),
    "a tensor core of an unknown dtype": (
        {"target": "cuda", "tensor_cores": [{"dims": [16, 8, 16], "in": "half", "acc": "float32"}]},
        "/device/tensor_cores/0/in",
        "one of bool",
    ),
    "a tensor core twice": (
        {"target": "cuda", "tensor_cores": [{"dims": [16, 8, 16], "in": "float16", "acc": "float32"}] * 2},
        "/device/tensor_cores/1",
        "each tensor core once",
    ),
    "shared without local": ({"target": "opencl", "has_local": False}, "/device/has_local", "has_shared false"),
    "shared given without local": (
        {"target": "opencl", "has_local": False, "has_shared": True},
        "/device/has_shared",
        "has_shared false",
    ),
    **{
        f"{key} {value!r}": ({"target": "opencl", key: value}, f"/device/{key}", "true or false")
        for key in ("has_local", "has_shared", "supports_float4", "float16", "float64", "fast_math")
        for value in (1, None, "true")
    },
}


@pytest.mark.parametrize(("value", "pointer", "expected"), WIRE.values(), ids=WIRE)
def test_what_is_not_the_format_is_refused_with_its_place(value: object, pointer: str, expected: str) -> None:
    with pytest.raises(WireError) as refusal:
        resolve_device(value)

    assert pointer == refusal.value.facts()["pointer"]
    assert expected in str(refusal.value.facts()["expected"])


CORE = {"dims": [16, 8, 16], "in": "float16", "acc": "float32"}
TARGET: dict[str, tuple[dict[str, Any], str, str]] = {
    **{
        f"{key} on {target}": ({"target": target, key: value}, f"/device/{key}", feature)
        for target in ("c", "llvm")
        for key, value, feature in (
            ("has_local", True, "work-groups"),
            ("has_shared", True, "shared memory"),
            ("shared_max", 1024, "shared memory"),
            ("global_max", [1, 1, 1], "launch"),
            ("local_max", [1, 1, 1], "launch"),
            ("lanes_max", 64, "launch"),
            ("device_class", "gpu", "gpu"),
        )
    },
    "vectors on c": ({"target": "c", "supports_float4": True}, "/device/supports_float4", "vectors"),
    "float64 on metal": ({"target": "metal", "float64": True}, "/device/float64", "float64"),
    "float64 on wgsl": ({"target": "wgsl", "float64": True}, "/device/float64", "float64"),
    **{
        f"cpu on {target}": ({"target": target, "device_class": "cpu"}, "/device/device_class", "cpu")
        for target in ("cuda", "hip", "metal", "ptx", "wgsl")
    },
    "an unknown arch of cuda": ({"target": "cuda", "arch": "sm_8"}, "/device/arch", "'sm_8'"),
    "no arch of cuda": ({"target": "cuda", "arch": None}, "/device/arch", "None"),
    "an arch of hip on ptx": ({"target": "ptx", "arch": "gfx1100"}, "/device/arch", "'gfx1100'"),
    "an unknown arch of hip": ({"target": "hip", "arch": "gfx1"}, "/device/arch", "'gfx1'"),
    "a tensor core on opencl": (
        {"target": "opencl", "tensor_cores": [CORE]},
        "/device/tensor_cores/0",
        "16x8x16 of float16 into float32",
    ),
    "a tensor core on sm_70": (
        {"target": "cuda", "arch": "sm_70", "tensor_cores": [CORE]},
        "/device/tensor_cores/0",
        "at arch sm_70",
    ),
    "another's tensor core": (
        {"target": "hip", "tensor_cores": [{**CORE, "dims": [16, 16, 16]}, CORE]},
        "/device/tensor_cores/1",
        "at arch gfx1100",
    ),
}


@pytest.mark.parametrize(("value", "pointer", "feature"), TARGET.values(), ids=TARGET)
def test_what_the_target_has_no_way_to_use_is_refused_by_name(value: dict[str, Any], pointer: str, feature: str) -> None:
    """M 246."""
    with pytest.raises(TargetError) as refusal:
        resolve_device(value)

    facts = refusal.value.facts()
    assert "target" == refusal.value.category
    assert (pointer, value["target"]) == (facts["pointer"], facts["target"])
    assert feature in str(facts["feature"])


OVERRIDES: list[tuple[str, dict[str, Any]]] = [
    ("opencl", {"device_class": "cpu"}),
    ("opencl", {"arch": "NVIDIA H200"}),
    ("opencl", {"has_local": False, "has_shared": False}),
    ("opencl", {"has_shared": False}),
    ("opencl", {"supports_float4": False}),
    ("opencl", {"lanes_max": None}),
    ("opencl", {"shared_max": 0}),
    ("opencl", {"alignment": 1}),
    ("opencl", {"float16": True}),
    ("opencl", {"float64": False}),
    ("opencl", {"fast_math": True}),
    ("opencl", {"tensor_cores": False}),
    ("c", {"arch": "x86-64-v3"}),
    ("c", {"float16": True}),
    ("c", {"alignment": 64}),
    ("c", {"lanes_max": None}),
    ("c", {"global_max": None}),
    ("c", {"has_local": False}),
    ("llvm", {"supports_float4": True}),
    ("metal", {"float16": False}),
    ("cuda", {"arch": "sm_90"}),
    ("hip", {"arch": "gfx942"}),
    ("wgsl", {"float16": True}),
]


@pytest.mark.parametrize(("target", "overrides"), OVERRIDES, ids=[f"{target} {overrides}" for target, overrides in OVERRIDES])
def test_an_override_changes_its_key_and_no_other(target: str, overrides: dict[str, Any]) -> None:
    assert replace(TARGETS[target].defaults, **overrides) == resolve_device({"target": target, **overrides})


def test_launch_limits_may_have_nulls() -> None:
    device = resolve_device({"target": "opencl", "global_max": [None, 65535, 65535], "local_max": [1024, 1024, None]})

    assert (None, 65535, 65535) == device.global_max
    assert (1024, 1024, None) == device.local_max


@pytest.mark.parametrize("target", ["cuda", "ptx", "hip", "metal"])
def test_any_of_a_targets_tensor_cores_may_be_listed(target: str) -> None:
    known = tensor_cores_of(target, TARGETS[target].defaults.arch)
    device = resolve_device({"target": target, "tensor_cores": [core.to_json() for core in known]})

    assert known == device.tensor_cores
    assert [core.to_json() for core in known] == device.to_json()["tensor_cores"]


def test_tensor_cores_follow_from_the_arch() -> None:
    assert () == tensor_cores_of("cuda", "sm_70")
    assert [(16, 8, 8)] == [core.dims for core in tensor_cores_of("cuda", "sm_75")]
    assert TensorCore((16, 8, 16), "bfloat16", "float32") in tensor_cores_of("ptx", "sm_90a")
    assert {(16, 16, 16), (16, 16, 4)} == {core.dims for core in tensor_cores_of("hip", "gfx90a")}
    assert () == tensor_cores_of("hip", "gfx1030")
    assert () == tensor_cores_of("opencl", None)


def test_every_default_arch_is_known() -> None:
    assert all(target.defaults.arch in target.arches for target in TARGETS.values() if target.arches)


def test_every_key_of_the_format_is_a_field() -> None:
    assert [
        "target",
        "device_class",
        "arch",
        "has_local",
        "has_shared",
        "supports_float4",
        "global_max",
        "local_max",
        "lanes_max",
        "shared_max",
        "alignment",
        "float16",
        "float64",
        "fast_math",
        "tensor_cores",
    ] == [field.name for field in fields(DeviceOptions)]
