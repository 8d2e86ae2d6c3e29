"""LLVM IR: one function of a module for whatever machine compiles it, in the text that LLVM 15 and later read.

What it links to: exp2, log2 and sin, and their forms for floats, of the C mathematical library. Where `float16` is true, conversions of
half are the machine's: without instructions for them (F16C on x86) they are calls of the compiler's runtime (`__truncsfhf2`,
`__extendhfsf2`). Where it is false, nothing but integers and floats is used.
"""

from __future__ import annotations

from core.passes.machine import Machine
from core.render import llvm
from core.targets.defaults import cpu
from core.targets.target import Target

MACHINE = Machine(target="llvm", vectors=True, images=False, saturates=True, halves_doubles=False)


LLVM = Target(
    name="llvm",
    file_suffix="ll",
    defaults=cpu("llvm", float16=True),
    machine=MACHINE,
    render=llvm.render,
    called=True,
    binaries=("so",),
    promises=("with float16, a machine that has no instructions to convert half needs the compiler's runtime for them",),
)
