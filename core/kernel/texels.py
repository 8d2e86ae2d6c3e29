"""Along which axes an output image can be written a whole texel at a time: a texel can't be written in part."""

from __future__ import annotations

from collections.abc import Sequence

from core.index import add, number, scale
from core.index.access import Access
from core.index.bounds import is_multiple
from core.index.substitute import substitute
from core.ir.op import Op
from core.ir.value import Value
from core.kernel.leaves import Extent, axis_value

CHANNELS = 4  # of a texel
TEXEL_RULE = "an output image with an axis along which whole texels lie: stride 1, extent and index multiples of 4, none valid in part"
_QUOTIENT = -1  # number of an atom that is no axis of any kernel


def texel_axes(access: Access, axes: Sequence[tuple[Value, Extent]]) -> list[int]:
    """Positions of the axes along which whole texels lie: stride 1, extent and index multiples of 4, no texel valid in part."""
    return [k for k, (axis, extent) in enumerate(axes) if _whole_texels(access, axis, extent)]


def some_texel_axes(access: Access, axes: Sequence[tuple[Value, Extent]]) -> bool:
    """Whether there may be such an axis once neighbours that are one axis have merged: a texel may lie along several short ones."""
    if texel_axes(access, axes):
        return True
    return any(_run_of_texels(access, axes[:end]) for end in range(len(axes), 1, -1))


def _run_of_texels(access: Access, axes: Sequence[tuple[Value, Extent]]) -> bool:
    """Whether the last of these axes and its neighbours make one axis of whole texels."""
    size = 1
    for axis, extent in reversed(axes):
        stride = access.stride(axis, ignoring_validity=True)
        if not isinstance(extent, int) or stride is not number(size) or axis in access.valid.free:
            return False
        size *= extent
        if size % CHANNELS == 0:
            return True
    return False


def _whole_texels(access: Access, axis: Value, extent: Extent) -> bool:
    if axis.op is Op.CONST or not isinstance(extent, int) or extent % CHANNELS:
        return False
    if access.stride(axis, ignoring_validity=True) is not number(1):
        return False
    if not is_multiple(substitute(access.index, {axis: number(0)}), CHANNELS):
        return False
    valid = access.valid
    if axis not in valid.free:
        return True
    texel = scale(axis_value(_QUOTIENT, extent // CHANNELS), CHANNELS)
    first = substitute(valid, {axis: texel})
    return all(substitute(valid, {axis: add(texel, number(c))}) is first for c in range(1, CHANNELS))
