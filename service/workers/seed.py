"""What worker processes grow from: imported once, by the server that forks them, and by nobody else.

A new worker has the compiler loaded and warm from its first moment: the tables of rules are compiled at their first use, which was here.
All of that lies in memory that the workers share.
"""

from __future__ import annotations

import contextlib
import gc
import signal

from core import TARGETS, Limits, Request, compile_kernel
from service.workers import task

__all__ = ["task"]

_PLACE = {"shape": [4, 8], "strides": [8, 1], "offset": 0}
_NODES = [
    {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [_PLACE]},
    {"op": "CONST", "value": 2.0, "dtype": "float32", "views": [{**_PLACE, "strides": [0, 0]}]},
    {"op": "MUL", "src": [0, 1]},
    {"op": "REDUCE_SUM", "src": [2], "axes": [1]},
    {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [{"shape": [4, 1], "strides": [1, 0], "offset": 0}], "src": [3]},
]


def _warm() -> None:
    """Compiles a small kernel for every target."""
    for target in TARGETS:
        body = {"ast": {"version": 1, "variables": [], "nodes": _NODES, "outputs": [4]}, "device": {"target": target}}
        with contextlib.suppress(Exception):  # whatever is wrong will be told to those who ask for this target
            compile_kernel(Request.from_json(body), Limits())


signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a signal to the whole process group: the end comes when the service has ended
_warm()
gc.collect()
gc.freeze()
