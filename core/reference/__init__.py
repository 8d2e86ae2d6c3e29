"""What a kernel means, slowly and plainly, straight from the wire page: validation and tests compare programs with this.

It shares the reader's typed kernel with the compiler and nothing else.
"""

from core.reference.compare import Agreement, compare
from core.reference.evaluate import BUDGET, OutsideBuffer, Result, evaluate, work

__all__ = ["BUDGET", "Agreement", "OutsideBuffer", "Result", "compare", "evaluate", "work"]
