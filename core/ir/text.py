"""Graphs as text and back: one value a line, `name = operation : type [least, greatest]`, each after its operands.

    g0   = launch.global 0, 32       : index [0, 31]
    i1   = g0*64 + 5                 : index [5, 1989]
    buf1 = param{1, "read", none, 4} : float32
    v2   = load buf1[i1]             : float32
    v3   = add v2, 1.0               : float32

Constants stand where they are used, with their type (`5:int8`) where it isn't that of the place. Bounds are written where they say more
than the type. `core.ir.parse` reads it back: `parse(show(g)) is g`. The text depends on the graph alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.dtypes import BOOL, INDEX, INDEX64, VOID, DType
from core.ir.op import OPS, Op
from core.ir.parts import access, coefficients, content
from core.ir.value import Arg, Value
from core.ir.walk import ordered

WIDEST = 72  # columns an operation may take before its type is no longer aligned with the others'

_PREFIX = {
    Op.RANGE: "r", Op.VARIABLE: "n", Op.AXIS: "x", Op.OPAQUE: "x", Op.PARAM: "buf", Op.SHARED: "m", Op.ACC: "a", Op.STORE: "s",
    Op.BARRIER: "b", Op.IF: "k", Op.END: "e", Op.SINK: "k",
}  # fmt: skip
_INFIX = {Op.DIV: "//", Op.MOD: "%"}


def show(root: Value) -> str:
    """The graph under `root`, which is the last line; a final newline."""
    return show_values(ordered(root))


def show_values(values: Iterable[Value]) -> str:
    """These values in this order, what lies in a RANGE or IF up to its END indented; what is used and not among them comes first."""
    return "".join(f"{line}\n" for _, line in lines_of(values))


def lines_of(values: Iterable[Value]) -> list[tuple[Value, str]]:
    """The lines of `show_values`, each with its value."""
    listed = list(values)
    inside = set(listed)
    ahead = [v for v in ordered(*listed) if v not in inside and not v.is_const]
    rows = [v for v in (*ahead, *listed) if not v.is_const or v is listed[-1]]
    names = _named(rows)
    lines = []
    depth = 0
    scopes = any(v.op is Op.END for v in listed)
    for value in rows:
        depth -= value.op is Op.END
        lines.append(("    " * max(depth, 0) + names[value], _body(value, names), _type(value)))
        depth += scopes and value in inside and (value.op is Op.RANGE or value.op is Op.IF)
    first = max((len(name) for name, _, _ in lines), default=0)
    second = max((len(body) for _, body, kind in lines if kind and len(body) <= WIDEST), default=0)
    texts = [f"{name:{first}} = {body:{second if kind else 0}}{' : ' + kind if kind else ''}" for name, body, kind in lines]
    return list(zip(rows, texts, strict=True))


def _named(rows: Sequence[Value]) -> dict[Value, str]:
    names: dict[Value, str] = {}
    taken: set[str] = set()
    for number, value in enumerate(rows):
        name = f"buf{value.arg[0]}" if value.op is Op.PARAM and isinstance(value.arg, tuple) else f"{_prefix(value)}{number}"
        if name in taken:
            name = f"{name}_{number}"
        taken.add(name)
        names[value] = name
    return names


def _prefix(value: Value) -> str:
    if value.op is Op.SPECIAL:
        kind = value.arg[0] if isinstance(value.arg, tuple) and value.arg else None
        return {"global": "g", "local": "l"}.get(str(kind), "w")
    return _PREFIX.get(value.op) or ("i" if value.dtype.is_index else "p" if value.dtype is BOOL else "v")


def _type(value: Value) -> str:
    if value.dtype is VOID and value.lanes == 1:
        return ""
    text = type_text(value.dtype, value.lanes)
    if value.is_const or (value.lo, value.hi) == plain_bounds(value.dtype):
        return text
    return f"{text} [{arg_text(value.lo)}, {arg_text(value.hi)}]"


def type_text(dtype: DType, lanes: int) -> str:
    return f"{dtype.name}*{lanes}" if lanes > 1 else dtype.name


def plain_bounds(dtype: DType) -> tuple[int | None, int | None]:
    """What the type alone says of its values."""
    if dtype is BOOL:
        return 0, 1
    if dtype.is_integer or dtype is INDEX64:
        return int(dtype.least), int(dtype.greatest)
    return None, None


def _items(arg: Arg) -> tuple[Arg, ...]:
    assert isinstance(arg, tuple)
    return arg


def arg_text(arg: Arg) -> str:
    """Any arg, or number, as text: words for none, true and false, names of types bare, strings in double quotes."""
    match arg:
        case None | bool():
            return str(arg).lower()
        case str():
            return '"' + arg.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            return "(" + ", ".join(map(arg_text, arg)) + ")"
        case DType():
            return arg.name
        case _:
            return repr(arg)


def _body(value: Value, names: dict[Value, str]) -> str:
    said = [_operand(value, k, names) for k in range(len(value.src))]
    match value.op:
        case Op.LOAD | Op.STORE if _is_whole(value):
            return _access(value, said)
        case Op.SUM if _is_plain_sum(value):
            return _sum(value, said)
        case Op.DIV | Op.MOD if value.arg is None:
            return f"{said[0]} {_INFIX[value.op]} {said[1]}"
        case Op.LESS if not value.src[0].is_const:
            return f"{said[0]} < {arg_text(value.arg)}"
        case Op.SPECIAL if isinstance(value.arg, tuple) and len(value.arg) == 2 and len(said) == 1:
            return "launch.{} {}, {}".format(*_items(value.arg), said[0])
    word = "loop" if value.op is Op.RANGE else OPS[value.op].name
    inner = arg_text(value.arg)[1:-1] if isinstance(value.arg, tuple) and len(value.arg) != 1 else arg_text(value.arg)
    arg = "" if value.arg is None else f"{{{inner}}}"
    return f"{word}{arg}{' ' if said else ''}{', '.join(said)}"


def _is_plain_sum(value: Value) -> bool:
    """Whether a sum can be written out: of terms that are no constants, one coefficient for each."""
    arg = value.arg
    if not value.src or any(s.is_const for s in value.src) or not isinstance(arg, tuple) or len(arg) != 2:
        return False
    return isinstance(arg[1], tuple) and len(arg[1]) == len(value.src)


def _is_whole(value: Value) -> bool:
    """Whether an access has the operands its arg promises; what is ill-formed has to be shown too."""
    if not isinstance(value.arg, tuple) or len(value.arg) != 2 or not isinstance(value.arg[0], int):
        return False
    count, gated = value.arg
    least: int = 1 + count + (1 + gated if value.op is Op.STORE else 2 * gated)
    return len(value.src) >= least


def _access(value: Value, said: list[str]) -> str:
    parts = access(value)
    count = len(parts.addresses)
    text = f"{OPS[value.op].name} {said[0]}[{', '.join(said[1 : 1 + count])}]"
    rest = said[1 + count :]
    if value.op is Op.STORE:
        text += f" = {rest.pop(0)}"
    if parts.gate is not None:
        text += f" if {rest.pop(0)}"
        if value.op is Op.LOAD:
            text += f" else {rest.pop(0)}"
    return text + (f" after {', '.join(rest)}" if rest else "")


def _sum(value: Value, said: list[str]) -> str:
    first, factors = coefficients(value)
    terms = [name if c == 1 else f"{name}*{c}" for name, c in zip(said, factors, strict=True)]
    if first:
        terms.append(str(first))
    return " + ".join(terms).replace(" + -", " - ")


def _operand(value: Value, place: int, names: dict[Value, str]) -> str:
    source = value.src[place]
    if not source.is_const:
        return names.get(source) or "?"
    text = arg_text(content(source))
    expected = place_type(value.op, value.dtype, value.lanes, place, value.arg, value.src)
    if value.op is not Op.SUM and expected == (source.dtype, source.lanes):
        return text
    return f"{text}:{type_text(source.dtype, source.lanes)}"


SAME = frozenset(op for op, info in OPS.items() if info.elementwise) - {Op.CAST, Op.BITCAST, Op.CMPLT, Op.CMPNE}
INDICES = frozenset((Op.PRODUCT, Op.DIV, Op.MOD, Op.SPECIAL, Op.RANGE))


def place_type(op: Op, dtype: DType, lanes: int, place: int, arg: Arg, src: Sequence[Value | None]) -> tuple[DType, int] | None:
    """The type a constant at this place has unless it says otherwise; operands not known yet are None."""
    if op is Op.WHERE and place == 0:
        return BOOL, lanes
    if op in SAME:
        return dtype, lanes
    if op in INDICES or (op is Op.ACC and place > 0):
        return dtype if op in INDICES else INDEX, 1
    if op is Op.ACC or op is Op.UPDATE:
        return dtype, lanes
    if op is Op.VECTOR:
        return dtype, 1
    if op is Op.CMPLT or op is Op.CMPNE:
        other = src[1 - place]
        return (other.dtype, other.lanes) if other is not None and not other.is_const else None
    if op is Op.MMA and place == 2:
        return dtype, lanes
    if op is Op.ALL or op is Op.IF:
        return BOOL, 1
    if op is Op.LOAD or op is Op.STORE:
        return _place_in_access(op, dtype, lanes, place, arg, src[0])
    return None


def _place_in_access(op: Op, dtype: DType, lanes: int, place: int, arg: Arg, array: Value | None) -> tuple[DType, int] | None:
    count = _items(arg)[0]
    assert isinstance(count, int)
    if place <= count:
        return INDEX, 1
    if op is Op.STORE and place == 1 + count:
        return (array.dtype, 1) if array is not None and not array.is_const else None
    if place == 1 + count or op is Op.STORE:
        return BOOL, 1
    return dtype, lanes
