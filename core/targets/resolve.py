"""The `device` object of a request, checked key by key and completed with its target's defaults.

A key the format does not have, or a value of the wrong form, is a `wire` error; a value that the target has no way to use
is a `target` error; limits that exclude each other once everything is resolved are a `wire` error again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from core.device import DeviceOptions, TensorCore, Triple
from core.dtypes import DTYPES
from core.errors import Pointer, Said, TargetError, WireError
from core.targets import TARGETS
from core.targets.defaults import tensor_cores_of
from core.targets.target import Target

DEVICE = Pointer("/device")
_KEYS = tuple(field.name for field in fields(DeviceOptions))
_LONGEST_ARCH = 100  # characters; the longest device names are some 60
_GREATEST = 2**63 - 1


def resolve_device(value: object, at: Pointer = DEVICE) -> DeviceOptions:
    """Every option with its value."""
    if type(value) is not dict:
        raise WireError(at, expected="an object with target, and options to override", got=value)
    for name in value:
        if name not in _KEYS:
            raise WireError(at / name, expected=f"no such member: a device has {', '.join(_KEYS)}", got=value[name])
    name = value.get("target")
    target = TARGETS.get(name) if type(name) is str else None
    if target is None:
        raise WireError(at / "target", expected=f"one of {', '.join(TARGETS)}", got=name if "target" in value else Said("nothing"))
    if len(value) == 1:
        return target.defaults
    given: dict[str, Any] = {name: _READERS[name](value[name], at / name) for name in value if name != "target"}
    device = replace(target.defaults, **given)  # each value was read by its key's own reader
    _check_target(target, device, given, at)
    _check_limits(device, given, at)
    return device


def _boolean(value: object, at: Pointer) -> bool:
    if type(value) is not bool:
        raise WireError(at, expected="true or false", got=value)
    return value


def _class(value: object, at: Pointer) -> str:
    if type(value) is not str or value not in ("gpu", "cpu"):
        raise WireError(at, expected='"gpu" or "cpu"', got=value)
    return value


def _arch(value: object, at: Pointer) -> str | None:
    if value is not None and (type(value) is not str or not 0 < len(value) <= _LONGEST_ARCH or not value.isprintable()):
        raise WireError(at, expected=f"null or a string of 1 to {_LONGEST_ARCH} printable characters", got=value)
    return value if value is None else str(value)


def _positive(value: object, at: Pointer) -> int:
    if type(value) is not int or not 0 < value <= _GREATEST:
        raise WireError(at, expected="a positive integer", got=value)
    return value


def _limit(value: object, at: Pointer) -> int | None:
    if value is not None and (type(value) is not int or not 0 < value <= _GREATEST):
        raise WireError(at, expected="a positive integer, or null for no limit", got=value)
    return value if value is None else _positive(value, at)


def _triple(value: object, at: Pointer) -> Triple | None:
    if value is None:
        return None
    if type(value) is not list or len(value) != 3:
        raise WireError(at, expected="null or three limits, x first: positive integers or nulls", got=value)
    x, y, z = (_limit(item, at / k) for k, item in enumerate(value))
    return x, y, z


def _bytes(value: object, at: Pointer) -> int:
    if type(value) is not int or not 0 <= value <= _GREATEST:
        raise WireError(at, expected="a number of bytes: an integer from 0", got=value)
    return value


def _power_of_two(value: object, at: Pointer) -> int:
    if type(value) is not int or not 0 < value <= _GREATEST or value & (value - 1):
        raise WireError(at, expected="a power of two: 1, 2, 4, …", got=value)
    return value


def _tensor_cores(value: object, at: Pointer) -> bool | tuple[TensorCore, ...]:
    if type(value) is bool:
        return value
    if type(value) is not list:
        raise WireError(at, expected="true, false or a list of tensor cores", got=value)
    found: list[TensorCore] = []
    for k, item in enumerate(value):
        core = _tensor_core(item, at / k)
        if core in found:
            raise WireError(at / k, expected="each tensor core once", got=item)
        found.append(core)
    return tuple(found)


def _tensor_core(value: object, at: Pointer) -> TensorCore:
    if type(value) is not dict:
        raise WireError(at, expected="an object with dims, in and acc", got=value)
    for name in value:
        if name not in ("dims", "in", "acc"):
            raise WireError(at / name, expected="no such member: a tensor core has dims, in and acc", got=value[name])
    for name in ("dims", "in", "acc"):
        if name not in value:
            raise WireError(at / name, expected=f"a member {name!r}: a tensor core requires it", got=Said("nothing"))
    dims = value["dims"]
    if type(dims) is not list or len(dims) != 3:
        raise WireError(at / "dims", expected="three integers: M, N, K", got=dims)
    m, n, k = (_positive(item, at / "dims" / i) for i, item in enumerate(dims))
    for name in ("in", "acc"):
        if type(value[name]) is not str or value[name] not in DTYPES:
            raise WireError(at / name, expected=f"one of {', '.join(DTYPES)}", got=value[name])
    return TensorCore((m, n, k), value["in"], value["acc"])


_READERS: dict[str, Callable[[object, Pointer], object]] = {
    "device_class": _class,
    "arch": _arch,
    "has_local": _boolean,
    "has_shared": _boolean,
    "supports_float4": _boolean,
    "global_max": _triple,
    "local_max": _triple,
    "lanes_max": _limit,
    "shared_max": _bytes,
    "alignment": _power_of_two,
    "float16": _boolean,
    "float64": _boolean,
    "fast_math": _boolean,
    "tensor_cores": _tensor_cores,
}


def _check_target(target: Target, device: DeviceOptions, given: dict[str, Any], at: Pointer) -> None:
    """Values this target has no way to use. A default never is one, so only what was given can be."""

    def refuse(name: str, feature: str) -> TargetError:
        return TargetError(at / name, target=target.name, feature=feature)

    if target.called:
        for name, feature in (("has_local", "work-groups"), ("has_shared", "shared memory"), ("shared_max", "shared memory")):
            if given.get(name):
                raise refuse(name, feature)
        for name in ("global_max", "local_max", "lanes_max"):
            if given.get(name) is not None:
                raise refuse(name, "launch, and so no limit on one")
    if not target.vectors and device.supports_float4:
        raise refuse("supports_float4", "vectors")
    if "float64" in target.lacks and device.float64:
        raise refuse("float64", "float64")
    if target.gpu_only and device.device_class == "cpu":
        raise refuse("device_class", "cpu: it is a language of gpus")
    if target.called and device.device_class == "gpu":
        raise refuse("device_class", "gpu: its programs are plain functions")
    if target.arches and device.arch not in target.arches:
        raise refuse("arch", f"architecture {device.arch!r} that is known; known are {', '.join(target.arches)}")
    if isinstance(device.tensor_cores, tuple):
        known = tensor_cores_of(target.name, device.arch, device.fast_math)
        for k, core in enumerate(device.tensor_cores):
            if core not in known:
                m, n, depth = core.dims
                name = f"{m}x{n}x{depth} of {core.operand} into {core.accumulator}"
                where = "without fast_math" if core in tensor_cores_of(target.name, device.arch, True) else f"at arch {device.arch}"
                raise TargetError(at / "tensor_cores" / k, target=target.name, feature=f"tensor core {name} {where}")


def _check_limits(device: DeviceOptions, given: dict[str, Any], at: Pointer) -> None:
    """Limits that exclude each other, whichever of the two was given."""
    if device.has_shared and not device.has_local:
        name = "has_shared" if "has_shared" in given else "has_local"
        raise WireError(at / name, expected="has_shared false where has_local is: shared memory is a work-group's", got=given[name])
