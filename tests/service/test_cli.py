"""The command line: what it prints, and that it says plainly what it can't do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from service.__main__ import cli
from service.api.examples import COMPILES, SUM
from service.settings import Settings

ROOT = Path(__file__).parents[2]
RUNNER = CliRunner()


def lathe(*words: str, **more: Any) -> Any:
    return RUNNER.invoke(cli, list(words), **more)


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(COMPILES["without a schedule, in C"]))
    return file


def test_a_request_in_a_file_is_compiled(request_file: Path) -> None:
    result = lathe("compile", str(request_file))

    assert 0 == result.exit_code
    assert "c" == json.loads(result.stdout)["target"]


def test_a_bare_kernel_is_compiled_for_the_target_named(tmp_path: Path) -> None:
    file = tmp_path / "ast.json"
    file.write_text(json.dumps(SUM))
    for target in ("opencl", "c"):
        result = lathe("compile", str(file), "--target", target)
        assert target == json.loads(result.stdout)["target"]

    assert "opencl" == json.loads(lathe("compile", str(file)).stdout)["target"]


def test_the_target_named_goes_in_place_of_the_one_in_the_request(request_file: Path) -> None:
    assert "opencl" == json.loads(lathe("compile", str(request_file), "--target", "opencl").stdout)["target"]


def test_the_source_alone_is_printed_on_request(request_file: Path) -> None:
    whole = json.loads(lathe("compile", str(request_file)).stdout)

    assert whole["source"].rstrip() == lathe("compile", str(request_file), "--source").stdout.rstrip()


def test_standard_input_is_a_file_too() -> None:
    result = lathe("compile", "-", input=json.dumps(COMPILES["row sums in OpenCL"]))

    assert "opencl" == json.loads(result.stdout)["target"]


def test_binaries_are_a_service_s_and_never_left_out_without_a_word(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps({**COMPILES["without a schedule, in C"], "binary": True}))
    result = lathe("compile", str(file))

    assert 1 == result.exit_code
    assert "target: /binary: c has no binaries without a service" in result.stderr


@pytest.mark.parametrize(("text", "said"), [("{", "wire"), ('{"ast": 1, "device": {"target": "c"}}', "/ast"), ("[]", "wire")])
def test_what_cannot_be_compiled_is_said_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    result = lathe("compile", str(file))

    assert (1, "") == (result.exit_code, result.stdout)
    assert said in result.stderr
    assert 1 == result.stderr.count("\n")


def test_a_file_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    result = lathe("compile", str(tmp_path / "none.json"))

    assert 2 == result.exit_code
    assert "none.json" in result.stderr


def test_config_shows_every_setting_and_where_it_came_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "lathe.toml"
    file.write_text("workers = 3\n")
    monkeypatch.setenv("LATHE_PORT", "9000")
    result = lathe("config", "--config", str(file), "--queue-limit", "7", "--log-level=error")

    assert 0 == result.exit_code
    rows = {row[0]: (row[1], row[2]) for row in re.findall(r"^(\w+) +(.*)  \((.*)\)$", result.stdout, re.MULTILINE)}
    assert set(Settings.model_fields) == set(rows)
    assert [("9000", "environment"), ("3", f"file {file}"), ("7", "flag"), ("error", "flag"), ("127.0.0.1", "default")] == [
        rows[name] for name in ("port", "workers", "queue_limit", "log_level", "host")
    ]


@pytest.mark.parametrize("words", [["--queue-limits", "7"], ["--port", "x"], ["--port"]])
@pytest.mark.parametrize("command", ["config", "serve"])
def test_a_setting_that_is_none_is_said_in_one_line(command: str, words: list[str]) -> None:
    result = lathe(command, *words)

    assert 2 == result.exit_code
    assert 1 == result.stderr.count("\n")


def test_the_module_is_the_command() -> None:
    environment = {"PATH": os.environ["PATH"], "LATHE_PORT": "1234"}
    result = subprocess.run(
        [sys.executable, "-m", "service", "config"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert re.search(r"^port +1234  \(environment\)$", result.stdout, re.MULTILINE)


def test_an_unknown_variable_keeps_the_service_from_starting() -> None:
    environment = {"PATH": os.environ["PATH"], "LATHE_PROT": "1234"}
    result = subprocess.run(
        [sys.executable, "-m", "service", "serve"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert (2, "") == (result.returncode, result.stdout)
    assert "LATHE_PROT" in result.stderr
