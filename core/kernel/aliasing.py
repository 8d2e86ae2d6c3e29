"""Buffers that are read and written: whether what a load reads may be written by another point.

Either the load reads what its own point alone writes, or nothing that it reads is written: by intervals, residues, symbolic differences,
and at last by every address of both. What none of them shows is a race.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from core.index import all_of, conjuncts, number, subtract
from core.index.access import Access
from core.index.bounds import residue
from core.index.decide import Decider, has_data, without_data
from core.index.enumerate import MAX_POINTS, Array, atoms_of, box_points
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.value import Value, make
from core.kernel.leaves import Leaves
from core.kernel.node import Kernel, Reduce

_OTHER_POINT = 1 << 20  # added to an axis's number: the same axis of another point


def reduced_above(kernel: Kernel) -> list[frozenset[int]]:
    """Per node the axes that any reduce it goes into reduces."""
    above: list[frozenset[int]] = [frozenset()] * len(kernel.nodes)
    for row in range(len(kernel.nodes) - 1, -1, -1):
        node = kernel.nodes[row]
        own = above[row] | frozenset(node.axes) if isinstance(node, Reduce) else above[row]
        for source in node.src:
            above[source] |= own
    return above


def race(leaves: Leaves, load: int, store: int, above: frozenset[int], decider: Decider) -> str:
    """Why a load of the buffer that `store` writes is a race as far as can be shown; nothing where it is none.

    above: the axes that reduces above the load reduce.
    """
    reads, writes = leaves.access(load), leaves.access(store)
    if reads.never or writes.never or any(leaves.extents[k] == 0 for k in leaves.full_axes(load)):
        return ""
    spread = [k for k in leaves.full_axes(load) if k in above]
    if not spread and _same_element(reads, writes, decider):
        return ""
    if _disjoint(reads, writes, decider):
        return ""
    if spread:
        return f"a load under a reduce over axis {spread[0]}, of elements that other points may write"
    if has_data(reads.index):
        return "a load at an index that another buffer holds, of elements that may be written"
    return "a load at an index that is not the store's at the same point, of elements that other points may write"


def _same_element(reads: Access, writes: Access, decider: Decider) -> bool:
    """Wherever the load is valid, the store is too, at the same index."""
    if has_data(reads.index):
        return False
    return _implies(reads.valid, writes.valid, decider) and _equal(reads.index, writes.index, reads.valid, decider)


def _implies(valid: Value, other: Value, decider: Decider) -> bool:
    """Whether each condition of `other` follows. One on a value of another node follows only from itself."""
    if valid is other:
        return True
    known = frozenset(conjuncts(valid))
    for c in conjuncts(other):
        if c not in known and (c.op is not Op.LESS or has_data(c) or decider.most(c.src[0], valid) >= int(c.arg)):  # type: ignore[call-overload]
            return False
    return True


def _equal(x: Value, y: Value, valid: Value, decider: Decider) -> bool:
    if x is y:
        return True
    difference = decider.given(valid).simplify(subtract(x, y))
    if difference.op is Op.CONST:
        return difference is number(0)
    return decider.least(difference, valid) == 0 == decider.most(difference, valid)


def _disjoint(reads: Access, writes: Access, decider: Decider) -> bool:
    """Whether no element that is read is written."""
    low, high = decider.least(reads.index, reads.valid), decider.most(reads.index, reads.valid)
    least, most = decider.least(writes.index, writes.valid), decider.most(writes.index, writes.valid)
    if high < least or most < low:
        return True
    read, written = (decider.given(a.valid).narrow(a.index) for a in (reads, writes))
    (g, r), (h, s) = residue(read), residue(written)
    common = gcd(g, h)
    if common > 1 and (r - s) % common:
        return True
    apart = subtract(reads.index, _elsewhere(writes.index))
    both = all_of((reads.valid, _elsewhere(writes.valid)))
    if decider.least(apart, both) > 0 or decider.most(apart, both) < 0:
        return True
    return _addresses_differ(reads, writes, decider)


def _elsewhere(x: Value) -> Value:
    """x at another point: its axes are other atoms, its variables the same."""
    mapping = {}
    for atom in x.free:
        if atom.op is Op.AXIS:
            assert isinstance(atom.arg, tuple)
            arg = (atom.arg[0], atom.arg[1] + _OTHER_POINT, *atom.arg[2:])
            mapping[atom] = make(Op.AXIS, atom.dtype, atom.src, arg, 1, (atom.lo, atom.hi))
    return Substitution(mapping)(x) if mapping else x


def _addresses_differ(reads: Access, writes: Access, decider: Decider) -> bool:
    read = _addresses(reads, decider)
    if read is None:
        return False
    written = _addresses(Access(writes.index, without_data(writes.valid)), decider)
    return written is not None and not len(np.intersect1d(read, written))


def _addresses(access: Access, decider: Decider) -> Array | None:
    """Every valid index, or None where the points are too many. Values of other nodes are anything that the validity allows."""
    valid = [c for c in conjuncts(access.valid) if c.op is Op.LESS]
    atoms = atoms_of(access.index, *valid)
    box = box_points(atoms, decider.ranges(atoms, access.valid), min(MAX_POINTS, decider.left))
    if box is None:
        return None
    decider.left -= box.count
    found = []
    for part in box.slices():
        held = part.within_extents()
        for c in valid:
            held = held & part.holds(c)
        found.append(np.unique(part.full(part.value(access.index))[part.full(held)]))
    return np.concatenate(found)
