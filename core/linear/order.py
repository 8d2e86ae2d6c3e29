"""An order to run a machine graph in: every value in the deepest loop it depends on and in no deeper one, scopes properly nested.

Loops form a forest. A value's *home* is the deepest loop among those it depends on; an accumulator's update, seen from outside its loops,
belongs around them. A reduce's loops stand inside exactly those loops its operands depend on. Within a region everything keeps the order of
the graph, in which operands come first; only what has to wait (for a loop, for whoever still reads a register) is put off, and no further
than it must. Constants, parameters and variables need no place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from core.dtypes import VOID
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.value import Value, make
from core.ir.walk import Graph, ordered
from core.linear.part import Place, parted

_OPENERS = frozenset((Op.RANGE, Op.IF))
_EVERYWHERE = frozenset((Op.CONST, Op.PARAM, Op.VARIABLE, Op.SHARED))
_UNPLACED = _EVERYWHERE | {Op.SINK}


def linearize(graph: Graph, guard: Value | None = None) -> tuple[Value, ...]:
    """The body of a listing: each value before its users, each RANGE and IF closed by an END.

    graph: of a SINK. guard: a machine condition under which alone anything is done. Raises CompilerBug for a graph without such an order.
    """
    if guard is None:
        return tuple(_body(graph, frozenset()))
    before = ordered(guard)
    region = make(Op.IF, VOID, (guard,))
    return (*_placed(before), region, *_body(graph, frozenset(before)), make(Op.END, VOID, (region,)))


def _placed(values: Iterable[Value]) -> list[Value]:
    """Those that need a place."""
    return [v for v in values if v.op not in _UNPLACED]


def _body(graph: Graph, before: frozenset[Value]) -> list[Value]:
    """The graph in order, without what is computed before."""
    values = _placed(graph.order)
    if before:
        values = [v for v in values if v not in before]
    if _OPENERS.isdisjoint([v.op for v in values]):
        return values
    ordering = _Ordering(values, before)
    if not ordering.is_parted:
        values = [v for v in _placed(ordered(parted(graph.root))) if v not in before]
        ordering = _Ordering(values, before)
    return ordering.run()


class _Region:
    """A loop, a condition, or (without an opener) the whole.

    items: what stands in it, in the order of the graph. needs: what these, and the opener, use of the regions around. is_mixed: some item
    may have to wait for another that comes later. turn: the next item. late: numbers of items before it that waited and may go on, a heap.
    """

    __slots__ = ("depth", "is_mixed", "items", "late", "needs", "opener", "parent", "turn")

    def __init__(self, opener: Value | None, parent: _Region | None) -> None:
        self.opener, self.parent = opener, parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.items: list[Value | _Region] = []
        self.needs: dict[Value, None] = {}
        self.is_mixed = False
        self.turn = 0
        self.late: list[int] = []

    def next(self) -> int | None:
        """The number of the item whose turn it is; None at the end."""
        if self.late:
            return heappop(self.late)
        if self.turn == len(self.items):
            return None
        self.turn += 1
        return self.turn - 1


class _Ordering:
    def __init__(self, values: list[Value], before: Iterable[Value]) -> None:
        """values: those that need a place. before: what is computed already."""
        self.values = values
        self.there = set(before)
        self.bit: dict[Value, int] = {}  # of a loop or region
        self.mask: dict[Value, int] = {}  # of any value: the bits it depends on
        self.outside: dict[Value, int] = {}  # per range of a reduce: what its nest depends on
        self.inner_to: dict[Value, Value] = {}  # range → the range around it in the same nest
        self.update_of: dict[Value, Value] = {}  # of a register
        self.regions: dict[Value, _Region] = {}
        self.top = _Region(None, None)
        self.home_of_mask: dict[int, _Region] = {0: self.top}
        self.homes: dict[Value, _Region] = {}
        self.readers: dict[Value, list[Value]] = {}  # update → who reads its register
        self.waiting: dict[Value, list[tuple[_Region, int]]] = {}  # items by what they wait for
        self.is_parted = True  # each loop has one place
        self._dependencies()

    def run(self) -> list[Value]:
        self._output_chain()
        self._settle()
        return self._written()

    # ---- what depends on which loops -------------------------------------------------------------------------------------------

    def _dependencies(self) -> None:
        mask, there = self.mask, self.there
        place_of: dict[Value, Place] = {}
        for v in self.values:
            op = v.op
            m = 0
            for s in v.src:
                if s in mask:
                    m |= mask[s]
                else:
                    there.add(s)
            if op in _OPENERS:
                bit = self.bit[v] = 1 << len(self.bit)
                self.outside[v] = m
                m |= bit
            elif op is Op.ACC:
                for outer, inner in pairwise(v.src[1:]):
                    self.inner_to[inner] = outer
            elif op is Op.UPDATE:
                loops = v.src[0].src[1:]
                for r in loops:
                    m &= ~self.bit[r]
                self.outside[loops[0]] |= m
                self.update_of[v.src[0]] = v
                if any(place_of.setdefault(r, (loops, m)) != (loops, m) for r in loops):
                    self.is_parted = False
            mask[v] = m

    # ---- regions ---------------------------------------------------------------------------------------------------------------

    def _output_chain(self) -> None:
        """Output loops are nested in the order of their numbers, whatever their bounds depend on."""
        around = self.top
        for r in sorted((r for r in self.bit if r.op is Op.RANGE and r.arg[1] == "output"), key=lambda r: r.arg[0]):  # type: ignore[index]
            around = self.regions[r] = _Region(r, around)

    def _region(self, r: Value) -> _Region:
        """The region a range opens; its parent is the deepest of what the nest depends on."""
        waiting = [r]
        while waiting:
            x = waiting[-1]
            if x in self.regions:
                waiting.pop()
                continue
            if x in self.inner_to:
                around = self.inner_to[x]
                if around not in self.regions:
                    waiting.append(around)
                    continue
                parent = self.regions[around]
            else:
                needed = self._openers(self.outside[x])
                missing = [o for o in needed if o not in self.regions]
                if missing:
                    if len(waiting) > len(self.bit):
                        raise CompilerBug("order", "loops that depend on each other")
                    waiting.extend(missing)
                    continue
                parent = self._deepest(needed)
            self.regions[x] = _Region(x, parent)
            waiting.pop()
        return self.regions[r]

    def _openers(self, mask: int) -> list[Value]:
        return [o for o, bit in self.bit.items() if bit & mask]

    def _deepest(self, openers: list[Value]) -> _Region:
        regions = [self.regions[r] for r in openers]
        best = max(regions, key=lambda region: region.depth, default=self.top)
        if any(_common(best, region) is not region for region in regions):
            raise CompilerBug("order", "a value that depends on two loops side by side")
        return best

    def _home(self, mask: int) -> _Region:
        found = self.home_of_mask.get(mask)
        if found is None:
            needed = self._openers(mask)
            for r in needed:
                self._region(r)
            found = self.home_of_mask[mask] = self._deepest(needed)
        return found

    # ---- what stands where -----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Each value as an item of its home, each region as one of its parent; and what they use across regions."""
        homes, mask, home_of_mask = self.homes, self.mask, self.home_of_mask
        for v in self.values:
            op = v.op
            src = v.src
            if op in _OPENERS:
                home = homes[v] = self._region(v)
                around = home.parent
                assert around is not None
                around.items.append(home)
                around.is_mixed = True
                for s in src:
                    if s in homes:
                        self._cross(s, homes[s], around, home)
                continue
            if op is Op.ACC:  # stands before the loops it names
                home = self._region(src[1]).parent  # type: ignore[assignment]  # a range's region has a parent
                src = ()
            elif op is Op.UPDATE:  # assigned in its innermost loop, whoever looks at it afterwards
                home = self._region(src[0].src[-1])
            else:
                home = home_of_mask.get(mask[v]) or self._home(mask[v])
            homes[v] = home
            home.items.append(v)
            for s in src:
                around = homes.get(s, home)
                if around is not home:
                    self._cross(s, around, home, None)
                    if s.op is Op.ACC:
                        self._read(s, v, home)

    def _cross(self, s: Value, of: _Region, around: _Region, item: _Region | None) -> None:
        """An item of `around` uses s, whose home is another: the region in their common one that is around the item needs it."""
        common = _common(around, of)
        while around is not common:
            item, around = around, around.parent  # type: ignore[assignment]  # the common region is above
        if item is not None:
            item.needs[s] = None

    def _read(self, register: Value, reader: Value, home: _Region) -> None:
        """Who looks at a register does so before this turn's update."""
        update = self.update_of.get(register)
        if update is None or update is reader:
            return
        self.readers.setdefault(update, []).append(reader)
        assigned_in = self._region(register.src[-1])
        if update in self.homes or home is not assigned_in:
            assigned_in.is_mixed = True

    # ---- the order -------------------------------------------------------------------------------------------------------------

    def _written(self) -> list[Value]:
        """Every region's items one after the other; what needs something that is not there yet goes on as soon as it is."""
        out: list[Value] = []
        stack = [self.top]
        while stack:
            region = stack[-1]
            if not region.is_mixed:
                self._arrive(region.items, out)  # type: ignore[arg-type]  # regions make their parents mixed
            elif (at := region.next()) is not None:
                item = region.items[at]
                missing = self._missing(item)
                if missing is not None:
                    self.waiting.setdefault(missing, []).append((region, at))
                elif isinstance(item, Value):
                    self._arrive((item,), out)
                else:
                    assert item.opener is not None
                    self._arrive((item.opener,), out)
                    stack.append(item)
                continue
            stack.pop()
            if region.opener is not None:
                out.append(make(Op.END, VOID, (region.opener,)))
        if self.waiting:
            raise CompilerBug("order", "values that wait for each other")
        return out

    def _missing(self, item: Value | _Region) -> Value | None:
        """Something the item needs that is not there yet."""
        there = self.there
        if isinstance(item, _Region):
            needs: Iterable[Value] = item.needs
        elif item.op is Op.ACC:  # stands before the loops it names
            return None
        else:
            needs = item.src
            if item in self.readers:
                needs = (*needs, *self.readers[item])
        for s in needs:
            if s not in there:
                return s
        return None

    def _arrive(self, values: Sequence[Value], out: list[Value]) -> None:
        """The values are there: who waited for one of them may go on when its region is next looked at."""
        out.extend(values)
        self.there.update(values)
        if self.waiting:
            for v in values:
                for region, at in self.waiting.pop(v, ()):
                    heappush(region.late, at)


def _common(a: _Region, b: _Region) -> _Region:
    """The deepest region that is, or is around, both."""
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a
