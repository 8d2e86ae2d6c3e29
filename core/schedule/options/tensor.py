"""TC: a matrix instruction takes the product under the kernel's reduce, a tile at a time.

A compound of cuts, so that lanes and elements hold the result as the instruction leaves it. The operands are read by other lanes' numbers:
lowering substitutes (`core.lower.matrix`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.errors import OptionRefused
from core.fragments import Dim, Layout, layouts_for
from core.index.access import Access
from core.kernel.node import Elementwise, Load, Reduce
from core.schedule.axis import Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.option import ScheduleOption
from core.schedule.options.base import Context, checked, need_locals, need_plain, refused
from core.schedule.options.pad import padto
from core.schedule.tile import Part, Run, Tile, runs

CASTS_FROM = 1  # level from which operands may be converted loads, and several axes reduced
PADS_FROM = 2  # level from which axes are padded to whole tiles
_KINDS = {"w": AxisKind.LOCAL, "e": AxisKind.UPCAST}


def tensor_core(nest: Nest, option: ScheduleOption, context: Context) -> Nest:
    """The first instruction of the device that fits, on the triple of axes that `axis` chooses: 0 the last of them all."""
    if nest.applied:
        raise refused(nest, option, context, "its choices count the axes as built, so it must be the first option")
    need_locals(nest, option, context)
    layouts = layouts_for(context.device)
    if not layouts:
        device = context.device
        raise refused(nest, option, context, f"{device.target} has no tensor cores here (arch {device.arch}, tensor_cores, fast_math)")
    need_plain(nest, option, context)
    try:
        product = _product(nest, option.amount or 0)
        triples = _triples(nest, product)
    except _Unfit as unfit:
        raise refused(nest, option, context, str(unfit)) from None
    choice = option.axis or 0
    if choice >= len(triples):
        raise refused(nest, option, context, f"choice {choice} of {len(triples)} triples of axes", needed=choice, allowed=len(triples) - 1)
    why: dict[str, None] = {}
    for layout in layouts:
        try:
            return checked(nest, _applied(nest, layout, product, triples[-1 - choice], option, context), option, context)
        except _Unfit as unfit:
            why[f"{layout}: {unfit}"] = None
    raise refused(nest, option, context, "no tensor core fits: " + "; ".join(why))


class _Unfit(Exception):
    """Why an instruction does not fit."""


# ---- what is multiplied --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Operand:
    """A factor: the site of the load, of the value as converted (the same without), and the dtypes of both."""

    load: int
    value: int
    loaded: str
    dtype: str


@dataclass(frozen=True, slots=True)
class _Product:
    """x·y, of `dtype`, summed as `total`. level: at which it was asked for."""

    x: _Operand
    y: _Operand
    dtype: str
    total: str
    level: int


def _product(nest: Nest, level: int) -> _Product:
    """The one product under the one reduce."""
    sites, nodes = nest.sites, nest.kernel.nodes
    if len(sites.instances) != 1 or not sites.instances[0].axes:
        raise _Unfit(f"the kernel has {len(sites.instances)} reduces: the instruction takes its one sum of products")
    reduce = next(site for site in sites.sites if site.instance == 0)
    node = nodes[reduce.node]
    if not isinstance(node, Reduce) or node.op != "REDUCE_SUM":
        raise _Unfit(f"the reduce is {getattr(node, 'op', '')}, not a sum")
    if level < CASTS_FROM and len(nest.of_kind(AxisKind.REDUCE)) != 1:
        raise _Unfit(f"{len(nest.of_kind(AxisKind.REDUCE))} axes are reduced; level 0 takes one, level 1 several")
    inner = sites.sites[reduce.src[0]]
    term = nodes[inner.node]
    if isinstance(term, Elementwise) and term.op == "CAST":
        inner = sites.sites[inner.src[0]]
        term = nodes[inner.node]
    if not isinstance(term, Elementwise) or term.op != "MUL":
        raise _Unfit("what is summed is no product")
    x, y = (_operand(nest, site) for site in inner.src)
    return _Product(x, y, term.dtype.name, node.dtype.name, level)


def _operand(nest: Nest, number: int) -> _Operand:
    sites, nodes = nest.sites.sites, nest.kernel.nodes
    node, load = nodes[sites[number].node], number
    if isinstance(node, Elementwise) and node.op == "CAST":
        load = sites[number].src[0]
    source = nodes[sites[load].node]
    if not isinstance(source, Load):
        raise _Unfit(f"a factor is computed by {source.op}, not loaded")
    if source.src or source.image is not None:
        raise _Unfit("a factor is looked up by another node's values" if source.src else "a factor lies in an image")
    return _Operand(load, number, source.dtype.name, node.dtype.name)


def _sources(layout: Layout, product: _Product) -> tuple[int, int]:
    """The sites whose values the instruction multiplies, x's and y's. Raises _Unfit where the types are not its own."""
    core, x, y = layout.core, product.x, product.y
    if product.total != core.accumulator:
        raise _Unfit(f"the sum is {product.total}")
    if product.dtype == core.operand:
        if product.level < CASTS_FROM and (x.load != x.value or y.load != y.value):
            raise _Unfit("a factor is converted, which level 1 takes")
        return x.value, y.value
    if product.dtype == core.accumulator and x.loaded == y.loaded == core.operand:
        return x.load, y.load  # widened before they are multiplied: just what the instruction does
    raise _Unfit(f"the factors are {product.dtype}")


# ---- along which axes ----------------------------------------------------------------------------------------------------------

_Triple = tuple[Axis, Axis, Axis]


def _triples(nest: Nest, product: _Product) -> list[_Triple]:
    """Every (N, M, K): axes along which x stays while y moves, the other way round, and reduced ones; in dictionary order."""
    x, y = (nest.accesses[nest.sites.sites[operand.load].leaf] for operand in (product.x, product.y))

    def moves(access: Access, axis: Axis) -> bool:
        return access.stride(axis.var) is not None and axis.var in access.index.free

    outputs = [a for a in nest.of_kind(AxisKind.GLOBAL) if a.extent != 0]
    n = [a for a in outputs if not x.depends_on(a.var) and moves(y, a)]
    m = [a for a in outputs if not y.depends_on(a.var) and moves(x, a)]
    k = [a for a in nest.of_kind(AxisKind.REDUCE) if x.stride(a.var) is not None and y.stride(a.var) is not None]
    for axes, what in ((n, "the first factor stays and the second moves"), (m, "the second factor stays and the first moves")):
        if not axes:
            raise _Unfit(f"there is no output axis along which {what} by a known stride")
    if not k:
        raise _Unfit("no reduce axis has known strides in both factors")
    return [(i, j, d) for i in n for j in m for d in k]


def _applied(nest: Nest, layout: Layout, product: _Product, triple: _Triple, option: ScheduleOption, context: Context) -> Nest:
    """The nest cut for an instruction: the first way round that needs no padding, else (level 2) padded."""
    x, y = _sources(layout, product)
    n, m, k = triple
    ways: list[tuple[dict[Dim, Axis], int, int]] = [({"m": m, "n": n, "k": k}, x, y), ({"m": n, "n": m, "k": k}, y, x)]
    if not _runs_along(nest, n) and _runs_along(nest, m):  # the other way round the result is contiguous along N, as fragments are
        ways.reverse()
    short = ""
    for axes, a, b in ways:
        short = short or _first_short(layout, axes)
        if not _first_short(layout, axes):
            return _cut(nest, layout, axes, a, b)
    if product.level < PADS_FROM:
        raise _Unfit(f"{short}, which level 2 pads")
    for axes, a, b in ways:
        try:
            return _padded(nest, layout, axes, a, b, option, context)
        except OptionRefused as error:
            short = error.detail
    raise _Unfit(short)


def _runs_along(nest: Nest, axis: Axis) -> bool:
    stride = nest.accesses[nest.stores()[0]].stride(axis.var)
    return stride is not None and stride.lo == stride.hi == 1


def _first_short(layout: Layout, axes: dict[Dim, Axis]) -> str:
    """What is said of the first axis that is no whole number of tiles; nothing where all are."""
    for dim, axis in axes.items():
        if not isinstance(axis.extent, int) or axis.extent == 0 or axis.extent % layout.size(dim):
            extent = axis.extent if isinstance(axis.extent, int) else "symbolic"
            return f"the extent {extent} is no multiple of {layout.size(dim)}"
    return ""


def _padded(
    nest: Nest, layout: Layout, axes: dict[Dim, Axis], a: int, b: int, option: ScheduleOption, context: Context
) -> Nest:  # fmt: skip
    """Padded to whole tiles, then cut. Raises OptionRefused."""
    padded, whole = nest, dict(axes)
    for dim, axis in axes.items():
        if not isinstance(axis.extent, int) or axis.extent % layout.size(dim):
            at = padded.axes.index(axis)
            padded = padto(padded, ScheduleOption("PADTO", at, layout.size(dim)), context)
            whole[dim] = padded.axes[at]
    return _cut(replace(padded, applied=nest.applied), layout, whole, a, b)


# ---- the cuts ------------------------------------------------------------------------------------------------------------------


def _cut(nest: Nest, layout: Layout, axes: dict[Dim, Axis], a: int, b: int) -> Nest:
    """The axes cut into the digits of the result's fragment, the reduced one into whole depths of the instruction."""
    cut = _Cutting(nest, dict(axes))
    depth = cut.digit(Run("k", "", 0, 0, layout.size("k").bit_length() - 1), AxisKind.UNROLL)
    digits = [cut.digit(run, _KINDS[run.letter]) for dim, bits in layout.c.bits.items() for run in runs(dim, bits)]
    digits.sort(key=lambda part: part.run.first)
    lanes = tuple(part for part in digits if part.run.letter == "w")
    elements = tuple(part for part in digits if part.run.letter == "e")
    after = cut.nest
    for part in lanes:
        after = after.placed(part.axis, len(after.of_kind(AxisKind.GLOBAL, AxisKind.LOCAL)))
    for part in (depth, *elements):
        after = after.placed(part.axis, len(after.axes))
    tile = Tile(layout, a, b, lanes, elements, depth.axis, cut.left.get("m"), cut.left.get("n"))
    return replace(after, tile=tile)


class _Cutting:
    """A nest whose axes of a tile are being cut. left: per coordinate what is left of its axis."""

    def __init__(self, nest: Nest, left: dict[Dim, Axis]) -> None:
        self.nest = nest
        self.left = left

    def digit(self, run: Run, kind: AxisKind) -> Part:
        """The low digits of what is left, not yet placed."""
        at = self.nest.axes.index(self.left[run.dim])
        before = len(self.nest.axes)
        self.nest, moved = self.nest.cut(at, 1 << run.length, kind)
        if len(self.nest.axes) < before:
            del self.left[run.dim]
        else:
            self.left[run.dim] = self.nest.axes[at]
        return Part(moved, run)
