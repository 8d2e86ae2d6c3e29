"""The wire's integer expressions: text to tokens to postfix, checked and without recursion.

    expression := term (("+" | "-") term)*        term := factor (("*" | "//" | "%") factor)*
    factor := "-" factor | integer | name | "(" expression ")"        right sides of // and % are positive integer literals

An `Expression` keeps its canonical text (the tokens without spaces) and a postfix program anybody can run: the reference evaluator on
arrays, `core.kernel.leaves` on the algebra's values. A text that is a plain integer is that integer, never an Expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_TOKEN = re.compile(r" *(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*%()]))", re.ASCII)
_COMPARISON = re.compile(r"<=|>=|<|>")
_BINDS = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2, "~": 3}

Step = int | str  # an integer is itself; one of + - * // % ~ (negation) applies; any other string is a name


class Malformed(ValueError):
    """The text is not in the grammar; the message says what was expected where."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An integer expression over names. text: canonical; postfix: its steps; names: those it uses, in order of appearance."""

    text: str
    postfix: tuple[Step, ...]
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def run(self, literal: Callable[[int], T], name: Callable[[str], T], apply: Mapping[str, Callable[..., T]]) -> T:
        """The value in any arithmetic: what literals and names are, and the six operations (`~`, negation, takes one operand)."""
        stack: list[T] = []
        for step in self.postfix:
            if isinstance(step, int):
                stack.append(literal(step))
            elif step == "~":
                stack.append(apply[step](stack.pop()))
            elif step in _BINDS:
                right = stack.pop()
                stack.append(apply[step](stack.pop(), right))
            else:
                stack.append(name(step))
        return stack[0]


Size = int | Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition of a `valid` list; relation is one of < <= > >=."""

    left: Size
    relation: str
    right: Size

    @property
    def text(self) -> str:
        return f"{self.left}{self.relation}{self.right}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for side in (self.left, self.right) if isinstance(side, Expression) for n in side.names)


def parse_expression(text: str) -> Size:
    """Text to an Expression, or to the integer it plainly is (`"-3"` and `"- 3"` too). Raises Malformed."""
    tokens = _tokens(text)
    if len(tokens) == 1 and tokens[0].isdigit():
        return int(tokens[0])
    if len(tokens) == 2 and tokens[0] == "-" and tokens[1].isdigit():
        return -int(tokens[1])
    postfix, names = _postfix(tokens)
    return Expression("".join(tokens), postfix, names)


def parse_comparison(text: str) -> Comparison:
    """Text to a Comparison. Raises Malformed."""
    found = _COMPARISON.findall(text)
    if len(found) != 1:
        raise Malformed("one of < <= > >= between two expressions, once")
    left, right = text.split(found[0], 1)
    return Comparison(parse_expression(left), found[0], parse_expression(right))


def _tokens(text: str) -> list[str]:
    tokens, at, end = [], 0, len(text.rstrip(" "))
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise Malformed(f"a decimal integer, a name, + - * // % ( or ) at character {at}")
        tokens.append(match[match.lastindex or 0])
        at = match.end()
    if not tokens:
        raise Malformed("an integer expression, not an empty text")
    return tokens


def _postfix(tokens: list[str]) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The shunting-yard way; `operand` is whether a factor is due next."""
    steps: list[Step] = []
    names: dict[str, None] = {}
    waiting: list[str] = []
    operand = True
    for at, token in enumerate(tokens):
        if operand and token == "-":
            waiting.append("~")
        elif operand and token == "(":
            waiting.append("(")
        elif operand and token.isdigit():
            steps.append(int(token))
            operand = False
        elif operand and (token[0].isalpha() or token[0] == "_"):
            steps.append(token)
            names[token] = None
            operand = False
        elif not operand and token == ")":
            while waiting and waiting[-1] != "(":
                steps.append(waiting.pop())
            if not waiting:
                raise Malformed("no ) without its (")
            waiting.pop()
        elif not operand and token in _BINDS:
            if token in ("//", "%"):
                right = tokens[at + 1] if at + 1 < len(tokens) else "nothing"
                if not right.isdigit() or int(right) == 0:
                    raise Malformed(f"a positive integer literal after {token}, not {right[:40]}")
            while waiting and waiting[-1] != "(" and _BINDS[waiting[-1]] >= _BINDS[token]:
                steps.append(waiting.pop())
            waiting.append(token)
            operand = True
        else:
            raise Malformed(f"{'an operand' if operand else 'an operator or )'}, not {token[:40]!r} (token {at})")
    if operand:
        raise Malformed("an operand at the end")
    while waiting:
        if waiting[-1] == "(":
            raise Malformed("a ) for each (")
        steps.append(waiting.pop())
    return tuple(steps), tuple(names)
