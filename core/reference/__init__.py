"""What a kernel means, slowly and plainly, straight from the wire page: validation and tests compare programs with this.

It shares the reader's typed kernel with the compiler and nothing else.
"""

from core.dtypes import dtype_named
from core.reference.bounded import stored_type
from core.reference.compare import Agreement, compare
from core.reference.evaluate import BUDGET, Result, evaluate, work
from core.reference.inputs import sample_inputs, sample_variables, sampled_sizes
from core.reference.leaves import OutsideBuffer
from core.reference.place import size_at
from core.reference.sizes import bounded_buffers, buffer_sizes

__all__ = [
    "BUDGET",
    "Agreement",
    "OutsideBuffer",
    "Result",
    "bounded_buffers",
    "buffer_sizes",
    "compare",
    "dtype_named",
    "evaluate",
    "sample_inputs",
    "sample_variables",
    "sampled_sizes",
    "size_at",
    "stored_type",
    "work",
]
