"""Settings: where they come from, in which order, and that nothing misspelt is ignored."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from core import Limits
from service.settings import Settings, SettingsError, load, without_password


def test_without_anything_every_setting_has_its_default() -> None:
    loaded = load(environ={})

    assert {"default"} == set(loaded.origins.values())
    assert 8000 == loaded.settings.port


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "lathe.toml"
    file.write_text('port = 1\nhost = "file"\nlog_level = "error"\n')
    loaded = load({"port": "3"}, {"LATHE_PORT": "2", "LATHE_HOST": "environment", "LATHE_CONFIG": str(file)})

    assert (3, "environment", "error") == (loaded.settings.port, loaded.settings.host, loaded.settings.log_level)
    assert ("flag", "environment", f"file {file}") == tuple(loaded.origins[name] for name in ("port", "host", "log_level"))


@pytest.mark.parametrize("name", ["LATHE_PROT", "LATHE_LIMIT_NODE", "LATHE_"])
def test_an_unknown_variable_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load(environ={name: "1"})


def test_variables_of_others_and_of_the_tests_are_none_of_our_business() -> None:
    load(environ={"PATH": "/bin", "LATHEX": "1", "LATHE_TEST_REDIS": "redis://x"})


def test_an_unknown_name_in_the_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "lathe.toml"
    file.write_text("prot = 1\n")

    with pytest.raises(SettingsError, match="prot"):
        load(environ={}, file=file)


def test_an_unknown_flag_is_an_error() -> None:
    with pytest.raises(SettingsError, match="--queue-limits"):
        load({"queue_limits": "1"}, {})


@pytest.mark.parametrize("text", ["port = ", "\xff\xfe"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "lathe.toml"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(SettingsError, match=r"lathe\.toml"):
        load(environ={}, file=file)
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load(environ={"LATHE_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "70000"), ("port", "x"), ("workers", "0"), ("log_level", "loud"), ("store", "mysql://x"), ("store", "sqlite://relative"),
        ("compile_seconds", "0"), ("limit_nodes", "-1"), ("store_prefix", "a:b"), ("worker_memory_bytes", "1"),
    ],
)  # fmt: skip
def test_a_value_without_sense_is_an_error_that_names_setting_and_origin(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name} \(environment\)"):
        load(environ={f"LATHE_{name.upper()}": value})


def test_every_limit_of_the_compiler_is_a_setting_with_its_default() -> None:
    loaded = load(environ={"LATHE_LIMIT_NODES": "7"})

    assert {f"limit_{field.name}" for field in fields(Limits)} == {name for name in Settings.model_fields if name.startswith("limit_")}
    assert Limits(nodes=7) == loaded.settings.limits


def test_settings_do_not_change_once_they_are_read() -> None:
    settings = load(environ={}).settings

    with pytest.raises(ValueError):
        settings.port = 1


def test_secrets_are_not_shown() -> None:
    loaded = load(environ={"LATHE_STORE_SECRET": "hush", "LATHE_STORE": "redis://me:hush@there:1/0"})
    rows = {name: value for name, value, _ in loaded.rows()}

    assert "hush" not in str(rows)
    assert ("(set)", "redis://me:***@there:1/0") == (rows["store_secret"], rows["store"])


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("memory://", "memory://"),
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://:pass@host/0", "redis://:***@host/0"),
        ("rediss://user:p@ss@host/0", "rediss://user:***@host/0"),
        ("redis://user@host", "redis://user@host"),
    ],
)
def test_addresses_are_shown_without_their_password(address: str, shown: str) -> None:
    assert shown == without_password(address)
