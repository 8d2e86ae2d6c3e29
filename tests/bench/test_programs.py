"""`bench programs`: every workload's kernel and text by hand mean what numpy says; a run is stored, read, drawn and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import plot_programs
from bench.__main__ import main
from bench.handwritten import handwritten
from bench.programs import HAND, HEURISTIC, NONE, NUMPY, Measured, ProgramsRun, Times, compared, read_programs, summary, text
from bench.workloads import WORKLOADS, Workload
from tests.bench import runs


def measured(name: str, heuristic: float, by_hand: float = 2.0, model_ms: float | None = 3.0) -> Measured:
    versions = {HEURISTIC: heuristic, NONE: 8.0, HAND: by_hand, NUMPY: 4.0}
    return Measured(name, 2_000_000, 4_000_000, ["UPCAST 0 16"], model_ms, {v: Times([ms] * 3, [2 * ms] * 3) for v, ms in versions.items()})


def made(*workloads: Measured, device: str = "a device") -> ProgramsRun:
    return ProgramsRun(device, "CPython", 2, "0" * 64, 3, workloads)


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.name)
def test_each_workload_has_a_text_by_hand_and_inputs_of_its_shapes(work: Workload) -> None:
    assert "__kernel void k(" in handwritten(work).source
    assert list(work.inputs) == [array.shape for array in work.data()]
    assert work.output == work.numpy(*work.data()).shape


def test_a_run_compares_each_version_with_numpy_before_it_is_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command itself, on the quickest workloads; a program that is wrong ends it with 2."""
    out = tmp_path / "run.json"

    assert 0 == main(["programs", "--only", "gather", "rmsnorm", "--rounds", "1", "--seconds", "0.001", "--json", str(out)])

    run: dict[str, Any] = json.loads(out.read_text())
    assert ["rmsnorm", "gather"] == [w["name"] for w in run["workloads"]]
    assert [[HEURISTIC, HAND, NUMPY], [HEURISTIC, NONE, HAND, NUMPY]] == [list(w["versions"]) for w in run["workloads"]]
    assert all(ms > 0 for w in run["workloads"] for times in w["versions"].values() for ms in times["device_ms"])
    assert "rmsnorm" in capsys.readouterr().out


def test_speeds_are_geometric_means_and_the_models_error_is_told() -> None:
    run = made(measured("a", 1.0), measured("b", 4.0, model_ms=None), measured("c", 1.0, model_ms=1.0))

    found = summary(run)

    assert {"none": 5.04, "by hand": 1.26, "numpy": 2.52} == found["speed"]
    assert {"least": 0.5, "median": 1.0, "greatest": 1.5, "within_two": 2, "of": 2} == found["model"]
    assert "2.0 GFLOP/s" not in text(run)
    assert "       2.0     4.0    1.50  UPCAST 0 16" in text(run)


def test_a_stored_run_is_read_as_it_was(tmp_path: Path) -> None:
    run = made(measured("a", 1.0))

    assert run == read_programs(json.loads(json.dumps(run.to_json())), tmp_path)


def test_a_stored_run_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="another form"):
        read_programs({"bench": "programs", "workloads": [{"name": "a"}]}, tmp_path)


def test_a_picture_has_a_dot_for_each_version_of_each_workload() -> None:
    picture = ElementTree.fromstring(plot_programs.svg(made(measured("a & b", 1.0), measured("c", 4.0))))

    dots = [e for e in picture.iter() if e.tag.endswith("circle")]
    assert 3 + 2 * 3 == len(dots)
    assert "a & b" in [e.text for e in picture.iter() if e.tag.endswith("text")]


def test_a_program_that_is_slower_by_more_than_the_noise_is_named() -> None:
    said = compared(made(measured("a", 1.0), measured("b", 1.0)), made(measured("a", 1.5), measured("b", 1.01)))

    assert "heuristic: 1 slower, 0 faster\na " in said
    assert "\nb " not in said


def test_a_machine_that_is_slower_is_told_by_what_never_changes() -> None:
    said = compared(made(measured("a", 1.0)), made(measured("a", 1.5, by_hand=3.0)))

    assert "took 1.50 times as long" in said


def test_runs_that_have_nothing_in_common_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no workload"):
        compared(made(measured("a", 1.0)), made(measured("b", 1.0)))
    with pytest.raises(ValueError, match="not the same device"):
        compared(made(measured("a", 1.0)), made(measured("a", 1.0), device="another"))
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps(made(measured("a", 1.0)).to_json()))
    other.write_text(json.dumps(runs.run(runs.kernel("a", (1.0, 1.0))).to_json()))
    assert 2 == main(["compare", str(one), str(other)])
