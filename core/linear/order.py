"""An order to run a machine graph in: every value in the deepest loop it depends on and in no deeper one, scopes properly nested.

Loops form a forest. A value's *home* is the deepest loop among those it depends on; an accumulator's update, seen from outside its loops,
belongs around them. A reduce's loops stand inside exactly those loops its operands depend on. Each region's values and inner loops are
then put in order by what uses what, first come first; constants, parameters and variables need no place.
"""

from __future__ import annotations

from itertools import pairwise

from core.dtypes import VOID
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.value import Value, make
from core.ir.walk import ordered
from core.linear.part import Place, parted

_OPENERS = (Op.RANGE, Op.IF)
_EVERYWHERE = frozenset((Op.CONST, Op.PARAM, Op.VARIABLE, Op.SHARED))


def linearize(root: Value, guard: Value | None = None) -> tuple[Value, ...]:
    """The body of a listing: each value before its users, each RANGE and IF closed by an END.

    root: the SINK. guard: a machine condition under which alone anything is done. Raises CompilerBug for a graph without such an order.
    """
    ordering = _Ordering(root, guard)
    if not ordering.is_parted:
        ordering = _Ordering(parted(root), guard)
    return ordering.run()


class _Region:
    __slots__ = ("depth", "items", "opener", "parent")

    def __init__(self, opener: Value | None, parent: _Region | None) -> None:
        self.opener, self.parent = opener, parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.items: list[Value | _Region] = []


class _Ordering:
    def __init__(self, root: Value, guard: Value | None) -> None:
        roots = (root,) if guard is None else (guard, root)
        self.values = [v for v in ordered(*roots) if v.op not in _EVERYWHERE and v.op is not Op.SINK]
        self.guard = guard
        self.bit: dict[Value, int] = {}
        self.ranges: list[Value] = []
        self.mask: dict[Value, int] = {}
        self.outside: dict[Value, int] = {}  # per range of a reduce: what its nest depends on
        self.inner_to: dict[Value, Value] = {}  # range → the range around it in the same nest
        self.regions: dict[Value, _Region] = {}
        self.top = _Region(None, None)
        self.home_of_mask: dict[int, _Region] = {}
        self.place_of: dict[Value, Place] = {}
        self.is_parted = True  # each loop has one place
        self._dependencies()

    def run(self) -> tuple[Value, ...]:
        base = self.top
        if self.guard is not None:
            base = _Region(make(Op.IF, VOID, (self.guard,)), self.top)
        self._output_chain(base)
        self.base = base
        early = self._before_guard()
        homes: dict[Value, _Region] = {}
        for v in self.values:
            if v.op in _OPENERS:
                homes[v] = self._region(v)
            elif v.op is Op.UPDATE:  # assigned in its innermost loop, whoever looks at it afterwards
                homes[v] = self._region(v.src[0].src[-1])
            elif v.op is Op.ACC:
                around = self._region(v.src[1]).parent
                assert around is not None
                homes[v] = around
            elif v in early:
                homes[v] = self.top
            else:
                homes[v] = self._home(self.mask[v])
        return self._emit(homes)

    def _before_guard(self) -> set[Value]:
        if self.guard is None:
            return set()
        return set(ordered(self.guard))

    def _dependencies(self) -> None:
        mask = self.mask
        for v in self.values:
            m = 0
            for s in v.src:
                m |= mask.get(s, 0)
            if v.op in _OPENERS:
                self.bit[v] = 1 << len(self.ranges)
                self.ranges.append(v)
                self.outside[v] = m
                m |= self.bit[v]
            elif v.op is Op.ACC:
                loops = v.src[1:]
                for outer, inner in pairwise(loops):
                    self.inner_to[inner] = outer
            elif v.op is Op.UPDATE:
                loops = v.src[0].src[1:]
                for r in loops:
                    m &= ~self.bit[r]
                self.outside[loops[0]] |= m
                if any(self.place_of.setdefault(r, (loops, m)) != (loops, m) for r in loops):
                    self.is_parted = False
            mask[v] = m

    def _output_chain(self, base: _Region) -> None:
        """Output loops are nested in the order of their numbers, whatever their bounds depend on."""
        around = base
        for r in sorted((r for r in self.ranges if r.op is Op.RANGE and r.arg[1] == "output"), key=lambda r: r.arg[0]):  # type: ignore[index]
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
                needed = [o for o in self.ranges if self.bit[o] & self.outside[x]]
                missing = [o for o in needed if o not in self.regions]
                if missing:
                    if len(waiting) > len(self.ranges):
                        raise CompilerBug("order", "loops that depend on each other")
                    waiting.extend(missing)
                    continue
                parent = self._deepest(needed)
            self.regions[x] = _Region(x, parent)
            waiting.pop()
        return self.regions[r]

    def _deepest(self, ranges: list[Value]) -> _Region:
        best = self.base
        for r in ranges:
            if self.regions[r].depth > best.depth:
                best = self.regions[r]
        chain = set()
        region: _Region | None = best
        while region is not None:
            chain.add(id(region))
            region = region.parent
        if any(id(self.regions[r]) not in chain for r in ranges):
            raise CompilerBug("order", "a value that depends on two loops side by side")
        return best

    def _home(self, mask: int) -> _Region:
        found = self.home_of_mask.get(mask)
        if found is None:
            needed = [r for r in self.ranges if self.bit[r] & mask]
            for r in needed:
                self._region(r)
            found = self.home_of_mask[mask] = self._deepest(needed) if needed else self.base
        return found

    def _emit(self, homes: dict[Value, _Region]) -> tuple[Value, ...]:
        """Regions filled in one pass over the values, users after what they use; then written out."""
        users: dict[int, list[Value | _Region]] = {}
        waiting: dict[int, int] = {}
        contents: dict[int, list[Value | _Region]] = {id(self.top): []}
        regions = [self.base] if self.base is not self.top else []
        regions += list(self.regions.values())
        order: dict[int, int] = {}
        for region in regions:
            contents[id(region)] = []
        for at, v in enumerate(self.values):
            if v.op in _OPENERS:
                order[id(self.regions[v])] = at
            else:
                order[id(v)] = at
                contents[id(homes[v])].append(v)
        if self.base is not self.top:
            order[id(self.base)] = -1
        for region in regions:
            assert region.parent is not None
            contents[id(region.parent)].append(region)

        def lifted(v: Value, region: _Region) -> Value | _Region:
            """The item of `region` that v lies in: v itself or the inner region around it."""
            inner = homes[v]
            item: Value | _Region = v
            if v.op in _OPENERS:
                item = inner
                inner = inner.parent  # type: ignore[assignment]  # a range's region has a parent
            while inner is not region:
                item = inner
                if inner.parent is None:
                    raise CompilerBug("order", f"{v!r} is used outside of where it is computed")
                inner = inner.parent
            return item

        edges: set[tuple[int, int]] = set()
        for v in self.values:
            around: _Region | None = homes[v] if v.op not in _OPENERS else homes[v].parent
            for s in v.src if v.op is not Op.ACC else v.src[:1]:  # an accumulator stands before the loops it names
                if s.op in _EVERYWHERE:
                    continue
                source_region = homes[s] if s.op not in _OPENERS else homes[s].parent
                if s.op in _OPENERS and _inside(around, homes[s]):
                    continue  # its own loop
                common = _common(around, source_region)
                a, b = lifted(s, common), lifted(v, common)
                if a is not b and (id(a), id(b)) not in edges:
                    edges.add((id(a), id(b)))
                    users.setdefault(id(a), []).append(b)
                    waiting[id(b)] = waiting.get(id(b), 0) + 1
        for reader, update in self._readers():  # what looks at a register does so before this turn's update
            common = _common(homes[reader], homes[update])
            a, b = lifted(reader, common), lifted(update, common)
            if a is not b and (id(a), id(b)) not in edges:
                edges.add((id(a), id(b)))
                users.setdefault(id(a), []).append(b)
                waiting[id(b)] = waiting.get(id(b), 0) + 1
        if self.guard is not None and self.guard in homes:
            users.setdefault(id(self.guard), []).append(self.base)
            waiting[id(self.base)] = waiting.get(id(self.base), 0) + 1
        return tuple(_write(self.top, contents, users, waiting, order))

    def _readers(self) -> list[tuple[Value, Value]]:
        """Pairs of a value that reads a register and the register's update."""
        updates = {v.src[0]: v for v in self.values if v.op is Op.UPDATE}
        return [(v, updates[s]) for v in self.values if v.op is not Op.UPDATE for s in v.src if s in updates]


def _inside(region: _Region | None, of: _Region) -> bool:
    while region is not None and region.depth >= of.depth:
        if region is of:
            return True
        region = region.parent
    return False


def _common(a: _Region | None, b: _Region | None) -> _Region:
    while a is not b:
        if a is None or b is None:
            raise CompilerBug("order", "regions without a common one")
        if a.depth >= b.depth:
            a = a.parent
        else:
            b = b.parent
    assert a is not None
    return a


def _write(
    top: _Region,
    contents: dict[int, list[Value | _Region]],
    users: dict[int, list[Value | _Region]],
    waiting: dict[int, int],
    order: dict[int, int],
) -> list[Value]:
    """Each region's items as they become ready, earliest of the original order first."""
    import heapq

    out: list[Value] = []
    ready_of: dict[int, list[tuple[int, int, Value | _Region]]] = {}

    def opened(region: _Region) -> list[tuple[int, int, Value | _Region]]:
        ready = [(order[id(i)], n, i) for n, i in enumerate(contents[id(region)]) if not waiting.get(id(i))]
        heapq.heapify(ready)
        ready_of[id(region)] = ready
        return ready

    stack: list[tuple[_Region, int]] = [(top, 0)]
    opened(top)
    emitted: dict[int, int] = {id(top): 0}
    while stack:
        region, _ = stack[-1]
        ready = ready_of[id(region)]
        if not ready:
            if emitted[id(region)] != len(contents[id(region)]):
                raise CompilerBug("order", "values that wait for each other")
            stack.pop()
            if region.opener is not None:
                out.append(make(Op.END, VOID, (region.opener,)))
                _release(region, users, waiting, order, ready_of[id(region.parent)], out)
            continue
        _, _, item = heapq.heappop(ready)
        emitted[id(region)] += 1
        if isinstance(item, _Region):
            assert item.opener is not None
            out.append(item.opener)
            emitted[id(item)] = 0
            opened(item)
            stack.append((item, 0))
        else:
            out.append(item)
            _release(item, users, waiting, order, ready, out)
    return out


def _release(
    item: Value | _Region,
    users: dict[int, list[Value | _Region]],
    waiting: dict[int, int],
    order: dict[int, int],
    ready: list[tuple[int, int, Value | _Region]],
    out: list[Value],
) -> None:
    import heapq

    for user in users.get(id(item), ()):
        waiting[id(user)] -= 1
        if not waiting[id(user)]:
            heapq.heappush(ready, (order[id(user)], len(out), user))
