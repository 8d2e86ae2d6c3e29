"""A target that is not in the tree: one description, registered under its name, and every stage takes it."""

from __future__ import annotations

import ctypes
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import TARGETS, Request, WireError, compile_kernel
from core.device import DeviceOptions
from core.dtypes import FLOAT32
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import c_family
from core.targets import Target
from core.targets.c import DIALECT
from core.targets.defaults import cpu
from core.targets.describe import describe
from tests.meaning.build import Build

WORDS = replace(
    DIALECT,
    name="toy",
    comment="// {x}",
    head='extern "C" void {name}({params}) {{',
    no_params="",
    param="{const}{t}* __restrict {name}",
    types={**DIALECT.types, "bool": "bool"},
    functions={**DIALECT.functions, (Op.EXP2, FLOAT32): "toy_exp2"},
    reserved=DIALECT.reserved | {"toy_exp2"},
)


def render(listing: Listing, device: DeviceOptions) -> str:
    return 'extern "C" float toy_exp2(float);\n' + c_family.render(listing, device, WORDS)


MACHINE = Machine(target="toy", vectors=False, images=False, saturates=False)
TOY = Target(
    name="toy", file_suffix="toy", defaults=cpu("toy", float16=False), machine=MACHINE, render=render, called=True, vectors=False,
    lacks=frozenset(("bfloat16",)), arches=(), promises=("nothing",),
)  # fmt: skip


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "toy", TOY)


def body(optimize: object, **device: object) -> dict[str, Any]:
    k = Build()
    ast = k.store(k.load("float32", [6, 16]).exp2().sum(1)).ast()
    return {"ast": ast, "device": {"target": "toy", **device}, "optimize": optimize}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("optimize", ["none", "heuristic", [{"op": "UPCAST", "axis": 0, "amount": 2}]])
def test_its_programs_run(optimize: object, tmp_path: Path) -> None:
    program = compile_kernel(Request.from_json(body(optimize)))
    runtime = 'extern "C" float exp2f(float);\nextern "C" float toy_exp2(float x) { return exp2f(x); }\n'
    (tmp_path / "k.cpp").write_text(program.source + runtime)
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-o", str(tmp_path / "k.so"), str(tmp_path / "k.cpp"), "-lm"], check=True, capture_output=True
    )
    values = [k / 8 - 4 for k in range(96)]
    out, x = (ctypes.c_float * 6)(), (ctypes.c_float * 96)(*values)
    ctypes.CDLL(str(tmp_path / "k.so"))[program.name](out, x)

    assert "toy" == program.to_json()["target"]
    assert [pytest.approx(sum(2.0**v for v in values[16 * i : 16 * i + 16]), rel=1e-5) for i in range(6)] == list(out)


@pytest.mark.usefixtures("registered")
def test_it_is_described_and_keyed_and_says_what_it_lacks() -> None:
    keys = {compile_kernel(Request.from_json({**body("none"), "device": {"target": name}})).key for name in ("toy", "c")}
    said = json.loads(json.dumps(describe(TOY)))

    assert 2 == len(keys)
    assert "bfloat16" not in said["dtypes"]
    assert (["nothing"], []) == (said["promises"], said["binaries"])


def test_nobody_knows_it_otherwise() -> None:
    with pytest.raises(WireError) as refusal:
        Request.from_json(body("none"))

    assert "/device/target" == refusal.value.facts()["pointer"]
