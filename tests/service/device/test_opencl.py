"""A real device: PoCL's. Programs that are right, wrong, reach too far, crash and hang; each costs its own run only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import LimitExceeded
from service.device import DEVICES
from service.device.device import Device, Facts, RunTimedOut, Trial
from service.device.opencl import KNOWN, Conditions, OpenclDevice, discover
from service.device.probe import name_of

pytestmark = pytest.mark.anyio
HANG_S = 1.0  # after which a hang is stopped. All other runs have a minute, however busy the machine is


@pytest.fixture(scope="module")
def facts() -> Facts:
    found = discover()
    assert found, "no OpenCL device: PoCL needs binutils, libgcc-12-dev and libc6-dev"
    return found[0]


@pytest.fixture
async def device(facts: Facts) -> AsyncIterator[OpenclDevice]:
    driven = OpenclDevice(facts, Conditions(run_s=60.0))
    assert await driven.start()
    yield driven
    await driven.close()


def program(body: str, **members: Any) -> Trial:
    """The known program's trial with another body; `a` is written, `b` is read, `i` is the work-item."""
    source = f"kernel void known(global int *a, global int *b) {{ int i = get_global_id(0); {body} }}"
    return replace(KNOWN, program={**KNOWN.program, "source": source, **members})


async def test_a_program_that_is_right(device: OpenclDevice) -> None:
    verdict = await device.judge(program("a[i] = -b[i];"))

    assert ("right", None) == (verdict.verdict, verdict.why)
    assert [{"buffer": 0, "dtype": "int32", "elements": 8, "compared": 8, "wrong": 0, "first_wrong": None, "worst_ulp": 0.0}] == (
        verdict.runs[0]["outputs"]
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("a[i] = i == 5 ? 77 : -b[i];", "outputs"),
        ("a[i] = -b[i]; if (i == 0) a[8] = 1;", "overrun"),
        ("a[i] = -b[i]; if (i == 0) a[-1] = 1;", "overrun"),
        ("a[i] = -b[i]; if (i == 0) b[3] += 1;", "inputs"),
        ("a[i] = -b[i]", "build"),
        ("if (i < 7) a[i] = -b[i];", "outputs"),
        ("volatile global int *far = (global int *)8; a[i] = far[i];", "crash"),
    ],
)
async def test_a_program_that_is_wrong(device: OpenclDevice, body: str, why: str) -> None:
    verdict = await device.judge(program(body))
    after = await device.judge(KNOWN)

    assert ("wrong", why) == (verdict.verdict, verdict.why)
    assert "right" == after.verdict


async def test_the_first_wrong_element_is_named(device: OpenclDevice) -> None:
    verdict = await device.judge(program("a[i] = i < 5 ? -b[i] : -b[i] + 3;"))

    outputs: Any = verdict.runs[0]["outputs"]
    assert (3, 5, 3.0) == (outputs[0]["wrong"], outputs[0]["first_wrong"], outputs[0]["worst_ulp"])


async def test_a_program_that_never_ends_costs_its_run_only(device: OpenclDevice) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "_conditions", Conditions(run_s=HANG_S))
        with pytest.raises(RunTimedOut):
            await device.judge(program("volatile int k = 1; while (k) {} a[i] = -b[i];"))

    assert "right" == (await device.judge(KNOWN)).verdict


@pytest.mark.parametrize(
    "members",
    [
        {"local_size": [1 << 20, 1, 1]}, {"local_size": [1, 1 << 20, 1]}, {"shared_bytes": 1 << 40},
    ],
)  # fmt: skip
async def test_what_the_device_has_too_little_of_is_said_before_the_launch(device: OpenclDevice, members: dict[str, Any]) -> None:
    assert "unfit" == (await device.judge(program("a[i] = -b[i];", **members))).verdict


async def test_a_size_that_is_declared_too_small_is_wrong(device: OpenclDevice) -> None:
    arguments = [{"kind": "buffer", "index": n, "dtype": "int32", "size": 7} for n in range(2)]

    assert "launch" == (await device.judge(program("a[i] = -b[i];", arguments=arguments))).why


async def test_a_reference_that_would_take_too_long_is_refused(device: OpenclDevice) -> None:
    with pytest.raises(LimitExceeded, match="points"):
        await device.judge(replace(KNOWN, points=3))


async def test_a_device_describes_itself(facts: Facts) -> None:
    described = {"target", "device_class", "has_local", "has_shared", "local_max", "lanes_max", "shared_max", "alignment"}

    assert described | {"float16", "float64"} == set(facts.options)
    assert facts.name.replace("-", "").isalnum()


def test_two_devices_of_one_name_are_told_apart() -> None:
    assert "pocl-cpu" == name_of("Portable Computing Language", "pthread-CPU", [])
    assert "pocl-cpu-2" == name_of("Portable Computing Language", "pthread-CPU", ["pocl-cpu"])


def test_pocl_is_not_offered_where_there_is_no_linker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert [] == discover()


def test_a_driver_that_ends_its_process_is_no_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, library, icd = tmp_path / "d.c", tmp_path / "libbroken.so", tmp_path / "broken.icd"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    icd.write_text(f"{library}\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(icd))

    assert [] == discover()
    assert os.getpid()


def test_each_kind_of_device_drives_what_it_finds(facts: Facts) -> None:
    driven: Device = DEVICES["opencl"].drive(facts, Conditions())

    assert facts == driven.facts
    assert not driven.alive
