"""The steps for a CPU: what its compilers make of a kernel. Wide vectors along unit strides, few fat work-items, no needless groups."""

from __future__ import annotations

from core.schedule.axis import AxisKind
from core.schedule.heuristic.state import State, extent, matrix_operands, option, outputs_before_reduce, stride_of

VECTORS = (16, 8, 4)  # elements of a vector tile, the widest that divides the axis
SCALARS = (4,)  # where the language has no vectors: what compilers join to one again, and no more statements than that
VERY_FEW_OUTPUTS = 32  # outputs whose reduces are worth sharing among lanes


def wide_unit_stride(state: State) -> None:
    """Vectors along the axis the store (or, in a reduce, a load) runs along."""
    nest = state.nest
    store = nest.stores()[0]
    widths = VECTORS if state.device.supports_float4 else SCALARS
    for at in range(nest.first_reduce):
        axis = nest.axes[at]
        if stride_of(nest, store, axis) == 1 and axis.kind in (AxisKind.GLOBAL, AxisKind.LOOP):
            width = next((w for w in widths if extent(axis) and extent(axis) % w == 0), None)
            if width is not None:
                state.attempt("wide vectors", f"{width} neighbouring elements are one vector", option("UPCAST", at, width))
            return


def cpu_tiles(state: State) -> None:
    """A second tile axis in matrix products: each vector of one operand serves several rows of the other."""
    nest = state.nest
    if matrix_operands(nest) is None or not nest.expanded:
        return
    vectors = [leaf for leaf in nest.loads() if any(stride_of(nest, leaf, e) == 1 for e in nest.expanded)]
    for at in range(nest.first_reduce - 1, -1, -1):
        axis = nest.axes[at]
        if any(stride_of(nest, leaf, axis) == 0 for leaf in vectors):
            amount = next((a for a in (4, 3, 2) if extent(axis) and extent(axis) % a == 0), None)
            if amount is not None:
                state.attempt("tiles", f"one vector serves {amount} rows", option("UPCAST", at, amount))
            return


def shared_reduce(state: State) -> None:
    """Very few outputs: neighbouring lanes take neighbouring elements, which the device's compiler makes one vector loop."""
    nest, device = state.nest, state.device
    outputs = outputs_before_reduce(nest)
    if not (device.has_local and device.has_shared and nest.sites.is_plain) or outputs is None or outputs > VERY_FEW_OUTPUTS:
        return
    if nest.expanded or not nest.of_kind(AxisKind.REDUCE):
        return
    axis = nest.axes[nest.first_reduce + len(nest.of_kind(AxisKind.REDUCE)) - 1]
    for size in (16, 8):
        if extent(axis) >= 64 and extent(axis) % size == 0:
            at = len(nest.of_kind(AxisKind.REDUCE)) - 1
            if state.attempt("shared reduce", f"{size} lanes side by side are one vector of partial sums", option("GROUP", at, size)):
                state.stopped = True
            return
