"""Buffers and variables to try a kernel with: the same for the same seed, and such that the result says much.

Small numbers on a coarse grid (every other seed), so that sums are exact in any order and have to match bit for bit; positive where a
logarithm, a root or a reciprocal follows; indices of look-ups within their table, or just beyond where a condition guards them.
`special` mixes in NaN, infinities, zeros of both signs, subnormals and the ends of ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.dtypes import BOOL, DType
from core.kernel.node import Elementwise, Formula, Kernel, Load, Store
from core.reference.bounded import Array, rounded, stored_type, to_stored
from core.reference.sizes import Interval, buffer_sizes, guarded, place_names, value_ranges

GRID = 8  # values are multiples of a quarter, up to this many quarters from 0
UNWRITTEN = 0xA5  # every byte of an output before the kernel
LOOKUPS = Interval(0, 7)  # what an unguarded index is looked up by
SPECIAL_MOST = 48  # special values in one buffer: more would make every sum NaN
POSITIVE_FOLLOWS = frozenset(("LOG2", "SQRT", "RECIP"))
VARIABLE_STEPS = (5, 0, 64, 11)  # above a variable's least value, by seed


@dataclass(slots=True)
class Role:
    """How a buffer is used."""

    dtype: DType
    loaded: bool = False
    positive: bool = False
    divisor: bool = False
    shift: bool = False
    lookup: Interval | None = None  # the values an index may take from it
    guard: Interval | None = None  # what a condition lets through, beyond which nothing is read
    bare: bool = False  # looked up by without a condition somewhere


def sample_variables(kernel: Kernel, seed: int) -> dict[str, int]:
    """Values within the declared bounds: near the least ones, now and then the least ones themselves."""
    step = VARIABLE_STEPS[seed % len(VARIABLE_STEPS)]
    return {v.name: min(v.max, max(v.min, 0 if step and v.min < 0 else v.min) + step) for v in kernel.variables}


def sample_inputs(kernel: Kernel, variables: Mapping[str, int], seed: int, special: bool = False) -> dict[int, Array]:
    """Every buffer, elements as stored. Buffers that are only written hold UNWRITTEN."""
    roles = _roles(kernel, variables)
    loaded = {number: role.lookup for number, role in roles.items() if role.lookup is not None}
    sizes = buffer_sizes(kernel, variables, loaded)
    buffers: dict[int, Array] = {}
    for number, role in sorted(roles.items()):
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))
        if not role.loaded:
            kind = np.dtype(stored_type(role.dtype))
            buffers[number] = np.full(sizes[number] * kind.itemsize, UNWRITTEN, np.uint8).view(kind)
        elif role.dtype.is_float:
            buffers[number] = to_stored(_floats(role, sizes[number], random, seed, special), role.dtype)
        elif role.dtype is BOOL:
            choices = [0, 1, 7, 255] if special else [0, 1]
            buffers[number] = random.choice(np.array(choices, np.uint8), sizes[number])
        else:
            buffers[number] = _integers(role, sizes[number], random, special)
    return buffers


def sampled_sizes(kernel: Kernel, variables: Mapping[str, int]) -> dict[int, int]:
    """Elements of each buffer `sample_inputs` gives."""
    roles = _roles(kernel, variables)
    return buffer_sizes(kernel, variables, {number: role.lookup for number, role in roles.items() if role.lookup is not None})


def _floats(role: Role, size: int, random: np.random.Generator, seed: int, special: bool) -> Array:
    if role.lookup is not None:
        return rounded(random.integers(0, 8, size) / 8.0, role.dtype)
    if seed % 2 == 0:
        values = random.integers(1 if role.positive else -GRID, GRID + 1, size) / 4.0
    else:
        values = random.standard_normal(size)
        if role.positive and seed % 3:
            values = np.abs(values) + 0.0625
    values = rounded(values, role.dtype)
    if special and size:
        dtype = role.dtype
        greatest = math.ldexp(2.0 - math.ldexp(2.0, -dtype.significand), dtype.exponent_max)
        normal = math.ldexp(1.0, 1 - dtype.exponent_max)
        least = math.ldexp(normal, 1 - dtype.significand)
        odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, greatest, -greatest, normal, -normal, normal / 2, least]
        odd += [1.0, 1.0 + math.ldexp(1.0, 1 - dtype.significand), -1.0, 0.5, 3.0e4]
        values[_places(size, random)] = random.choice(rounded(np.array(odd), dtype), min(SPECIAL_MOST, size // 4 + 1))
    return values


def _integers(role: Role, size: int, random: np.random.Generator, special: bool) -> Array:
    dtype, kind = role.dtype, stored_type(role.dtype)
    least, greatest = int(dtype.least), int(dtype.greatest)
    low, high = (-8, 8) if least else (0, 16)
    if role.divisor:
        low = 1
    if role.shift:
        low, high = 0, dtype.bits - 1
    if role.lookup is not None:
        low, high = int(role.lookup.low), int(role.lookup.high)
    values = random.integers(max(low, least), min(high, greatest), size, np.int64, endpoint=True).astype(kind)
    if role.divisor and least:
        values = np.where(random.integers(0, 2, size) == 0, values, -values).astype(kind)
    if role.guard is not None and size:
        edges = [edge for edge in (role.guard.low - 1, role.guard.high + 1, least, greatest) if least <= edge <= greatest]
        beyond = np.array([int(edge) for edge in edges if _outside(edge, role.guard)], kind)
        if len(beyond):
            values[_places(size, random)] = random.choice(beyond, min(SPECIAL_MOST, size // 4 + 1))
    elif special and size and role.lookup is None:
        ends = [least, greatest, 0, 1, least + 1, greatest - 1, greatest // 2, dtype.bits, dtype.wrap(-1)]
        values[_places(size, random)] = random.choice(np.array(ends, kind), min(SPECIAL_MOST, size // 4 + 1))
    return values


def _outside(edge: float | int, guard: Interval) -> bool:
    return edge < guard.low or edge > guard.high


def _places(size: int, random: np.random.Generator) -> Array:
    return random.choice(size, min(SPECIAL_MOST, size // 4 + 1), replace=False)


def _roles(kernel: Kernel, variables: Mapping[str, int]) -> dict[int, Role]:
    roles: dict[int, Role] = {}
    for node in kernel.nodes:
        if isinstance(node, (Load, Store)):
            role = roles.setdefault(node.buffer, Role(node.dtype))
            role.loaded |= isinstance(node, Load)
    for node in kernel.nodes:
        if isinstance(node, Elementwise) and node.op in POSITIVE_FOLLOWS:
            for number in _sources(kernel, node.src[0], values_only=True):
                roles[number].positive = True
        elif isinstance(node, Elementwise) and node.op in ("IDIV", "MOD", "SHL", "SHR"):
            number_of = _moved(kernel, node.src[1])
            if number_of is not None:
                roles[number_of].divisor |= node.op in ("IDIV", "MOD")
                roles[number_of].shift |= node.op in ("SHL", "SHR")
        elif isinstance(node, Load):
            for source in node.src:
                for number in _sources(kernel, source):
                    roles[number].lookup = roles[number].lookup or LOOKUPS
    for row, node in enumerate(kernel.nodes):
        if isinstance(node, Load) and node.src:
            _guards(kernel, row, variables, roles)
    for role in roles.values():
        _settle(role)
    return roles


def _guards(kernel: Kernel, row: int, variables: Mapping[str, int], roles: dict[int, Role]) -> None:
    """Where a look-up's conditions bound what comes straight from a buffer, that buffer may hold all they let through."""
    load = kernel.nodes[row]
    assert isinstance(load, Load)
    assert isinstance(load.place, Formula)
    ranges = value_ranges(kernel, variables, {})
    names = guarded(load.place, place_names(kernel, row, variables, ranges))
    for k, source in enumerate(load.src):
        number, bound = _moved(kernel, source), names[f"src{k}"]
        if number is None:
            continue
        role = roles[number]
        everything = Interval(role.dtype.least, role.dtype.greatest)
        if role.dtype.is_float or bound & everything == everything:
            role.bare = True
        else:
            role.guard = bound if role.guard is None else role.guard & bound


def _settle(role: Role) -> None:
    """The values to look up by: all that every condition lets through, where no use is without one."""
    if role.bare:
        role.guard = None
    if role.guard is not None:
        low = max(0, role.guard.low)
        role.lookup = Interval(low, role.guard.high if role.guard.high < role.dtype.greatest else low + LOOKUPS.high)


def _moved(kernel: Kernel, row: int) -> int | None:
    """The buffer whose elements a node gives, perhaps converted."""
    node = kernel.nodes[row]
    while isinstance(node, Elementwise) and node.op == "CAST":
        node = kernel.nodes[node.src[0]]
    return node.buffer if isinstance(node, Load) else None


def _sources(kernel: Kernel, row: int, values_only: bool = False) -> set[int]:
    """The buffers a node's value comes from. values_only: not those that only pick a place or a side."""
    seen: set[int] = {row}
    waiting, buffers = [row], set()
    while waiting:
        node = kernel.nodes[waiting.pop()]
        if isinstance(node, Load):
            buffers.add(node.buffer)
        follow = () if isinstance(node, Load) and values_only else node.src
        if isinstance(node, Elementwise) and node.op == "WHERE" and values_only:
            follow = node.src[1:]
        fresh = [source for source in follow if source not in seen]
        seen.update(fresh)
        waiting += fresh
    return buffers
