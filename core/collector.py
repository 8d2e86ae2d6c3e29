"""Python's collector of cycles, at rest while a kernel is compiled.

A compile makes very many values that refer to older ones only and live to its end. The collector would walk them over and over, for a tenth
of the time of a sample of kernels and a third of that of its slowest hundredth, and find next to nothing. What has no more users is freed
at once all the same, by its count.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Cycles are left alone in here. Whether they are looked for afterwards is as it was before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
