"""A listing run in plain Python, every access watched: the oracle that schedules, passes and renderers are tested against.

Work-items of a group take turns between barriers and matrix instructions, in order; the meaning of each operation is
`core.ir.evaluate`'s, so every NaN is the one quiet NaN. A `Fault` is raised for whatever a device may answer with anything: an access
outside its array, shared memory read before it is written, two work-items at one element with no barrier between them and one of them
writing, a barrier or matrix instruction not all of a group arrive at, an index that leaves its type.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, MutableSequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from core.dtypes import BFLOAT16, BOOL, DType, Number
from core.fragments import Fragment, layout_named
from core.ir.evaluate import Content, from_bits, meaning, to_bits
from core.ir.op import Op
from core.ir.parts import Access, access, content, integer, param
from core.ir.value import Arg, Value
from core.linear.listing import Listing

Sizes = tuple[int, int, int]
Buffer = MutableSequence[Any]  # a list of numbers or a one-dimensional numpy array; numpy has no bfloat16, so uint16 holds its bits
Env = dict[Value, Content]
Arrived = tuple[int, tuple[Content, ...]]  # a place in the body, and the fragments held there
Lane = Generator[Arrived, Content | None, None]
END = -1  # of a work-item's way: no place
_Function = Callable[[Env], Content]


class Fault(Exception):
    """The listing does what no program may."""


def run(
    listing: Listing,
    buffers: Mapping[int, Buffer],
    variables: Mapping[str, int] | None = None,
    *,
    groups: Sizes = (1, 1, 1),
    local_size: Sizes | None = None,
) -> None:
    """Runs every work-item; `buffers`, by argument number, are written in place. Raises Fault.

    groups: how many work-groups along each dimension. local_size: the listing's own unless given, else one work-item.
    """
    program = _Program(listing, variables or {})
    local = local_size or listing.local_size or (1, 1, 1)
    memory = _Memory(buffers)
    for group in product(*[range(n) for n in reversed(groups)]):
        _run_group(program, memory, group[::-1], local)


def _run_group(program: _Program, memory: _Memory, group: tuple[int, ...], local: Sizes) -> None:
    memory.open_group()
    lanes: list[Lane] = []
    for number, lane in enumerate(product(*[range(n) for n in reversed(local)])):
        ids: dict[Arg, int] = {}
        for k, (g, n, i) in enumerate(zip(group, local, lane[::-1], strict=True)):
            ids["group", k], ids["local", k], ids["global", k] = g, i, g * n + i
        lanes.append(program.lane(memory, ids, (group, number)))
    answers: list[Content | None] = [None] * len(lanes)
    while lanes:
        arrived = [_resumed(lane, answer) for lane, answer in zip(lanes, answers, strict=True)]
        if len({place for place, _ in arrived}) > 1:
            raise Fault("not every work-item of a group arrives at a barrier or matrix instruction")
        place = arrived[0][0]
        if place == END:
            return
        if program.body[place].op is Op.BARRIER:
            memory.barrier()
        else:
            answers = _multiplied(program.body[place], [fragments for _, fragments in arrived])


def _resumed(lane: Lane, answer: Content | None) -> Arrived:
    try:
        return lane.send(answer)
    except StopIteration:
        return END, ()


def _multiplied(value: Value, fragments: list[tuple[Content, ...]]) -> list[Content | None]:
    """What a matrix instruction gives each work-item of a group, from what each of them holds. Sums are rounded once."""
    layout = layout_named(value.arg)
    if len(fragments) % layout.lanes:
        raise Fault(f"{len(fragments)} work-items at a matrix instruction of {layout.lanes}")
    answers: list[Content | None] = []
    for first in range(0, len(fragments), layout.lanes):
        lanes = fragments[first : first + layout.lanes]
        a = _tile(layout.a, [held[0] for held in lanes])
        b = _tile(layout.b, [held[1] for held in lanes])
        for lane, (_, _, c) in enumerate(lanes):
            numbers = c if isinstance(c, tuple) else (c,)
            out = []
            for element, start in enumerate(numbers):
                at = layout.c.place(lane, element)
                total = float(start)
                for k in range(layout.size("k")):
                    total += float(a[at["m"], k]) * float(b[k, at["n"]])
                out.append(value.dtype.round(total))
            answers.append(tuple(out) if len(out) > 1 else out[0])
    return answers


def _tile(fragment: Fragment, held: list[Content]) -> dict[tuple[int, ...], Number]:
    """The elements of a tile by coordinates. Raises Fault where lanes that hold one element differ on it."""
    tile: dict[tuple[int, ...], Number] = {}
    for lane, content_ in enumerate(held):
        for element, x in enumerate(content_ if isinstance(content_, tuple) else (content_,)):
            at = tuple(fragment.place(lane, element).values())
            other = tile.setdefault(at, x)
            if other != x and (other == other or x == x):
                raise Fault(f"lanes differ on the element at {at} of a tile: {other} and {x}")
    return tile


Item = tuple[tuple[int, ...], int]  # a work-item: its group, its number within it
Element = tuple[Value, int]


@dataclass(slots=True)
class _Memory:
    """Arrays, and who touched which element: of buffers since the start, of shared arrays since the last barrier."""

    buffers: Mapping[int, Buffer]
    shared: dict[Value, list[Number | None]] = field(default_factory=dict)
    written: dict[Element, Item] = field(default_factory=dict)
    read: dict[Element, Item | None] = field(default_factory=dict)  # None: several
    shared_written: dict[Element, Item] = field(default_factory=dict)
    shared_read: dict[Element, Item | None] = field(default_factory=dict)

    def open_group(self) -> None:
        self.shared.clear()
        self.barrier()

    def barrier(self) -> None:
        self.shared_written.clear()
        self.shared_read.clear()

    def array(self, array: Value) -> Buffer:
        if array.op is Op.PARAM:
            return self.buffers[param(array).number]
        if array not in self.shared:
            self.shared[array] = [None] * array.arg[1]  # type: ignore[index]  # a SHARED's arg is (number, elements)
        return self.shared[array]

    def load(self, array: Value, at: int, item: Item) -> Number:
        values = self.array(array)
        if not 0 <= at < len(values):
            raise Fault(f"element {at} of {array!r} is read; it has {len(values)}")
        written, read = (self.written, self.read) if array.op is Op.PARAM else (self.shared_written, self.shared_read)
        if written.get((array, at), item) != item:
            raise Fault(f"element {at} of {array!r} is read by one work-item and written by another")
        if read.setdefault((array, at), item) != item:
            read[array, at] = None
        found = values[at]
        if found is None:
            raise Fault(f"element {at} of {array!r} is read and nobody has written it")
        return _number(found, array.dtype)

    def store(self, array: Value, at: int, value: Number, item: Item) -> None:
        values = self.array(array)
        if not 0 <= at < len(values):
            raise Fault(f"element {at} of {array!r} is written; it has {len(values)}")
        written, read = (self.written, self.read) if array.op is Op.PARAM else (self.shared_written, self.shared_read)
        if written.setdefault((array, at), item) != item or read.get((array, at), item) != item:
            raise Fault(f"element {at} of {array!r} is written by one work-item and touched by another")
        if array.dtype.is_float:
            value = array.dtype.round(value)  # texels and half-precision elements may be computed in float32
        values[at] = to_bits(value, BFLOAT16) if array.dtype is BFLOAT16 and hasattr(values, "dtype") else value


def _number(found: Any, dtype: DType) -> Number:
    """An element of a list or a numpy array as a plain number."""
    if not hasattr(found, "item"):
        return found  # type: ignore[no-any-return]
    number: Number = found.item()
    if dtype is BOOL:
        return number != 0
    return from_bits(number, dtype) if dtype is BFLOAT16 and isinstance(number, int) else number


class _Program:
    """A listing made ready: one function per pure value, the other end of each scope, what is there from the start."""

    def __init__(self, listing: Listing, variables: Mapping[str, int]) -> None:
        self.body = listing.body
        self.closing: dict[int, int] = {}
        self.start: Env = {}
        self.functions: list[_Function | None] = []
        opened: list[int] = []
        for at, value in enumerate(self.body):
            if value.op is Op.RANGE or value.op is Op.IF:
                opened.append(at)
            elif value.op is Op.END:
                self.closing[opened.pop()] = at
            for s in value.src:
                self._prepare(s, variables)
            self.functions.append(None if value.op in _ACTIONS else _function(value))

    def _prepare(self, value: Value, variables: Mapping[str, int]) -> None:
        if value.op is Op.CONST:
            number = content(value)
            self.start[value] = number if value.lanes == 1 else (number,) * value.lanes
        elif value.op is Op.VARIABLE:
            self.start[value] = variables[value.arg[0]]  # type: ignore[index]  # a VARIABLE's arg starts with its name

    def lane(self, memory: _Memory, ids: Mapping[Arg, int], item: Item) -> Lane:
        """One work-item; yields at each barrier its place, at each matrix instruction also what it holds, and is sent what it gets."""
        env = dict(self.start)
        loops: list[tuple[int, int]] = []  # the opener's place, the loop's end
        at = 0
        while at < len(self.body):
            value, function = self.body[at], self.functions[at]
            at += 1
            if function is not None:
                env[value] = function(env)
                continue
            match value.op:
                case Op.LOAD:
                    env[value] = _load(value, env, memory, item)
                case Op.STORE:
                    _store(value, env, memory, item)
                case Op.ACC:
                    env[value] = env[value.src[0]]
                case Op.UPDATE:
                    env[value.src[0]] = env[_register(value.src[1])]
                case Op.SPECIAL:
                    env[value] = ids[value.arg]
                case Op.RANGE:
                    end = int(env[value.src[0]])  # type: ignore[arg-type]  # a number of one lane
                    if end > 0:
                        env[value] = 0
                        loops.append((at, end))
                    else:
                        at = self.closing[at - 1] + 1
                case Op.IF:
                    if not env[_register(value.src[0])]:
                        at = self.closing[at - 1] + 1
                case Op.END if value.src[0].op is Op.RANGE:
                    again, end = loops[-1]
                    env[value.src[0]] += 1  # type: ignore[operator]  # a loop's counter
                    if env[value.src[0]] < end:  # type: ignore[operator]
                        at = again
                    else:
                        loops.pop()
                case Op.BARRIER:
                    yield at - 1, ()
                case Op.MMA:
                    answer = yield at - 1, tuple([env[_register(s)] for s in value.src])
                    assert answer is not None
                    env[value] = answer


_ACTIONS = frozenset((
    Op.LOAD, Op.STORE, Op.ACC, Op.UPDATE, Op.SPECIAL, Op.RANGE, Op.IF, Op.END, Op.BARRIER, Op.PARAM, Op.SHARED, Op.CONST, Op.VARIABLE,
    Op.MMA, Op.SINK,
))  # fmt: skip


def _register(value: Value) -> Value:
    """Where a value is kept: an update's in its register."""
    return value.src[0] if value.op is Op.UPDATE else value


def _function(value: Value) -> _Function:
    """A pure operation on an environment, lane by lane."""
    src = tuple(_register(s) for s in value.src)
    if value.op is Op.VECTOR:
        return lambda env: tuple([env[s] for s in src])  # type: ignore[misc]  # scalars
    if value.op is Op.EXTRACT:
        lane, vector = integer(value), src[0]
        return lambda env: env[vector][lane]  # type: ignore[index]  # a vector
    function = meaning(value.op, value.dtype, tuple([s.dtype for s in value.src]), value.arg)
    if value.lanes > 1:
        wide = value.lanes

        def by_lane(env: Env) -> Content:
            columns = [x if isinstance(x, tuple) else (x,) * wide for x in [env[s] for s in src]]
            return tuple([function(*numbers) for numbers in zip(*columns, strict=True)])

        return by_lane
    if value.dtype.is_index:
        least, greatest = value.dtype.least, value.dtype.greatest

        def in_range(env: Env) -> Content:
            result = function(*[env[s] for s in src])
            if not least <= result <= greatest:
                raise Fault(f"{value!r} is {result}")
            return result

        return in_range
    return lambda env: function(*[env[s] for s in src])


def _places(parts: Access, env: Env, lanes: int) -> list[int]:
    """The elements an access touches."""
    at = [int(env[_register(s)]) for s in parts.addresses]  # type: ignore[arg-type]  # indices are plain numbers
    if len(at) == 1:
        return list(range(at[0], at[0] + lanes))
    height, width, _ = param(parts.array).image or (0, 0, 0)
    x, y = at
    if not (0 <= x < width and 0 <= y < height):
        raise Fault(f"texel ({x}, {y}) of {parts.array!r}")
    first = (y * width + x) * 4
    return list(range(first, first + 4))


def _load(value: Value, env: Env, memory: _Memory, item: Item) -> Content:
    parts = access(value)
    if parts.gate is not None and parts.alternative is not None and not env[_register(parts.gate)]:
        return env[_register(parts.alternative)]
    places = _places(parts, env, value.lanes)
    found = tuple([memory.load(parts.array, at, item) for at in places])
    return found if value.lanes > 1 else found[0]


def _store(value: Value, env: Env, memory: _Memory, item: Item) -> None:
    parts = access(value)
    if parts.stored is None or (parts.gate is not None and not env[_register(parts.gate)]):
        return
    stored = env[_register(parts.stored)]
    numbers = stored if isinstance(stored, tuple) else (stored,)
    places = _places(parts, env, len(numbers))
    for at, number in zip(places, numbers, strict=True):
        memory.store(parts.array, at, number, item)
