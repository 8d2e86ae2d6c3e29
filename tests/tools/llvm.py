"""LLVM IR compiled in this process, as whoever asks for it would: optimised, for this very processor. Start a process of its own for it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # it says nothing of its types

from core.reference.bounded import Array
from service.device.run import NotBuilt, Ran, bound
from tests.tools.guarded import Guarded


@dataclass(frozen=True, slots=True)
class Compiled:
    """address: of a function in memory that lives as long as its engine."""

    address: int
    engine: Any


class LlvmRunner:
    """Programs as functions in this process, with the same interface as an OpenCL device's runner.

    level: of optimisation, 0 to 3; at 0 no pass runs. host: for the instructions this processor has, not only those every one has.
    """

    def __init__(self, level: int = 2, *, host: bool = True) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.level = level
        self._processor = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()) if host else ("", "")

    def build(self, program: Mapping[str, Any]) -> Compiled:
        """The program's function. Raises NotBuilt where the text is no module."""
        machine = self._machine()
        engine = llvm.create_mcjit_compiler(self._module(program["source"], machine), machine)
        engine.finalize_object()
        return Compiled(engine.get_function_address(program["name"]), engine)

    def _machine(self) -> Any:
        """One for each engine, which it belongs to and ends with."""
        cpu, features = self._processor
        return llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=self.level)

    def _module(self, source: str, machine: Any) -> Any:
        """A text as a verified module, after the passes of this level."""
        try:
            module = llvm.parse_assembly(source)
            module.verify()
        except RuntimeError as error:
            raise NotBuilt(str(error)) from None
        if self.level:
            options = llvm.create_pipeline_tuning_options(speed_level=self.level)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
            builder = llvm.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        return module

    def run(self, program: Mapping[str, Any], kernel: Compiled, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Ran:
        guarded = Guarded(program, buffers, bound(program["arguments"], variables))
        function = ctypes.CFUNCTYPE(None, *(type(argument) for argument in guarded.arguments))(kernel.address)
        function(*guarded.arguments)
        return guarded.ran()
