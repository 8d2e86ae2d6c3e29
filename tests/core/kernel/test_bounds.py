"""Bounds of sizes contain every value; whether one may be negative is exact wherever it can be tried."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.kernel.bounds import Beyond64, bounds, may_be_negative, value_at
from core.kernel.expression import Expression, parse_expression
from core.kernel.node import Variable

VARIABLES = {"n": Variable("n", 0, 30), "m": Variable("m", -7, 12)}

TEXTS = st.recursive(
    st.sampled_from(["n", "m", "0", "1", "3", "12"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.sampled_from("1235")).map("".join).map(lambda text: f"({text})"),
        inner.map(lambda text: f"(-{text})"),
    ),
    max_leaves=8,
)


def values(size: Expression) -> list[int]:
    ranges = [range(VARIABLES[name].min, VARIABLES[name].max + 1) for name in size.names]
    return [value_at(size, dict(zip(size.names, point, strict=True))) for point in product(*ranges)]


@given(TEXTS)
@settings(max_examples=60)
def test_bounds_contain_every_value(text: str) -> None:
    size = parse_expression(text)
    low, high = bounds(size, VARIABLES)

    assert isinstance(size, int) or all(low <= value <= high for value in values(size))


@given(TEXTS)
@settings(max_examples=60)
def test_what_may_be_negative_is_found_exactly(text: str) -> None:
    size = parse_expression(text)

    negative = size < 0 if isinstance(size, int) else any(value < 0 for value in values(size))
    assert negative == may_be_negative(size, VARIABLES)[0]


@given(TEXTS, st.integers(0, 40))
@settings(max_examples=60)
def test_few_values_decide_for_long_ranges(text: str, shift: int) -> None:
    size = parse_expression(f"{text} + {shift}")
    assert isinstance(size, Expression)
    variables = {"n": Variable("n", 0, 2**20), "m": VARIABLES["m"]}

    if any(value < 0 for value in values(size)):
        assert may_be_negative(size, variables)[0]


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("p - p//2", False),
        ("p//2 - p", True),
        ("(p + 15)//16*16 - p", False),
        ("p - (p + 15)//16*16", True),
        ("p%7 - 3", True),
        ("p*q - q", True),
        ("(p + 1)*q - q", False),
        ("p//4//8*32 - p", True),
        ("p - p//4//8*32", False),
        ("p*q*q", False),
    ],
)
def test_long_ranges_are_decided_where_the_size_is_linear(text: str, negative: bool) -> None:
    variables = {"p": Variable("p", 0, 2**31 - 1), "q": Variable("q", 0, 1000)}

    assert negative == may_be_negative(parse_expression(text), variables)[0]


def test_what_can_not_be_decided_counts_as_negative() -> None:
    assert may_be_negative(parse_expression("p*p - p"), {"p": Variable("p", 0, 2**31 - 1)})[0]


def test_a_step_beyond_64_bits_is_told() -> None:
    with pytest.raises(Beyond64) as beyond:
        bounds(parse_expression(f"n*{2**60} - n*{2**60}"), VARIABLES)

    assert (0, 30 * 2**60) == beyond.value.args
