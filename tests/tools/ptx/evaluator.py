"""Programs of the target ptx run from their text; the same interface as a device's runner."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from core.linear.interpret import Fault
from core.reference.bounded import Array
from service.device.run import NotBuilt, Ran, bound, launch_of
from tests.tools.ptx.machine import Threads
from tests.tools.ptx.memory import Memory
from tests.tools.ptx.module import Module, read

AT_ONCE = 1 << 16  # threads
PREFIX = "arg_"


class PtxRunner:
    """Texts read once, and runs of them."""

    def build(self, program: Mapping[str, Any]) -> Module:
        """Raises NotBuilt."""
        try:
            return read(program["source"])
        except Fault as error:
            raise NotBuilt(str(error)) from None

    def run(self, program: Mapping[str, Any], module: Module, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Ran:
        """One launch on copies of the buffers. Raises Fault."""
        values = bound(program["arguments"], variables)
        launch = launch_of(program, values)
        block = launch.group or chosen(launch.items)
        if module.most is not None and any(n > most for n, most in zip(block, module.most, strict=True)):
            raise Fault(f"a block of {block} where the text allows {module.most}")
        if sum(module.shared.values()) > program["shared_bytes"]:
            raise Fault(f"{module.shared} is more than the {program['shared_bytes']} bytes that the program declares")
        held = {number: np.ascontiguousarray(b).view(np.uint8).copy() for number, b in buffers.items()}
        grid = tuple(items // size for items, size in zip(launch.items, block, strict=True))
        blocks = [place[::-1] for place in product(*[range(n) for n in reversed(grid)])]
        size = max(int(np.prod(block)), 1)
        many = max(AT_ONCE // size, 1)
        for first in range(0, len(blocks), many):
            ids = blocks[first : first + many]
            memory = Memory(len(ids), size, module.shared)
            Threads(module, _arguments(program, module, memory, held, values), memory, ids, block).run()
        return Ran({number: held[number].view(buffers[number].dtype) for number in held})


def _arguments(
    program: Mapping[str, Any], module: Module, memory: Memory, held: Mapping[int, Array], values: Mapping[str, int]
) -> dict[str, int]:
    """Per parameter what is passed for it, in the program's order."""
    found: dict[str, int] = {}
    if len(module.parameters) != len(program["arguments"]):
        raise Fault(f"{len(module.parameters)} parameters for {len(program['arguments'])} arguments")
    for (name, kind), argument in zip(module.parameters.items(), program["arguments"], strict=True):
        if argument["kind"] == "variable":
            if kind != "s32" or name != PREFIX + argument["name"]:
                raise Fault(f"the parameter {name} is not the variable {argument['name']}")
            found[name] = values[argument["name"]]
        else:
            if kind != "u64":
                raise Fault(f"the parameter {name} is no pointer")
            found[name] = memory.add(held[argument["index"]], max(argument["alignment"], held_size(argument["dtype"])))
    return found


def held_size(dtype: str) -> int:
    """Bytes of an element in memory."""
    return 1 if dtype == "bool" else int("".join(c for c in dtype if c.isdigit())) // 8


def chosen(items: tuple[int, ...]) -> tuple[int, ...]:
    """A block where the program leaves it to the runtime."""
    return tuple(next((n for n in (4, 3, 2) if count and count % n == 0), 1) for count in items)
