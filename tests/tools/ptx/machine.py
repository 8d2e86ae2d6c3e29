"""Threads of many blocks at once, in lock-step: whoever is behind goes first, so that those who parted meet again where their ways join.

A register that is read before it is written, a barrier not all of a block arrive at and a matrix instruction not all of a warp arrive at
are Faults, as is every instruction that is not one the renderer writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.linear.interpret import Fault
from tests.tools.ptx.arithmetic import COMPARED, COMPUTED, TYPES, converted, shifted_left
from tests.tools.ptx.memory import Memory
from tests.tools.ptx.module import Instruction, Module, Operand
from tests.tools.ptx.tensor import WARP, multiplied

Array = Any
MOST_STEPS = 2_000_000  # instructions of a launch: more than any kernel that is tried takes


class Threads:
    """The threads of some blocks. arguments: per parameter an address or an integer. ids: the blocks. block: the sides of one."""

    def __init__(
        self, module: Module, arguments: Mapping[str, int], memory: Memory, ids: list[tuple[int, ...]], block: tuple[int, ...]
    ) -> None:
        self.module, self.arguments, self.memory = module, arguments, memory
        self.size = int(np.prod(block))
        self.count = len(ids) * self.size
        self.held: dict[str, Array] = {}
        self.written: dict[str, Array] = {}  # where a register has been, of those that have not been everywhere
        lane, group = np.arange(self.size), np.array(ids, np.uint32)
        sides = (lane % block[0], lane // block[0] % block[1], lane // (block[0] * block[1]))
        for k, axis in enumerate("xyz"):
            self.held[f"%tid.{axis}"] = np.tile(sides[k], len(ids)).astype(np.uint32)
            self.held[f"%ctaid.{axis}"] = np.repeat(group[:, k], self.size)
            self.held[f"%ntid.{axis}"] = np.full(self.count, block[k], np.uint32)
        self.place = np.zeros(self.count, np.int64)
        self.together: int | None = 0  # where all threads are, if they are at one place
        self.mask: Array = None  # the threads that a step is of; None: all

    def run(self) -> None:
        code = self.module.instructions
        end = len(code)
        with np.errstate(all="ignore"):
            for _ in range(MOST_STEPS):
                at = int(self.place.min()) if self.together is None else self.together
                if at >= end:
                    return
                self.mask = None if self.together is not None else self.place == at
                self._step(code[at], at)
        raise Fault("no end of the kernel is in sight")

    def _step(self, instruction: Instruction, at: int) -> None:
        taken = self._condition(instruction)
        name = instruction.words[0]
        if name in ("bra", "ret"):
            target = self.module.labels[str(instruction.operands[0])] if name == "bra" else len(self.module.instructions)
            self._go(at, target, taken)
            return
        arrived, self.mask = self.mask, taken
        _KINDS.get(name, Threads._computed)(self, instruction)
        self.mask = arrived
        self._go(at, at + 1, self.mask)

    def _condition(self, instruction: Instruction) -> Array:
        """The threads that do an instruction: of those here, whose predicate holds."""
        if instruction.when is None:
            return self.mask
        name, negated = instruction.when
        holds = self._register(name)
        holds = ~holds if negated else holds
        return holds if self.mask is None else holds & self.mask

    def _go(self, at: int, target: int, taken: Array) -> None:
        """On to `target` for those who take it, to the next instruction for the others here."""
        if self.together is not None and (taken is None or taken.all()):
            self.together = target
            return
        if self.together is not None:
            self.place[:] = at
            self.together = None
        here = self.place == at
        self.place[here] = at + 1
        self.place[here if taken is None else taken] = target
        if (self.place == self.place[0]).all():
            self.together = int(self.place[0])

    # ---- registers ---------------------------------------------------------------------------------------------------------

    def _register(self, name: str) -> Array:
        held = self.held.get(name)
        if held is None:
            raise Fault(f"{name} is read before it is written")
        written = self.written.get(name)
        if written is not None and not (written.all() if self.mask is None else written[self.mask].all()):
            raise Fault(f"{name} is read by threads that have not written it")
        return held

    def get(self, operand: Operand, kind: str, *, narrower: bool = False) -> Array:
        """An operand as values of a type. narrower: the register may be wider, its low bits count."""
        dtype = TYPES[kind]
        if isinstance(operand, tuple):
            parts = [self.get(part, "b16").astype(np.uint32) for part in operand]
            return (parts[0] | parts[1] << np.uint32(16)).view(dtype)
        if operand[0] == "%":
            held = self._register(operand)
            if narrower and held.dtype.itemsize > dtype.itemsize:
                return held.astype(np.dtype(f"uint{dtype.itemsize * 8}")).view(dtype)
            if held.dtype.itemsize != dtype.itemsize or (held.dtype.kind == "b") is not (dtype.kind == "b"):
                raise Fault(f"{operand} is no register of {kind}")
            return held.view(dtype)
        return np.broadcast_to(self._constant(operand, kind), (self.count,))

    def _constant(self, operand: str, kind: str) -> Array:
        dtype = TYPES[kind]
        if operand in self.memory.starts:
            return np.array(self.memory.starts[operand]).astype(dtype)
        if operand[:2] in ("0f", "0d"):
            bits = np.array(int(operand[2:], 16), np.uint32 if operand[1] == "f" else np.uint64)
            if bits.dtype.itemsize != dtype.itemsize:
                raise Fault(f"{operand} is no {kind}")
            return bits.view(dtype)
        if dtype.kind == "f":
            raise Fault(f"{operand} is no {kind}")
        number = int(operand, 0)
        if kind == "pred":
            return np.array(bool(number))
        bits = 8 * dtype.itemsize
        return np.array(number & ((1 << bits) - 1), np.dtype(f"uint{bits}")).view(dtype)

    def put(self, operand: Operand, value: Array, *, wider: bool = False) -> None:
        """Writes a register. wider: the register may be, its value is extended."""
        name = str(operand)
        dtype = TYPES[self.module.registers[name]]
        if wider and dtype.itemsize > value.dtype.itemsize and dtype.kind != "f":
            value = value.astype(np.dtype(f"int{dtype.itemsize * 8}")) if value.dtype.kind == "i" else value.astype(dtype)
        if value.dtype.itemsize != dtype.itemsize or (value.dtype.kind == "b") is not (dtype.kind == "b"):
            raise Fault(f"{name} is no register of {value.dtype}")
        value = np.ascontiguousarray(value).view(dtype)
        if self.mask is None:
            self.held[name] = value.copy()
            self.written.pop(name, None)
            return
        before = self.held.get(name)
        if before is None:
            before, self.written[name] = np.zeros(self.count, dtype), np.zeros(self.count, bool)
        self.held[name] = np.where(self.mask, value, before)
        if name in self.written:
            self.written[name] = self.written[name] | self.mask

    # ---- instructions ------------------------------------------------------------------------------------------------------

    def _computed(self, instruction: Instruction) -> None:
        words, kind = ".".join(instruction.words[:-1]), instruction.words[-1]
        function = COMPUTED.get(words)
        if function is None:
            raise Fault(f"not understood: {instruction.text}")
        to, *operands = instruction.operands
        self.put(to, np.asarray(function(kind, *(self.get(x, kind) for x in operands))).astype(TYPES[kind], copy=False))

    def _moved(self, instruction: Instruction) -> None:
        to, x = instruction.operands
        self.put(to, self.get(x, instruction.words[1]))

    def _wide(self, instruction: Instruction) -> None:
        """`mad.wide`: a product of 32 bits as 64, and a sum."""
        if instruction.words[1] != "wide":
            self._computed(instruction)
            return
        kind = instruction.words[2]
        wide = f"{kind[0]}64"
        to, a, b, c = instruction.operands
        self.put(to, self.get(a, kind).astype(TYPES[wide]) * self.get(b, kind).astype(TYPES[wide]) + self.get(c, wide))

    def _shifted(self, instruction: Instruction) -> None:
        kind = instruction.words[1]
        to, a, by = instruction.operands
        how = shifted_left if instruction.words[0] == "shl" else COMPUTED["shr"]
        self.put(to, how(kind, self.get(a, kind), self.get(by, "u32")))

    def _converted(self, instruction: Instruction) -> None:
        *modifier, to, of = instruction.words[1:]
        into, x = instruction.operands
        source = self.get(x, of, narrower=of[0] != "f")
        self.put(into, converted("".join(modifier), to, of, source), wider=True)

    def _compared(self, instruction: Instruction) -> None:
        _, how, kind = instruction.words
        to, a, b = instruction.operands
        self.put(to, COMPARED[how](self.get(a, kind), self.get(b, kind)))

    def _chosen(self, instruction: Instruction) -> None:
        kind = instruction.words[1]
        to, x, y, predicate = instruction.operands
        self.put(to, np.where(self.get(predicate, "pred"), self.get(x, kind), self.get(y, kind)))

    def _pointer(self, instruction: Instruction) -> None:
        to, x = instruction.operands
        self.put(to, self.get(x, "u64"))

    def _barrier(self, instruction: Instruction) -> None:
        blocks = self._all_of(self.size, instruction)
        self.memory.barrier(blocks)

    def _all_of(self, size: int, instruction: Instruction) -> Array:
        """The sets of so many threads that are here as a whole. Raises Fault where one is here in part."""
        if self.count % size:
            raise Fault(f"sets of {size} threads of {self.size}: {instruction.text}")
        here = np.ones(self.count, bool) if self.mask is None else self.mask
        sets = here.reshape(-1, size)
        if (sets.any(1) != sets.all(1)).any():
            raise Fault(f"not all of {size} threads arrive at {instruction.text}")
        return np.nonzero(sets.all(1))[0]

    def _multiplied(self, instruction: Instruction) -> None:
        if self.size % WARP:
            raise Fault(f"a block of {self.size} threads at {instruction.text}")
        self._all_of(WARP, instruction)
        _, _, _, shape, *layout, _, kind, other, _ = instruction.words
        if layout != ["row", "col"] or kind != other:
            raise Fault(f"not understood: {instruction.text}")
        d, a, b, c = instruction.operands
        fragments = [[self.get(x, t) for x in group] for group, t in ((a, "b32"), (b, "b32"), (c, "f32"))]
        for register, value in zip(d, multiplied(shape, kind, *fragments), strict=True):
            self.put(register, value)

    # ---- memory ------------------------------------------------------------------------------------------------------------

    def _accessed(self, instruction: Instruction, place: Operand) -> tuple[Array, Array]:
        """The threads that access memory, and their addresses."""
        base, _, offset = str(place)[1:-1].partition("+")
        kind = "u32" if "shared" in instruction.words else "u64"
        start = self.get(base, kind) + np.array(int(offset or 0) & ((1 << int(kind[1:])) - 1), TYPES[kind])
        threads = np.arange(self.count) if self.mask is None else np.nonzero(self.mask)[0]
        return threads, start[threads]

    def _loaded(self, instruction: Instruction) -> None:
        to, place = instruction.operands
        kind = instruction.words[-1]
        dtype = TYPES[kind]
        if instruction.words[1] == "param":
            argument = self.arguments[str(place)[1:-1]]
            self.put(to, np.full(self.count, argument, dtype))
            return
        lanes = _lanes(instruction, to)
        threads, start = self._accessed(instruction, place)
        if instruction.words[1] == "shared":
            found = self.memory.load_shared(threads, start, len(lanes), dtype)
        else:
            found = self.memory.load(start, len(lanes), dtype, constant="nc" in instruction.words)
        for register, values in zip(lanes, found, strict=True):
            whole = np.zeros(self.count, dtype)
            whole[threads] = values
            self.put(register, whole, wider=True)

    def _stored(self, instruction: Instruction) -> None:
        place, what = instruction.operands
        kind = instruction.words[-1]
        lanes = _lanes(instruction, what)
        threads, start = self._accessed(instruction, place)
        values = [self.get(x, kind, narrower=True)[threads] for x in lanes]
        if instruction.words[1] == "shared":
            self.memory.store_shared(threads, start, values, TYPES[kind])
        else:
            self.memory.store(start, values, TYPES[kind])


def _lanes(instruction: Instruction, operand: Operand) -> tuple[str, ...]:
    lanes = operand if isinstance(operand, tuple) else (operand,)
    if len(lanes) != next((int(w[1:]) for w in instruction.words if w in ("v2", "v4")), 1):
        raise Fault(f"not as many registers as it says: {instruction.text}")
    return lanes


_KINDS = {
    "mov": Threads._moved,
    "mad": Threads._wide,
    "shl": Threads._shifted,
    "shr": Threads._shifted,
    "cvt": Threads._converted,
    "setp": Threads._compared,
    "selp": Threads._chosen,
    "cvta": Threads._pointer,
    "bar": Threads._barrier,
    "mma": Threads._multiplied,
    "ld": Threads._loaded,
    "st": Threads._stored,
}
