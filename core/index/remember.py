"""Answers of pure functions of index values, kept from kernel to kernel within bounds.

Kernels of one model share most of their index arithmetic. Values are interned, so an answer is found by identity; a function that is
remembered depends on its arguments alone, so whether an answer is made or found changes no byte of a program. What was asked for longest
ago is forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

ANSWERS = 1 << 12  # of each function: some hundred bytes each

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which looks among its last answers first. Its arguments are values and numbers."""
    return lru_cache(maxsize=ANSWERS)(function)  # type: ignore[return-value]  # typeshed forgets the parameters
