"""LOAD, CONST and STORE: where an element lies, in either spelling, and what a constant is."""

from __future__ import annotations

import math
from collections.abc import Callable

from core.dtypes import DTYPES, DType, Kind, Number
from core.errors import LimitExceeded, Pointer, Said, WireError
from core.kernel.fields import Members, Sizes, integer, items, members
from core.kernel.node import Const, Formula, ImageShape, Leaf, Load, Range, Store, View, Views
from core.limits import Limits

Sources = Callable[[object, Pointer, int, "int | None"], tuple[int, ...]]  # value, the node's pointer, least and greatest count

_VIEW = Members.of("a view", "shape strides", "offset mask")
_SPELLED_OUT = ("shape", "index", "valid")
_LEAVES = {
    ("LOAD", True): Members.of("a LOAD by views", "op buffer dtype views", "image"),
    ("LOAD", False): Members.of("a LOAD by expression", "op buffer dtype shape index", "valid src image"),
    ("STORE", True): Members.of("a STORE by views", "op buffer dtype views src", "image"),
    ("STORE", False): Members.of("a STORE by expression", "op buffer dtype shape index src", "valid image"),
    ("CONST", True): Members.of("a CONST by views", "op dtype views", "value expr"),
    ("CONST", False): Members.of("a CONST by expression", "op dtype shape", "valid value expr"),
}
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_LARGEST_IMAGE = 2**31 - 1  # coordinates of a texel are int32 on every target


def read_leaf(op: str, node: dict[str, object], at: Pointer, sizes: Sizes, limits: Limits, sources: Sources) -> Leaf:
    """One leaf; `sources` reads its `src`."""
    by_views = "views" in node
    if by_views:
        for name in _SPELLED_OUT:
            if name in node:
                raise WireError(at / name, expected="either views or shape, index and valid", got=Said(f"views and {name}"))
    elif "shape" not in node:
        raise WireError(at / "views", expected="views, or shape and index (a CONST: shape)", got=Said("nothing"))
    members(node, _LEAVES[op, by_views], at)
    dtype = read_dtype(node["dtype"], at)
    place: Views | Formula
    if op == "CONST":
        place = _views(node["views"], at, sizes, limits) if by_views else _formula(node, at, sizes, (), ())
        return _const(node, at, dtype, place, sizes)
    buffer = integer(node["buffer"], 0, None, at, "buffer")
    image = _image(node["image"], at / "image") if "image" in node else None
    if op == "LOAD":
        src = sources(node["src"], at, 0, None) if "src" in node else ()
        values = tuple(range(len(src)))
        place = _views(node["views"], at, sizes, limits) if by_views else _formula(node, at, sizes, values, values)
        return Load(buffer, dtype, place, image, src)
    src = sources(node["src"], at, 1, 1 if by_views else None)
    values = tuple(range(1, len(src)))
    place = _views(node["views"], at, sizes, limits) if by_views else _formula(node, at, sizes, (), values)
    return Store(buffer, dtype, place, src, image)


def read_dtype(value: object, at: Pointer) -> DType:
    dtype = DTYPES.get(value) if type(value) is str else None
    if dtype is None:
        raise WireError(at / "dtype", expected=f"one of {', '.join(DTYPES)}", got=value)
    return dtype


def _views(value: object, at: Pointer, sizes: Sizes, limits: Limits) -> Views:
    if type(value) is not list or not value:
        raise WireError(at / "views", expected="a list of views, at least one", got=value)
    if len(value) > limits.views:
        raise LimitExceeded(at / "views", limit="views", needed=len(value), allowed=limits.views)
    return Views(tuple([_view(view, Pointer(f"{at}/views/{k}"), sizes) for k, view in enumerate(value)]))


def _view(value: object, at: Pointer, sizes: Sizes) -> View:
    view = members(value, _VIEW, at)
    shape = sizes.shape(view["shape"], at)
    strides = sizes.list_of_sizes(view["strides"], sizes.declared, len(shape), at, "strides")
    offset = sizes.size(view["offset"], sizes.declared, at, "offset") if "offset" in view else 0
    mask = view.get("mask")
    return View(shape, strides, offset, None if mask is None else _mask(mask, at, sizes, len(shape)))


def _mask(value: object, at: Pointer, sizes: Sizes, rank: int) -> tuple[Range, ...]:
    if type(value) is not list or len(value) != rank:
        raise WireError(at / "mask", expected=f"null or a list of {rank} ranges, one per axis of shape", got=value)
    ranges: list[Range] = []
    for k, pair in enumerate(value):
        if type(pair) is not list or len(pair) != 2:
            raise WireError(at / "mask" / k, expected="a range [begin, end)", got=pair)
        begin = sizes.size(pair[0], sizes.declared, at, "mask", k, 0)
        ranges.append((begin, sizes.size(pair[1], sizes.declared, at, "mask", k, 1)))
    return tuple(ranges)


def _formula(node: dict[str, object], at: Pointer, sizes: Sizes, in_index: tuple[int, ...], in_valid: tuple[int, ...]) -> Formula:
    """in_index, in_valid: the numbers of `src` that may be named there."""
    shape = sizes.shape(node["shape"], at)
    index = sizes.size(node["index"], sizes.scope(len(shape), in_index), at, "index") if "index" in node else None
    if "valid" not in node:
        return Formula(shape, index)
    conditions = items(node["valid"], "a list of comparisons", at, "valid")
    scope = sizes.scope(len(shape), in_valid)
    return Formula(shape, index, tuple([sizes.comparison(text, scope, at, "valid", k) for k, text in enumerate(conditions)]))


def _image(value: object, at: Pointer) -> ImageShape:
    if type(value) is not list or len(value) != 3:
        raise WireError(at, expected="[height, width, 4]", got=value)
    height = integer(value[0], 1, _LARGEST_IMAGE, at, 0)
    width = integer(value[1], 1, _LARGEST_IMAGE, at, 1)
    return height, width, integer(value[2], 4, 4, at, 2)


def _const(node: dict[str, object], at: Pointer, dtype: DType, place: Views | Formula, sizes: Sizes) -> Const:
    if "expr" in node:
        if "value" in node:
            raise WireError(at / "expr", expected="either value or expr", got=Said("both"))
        scope = sizes.declared if isinstance(place, Views) else sizes.scope(len(place.shape))
        return Const(dtype, place, None, sizes.size(node["expr"], scope, at, "expr"))
    if "value" not in node:
        raise WireError(at / "value", expected="value or expr", got=Said("nothing"))
    value = node["value"]
    if dtype.is_float:
        written = _double(value, at)
        return Const(dtype, place, dtype.round(written), None, (), written)
    return Const(dtype, place, _exact(value, dtype, at))


def _exact(value: object, dtype: DType, at: Pointer) -> Number:
    if dtype.kind is Kind.BOOL:
        if type(value) is not bool:
            raise WireError(at / "value", expected="true or false, for a bool", got=value)
        return value
    if type(value) is not int or not dtype.least <= value <= dtype.greatest:
        raise WireError(at / "value", expected=f"an integer from {dtype.least} to {dtype.greatest}, for {dtype.name}", got=value)
    return value


def _double(value: object, at: Pointer) -> float:
    """The double a number reads as: what every reader of JSON makes of it, before it is rounded to the dtype."""
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            pass
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise WireError(at / "value", expected='a number within the range of a double, or "inf", "-inf" or "nan"', got=value)
