"""Attached devices. DEVICES names the kinds there are: how each finds its devices, and how one is driven."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from service.device.device import Device, Facts
from service.device.opencl import Conditions, OpenclDevice, discover


@dataclass(frozen=True, slots=True)
class Kind:
    """discover: the devices of this kind, from a cache folder. drive: one of them, ready to be started."""

    discover: Callable[[str], list[Facts]]
    drive: Callable[[Facts, Conditions], Device]


DEVICES: Mapping[str, Kind] = {"opencl": Kind(discover, OpenclDevice)}


def attached(conditions: Conditions) -> list[Device]:
    """Every device of every kind that this machine has. Takes a second or two; loads no driver into this process."""
    return [kind.drive(facts, conditions) for kind in DEVICES.values() for facts in kind.discover(conditions.cache)]
