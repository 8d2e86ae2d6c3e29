"""The compiler's version follows from the sources and from nothing beside them."""

from __future__ import annotations

from pathlib import Path

from core.version import digest


def put(folder: Path, **sources: str) -> Path:
    for name, text in sources.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_equal_sources_have_one_version_wherever_they_lie(tmp_path: Path) -> None:
    one = put(tmp_path / "one", a_py="x = 1", b__c_py="y = 2")
    two = put(tmp_path / "two", b__c_py="y = 2", a_py="x = 1")

    assert digest(one) == digest(two)


def test_any_change_of_a_source_is_another_version(tmp_path: Path) -> None:
    versions = {
        digest(put(tmp_path / "1", a_py="x = 1", b_py="")),
        digest(put(tmp_path / "2", a_py="x = 2", b_py="")),
        digest(put(tmp_path / "3", a_py="", b_py="x = 1")),
        digest(put(tmp_path / "4", a_py="x = 1")),
        digest(put(tmp_path / "5", a_py="x = 1", c_py="")),
        digest(put(tmp_path / "6", a_py="x = 1", d__b_py="")),
    }

    assert 6 == len(versions)


def test_what_is_no_source_does_not_count(tmp_path: Path) -> None:
    bare = digest(put(tmp_path, a_py="x = 1"))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "b.py").write_text("y = 2")
    (tmp_path / "notes.txt").write_text("z")

    assert bare == digest(tmp_path)
