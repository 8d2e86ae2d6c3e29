"""Rules as data, and the engine that applies them; it knows no rule."""

from core.rewrite.engine import Rewritten, rewrite
from core.rewrite.pattern import (
    BOOLS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    Pattern,
    any_value,
    apply,
    bitcast,
    cast,
    fold,
    literal,
    maximum,
    mulacc,
    ne,
    one_of,
    recip,
    update,
    where,
)
from core.rewrite.rule import Rule, RuleSet, rule

__all__ = [
    "BOOLS", "FLOATS", "INTEGERS", "NUMBERS",
    "SIGNED", "Pattern", "Rewritten", "Rule", "RuleSet", "any_value", "apply", "bitcast", "cast", "fold",
    "literal", "maximum", "mulacc", "ne", "one_of", "recip", "rewrite", "rule", "update", "where",
]
