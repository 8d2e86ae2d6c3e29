"""Before and after, as text: small enough to see why."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.ir.op import OPS
from core.ir.parse import parse
from core.ir.text import show
from core.ir.value import Value, alu
from core.ir.verify import verify
from core.ir.walk import Graph, ordered, with_sources
from core.passes.simplify import RULES, simplified, simplify
from core.rewrite import Rule
from tests.core.passes.test_rules import STRUCTURAL

CASES = Path(__file__).parent / "cases"


def cases() -> list[tuple[str, bool, str, str]]:
    """(title, fast_math, before, after) of every block of every file."""
    found = []
    for file in sorted(CASES.glob("*.txt")):
        for block in file.read_text().strip().split("\n\n"):
            title, _, rest = block.partition("\n")
            fast = rest.startswith("fast\n")
            before, _, after = rest.removeprefix("fast\n").partition("-> ")
            found.append((f"{file.stem}: {title.removeprefix('# ')}", fast, before, after))
    return found


def in_order(root: Value) -> Value:
    """The same graph with commuting operands in canonical order, which no reader of a case has to know."""
    done: dict[Value, Value] = {}
    for value in ordered(root):
        src = tuple(done[s] for s in value.src)
        if OPS[value.op].commutes and OPS[value.op].arity == 2:
            done[value] = alu(value.op, *src)
        else:
            done[value] = with_sources(value, src)
    return done[root]


@pytest.mark.parametrize(("title", "fast_math", "before", "after"), [pytest.param(*c, id=c[0]) for c in cases()])
def test_before_becomes_after(title: str, fast_math: bool, before: str, after: str) -> None:
    """I 168, 169, 170, 174, 178, 187."""
    root, expected = parse(before), parse(after)
    verify(root, "raw", title)

    assert show(in_order(expected)) == show(simplify(Graph.of(root), fast_math=fast_math)[0].root)


def test_every_rule_on_structure_has_a_case() -> None:
    fired: set[Rule] = set()
    for _, fast_math, before, _ in cases():
        fired.update(simplified(Graph.of(parse(before)), fast_math=fast_math)[2])

    assert not [str(rule) for rule in RULES if rule.before.ops[0] in STRUCTURAL and rule not in fired]
