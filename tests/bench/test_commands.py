"""Each command is run on two kernels, and gives what it promises. How quick anything was is no test's business."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.__main__ import main
from bench.kernels import OWN, read_cases
from core import Request, compile_kernel, read_json
from tests.kernels import add_kernel, kernel, load, node, store

TWO = {"add": add_kernel(), "rows": kernel(load(1, [4, 8]), node("REDUCE_SUM", 0, axes=[1]), store(1, [4, 1]))}
REFUSED = add_kernel() | {"outputs": [0]}


def corpus(folder: Path, asts: dict[str, Any] = TWO) -> Path:
    file = folder / "two.jsonl"
    file.write_text("".join(json.dumps({"id": id, "ast": ast}) + "\n" for id, ast in asts.items()))
    return file


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A stored run over two kernels and one that is refused."""
    out = tmp_path / "run.json"

    assert 0 == main(["compile", "--corpus", str(corpus(tmp_path, {**TWO, "wrong": REFUSED})), "--repeats", "2", "--json", str(out)])
    return out


def test_a_run_holds_each_kernels_stages_per_pass(stored: Path) -> None:
    run = json.loads(stored.read_text())

    assert ["add", "rows"] == [row["id"] for row in run["kernels"]]
    for row in run["kernels"]:
        assert row["micro_ops"] > 0
        assert 2 == len(row["passes"])
        for stages in row["passes"]:
            assert {"read", "check", "canonical", "key", "leaves", "lower", "order", "render", "program"} <= stages.keys()
            assert all(ms >= 0 for ms in stages.values())


def test_a_run_holds_its_summary_and_how_it_was_made(stored: Path) -> None:
    run = json.loads(stored.read_text())

    assert ("compile", "opencl", "heuristic", 2, ["two.jsonl"]) == tuple(
        run[name] for name in ("bench", "target", "optimize", "repeats", "corpus")
    )
    assert (2, 1) == (run["summary"]["kernels"], run["summary"]["refused"])
    assert {"total", "median", "p90", "p99", "slowest"} == run["summary"]["all_ms"].keys()


def test_a_refused_kernel_is_told_and_not_timed(stored: Path) -> None:
    (refused,) = json.loads(stored.read_text())["refused"]

    assert "wrong" == refused["id"]
    assert refused["category"] in ("wire", "ast")


def test_a_run_is_compared_with_a_stored_one(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["compile", "--corpus", str(corpus(stored.parent)), "--repeats", "1", "--compare", str(stored)])
    assert "2 kernels in both" in capsys.readouterr().out

    assert 0 == main(["compare", str(stored), str(stored)])
    assert "no stage changed by more than the noise" in capsys.readouterr().out


def test_a_run_is_drawn(stored: Path, tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"

    assert 0 == main(["plot", str(stored), "-o", str(picture)])

    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    assert f"{space}svg" == root.tag
    assert 2 == len(root.findall(f"{space}circle"))


def test_a_profile_names_functions_of_the_compiler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["profile", "--corpus", str(corpus(tmp_path)), "--passes", "50"])

    said = capsys.readouterr().out
    assert said.startswith("2 kernels")
    assert "core/" in said


def test_cache_hits_are_counted_beside_a_bare_server(tmp_path: Path) -> None:
    out = tmp_path / "cache.json"

    assert 0 == main(["cache", "--requests", "20", "--connections", "4", "--rounds", "2", "--json", str(out)])

    found = json.loads(out.read_text())
    assert ("cache", 20, 2) == (found["bench"], found["requests"], found["rounds"])
    assert ["GET /program/{key}", "POST /compile"] == list(found["calls"])
    for by_server in found["calls"].values():
        assert {"lathe", "lathe, no access log", "bare"} == by_server.keys()
        for row in by_server.values():
            assert 2 == len(row["rounds"])
            assert row["per_second"] > 0
            assert row["cpu_us"] > 0
        assert (1.0, 1.0) == (by_server["bare"]["per_second_of_bare"], by_server["bare"]["cpu_of_bare"])
    assert [1, 4] == [row["connections"] for row in found["levels"]["redis"]]
    assert {"memory", "redis"} == found["levels"]["misses"].keys()
    assert all(row["kernels"] > 40 and row["miss_ms"] > 0 for row in found["levels"]["misses"].values())


def test_a_soak_tells_memory_and_files_over_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "soak.json"

    assert 0 == main(["soak", "--compiles", "40", "--hits", "200", "--json", str(out)])

    found = json.loads(out.read_text())
    assert (40, 200) == (found["compiles"], found["hits"])
    assert all(sample["server_kib"] > 0 and sample["server_files"] > 0 for sample in found["samples"])
    assert "the server has grown by" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["{}", '{"id": "a"}', "[]", "nonsense"])
def test_a_corpus_that_is_none_is_told(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text(line + "\n")

    assert 2 == main(["compile", "--corpus", str(file)])
    assert "wrong.jsonl, line 1" in capsys.readouterr().err


def test_a_stored_run_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"bench": "cache"}')

    assert 2 == main(["plot", str(file), "-o", str(tmp_path / "x.svg")])
    assert "no run" in capsys.readouterr().err


def test_a_corpus_may_be_gzipped(tmp_path: Path) -> None:
    plain = corpus(tmp_path)
    packed = tmp_path / "two.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    assert read_cases([plain], "c", "none") == read_cases([packed], "c", "none")


def test_the_same_seed_draws_the_same_kernels() -> None:
    draws = [[case.id for case in read_cases([OWN], "c", "none", 5, seed)] for seed in (1, 1, 2)]

    assert 5 == len(set(draws[0]))
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("case", read_cases([OWN], "opencl", "heuristic"), ids=lambda case: str(case.id))
def test_the_projects_own_kernels_compile(case: Any) -> None:
    request = Request.from_json(read_json(case.body))

    assert compile_kernel(request).source
