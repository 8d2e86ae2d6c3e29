"""Loads, constants and stores of a nest: addresses, gates, vector groups, texels.

A leaf's access comes over launch indices and loops; what is left of the nest in it are expanded axes, one address per combination of their
digits, and the values of other nodes. Consecutive aligned elements of one gate become one vector access; equal accesses are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from core.device import DeviceOptions
from core.dtypes import BOOL, FLOAT32, INDEX, VOID, DType
from core.errors import CompilerBug
from core.index import FALSE, TRUE, all_of, conjuncts, floordiv, less, mod, number, split
from core.index.access import NOWHERE, Access, simplified
from core.index.bounds import residue
from core.index.linear import build
from core.index.substitute import Substitution
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value, alu, constant, make
from core.kernel.node import Const, ImageShape, Load, Store, value_dtype
from core.lower.elements import Elements, joined, numbers, points, size_of, strides_of
from core.lower.places import Group, Places, chunks
from core.lower.side_by_side import Spot, in_runs, runs, side_by_side, spots_of
from core.schedule.axis import Axis
from core.schedule.nest import Nest
from core.schedule.sites import Site

CHANNELS = 4  # of a texel


class Memory:
    """The accesses of one nest. order: the axes that may be expanded, in the order of an element's digits."""

    def __init__(self, nest: Nest, device: DeviceOptions, order: tuple[Axis, ...]) -> None:
        self.nest = nest
        self.expanded = order
        self.widths = (4, 2) if device.supports_float4 else ()
        self.anywhere = vectors_anywhere(device)
        self.alignment = assumed_alignment(device)
        self.params = params_of(nest, self.alignment)
        self.written = {node.buffer for node in nest.kernel.nodes if isinstance(node, Store)}
        self.loaded: dict[int, dict[Value, None]] = {}
        self.placed: dict[tuple[Value, Value, tuple[Axis, ...]], Places] = {}
        self.conjunctions: dict[tuple[Value, ...], Value] = {}
        self.decided: dict[tuple[Value, tuple[Axis, ...]], list[Value]] = {}

    # ---- reading ---------------------------------------------------------------------------------------------------------

    def read(
        self, site: Site, node: Load | Const, operands: list[Elements], substitution: Substitution, alone: tuple[Value, ...] = ()
    ) -> Elements:
        """The values a load or a constant gives at a site.

        alone: the region of the lane that stores. A load of what it stores to stands in it: other lanes may come later than the store.
        """
        places = self._places(site, node.src, operands, substitution)
        axes = places.axes
        if isinstance(node, Const):
            return Elements(axes, tuple(places.each(lambda access: _constant(node, access))))
        image = node.image
        if image is not None:
            return Elements(axes, tuple(places.each(lambda access: self._texel_element(node, image, access))))
        tokens = alone if node.buffer in self.written else ()
        if self.anywhere:
            return Elements(axes, self._side_by_side(node, axes, places.accesses(), tokens))
        group = self._group(node.dtype, places)
        if group is None:
            return Elements(axes, tuple(places.each(lambda access: self._load(node, access, tokens))))
        loaded: dict[int, Value] = {}
        for chunk in chunks(axes, group):
            first = places.at(chunk[0])
            vector = self._load(node, first, tokens, group.width)
            for lane, number_ in enumerate(chunk):
                loaded[number_] = make(Op.EXTRACT, node.dtype, (vector,), lane) if not first.never else vector
        return Elements(axes, tuple([loaded[n] for n in range(places.count)]))

    def _side_by_side(self, node: Load, axes: tuple[Axis, ...], accesses: list[Access], tokens: tuple[Value, ...]) -> tuple[Value, ...]:
        """Loads where vectors may lie at any element: along an axis whole, under one gate; what is left as lanes of these or in runs."""
        loaded: dict[tuple[Spot, int], Value] = {}

        def load(spot: Spot, offset: int, first: Access, width: int) -> None:
            vector = self._load(node, first, tokens, width)
            for lane in range(width):
                loaded[spot, offset + lane] = vector if width == 1 else make(Op.EXTRACT, node.dtype, (vector,), lane)

        spots = spots_of(accesses)
        vectors = side_by_side(axes, spots)
        for chunk in [] if in_runs(vectors, spots) else vectors:
            found = spots[chunk[0]]
            if found is not None and len(chunk) > 1 and (found[0], found[1]) not in loaded:
                load(*found, accesses[chunk[0]], len(chunk))
        rest: dict[Spot, dict[int, Access]] = {}
        for found, access in zip(spots, accesses, strict=True):
            if found is not None and found not in loaded:
                rest.setdefault(found[0], {})[found[1]] = access
        for spot, at in rest.items():
            for start, width in runs(sorted(at)):
                load(spot, start, at[start], width)
        return tuple(constant(0, node.dtype) if found is None else loaded[found] for found in spots)

    def _load(self, node: Load, access: Access, tokens: tuple[Value, ...], lanes: int = 1) -> Value:
        if access.never:
            return constant(0, node.dtype)
        gate = () if access.valid is TRUE else (access.valid, constant(0, node.dtype, lanes))
        src = (self.params[node.buffer], access.index, *gate, *tokens)
        return self._remember(node, make(Op.LOAD, node.dtype, src, (1, bool(gate)), lanes))

    def _remember(self, node: Load, load: Value) -> Value:
        self.loaded.setdefault(node.buffer, {})[load] = None
        return load

    def _texel_element(self, node: Load, image: ImageShape, access: Access) -> Value:
        """One channel of a texel; which one may depend on the point."""
        if access.never:
            return constant(0, FLOAT32)
        x, y = texel(access.index, image)
        gate = () if access.valid is TRUE else (access.valid, constant(0, FLOAT32, CHANNELS))
        src = (self.params[node.buffer], x, y, *gate)
        vector = self._remember(node, make(Op.LOAD, FLOAT32, src, (2, bool(gate)), CHANNELS))
        channel = mod(access.index, CHANNELS)
        step, first = residue(channel)
        reachable = [c for c in range(CHANNELS) if (channel.lo or 0) <= c <= (channel.hi or 0) and (c - first) % (step or CHANNELS) == 0]
        result = make(Op.EXTRACT, FLOAT32, (vector,), reachable[-1])
        for lower_channel, upper_channel in reversed(list(pairwise(reachable))):
            is_lower = less(channel, number(upper_channel))
            result = make(Op.WHERE, FLOAT32, (is_lower, make(Op.EXTRACT, FLOAT32, (vector,), lower_channel), result))
        return result

    # ---- writing ---------------------------------------------------------------------------------------------------------

    def write(
        self, site: Site, node: Store, operands: list[Elements], substitution: Substitution, around: tuple[Value, ...]
    ) -> list[Value]:
        """The stores of an output, in the order of its elements. All loads of its buffer must have been read before.

        around: the loops and regions every store stands in, whether its index names them or not.
        """
        places = self._places(site, node.src, operands, substitution, value=operands[0])
        values = operands[0].over(places.axes)
        tokens = (*around, *self.loaded.get(node.buffer, {}))
        if self.anywhere and node.image is None:
            return self._stored(node, places, values, tokens)
        group = self._group(node.dtype, places, texel=node.image is not None)
        if group is None:
            written = [(access, value) for access, value in zip(places.accesses(), values, strict=True) if not access.never]
            if written and node.image is not None:
                raise CompilerBug("lower", "an image store without four channels side by side: the mandatory option is missing")
            return [self._store(node, access, value, tokens) for access, value in written]
        out = []
        for chunk in chunks(places.axes, group):
            first = places.at(chunk[0])
            if not first.never:
                vector = make(Op.VECTOR, value_dtype(node), tuple([values[n] for n in chunk]), None, group.width)
                out.append(self._store(node, first, vector, tokens))
        return out

    def _stored(self, node: Store, places: Places, values: Sequence[Value], tokens: tuple[Value, ...]) -> list[Value]:
        """Stores where vectors may lie at any element."""
        accesses = places.accesses()
        stores = []
        for chunk in side_by_side(places.axes, spots_of(accesses)):
            first, stored = accesses[chunk[0]], tuple([values[n] for n in chunk])
            if not first.never:
                value = stored[0] if len(chunk) == 1 else make(Op.VECTOR, value_dtype(node), stored, None, len(chunk))
                stores.append(self._store(node, first, value, tokens))
        return stores

    def _store(self, node: Store, access: Access, value: Value, tokens: tuple[Value, ...]) -> Value:
        addresses = (access.index,) if node.image is None else texel(access.index, node.image)
        gate = () if access.valid is TRUE else (access.valid,)
        return make(Op.STORE, VOID, (self.params[node.buffer], *addresses, value, *gate, *tokens), (len(addresses), bool(gate)))

    # ---- addresses -------------------------------------------------------------------------------------------------------

    def _places(
        self, site: Site, src: tuple[int, ...], operands: list[Elements], substitution: Substitution, value: Elements | None = None
    ) -> Places:
        """The expanded axes a leaf varies on, and its access at each combination of their digits."""
        base = self.nest.accesses[site.leaf].substituted(substitution)
        free = base.index.free | base.valid.free
        own = Elements(tuple(a for a in self.expanded if a.var in free), ())
        opaque = [(atom, operands[src.index(int(atom.arg[0]))]) for atom in sorted(free, key=lambda a: a.order) if atom.op is Op.OPAQUE]  # type: ignore[index]
        axes = joined(self.expanded, [own, *(e for _, e in opaque), *([value] if value is not None else [])])
        if opaque:
            return self._placed(base, own.axes, axes, opaque)
        key = (base.index, base.valid, axes)
        found = self.placed.get(key)
        if found is None:
            found = self.placed[key] = self._placed(base, own.axes, axes, opaque) if own.axes else Places(axes, (base,), size_of(axes))
        return found

    def _placed(self, base: Access, own: tuple[Axis, ...], axes: tuple[Axis, ...], opaque: list[tuple[Value, Elements]]) -> Places:
        """An access at each combination of digits: an offset along axes of a constant stride, a substitution along the others.

        Each comparison is decided once per digits of the axes it names, whichever leaves it stands in.
        """
        rest, strides = _apart(base, own)
        moving = [a for a in own if a.var in rest.index.free or a.var in rest.valid.free]
        varying = {*moving, *(axis for _, elements in opaque for axis in elements.axes)}
        ways = tuple([axis for axis in axes if axis in varying])
        if not ways and not opaque:
            return Places(axes, (rest,), size_of(axes), strides=strides)
        named = [(atom, [index_of(v) for v in elements.over(ways)]) for atom, elements in opaque]
        indices = self._column(rest.index, moving, named, ways)
        conditions = [self._column(c, moving, named, ways) for c in conjuncts(rest.valid)]
        every = list(zip(indices, *conditions, strict=True))
        bases = {each: number_ for number_, each in enumerate(dict.fromkeys(every))}
        accesses = tuple([self._simplified(index, those) for index, *those in bases])
        which = [bases[each] for each in every]
        return Places(axes, accesses, size_of(axes), [which[n] for n in numbers(axes, strides_of(ways))], strides)

    def _simplified(self, index: Value, conditions: list[Value]) -> Access:
        """The access at an index where all of the conditions hold."""
        key = tuple(conditions)
        valid = self.conjunctions.get(key)
        if valid is None:
            valid = self.conjunctions[key] = all_of(key)
        return NOWHERE if valid is FALSE else simplified(index, valid)

    def _column(self, x: Value, moving: list[Axis], named: list[tuple[Value, list[Value]]], ways: tuple[Axis, ...]) -> list[Value]:
        """An index or condition at each point of `ways`: the digits of the axes it names, and the values of other nodes, in place."""
        axes = tuple([a for a in moving if a.var in x.free])
        values = [(atom, over) for atom, over in named if atom in x.free]
        if values:
            at = [{a.var: number(digits[a]) for a in axes} for digits in points(ways)]
            return [Substitution({**digits, **{atom: over[n] for atom, over in values}})(x) for n, digits in enumerate(at)]
        if not axes:
            return [x] * size_of(ways)
        found = self.decided.get((x, axes))
        if found is None:
            found = [Substitution({a.var: number(d) for a, d in digits.items()})(x) for digits in points(axes)]
            self.decided[x, axes] = found
        return found if axes == ways else [found[n] for n in numbers(ways, strides_of(axes))]

    def _group(self, dtype: DType, places: Places, *, texel: bool = False) -> Group | None:
        """The widest vector access along one of the axes: consecutive, of one gate, aligned, whole."""
        widths = (CHANNELS,) if texel else self.widths
        for width in widths:
            if not texel and width * dtype.itemsize > self.alignment:
                continue
            for axis in places.axes:
                group = Group(axis, width)
                if axis.size % width == 0 and all(places.consecutive(chunk) for chunk in chunks(places.axes, group)):
                    return group
        return None


def _apart(access: Access, axes: tuple[Axis, ...]) -> tuple[Access, dict[Axis, int]]:
    """An access without the axes it moves along by a constant stride, and these strides: each digit there is an offset."""
    part, factors, terms = split(access.index)
    strides: dict[Axis, int] = {}
    pairs = dict(zip(terms, factors, strict=True))
    for axis in axes:
        if axis.var in pairs and axis.var not in access.valid.free and sum(axis.var in t.free for t in terms) == 1:
            strides[axis] = pairs.pop(axis.var)
    return (Access(build(part, pairs), access.valid), strides) if strides else (access, strides)


def texel(index: Value, image: ImageShape) -> tuple[Value, Value]:
    """x and y of the texel that channel `index` lies in."""
    return mod(floordiv(index, CHANNELS), image[1]), floordiv(index, CHANNELS * image[1])


def index_of(value: Value) -> Value:
    """An integer or bool value as an index."""
    if value.op is Op.CONST:
        return number(integer(value))
    least, greatest = int(value.dtype.least), int(value.dtype.greatest)
    return make(Op.INDEX_OF, INDEX, (value,), None, 1, (least, greatest))


def _constant(node: Const, access: Access) -> Value:
    zero = constant(False if node.dtype is BOOL else 0, node.dtype)
    if access.never:
        return zero
    value = constant(node.value, node.dtype) if node.value is not None else converted(access.index, node.dtype)
    return value if access.valid is TRUE else alu(Op.WHERE, access.valid, value, zero)


def converted(index: Value, dtype: DType) -> Value:
    """An index as a data value: the wire's CAST from an integer wide enough for it."""
    if index.op is not Op.CONST:
        return make(Op.CAST, dtype, (index,))
    exact = integer(index)
    if dtype is BOOL:
        return constant(exact != 0, BOOL)
    return constant(dtype.round(exact) if dtype.is_float else dtype.wrap(exact), dtype)


def vectors_anywhere(device: DeviceOptions) -> bool:
    """Whether vectors are read and written at any element: a CPU does so as fast as at aligned ones."""
    return device.device_class == "cpu" and device.supports_float4


def assumed_alignment(device: DeviceOptions) -> int:
    """Bytes every buffer is taken to be aligned to; 1 where no access asks more than an element has."""
    return 1 if vectors_anywhere(device) else device.alignment


def params_of(nest: Nest, alignment: int) -> dict[int, Value]:
    """A PARAM per buffer the kernel's outputs refer to, by number."""
    facts: dict[int, tuple[DType, ImageShape | None, set[str]]] = {}
    for node in nest.kernel.nodes:
        if isinstance(node, (Load, Store)):
            found = facts.setdefault(node.buffer, (node.dtype, node.image, set()))
            found[2].add("read" if isinstance(node, Load) else "write")
    return {
        n: make(Op.PARAM, dtype, (), (n, "readwrite" if len(how) == 2 else next(iter(how)), image, alignment))
        for n, (dtype, image, how) in sorted(facts.items())
    }
