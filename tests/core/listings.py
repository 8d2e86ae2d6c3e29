"""Kernels as listings, and what they leave in their buffers: the compiler up to the order of a listing, then the interpreter."""

from __future__ import annotations

from typing import Any

from core import Request, compile_kernel
from core.ir.op import Op
from core.linear.interpret import run
from core.linear.listing import Listing
from core.program import Program

Json = dict[str, Any]


def listing_of(ast: Json, target: str = "c", optimize: object = "none", device: Json | None = None) -> tuple[Listing, Program]:
    """The listing of a kernel, and its program."""
    seen: dict[str, object] = {}
    program = compile_kernel(
        Request.from_json({"ast": ast, "device": {"target": target, **(device or {})}, "optimize": optimize}), watch=seen.__setitem__
    )
    listing = seen["order"]
    assert isinstance(listing, Listing)
    return listing, program


def sizes(of: list[int | str] | None) -> tuple[int, int, int]:
    """A launch size without variables."""
    x, y, z = of or [1, 1, 1]
    return int(x), int(y), int(z)


def left(ast: Json, buffers: dict[int, Any], target: str = "c", optimize: object = "none", device: Json | None = None) -> dict[int, Any]:
    """The buffers after the kernel has run in the interpreter."""
    listing, program = listing_of(ast, target, optimize, device)
    run(listing, buffers, groups=sizes(program.global_size), local_size=sizes(program.local_size))
    return buffers


def loops(listing: Listing, role: str = "reduce") -> int:
    """How many loops of a role are left."""
    return sum(v.op is Op.RANGE and isinstance(v.arg, tuple) and v.arg[1] == role for v in listing.body)
