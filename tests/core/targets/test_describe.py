"""What `/targets` says of each target."""

from __future__ import annotations

import json

import pytest

from core.errors import TargetError
from core.targets import TARGETS
from core.targets.defaults import tensor_cores_of
from core.targets.describe import describe
from tests.core.targets.making import maker
from tests.meaning.build import Build


@pytest.mark.parametrize("name", list(TARGETS))
def test_a_target_is_described_in_json(name: str) -> None:
    said = json.loads(json.dumps(describe(TARGETS[name])))

    assert name == said["name"]
    assert TARGETS[name].defaults.to_json() == said["defaults"]
    assert {"float16", "bfloat16", "float32", "bool"} <= set(said["dtypes"])
    assert bool(TARGETS[name].lacks) is not ("float64" in said["dtypes"])
    assert [core.to_json() for core in tensor_cores_of(name, TARGETS[name].defaults.arch)] == said["tensor_cores"]
    assert said["limits"].items() <= said["defaults"].items()


def test_opencl_has_what_c_has_not() -> None:
    opencl, c = describe(TARGETS["opencl"]), describe(TARGETS["c"])

    assert (True, False) == (opencl["images"], c["images"])
    assert (False, True) == (opencl["called"], c["called"])


@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if not target.images])
def test_images_are_refused_by_name(name: str) -> None:
    k = Build()
    ast = k.store(k.load("float32", [4, 4], image=[1, 4, 4]), image=[1, 4, 4], storage="float32").ast()
    with pytest.raises(TargetError, match="images"):
        maker(name)(ast)
