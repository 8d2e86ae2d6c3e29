"""Every row of every table, proved on random values of each type it may fire on."""

from __future__ import annotations

from itertools import islice

import pytest

from core.dtypes import DType
from core.ir.evaluate import evaluate
from core.ir.op import Op
from core.passes.arithmetic import FAST_MATH
from core.passes.gates import GATES
from core.passes.simplify import EXACT, FAST_RULES, RULES
from core.passes.vectors import VECTORS
from core.rewrite import Rule, RuleSet
from tests.core.passes.samples import bits, instances, is_open, replacements

STRUCTURAL = frozenset(
    (Op.EXTRACT, Op.VECTOR, Op.ACC, Op.UPDATE, Op.LOAD, Op.STORE, Op.BARRIER, Op.SINK)
)  # no functions of numbers: cases show them
VALUE_RULES = [r for r in RULES if r.before.ops[0] not in STRUCTURAL]
FIRINGS, ATTEMPTS = 40, 6_000


@pytest.mark.parametrize("rule", VALUE_RULES, ids=str)
def test_a_rule_keeps_every_bit(rule: Rule) -> None:
    """I 171, 172, 173: every rule, on infinities, NaN, zeros and ends of ranges too."""
    fired: dict[DType, int] = {}
    for instance in islice(instances(rule, seed=1), ATTEMPTS):
        for result in replacements(rule, instance.root):
            assert (instance.root.dtype, instance.root.lanes) == (result.dtype, result.lanes)
            fired[instance.root.dtype] = fired.get(instance.root.dtype, 0) + 1
            for _ in range(8):
                known = instance.assignment()
                if is_open(instance.root, known):
                    continue
                assert bits(evaluate(instance.root, known)) == bits(evaluate(result, known)), (
                    instance.root,
                    instance.root.src,
                    known,
                    result,
                )
        if sum(fired.values()) >= FIRINGS and len(fired) == len(rule.typing().types(rule.typing().root) or fired):
            break

    assert sum(fired.values()) >= FIRINGS, "the rule hardly ever fires"
    assert (rule.typing().types(rule.typing().root) or set(fired)) == set(fired), "some of its types it never fires on"


@pytest.mark.parametrize("rule", FAST_MATH.rules, ids=str)
def test_a_rule_of_fast_math_holds_for_real_numbers(rule: Rule) -> None:
    """On small powers of two, where nothing rounds and nothing is infinite."""
    fired = 0
    for instance in islice(instances(rule, seed=1, tame=True), 400):
        for result in replacements(rule, instance.root):
            known = instance.assignment()
            fired += 1
            assert evaluate(instance.root, known) == evaluate(result, known)

    assert fired >= FIRINGS


def test_the_tables_are_whole() -> None:
    parts = RuleSet(VECTORS, EXACT, GATES)

    assert parts.rules == RULES.rules
    assert set(FAST_RULES.rules) - set(RULES.rules) == set(FAST_MATH.rules)
    assert len({str(r) for r in RULES}) >= len(RULES.rules) - 8  # rows that differ in their condition only
