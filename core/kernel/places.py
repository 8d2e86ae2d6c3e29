"""What a kernel's places must keep to, whatever the schedule: inside their buffers, no element written twice, no race.

Between `leaves` and `schedule`, on accesses: which spelling a leaf had is forgotten. Each rule is proved, refuted or open. What is refuted
is refused; of the rules about buffers a service can not leave to chance (stores and in-place loads) what is open is refused too; an index
that may be anything stays `unknown` and is named in the proofs of the program.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import KernelError, Pointer, Said
from core.index import at_least, number, subtract
from core.index.access import Access
from core.index.condition import all_of
from core.index.decide import Decider, Outcome, Point
from core.index.enumerate import Points, atoms_of
from core.index.injective import Injective, injective
from core.index.touched import greatest_index, larger
from core.index.unknown import Unknown
from core.ir.op import Op
from core.ir.value import Value
from core.kernel.aliasing import race, reduced_above
from core.kernel.leaves import Leaves
from core.kernel.node import Const, ImageShape, Kernel, Load, Store
from core.kernel.texels import TEXEL_RULE, some_texel_axes


@dataclass(frozen=True, slots=True)
class Places:
    """open: what stays unknown. stores: per row of a store the rule that shows that no two of its points meet."""

    open: tuple[Unknown, ...]
    stores: dict[int, str]


def check_places(kernel: Kernel, leaves: Leaves, rows: tuple[int, ...]) -> Places:
    """The places of a checked kernel. Raises KernelError with the row of the request's table.

    rows: per node of the kernel the row of the table it came from.
    """
    return _Check(kernel, leaves, rows).run()


def touched_sizes(kernel: Kernel, leaves: Leaves, decider: Decider | None = None) -> dict[int, Value]:
    """Per buffer how many elements it must have: an integer or an expression of variables, 0 where nothing is touched.

    A gather whose values are not bounded counts as one element.
    """
    decider = decider or Decider()
    sizes: dict[int, Value] = {}
    for row, node in enumerate(kernel.nodes):
        if isinstance(node, (Load, Store)):
            size = _size(leaves.access(row), node.image, any(leaves.extents[k] == 0 for k in leaves.full_axes(row)), decider)
            before = sizes.get(node.buffer)
            sizes[node.buffer] = size if before is None else larger(before, size)
    return sizes


def unbounded_buffers(kernel: Kernel, leaves: Leaves, decider: Decider | None = None) -> frozenset[int]:
    """The buffers some index of which holds a value that nothing bounds: what is said of their size is no bound."""
    decider = decider or Decider()
    loads = ((row, node) for row, node in enumerate(kernel.nodes) if isinstance(node, Load) and node.src)
    return frozenset(node.buffer for row, node in loads if not leaves.access(row).never and not bounded(leaves.access(row), decider))


def _size(access: Access, image: ImageShape | None, empty: bool, decider: Decider) -> Value:
    if access.never or empty or decider.given(access.valid).impossible:
        return number(0)
    if image is not None:
        return number(image[0] * image[1] * image[2])
    if not bounded(access, decider):
        return number(1)
    size = subtract(greatest_index(access.index, access.valid, decider), number(-1))
    return size if size.op is not Op.CONST else number(max(int(size.arg), 0))  # type: ignore[call-overload]


def bounded(access: Access, decider: Decider) -> bool:
    """Whether `valid`, an unsigned type or a remainder bounds each value of another node in the index."""
    loose = set()
    for atom in access.index.free:
        if atom.op is Op.OPAQUE:
            low, high = decider.given(access.valid).bounds(atom)
            if atom.hi != 1 and (high == atom.hi or (low == atom.lo and low < 0)):  # a bool is 0 or 1 whatever `valid` says
                loose.add(atom)
    stack = [access.index] if loose else []
    while stack:
        x = stack.pop()
        if x in loose:
            return False
        if x.op is not Op.MOD and not loose.isdisjoint(x.free):
            stack.extend(x.src)
    return True


class _Check:
    def __init__(self, kernel: Kernel, leaves: Leaves, rows: tuple[int, ...]) -> None:
        self.kernel, self.leaves, self.rows = kernel, leaves, rows
        self.decider = Decider()
        self.open: list[Unknown] = []
        self.symbolic = {k: at_least(e, number(1)) for k, e in enumerate(leaves.extents) if not isinstance(e, int)}

    def run(self) -> Places:
        kernel, leaves = self.kernel, self.leaves
        stored: dict[int, int] = {}
        loaded: dict[int, list[int]] = {}
        rules: dict[int, str] = {}
        for row, node in enumerate(kernel.nodes):
            if isinstance(node, (Load, Const, Store)):
                self._inside(row, node)
                if isinstance(node, Store):
                    stored[node.buffer] = row
                    rules[row] = self._written_once(row, node)
                elif isinstance(node, Load):
                    loaded.setdefault(node.buffer, []).append(row)
        in_place = [(load, store) for buffer, store in stored.items() for load in loaded.get(buffer, ())]
        above = reduced_above(kernel) if in_place else []
        for load, store in in_place:
            why = race(leaves, load, store, above[load], self.decider)
            if why:
                raise self._refused(load, "each element that is written to be read, if at all, only by the point that writes it", why)
        return Places(tuple(self.open), rules)

    def _refused(self, row: int, expected: str, got: str) -> KernelError:
        at = self.rows[row]
        return KernelError(Pointer("/ast") / "nodes" / at, expected=expected, got=Said(got), node=at)

    def _exists(self, row: int, valid: Value) -> Value:
        """`valid`, and that no symbolic extent of the leaf is 0: there is no point otherwise."""
        if not self.symbolic:
            return valid
        return all_of((valid, *(self.symbolic[k] for k in self.leaves.full_axes(row) if k in self.symbolic)))

    # ---- bounds ----------------------------------------------------------------------------------------------------------

    def _inside(self, row: int, node: Load | Const | Store) -> None:
        access = self.leaves.access(row)
        between = self.leaves.between(row)
        if access.never or any(self.leaves.extents[k] == 0 for k in self.leaves.full_axes(row)):
            return
        plain = isinstance(node, Const) or (access.index.lo >= 0 and node.image is None)  # type: ignore[operator]
        if plain and not between:
            return
        valid = self._exists(row, access.valid)
        buffer = None if isinstance(node, Const) else node.buffer
        for step in between:
            inside = "each view of a stack to stay inside the view before it where all masks hold"
            self._not_negative(row, buffer, step.position, valid, inside, "position {}", step.position)
            above = subtract(subtract(step.size, step.position), number(1))
            self._not_negative(row, buffer, above, valid, inside, "position {}", step.position)
        if isinstance(node, Const):
            return
        rule = "an index that is never negative where the leaf is valid"
        self._not_negative(row, buffer, access.index, valid, rule, "index {}", access.index)
        if node.image is not None:
            channels = node.image[0] * node.image[1] * node.image[2]
            above = subtract(number(channels - 1), access.index)
            rule = f"an index below the image's {channels} channels"
            self._not_negative(row, buffer, above, valid, rule, "index {}", access.index)

    def _not_negative(self, row: int, buffer: int | None, x: Value, valid: Value, expected: str, what: str, shown: Value) -> None:
        found = self.decider.nonnegative(x, valid)
        if found.outcome is Outcome.REFUTED:
            at = found.point or {}
            value = evaluated(shown, at)
            text = what.format(value) if value is not None else what.format(f"at most {shown.hi}")
            raise self._refused(row, expected, f"{text}{_at(self.leaves, at)}")
        if found.outcome is Outcome.UNKNOWN and buffer is not None:
            self.open.append(Unknown("bounds", buffer, row, found.why))

    # ---- stores ----------------------------------------------------------------------------------------------------------

    def _written_once(self, row: int, node: Store) -> str:
        access = self.leaves.access(row)
        if access.never or any(self.leaves.extents[k] == 0 for k in self.leaves.full_axes(row)):
            return "J0"
        found = injective(access, self._axes(row), self.decider)
        if found.outcome is not Outcome.PROVED:
            raise self._refused(row, "a store no two points of which write one element", self._why(found, access))
        axes = [(self.leaves.axes[k], self.leaves.extents[k]) for k in self.leaves.full_axes(row)]
        if node.image is not None and not some_texel_axes(access, axes):
            raise self._refused(row, TEXEL_RULE, "none")
        return found.rule

    def _axes(self, row: int) -> tuple[Value, ...]:
        return tuple(self.leaves.axes[k] for k in self.leaves.full_axes(row))

    def _why(self, found: Injective, access: Access) -> str:
        if found.points is None:
            return found.why
        first, second = found.points
        index = evaluated(access.index, first)
        which = f"index {index}" if index is not None else "one index"
        return f"{which}{_at(self.leaves, first)} and{_at(self.leaves, second)}: {found.why}"


def evaluated(x: Value, at: Point) -> int | None:
    """The number an index value is at a point; None where the point does not say."""
    if any(atom not in at for atom in atoms_of(x)):
        return None
    return int(Points({atom: (n, n) for atom, n in at.items()}).value(x))


def _at(leaves: Leaves, point: Point) -> str:
    """` at axis0 = 1, axis1 = 0, n = 4`."""
    named = [(f"axis{k}", point[axis]) for k, axis in enumerate(leaves.axes) if axis in point]
    named += [(str(a.arg[0]), n) for a, n in point.items() if a.op is Op.VARIABLE]  # type: ignore[index]
    return f" at {', '.join(f'{name} = {n}' for name, n in named)}" if named else ""
