"""A kernel with its axes: the value schedule options are functions of.

Immutable. Every move an option is made of (cutting an axis, giving it another kind, padding it) is a substitution in every access, and
gives a new nest that shares the rest with the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from core.index import TRUE, add, all_of, less, number, scale
from core.index.access import Access
from core.index.substitute import Substitution
from core.ir.value import Value
from core.kernel.leaves import Extent, axis_value
from core.kernel.node import Const, Kernel, Load, Store
from core.schedule.axis import EXPANDED, OF_OUTPUT, Axis, AxisKind
from core.schedule.option import ScheduleOption
from core.schedule.sites import SiteTable
from core.schedule.tile import Tile


@dataclass(frozen=True, slots=True)
class Nest:
    """kernel: canonical and checked. sites: who is computed where. axes: in the order of their kinds.

    accesses: per leaf number of the site table its place over the axes' atoms. inside: per reduce class the condition that a point is one
    of the kernel's and not of padding. applied: the options so far. next_number: for the atom of the next new axis. tile: the matrix
    instruction that takes the product under the kernel's reduce; without it the same axes mean plain arithmetic.
    """

    kernel: Kernel
    sites: SiteTable
    axes: tuple[Axis, ...]
    accesses: tuple[Access, ...]
    inside: tuple[Value, ...]
    next_number: int
    applied: tuple[ScheduleOption, ...] = ()
    no_locals: bool = False
    tile: Tile | None = None

    @property
    def first_reduce(self) -> int:
        """How many axes stand before the reduce part: global, local and loop ones."""
        return sum(a.kind in (AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.LOOP) for a in self.axes)

    @property
    def expanded(self) -> tuple[Axis, ...]:
        """Unrolled and upcast axes, in order: the digits of an element's number."""
        return tuple(a for a in self.axes if a.kind in EXPANDED)

    def of_kind(self, *kinds: AxisKind) -> tuple[Axis, ...]:
        return tuple(a for a in self.axes if a.kind in kinds)

    def has_axis(self, leaf: int, axis: Axis) -> bool:
        """Whether a leaf is full on an axis of the nest (output axes: always; its index may ignore it)."""
        if axis.reduce_class == OF_OUTPUT:
            return True
        binding = self.sites.leaves[leaf][1]
        return any(binding[k] == axis.reduce_class for k in axis.wires)

    def loads(self) -> list[int]:
        """Numbers of the leaves that are loads."""
        return [n for n, (row, _) in enumerate(self.sites.leaves) if isinstance(self.kernel.nodes[row], Load)]

    def stores(self) -> list[int]:
        """Numbers of the leaves that are stores, one per output."""
        return [n for n, (row, _) in enumerate(self.sites.leaves) if isinstance(self.kernel.nodes[row], Store)]

    def constants(self) -> list[int]:
        return [n for n, (row, _) in enumerate(self.sites.leaves) if isinstance(self.kernel.nodes[row], Const)]

    def describe(self) -> str:
        """The axes as people write them: `g12 g4 l16 r96 u4`."""
        return " ".join(f"{a.kind.value}{size_text(a.extent)}" for a in self.axes) or "none"

    # ---- moves -------------------------------------------------------------------------------------------------------

    def new_axis(self, extent: Extent, kind: AxisKind, of: Axis, number_: int) -> Axis:
        """An axis made from another: a new atom, the same class and origin."""
        return Axis(axis_value(number_, extent), extent, kind, of.reduce_class, of.wires)

    def cut(self, at: int, amount: int, kind: AxisKind, *, top: bool = False) -> tuple[Nest, Axis]:
        """Axis `at` cut in two: the part of extent `amount` gets `kind` and is handed back, not yet placed; the rest stays where it was.

        amount divides the extent. top: the moved part takes the high digits. A rest of extent 1 disappears.
        """
        axis = self.axes[at]
        rest_extent = axis.size // amount
        rest = self.new_axis(rest_extent, axis.kind, axis, self.next_number)
        moved = self.new_axis(amount, kind, axis, self.next_number + 1)
        whole = add(scale(moved.var, rest_extent), rest.var) if top else add(scale(rest.var, amount), moved.var)
        kept = (*self.axes[:at], *((rest,) if rest_extent != 1 else ()), *self.axes[at + 1 :])
        return replace(self.replaced({axis.var: whole}), axes=kept, next_number=self.next_number + 2), moved

    def padded(self, at: int, extent: int) -> Nest:
        """Axis `at` with a larger extent; every access that has the axis is valid below the old one only."""
        axis = self.axes[at]
        wide = self.new_axis(extent, axis.kind, axis, self.next_number)
        below = less(wide.var, number(axis.size))
        moved = self.replaced({axis.var: wide.var})
        stores = set(self.stores()) if axis.reduce_class == OF_OUTPUT else ()
        accesses = tuple(
            Access(a.index, all_of((a.valid, below))) if n in stores or a.depends_on(wide.var) else a for n, a in enumerate(moved.accesses)
        )
        inside = tuple(all_of((c, below)) if n == axis.reduce_class else c for n, c in enumerate(moved.inside))
        axes = (*self.axes[:at], wide, *self.axes[at + 1 :])
        return replace(moved, axes=axes, accesses=accesses, inside=inside, next_number=self.next_number + 1)

    def replaced(self, mapping: dict[Value, Value]) -> Nest:
        """Atoms replaced in every access and padding condition."""
        substitution = Substitution(mapping)
        return replace(
            self,
            accesses=each_once(self.accesses, lambda access: access.substituted(substitution)),
            inside=tuple(substitution(c) if c is not TRUE else c for c in self.inside),
        )

    def without(self, at: int) -> Nest:
        """With axis `at` taken out of the list; accesses go on naming its atom."""
        return replace(self, axes=(*self.axes[:at], *self.axes[at + 1 :]))

    def placed(self, axis: Axis, at: int) -> Nest:
        """With `axis` inserted before position `at`; an axis of extent 1 is none."""
        if axis.extent == 1:
            return self
        return replace(self, axes=(*self.axes[:at], axis, *self.axes[at:]))

    def after(self, option: ScheduleOption) -> Nest:
        """With one more option in the list of those applied."""
        return replace(self, applied=(*self.applied, option))


def each_once(accesses: tuple[Access, ...], moved: Callable[[Access], Access]) -> tuple[Access, ...]:
    """Every access moved; equal ones, of which some kernels have hundreds, once."""
    done: dict[tuple[Value, Value], Access] = {}
    for access in accesses:
        key = (access.index, access.valid)
        if key not in done:
            done[key] = moved(access)
    return tuple([done[a.index, a.valid] for a in accesses])


def size_text(extent: Extent) -> str:
    """An extent as people and names write it."""
    from core.ir.size_text import expression_text

    return str(extent) if isinstance(extent, int) else expression_text(extent)


def product(extents: Sequence[int]) -> int:
    result = 1
    for e in extents:
        result *= e
    return result
