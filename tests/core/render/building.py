"""Raw graphs by hand, and what a target makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from core.device import DeviceOptions
from core.dtypes import BOOL, INDEX, VOID, DType, Number
from core.index import FALSE, TRUE, less, number
from core.ir.op import Op
from core.ir.value import Value, constant, make, sink
from core.ir.walk import Graph
from core.linear.branches import branched
from core.linear.listing import Listing
from core.linear.order import linearize
from core.linear.verify import verify
from core.passes.narrow import narrow
from core.targets import TARGETS, Target

OPENCL, C, LLVM = TARGETS["opencl"], TARGETS["c"], TARGETS["llvm"]
EACH = (OPENCL, C, LLVM)


def param(number_: int, dtype: DType, access: str, image: tuple[int, int, int] | None = None, alignment: int = 128) -> Value:
    return make(Op.PARAM, dtype, (), (number_, access, image, alignment))


def point(target: Target, extent: int) -> Value:
    """The index a kernel runs over: a work-item where there is a launch, else a loop."""
    end = number(extent)
    if target.called:
        return make(Op.RANGE, INDEX, (end,), (99, "output"), 1, (0, extent - 1))
    return make(Op.SPECIAL, INDEX, (end,), ("group", 0), 1, (0, extent - 1))


def loop(extent: int, number_: int = 0, role: str = "reduce") -> Value:
    return make(Op.RANGE, INDEX, (number(extent),), (number_, role), 1, (0, extent - 1))


def variable(name: str, least: int, greatest: int) -> Value:
    return make(Op.VARIABLE, INDEX, (), (name, least, greatest), 1, (least, greatest))


def load(
    array: Value, *addresses: Value, lanes: int = 1, gate: Value | None = None, other: Number = 0, dtype: DType | None = None
) -> Value:
    dtype = dtype or array.dtype
    src = (array, *addresses, *((gate, constant(other, dtype, lanes)) if gate is not None else ()))
    return make(Op.LOAD, dtype, src, (len(addresses), gate is not None), lanes)


def store(array: Value, *rest: Value, gate: Value | None = None) -> Value:
    """rest: addresses, then the value."""
    return make(Op.STORE, VOID, (array, *rest, *(() if gate is None else (gate,))), (len(rest) - 1, gate is not None))


def below(x: Value, limit: int) -> Value:
    return less(x, number(limit))


def register(dtype: DType, start: Number, *loops: Value, number_: int = 0, lanes: int = 1) -> Value:
    return make(Op.ACC, dtype, (constant(start, dtype, lanes), *loops), number_, lanes)


def updated(acc: Value, value: Value) -> Value:
    return make(Op.UPDATE, acc.dtype, (acc, value), None, acc.lanes)


def as_type(op: Op, value: Value, dtype: DType) -> Value:
    """A CAST or BITCAST."""
    return make(op, dtype, (value,), None, value.lanes)


def vector(*parts: Value) -> Value:
    return make(Op.VECTOR, parts[0].dtype, parts, None, len(parts))


def lane(value: Value, number_: int) -> Value:
    return make(Op.EXTRACT, value.dtype, (value,), number_)


@dataclass(frozen=True, slots=True)
class Built:
    """A program's text, and the listing it was made from."""

    target: Target
    listing: Listing
    source: str


def program(
    target: Target,
    stores: tuple[Value, ...],
    params: tuple[Value, ...],
    name: str = "k",
    device: DeviceOptions | None = None,
    variables: tuple[tuple[str, int, int], ...] = (),
    local_size: tuple[int, int, int] | None = None,
    **options: object,
) -> Built:
    """What the target writes for these stores. options: device options that differ from its defaults."""
    device = device or replace(target.defaults, **options)  # type: ignore[arg-type]  # names and types are the test's affair
    graph, _ = narrow(target.legalize(Graph.of(sink(stores)), device, None), index64=target.index64)
    sizes = local_size if local_size is not None or target.called else (1, 1, 1)
    listing = Listing(name, params, variables, branched(linearize(graph)), sizes)
    verify(listing)
    return Built(target, listing, target.render(listing, device))


Stores = Callable[[Value, tuple[Value, ...]], tuple[Value, ...]]  # the point, the params → the stores

__all__ = [
    "BOOL",
    "EACH",
    "FALSE",
    "LLVM",
    "OPENCL",
    "TRUE",
    "Built",
    "C",
    "Stores",
    "as_type",
    "below",
    "lane",
    "load",
    "loop",
    "param",
    "point",
    "program",
    "register",
    "store",
    "updated",
    "variable",
    "vector",
]  # fmt: skip
