"""Sharing partial results in local memory: every lane publishes its own, a barrier, then each lane that needs the total reads them all.

A slot's number is row-major over the lane axes (local, group, mid) and then the elements, so that elements lie side by side. Each grouped
reduce has an array of its own: no lane can overwrite what a slower one still reads, and one barrier suffices.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.device import DeviceOptions
from core.dtypes import VOID, DType
from core.index import add, number, scale
from core.index.bounds import is_multiple
from core.ir.op import Op
from core.ir.value import Value, cast, make
from core.lower.axes import Launch
from core.lower.elements import Elements, joined, points
from core.lower.phase import Phase
from core.schedule.axis import Axis, AxisKind
from core.schedule.nest import Nest
from core.schedule.options.base import extent_of

MOST_BYTES = 16  # of one vector access: what every target aligns local arrays to


@dataclass(frozen=True, slots=True)
class Shared:
    """array: the SHARED value. barrier: after it every lane's partial results are there."""

    array: Value
    barrier: Value


class Slots:
    """The local memory of one nest."""

    def __init__(self, nest: Nest, device: DeviceOptions, launch: Launch, order: tuple[Axis, ...]) -> None:
        self.lanes = nest.of_kind(AxisKind.LOCAL, AxisKind.GROUP, AxisKind.MID)
        self.mapping = launch.mapping
        self.order = order
        self.vectors = device.supports_float4

    def publish(self, instance: int, dtype: DType, partial: Elements) -> Shared:
        """Each lane's partial results, stored."""
        elements = len(partial.values)
        array = make(Op.SHARED, dtype, (), (instance, extent_of(self.lanes) * elements))
        base = scale(self._lane(dict(self.mapping)), elements)
        values = [cast(v, dtype) for v in partial.values]
        width = self._width(dtype, [add(base, number(k)) for k in range(elements)])
        stores = []
        for k in range(0, elements, width):
            value = values[k] if width == 1 else make(Op.VECTOR, dtype, tuple(values[k : k + width]), None, width)
            stores.append(make(Op.STORE, VOID, (array, add(base, number(k)), value), (1, False)))
        return Shared(array, make(Op.BARRIER, VOID, tuple(stores)))

    def collect(self, shared: Shared, partial: Elements, loops: dict[Axis, Value], phase: Phase, tokens: tuple[Value, ...]) -> Elements:
        """What a lane reads of the others': one value per element in each turn of `loops`, which stand for the reduced group axes."""
        mids = tuple(a for a in self.lanes if a.kind is AxisKind.MID) if phase is Phase.AFTER else ()
        axes = joined(self.order, [partial, Elements(mids, ())])
        elements = len(partial.values)
        at = {**self.mapping, **{axis.var: loop for axis, loop in loops.items()}}
        addresses = []
        for digits in points(axes):
            lane = self._lane({**at, **{a.var: number(digits[a]) for a in mids}})
            addresses.append(add(scale(lane, elements), number(_element(partial.axes, digits))))
        width = self._width(shared.array.dtype, addresses)
        values: list[Value] = []
        for k in range(0, len(addresses), width):
            load = make(Op.LOAD, shared.array.dtype, (shared.array, addresses[k], *tokens), (1, False), width)
            values.extend([load] if width == 1 else [make(Op.EXTRACT, load.dtype, (load,), lane) for lane in range(width)])
        return Elements(axes, tuple(values))

    def _lane(self, at: dict[Value, Value]) -> Value:
        """The number of a lane in row-major order of the lane axes."""
        result: Value = number(0)
        for axis in self.lanes:
            result = add(scale(result, axis.size), at[axis.var])
        return result

    def _width(self, dtype: DType, addresses: list[Value]) -> int:
        """Lanes of vector accesses that take all addresses in order, `width` side by side each time."""
        for width in (4, 2) if self.vectors else ():
            if width * dtype.itemsize > MOST_BYTES or len(addresses) % width:
                continue
            starts = range(0, len(addresses), width)
            if all(is_multiple(addresses[k], width) and _side_by_side(addresses[k : k + width]) for k in starts):
                return width
        return 1


def _side_by_side(addresses: list[Value]) -> bool:
    return all(address is add(addresses[0], number(k)) for k, address in enumerate(addresses))


def _element(axes: tuple[Axis, ...], digits: dict[Axis, int]) -> int:
    element, weight = 0, 1
    for axis in axes:
        element += digits[axis] * weight
        weight *= axis.size
    return element
