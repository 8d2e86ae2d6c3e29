"""Exact integer arithmetic over `Value`s of dtype INDEX: floor division, bounds, conditions, and what follows from them.

Every index value is built by the constructors here, which simplify as they build: two spellings of one thing are one object.
"""

from core.index.condition import FALSE, TRUE, all_of, at_least, conjuncts, less
from core.index.divmod import floordiv, mod
from core.index.linear import add, multiply, negate, number, scale, split, subtract, total
from core.index.substitute import substitute

__all__ = [
    "FALSE",
    "TRUE",
    "add",
    "all_of",
    "at_least",
    "conjuncts",
    "floordiv",
    "less",
    "mod",
    "multiply",
    "negate",
    "number",
    "scale",
    "split",
    "substitute",
    "subtract",
    "total",
]
