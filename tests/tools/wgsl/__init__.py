"""WGSL on this machine: two judges of its grammar and rules, and a Vulkan device of the processor that runs it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
MOST = 8  # storage buffers of a program
LACKING = frozenset(("float64", "int64", "uint64"))
_ARITHMETIC = frozenset(("ADD", "MUL", "MULACC", "RECIP", "SQRT", "REDUCE_SUM", "REDUCE_MUL"))


def keeps_specials(ast: Json) -> bool:
    """Whether a kernel's NaN and infinities mean the same on every device: none of them meets arithmetic of the language's own."""
    dtypes: list[str] = []
    for node in ast["nodes"]:
        of = node.get("src", [])
        inner = dtypes[of[node["op"] == "WHERE"]] if of else ""
        dtypes.append("bool" if node["op"] in ("CMPLT", "CMPNE") else node.get("dtype") or inner)
        if node["op"] in _ARITHMETIC and "float" in inner:
            return False
    return True


def lacks(ast: Json) -> bool:
    """Whether a kernel works with what WGSL has not."""
    return any(node.get("dtype") in LACKING for node in ast["nodes"])


def buffers(nodes: list[Json]) -> list[int]:
    return sorted({node["buffer"] for node in nodes if "buffer" in node})


def within(ast: Json) -> list[Json]:
    """Kernels that together compute a kernel's outputs, each with no more buffers than a device must take."""
    if len(buffers(ast["nodes"])) <= MOST:
        return [ast]
    found: list[Json] = []
    for outputs in [ast["outputs"][k : k + 2] for k in range(0, len(ast["outputs"]), 2)]:
        needed, waiting = set(outputs), list(outputs)
        while waiting:
            new = set(ast["nodes"][waiting.pop()].get("src", ())) - needed
            needed |= new
            waiting += new
        rows = {row: number for number, row in enumerate(sorted(needed))}
        nodes = [dict(ast["nodes"][row]) for row in rows]
        numbers = {buffer: number for number, buffer in enumerate(buffers(nodes))}
        for node in nodes:
            node |= {"buffer": numbers[node["buffer"]]} if "buffer" in node else {}
            node |= {"src": [rows[s] for s in node["src"]]} if "src" in node else {}
        found.append(ast | {"nodes": nodes, "outputs": [rows[o] for o in outputs]})
    return found
