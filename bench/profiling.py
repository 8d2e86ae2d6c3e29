"""`bench profile`: which functions the time goes to, found by looking at the stack again and again while CPU time passes.

Looking costs the compiler nothing, where counting each call (cProfile) makes it six times slower, and small functions the most.
What a function spends in Python's built-in ones is its own.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType

from bench.kernels import OWN, Case, read_cases
from core import LatheError, Limits, Request, compile_kernel, read_json

ROOT = Path(__file__).parents[1]
EVERY_S = 0.001  # of CPU time, or as often as the system's timers allow


def profile(cases: Sequence[Case], target: str, optimize: object, passes: int, top: int) -> str:
    """The functions with most time of their own, and those with most time in what they call, over all of the cases together."""
    limits = Limits()
    for case in read_cases([OWN], target, optimize):
        _whole(case, limits)
    around = {_whole.__code__, *_stack(sys._getframe())}
    own: Counter[CodeType] = Counter()
    within: Counter[CodeType] = Counter()

    def look(number: int, frame: FrameType | None) -> None:
        stack = list(_stack(frame))
        own.update(stack[:1])
        within.update(set(stack))

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        for _ in range(passes):
            for case in cases:
                _whole(case, limits)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    looks = max(1, own.total())
    lines = [f"{len(cases)} kernels, {passes} times; {own.total()} looks"]
    for title, counts in (("own", own), ("with callees", within)):
        lines += ["", f"{title:>13}  function"]
        ours = [(code, count) for code, count in counts.most_common() if code not in around]
        lines += [f"{count / looks:13.1%}  {_named(code)}" for code, count in ours[:top]]
    return "\n".join(lines)


def _whole(case: Case, limits: Limits) -> None:
    with suppress(LatheError):  # what is refused took its time too
        compile_kernel(Request.from_json(read_json(case.body, limits), limits), limits)


def _stack(frame: FrameType | None) -> Iterator[CodeType]:
    """What runs, and what called it, innermost first."""
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def _named(code: CodeType) -> str:
    path = Path(code.co_filename)
    file = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"{file}:{code.co_firstlineno} {code.co_qualname}"
