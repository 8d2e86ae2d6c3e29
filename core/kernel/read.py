"""JSON to Kernel: the grammar of the wire page, and nothing but the grammar.

The only place that knows how a kernel is written. What is returned has known ops, known members, integers in range,
expressions over declared names and references to earlier nodes only; whether shapes, dtypes and buffers make sense is
`check`'s. Nothing recurses: a node refers to rows of the table before it.
"""

from __future__ import annotations

import re

from core.dtypes import BOOL, DType
from core.errors import LimitExceeded, Pointer, Said, WireError
from core.kernel.fields import Members, Sizes, integer, items, members
from core.kernel.node import COMPARISONS, Elementwise, Kernel, Node, Reduce, Variable, value_dtype
from core.kernel.ops import CONVERSIONS, ELEMENTWISE, LEAVES, OPS, REDUCES
from core.kernel.read_leaf import read_dtype, read_leaf
from core.limits import Limits

AST = Pointer("/ast")
_KERNEL = Members.of("the AST", "version variables nodes outputs")
_VARIABLE = Members.of("a variable", "name min max")
_CONVERSION = Members.of("a conversion", "op dtype src")
_REDUCE = Members.of("a reduce", "op axes src")
_ELEMENTWISE = Members.of("an elementwise node", "op src")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TAKEN = re.compile(r"(?:axis|src)[0-9]+", re.ASCII)
_INT32 = (-(2**31), 2**31 - 1)


def read_kernel(ast: object, limits: Limits | None = None, at: Pointer = AST) -> Kernel:
    """The kernel as written, every row. Raises WireError, or LimitExceeded, with the place."""
    limits = limits or Limits()
    body = members(ast, _KERNEL, at)
    if type(body["version"]) is not int or body["version"] != 1:
        raise WireError(at / "version", expected="1", got=body["version"])
    variables = _variables(body["variables"], at / "variables", limits)
    rows = items(body["nodes"], "a list of nodes", at, "nodes")
    if len(rows) > limits.nodes:
        raise LimitExceeded(at / "nodes", limit="nodes", needed=len(rows), allowed=limits.nodes)
    nodes = _nodes(rows, at / "nodes", limits, Sizes(limits, variables))
    return Kernel(variables, nodes, _outputs(body["outputs"], at / "outputs", len(rows)))


def _variables(value: object, at: Pointer, limits: Limits) -> tuple[Variable, ...]:
    rows = items(value, "a list of variables", at)
    if len(rows) > limits.variables:
        raise LimitExceeded(at, limit="variables", needed=len(rows), allowed=limits.variables)
    variables: dict[str, Variable] = {}
    for k, row in enumerate(rows):
        variable = members(row, _VARIABLE, at, k)
        name = variable["name"]
        if type(name) is not str or not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
            raise WireError(at / k / "name", expected="a name: [A-Za-z_][A-Za-z0-9_]*, not axis or src followed by digits", got=name)
        if name in variables:
            raise WireError(at / k / "name", expected="a name not declared before", got=name)
        least = integer(variable["min"], *_INT32, at, k, "min")
        variables[name] = Variable(name, least, integer(variable["max"], least, _INT32[1], at, k, "max"))
    return tuple(variables.values())


def _nodes(rows: list[object], table: Pointer, limits: Limits, sizes: Sizes) -> tuple[Node, ...]:
    nodes: list[Node] = []
    dtypes: list[DType] = []  # of each node's value

    def sources(value: object, at: Pointer, least: int, greatest: int | None) -> tuple[int, ...]:
        if type(value) is not list or len(value) < least or (greatest is not None and len(value) > greatest):
            count = str(least) if least == greatest else f"at least {least}"
            raise WireError(at / "src", expected=f"a list of {count} earlier node{'s' * (greatest != 1)}", got=value)
        row = len(nodes)
        for k, source in enumerate(value):
            if type(source) is not int or not 0 <= source < row:
                earlier = f"an integer from 0 to {row - 1}" if row else "none, since this is the first"
                raise WireError(at / "src" / k, expected=f"the index of an earlier node: {earlier}", got=source)
        return tuple(value)

    for row, value in enumerate(rows):
        at = Pointer(f"{table}/{row}")
        if type(value) is not dict:
            raise WireError(at, expected="a node: an object", got=value)
        op = value.get("op")
        node: Node
        if type(op) is not str:
            raise WireError(at / "op", expected=f"one of {', '.join(OPS)}", got=op if "op" in value else Said("nothing"))
        if op in ELEMENTWISE:
            operands = ELEMENTWISE[op].operands
            src = sources(members(value, _ELEMENTWISE, at)["src"], at, operands, operands)
            node = Elementwise(op, BOOL if op in COMPARISONS else dtypes[src[-1 if op == "WHERE" else 0]], src)
        elif op in LEAVES:
            node = read_leaf(op, value, at, sizes, limits, sources)
        elif op in CONVERSIONS:
            members(value, _CONVERSION, at)
            node = Elementwise(op, read_dtype(value["dtype"], at), sources(value["src"], at, 1, 1))
        elif op in REDUCES:
            members(value, _REDUCE, at)
            src = sources(value["src"], at, 1, 1)
            node = Reduce(op, dtypes[src[0]], _axes(value["axes"], at), src)
        else:
            raise WireError(at / "op", expected=f"one of {', '.join(OPS)}", got=op)
        nodes.append(node)
        dtypes.append(value_dtype(node))
    return tuple(nodes)


def _axes(value: object, at: Pointer) -> tuple[int, ...]:
    axes = items(value, "a list of axes, at least one, ascending", at, "axes")
    if not axes:
        raise WireError(at / "axes", expected="a list of axes, at least one, ascending", got=value)
    found: list[int] = []
    for k, axis in enumerate(axes):
        if type(axis) is not int or axis < 0:
            raise WireError(at / "axes" / k, expected="an axis: an integer from 0", got=axis)
        if found and axis <= found[-1]:
            raise WireError(at / "axes" / k, expected=f"axes ascending, each once: more than {found[-1]}", got=axis)
        found.append(axis)
    return tuple(found)


def _outputs(value: object, at: Pointer, rows: int) -> tuple[int, ...]:
    if type(value) is not list or not value:
        raise WireError(at, expected="a list of indices of STORE nodes, at least one", got=value)
    for k, row in enumerate(value):
        if type(row) is not int or not 0 <= row < rows:
            raise WireError(at / k, expected=f"the index of a node, from 0 to {rows - 1}" if rows else "a node to refer to", got=row)
    return tuple(value)
