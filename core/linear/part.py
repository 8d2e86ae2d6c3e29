"""One loop for one place: accumulators that need different loops around them do not share a loop of their own.

Lowering gives every reduce loops of its own, and all its elements share them. Simplification may then take what is around the loop out of
some elements' terms, or a whole inner loop, and not of others': those could stand further out, and what uses them may have to. Each such
family of accumulators gets a copy of the loops, and of what is computed inside.
"""

from __future__ import annotations

from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.value import Value, make
from core.ir.walk import ordered, substitute, substituted

_OPENERS = (Op.RANGE, Op.IF)
_ROUNDS = 10_000  # of copying: more than any kernel has loops
Place = tuple[tuple[Value, ...], int]  # a nest of loops, and a bit for each loop or region it stands in


def parted(root: Value) -> Value:
    """The graph with a loop for each place that its accumulators need it in; the graph itself where each loop has one place."""
    for _ in range(_ROUNDS):
        values = ordered(root)
        moved = _first_moved(values)
        if not moved:
            return root
        number = 1 + max(_number(v) for v in values if v.op is Op.RANGE)
        copies: dict[Value, Value] = {}
        for k, loop in enumerate(moved[0].src[0].src[1:]):
            assert isinstance(loop.arg, tuple)
            copies[loop] = make(Op.RANGE, loop.dtype, loop.src, (number + k, loop.arg[1]), 1, (loop.lo, loop.hi))
        root = substitute(root, dict(zip(moved, substituted(moved, copies), strict=True)))
    raise CompilerBug("order", "loops that can not be told apart")


def places(values: list[Value]) -> dict[Value, Place]:
    """Where the loops of each update stand. Registers that look at each other in one loop stand together."""
    bits: dict[Value, int] = {}
    mask: dict[Value, int] = {}
    looks_at: dict[Value, frozenset[Value]] = {}
    found: dict[Value, Place] = {}
    together: list[tuple[Value, Value]] = []  # an update, and a register of the same loops that it looks at
    for v in values:
        m = 0
        registers: frozenset[Value] = frozenset((v,)) if v.op is Op.ACC else _NONE
        for s in v.src:
            m |= mask[s]
            registers |= looks_at[s]
        if v.op in _OPENERS:
            bits[v] = 1 << len(bits)
            m |= bits[v]
        elif v.op is Op.UPDATE:
            loops = v.src[0].src[1:]
            for loop in loops:
                m &= ~bits[loop]
            found[v] = loops, m
            together += [(v, register) for register in registers if register.src[1:] == loops and register is not v.src[0]]
            registers = frozenset(register for register in registers if register.src[1:] != loops)
        mask[v] = m
        looks_at[v] = registers
    return _joined(found, together) if together else found


_NONE: frozenset[Value] = frozenset()


def _joined(found: dict[Value, Place], together: list[tuple[Value, Value]]) -> dict[Value, Place]:
    """The places, the same for updates that belong together: what any of them needs is around all."""
    update_of = {update.src[0]: update for update in found}
    changed = True
    while changed:
        changed = False
        for one, register in together:
            other = update_of[register]
            loops, m = found[one][0], found[one][1] | found[other][1]
            if found[one][1] != m or found[other][1] != m:
                found[one] = found[other] = loops, m
                changed = True
    return found


def _first_moved(values: list[Value]) -> list[Value]:
    """The updates of one place, a loop of which stands in another place already."""
    first: dict[Value, Place] = {}
    moving: Place | None = None
    moved: list[Value] = []
    for update, place in places(values).items():
        if moving is None and any(first.setdefault(loop, place) != place for loop in place[0]):
            moving = place
        if place == moving:
            moved.append(update)
    return moved


def _number(loop: Value) -> int:
    assert isinstance(loop.arg, tuple)
    number = loop.arg[0]
    assert isinstance(number, int)
    return number
