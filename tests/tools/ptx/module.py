"""A PTX text read back: what it declares, and its instructions. Only what the renderer writes is understood; anything else is a Fault."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from core.linear.interpret import Fault

_COMMENT = re.compile(r"//.*$", re.MULTILINE)
_ENTRY = re.compile(r"\.visible \.entry (\w+)\((.*?)\)\n(?:\.maxntid (\d+), (\d+), (\d+)\n)?\{\n(.*)\n\}\n$", re.DOTALL)
_PARAMETER = re.compile(r"\.param \.(u64|s32) (\w+)$")
_REGISTERS = re.compile(r"\.reg \.(pred|b16|b32|b64|f32|f64) (.+);$")
_RANGE = re.compile(r"(%[a-z]+)<(\d+)>$")
_SHARED = re.compile(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];$")
_INSTRUCTION = re.compile(r"(?:@(!?)(%\w+) )?([a-z]\w*(?:\.\w+)*)(?: (.*))?;$")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
Operand = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """words: of its name. when: a predicate register, and whether it is negated. operands: those in braces as tuples."""

    words: tuple[str, ...]
    operands: tuple[Operand, ...]
    when: tuple[str, bool] | None
    text: str


@dataclass(slots=True)
class Module:
    """parameters, registers: names with their types. most: threads of a block along each axis, if the text says so.

    shared: names with size in bytes. labels: names with the number of the instruction behind them.
    """

    name: str
    parameters: dict[str, str]
    most: tuple[int, ...] | None
    registers: dict[str, str] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)


def read(text: str) -> Module:
    """Raises Fault for what is not understood, and for registers, labels and symbols that nobody declares."""
    found = _ENTRY.search(_COMMENT.sub("", text))
    if found is None:
        raise Fault("no kernel is found in the text")
    name, parameters, x, y, z, body = found.groups()
    module = Module(name, {}, None if x is None else (int(x), int(y), int(z)))
    for words in filter(None, parameters.split(", ")):
        parameter = _PARAMETER.match(words)
        if parameter is None:
            raise Fault(f"not a parameter: {words}")
        module.parameters[parameter[2]] = parameter[1]
    for line in body.split("\n"):
        _line(module, line.strip())
    _declared(module)
    return module


def _line(module: Module, line: str) -> None:
    if not line:
        return
    if line.endswith(":"):
        if line[:-1] in module.labels:
            raise Fault(f"the label {line} stands twice")
        module.labels[line[:-1]] = len(module.instructions)
    elif line.startswith(".reg"):
        _registers(module, line)
    elif line.startswith(".shared"):
        shared = _SHARED.match(line)
        if shared is None:
            raise Fault(f"not understood: {line}")
        module.shared[shared[2]] = int(shared[3])
    else:
        found = _INSTRUCTION.match(line)
        if found is None:
            raise Fault(f"not understood: {line}")
        negated, predicate, words, operands = found.groups()
        when = None if predicate is None else (predicate, negated == "!")
        module.instructions.append(Instruction(tuple(words.split(".")), _operands(operands or ""), when, line))


def _registers(module: Module, line: str) -> None:
    found = _REGISTERS.match(line)
    if found is None:
        raise Fault(f"not understood: {line}")
    for words in found[2].split(", "):
        several = _RANGE.match(words)
        names = [f"{several[1]}{k}" for k in range(int(several[2]))] if several else [words]
        for name in names:
            if name in module.registers:
                raise Fault(f"the register {name} is declared twice")
            module.registers[name] = found[1]


def _operands(text: str) -> tuple[Operand, ...]:
    return tuple(tuple(words[1:-1].split(", ")) if words[0] == "{" else words for words in _OPERAND.findall(text))


def _declared(module: Module) -> None:
    special = {f"%{word}.{axis}" for word in ("tid", "ctaid", "ntid") for axis in "xyz"}
    for instruction in module.instructions:
        for operand in instruction.operands:
            for words in (operand,) if isinstance(operand, str) else operand:
                for name in re.findall(r"%[a-z_]\w*(?:\.[xyz])?", words):
                    if name not in module.registers and name not in special:
                        raise Fault(f"{name} is not declared: {instruction.text}")
        if instruction.words[0] == "bra" and instruction.operands[0] not in module.labels:
            raise Fault(f"no such label: {instruction.text}")
