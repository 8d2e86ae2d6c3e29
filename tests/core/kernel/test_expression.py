"""Expressions mean what Python says they mean, are kept by their tokens, and never recurse."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.kernel.bounds import value_at
from core.kernel.expression import Comparison, Expression, Malformed, parse_comparison, parse_expression

NAMES = {"n": 7, "start_pos": -3, "axis0": 5, "_x9": 2**40}

TEXTS = st.recursive(
    st.sampled_from([*NAMES, "0", "1", "12", "4095"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" + ", "-", "*", " *", "- "]), inner).map("".join),
        st.tuples(inner, st.sampled_from(["//", " % ", "%"]), st.sampled_from(["1", "3", "64"])).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f" - {text}"),
    ),
    max_leaves=12,
)


@given(TEXTS)
def test_an_expression_means_what_python_says(text: str) -> None:
    size = parse_expression(text)

    assert eval(text.strip(), {}, dict(NAMES)) == (size if isinstance(size, int) else value_at(size, NAMES))


@given(TEXTS)
def test_the_text_is_the_tokens_without_spaces_and_reads_back(text: str) -> None:
    size = parse_expression(text)

    if isinstance(size, Expression):
        assert text.replace(" ", "") == size.text
        assert size == parse_expression(size.text)
        assert set(size.names) == set(re.findall(r"[A-Za-z_]\w*", text))
    else:
        assert re.fullmatch(r" *-? *[0-9]+ *", text)


@given(TEXTS, st.sampled_from(["<", "<=", ">", ">="]), TEXTS)
def test_a_comparison_is_two_expressions_and_a_relation(left: str, relation: str, right: str) -> None:
    found = parse_comparison(f"{left} {relation}{right}")

    assert Comparison(parse_expression(left), relation, parse_expression(right)) == found
    assert found == parse_comparison(found.text)


@given(st.text(alphabet="n1 +-*/%()<=>", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_expression, parse_comparison):
        try:
            parse(text)
        except Malformed:
            continue


@pytest.mark.parametrize(("text", "value"), [("5", 5), (" 05 ", 5), ("-5", -5), ("- 5", -5), ("0", 0), ("-0", 0)])
def test_a_plain_integer_is_that_integer(text: str, value: int) -> None:
    assert value == parse_expression(text)


@pytest.mark.parametrize("text", ["(5)", "--5", "5+0", "5*1"])
def test_what_is_more_than_a_plain_integer_stays_an_expression(text: str) -> None:
    assert text == str(parse_expression(text))


def test_unary_minus_binds_tightest() -> None:
    size = parse_expression("-n//2")

    assert isinstance(size, Expression)
    assert -4 == value_at(size, NAMES)
    assert ("n", "~", 2, "//") == size.postfix


@pytest.mark.parametrize("text", ["(" * 50_000 + "n" + ")" * 50_000, "-" * 50_000 + "n", "n" + "+n" * 50_000, "n" + "//2" * 50_000])
def test_long_and_deep_expressions_are_read_without_recursion(text: str) -> None:
    assert isinstance(parse_expression(text), Expression)
