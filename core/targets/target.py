"""A target is a description: its words, its defaults, what it must have rewritten, how it is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.device import DeviceOptions
from core.dtypes import FLOAT64
from core.errors import TargetError
from core.ir.parts import param
from core.ir.value import Value
from core.ir.walk import Graph
from core.linear.listing import Listing
from core.passes import emulate
from core.passes.machine import Machine

Watch = Callable[[Value, Value], None]


@dataclass(frozen=True, slots=True)
class Target:
    """One language programs are rendered in.

    defaults: the device options of a request that overrides none. machine: what its language has of operations and types. render: the text;
    raises TargetError for more arguments than a program may have. called: the program is a plain function, so it has no launch sizes and
    every parallel axis is a loop. index64: 64-bit integers exist. sized: the text says how many work-items a group has, so that no runtime
    can choose. vectors: the language has vector types; its compiler may make vectors of loops all the same.
    gpu_only: there is no device of class cpu, with its wide values. lacks: dtypes it has not, whatever the device. arches: those known
    by name, where one selects dtypes and tensor cores. binaries: formats its text can be compiled to, the usual one first. promises: what
    can't be held even in software, in words, for `/targets`.
    """

    name: str
    file_suffix: str
    defaults: DeviceOptions
    machine: Machine
    render: Callable[[Listing, DeviceOptions], str]
    called: bool
    index64: bool = True
    sized: bool = False
    vectors: bool = True
    gpu_only: bool = False
    lacks: frozenset[str] = frozenset()
    arches: tuple[str, ...] = ()
    binaries: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()

    @property
    def images(self) -> bool:
        """Whether there are image arguments."""
        return self.machine.images

    def legalize(self, graph: Graph, device: DeviceOptions, watch: Watch | None = None) -> Graph:
        """A raw graph (its SINK) as one that uses only what the target has. Raises TargetError for what can't be.

        watch: told each value and what became of it.
        """
        return emulate.legalize(graph, device, self.machine, watch)

    def take(self, params: Iterable[Value], device: DeviceOptions) -> None:
        """Raises TargetError for an argument that can't be declared. Whether anything reads it is no matter: it is one all the same."""
        for array in params:
            if array.dtype is FLOAT64 and not device.float64:
                raise TargetError("/device/float64", target=self.name, feature="float64")
            if array.dtype.name in self.lacks:
                raise TargetError("/device/target", target=self.name, feature=array.dtype.name)
            if param(array).image is not None and not self.images:
                raise TargetError("/device/target", target=self.name, feature="images")
