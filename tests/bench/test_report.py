from __future__ import annotations

import pytest

from bench.report import quantile, sizes, summary, text
from tests.bench.runs import kernel, run


def test_a_kernels_figures_come_from_its_quickest_pass() -> None:
    found = summary(run(kernel("a", (3.0, 1.0), (1.0, 2.0), (2.0, 9.0))))

    assert {"read": 1.0, "lower": 2.0} == {stage: row["total"] for stage, row in found["stages"].items()}
    assert 3.0 == found["all_ms"]["total"]


def test_stages_make_up_the_whole() -> None:
    found = summary(run(kernel("a", (1.0, 3.0)), kernel("b", (2.0, 2.0))))

    assert 1.0 == pytest.approx(sum(row["share"] for row in found["stages"].values()))
    assert found["all_ms"]["total"] == found["request_ms"]["total"] + found["compile_ms"]["total"]


def test_the_slowest_kernel_is_named_with_what_dominates_it() -> None:
    found = summary(run(kernel("a", (1.0, 3.0)), kernel("b", (1.0, 9.0))))

    assert {"id": "b", "ms": 10.0, "micro_ops": 10, "stages": {"lower": 0.9, "read": 0.1}} == found["slowest"][0]
    assert "  b  " in text(run(kernel("b", (1.0, 9.0))), found)


def test_a_class_of_size_has_the_cost_of_its_micro_ops() -> None:
    rows = sizes([kernel("a", (0.0, 1.0), micro_ops=16), kernel("b", (0.0, 3.0), micro_ops=17), kernel("c", (0.0, 2.0), micro_ops=5000)])

    assert [("1 to 16", 62.5), ("17 to 64", 176.47), ("1025 and more", 0.4)] == [(row["micro_ops"], row["micro_op_us"]) for row in rows]


def test_a_quantile_is_one_of_the_values() -> None:
    assert 99 == quantile(range(100), 0.99)
    assert 5 == quantile([5], 0.5)
